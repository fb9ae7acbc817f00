"""One block over its bare products, and over what other packages take for the same stages."""

from collections.abc import Callable, Mapping

from benchmarks.paired import Effort, Measured, Side, ratio

_LENS = "benchmarks.peers.lens"


def ours(positions: int, threads: int = 1, **more: object) -> Side:
    """The product's block."""
    arguments = {"positions": positions, **more}
    return Side(factory="benchmarks.sides.ours:block", arguments=arguments, threads=threads)


def bare(positions: int, threads: int = 1) -> Side:
    """Its products alone."""
    arguments = {"positions": positions}
    return Side(factory="benchmarks.sides.bare:products", arguments=arguments, threads=threads)


def peer(factory: str, positions: int, **more: object) -> Side:
    """Another package's block."""
    return Side(factory=factory, arguments={"positions": positions, **more}, peers=True)


PAIRS: Mapping[str, tuple[Side, Side]] = {
    **{f"block-{n}": (ours(n), bare(n)) for n in (16, 128, 512, 1024)},
    **{f"heads-{n}": (ours(n, contributions=True), bare(n)) for n in (128, 512)},
    "erf-512": (ours(512, activation="gelu"), bare(512)),
    **{f"threads-{n}": (ours(n, threads=2), bare(n, threads=2)) for n in (512, 1024)},
    **{f"torch-{n}": (ours(n), peer("benchmarks.peers.eager:block", n)) for n in (128, 512)},
    **{f"lens-{n}": (ours(n), peer(f"{_LENS}:block", n)) for n in (16, 128, 512)},
    **{
        f"lens-heads-{n}": (
            ours(n, contributions=True),
            peer(f"{_LENS}:block", n, contributions=True),
        )
        for n in (128, 512)
    },
    **{f"lens-kept-{n}": (ours(n), peer(f"{_LENS}:block", n, ours_alone=True)) for n in (128, 512)},
    **{f"lens-native-{n}": (ours(n), peer(f"{_LENS}:native", n)) for n in (128, 512)},
    **{
        f"transformers-{n}": (ours(n), peer("benchmarks.peers.plain_transformers:block", n))
        for n in (128, 512)
    },
    **{
        f"nnsight-{n}": (ours(n), peer("benchmarks.peers.traced_nnsight:block", n))
        for n in (128, 512)
    },
}
"""Bar -> the sides of its ratio."""


def _measure(pair: tuple[Side, Side]) -> Callable[[Effort], Measured]:
    return lambda effort: ratio(*pair, effort)


MEASURES = {name: _measure(pair) for name, pair in PAIRS.items()}
"""Bar -> how it is measured."""
