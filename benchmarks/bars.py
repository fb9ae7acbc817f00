"""The bars: what is measured, what to reach, what to aim at. One list feeds run and page."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One line of the table.

    `reach` None: no bar, a number to read beside the others. `at_least`: larger is better.
    `peers`: other packages are needed. `unit`: "×" is a ratio.
    """

    name: str
    what: str
    reach: float | None = None
    aim: float | None = None
    unit: str = "×"
    at_least: bool = False
    peers: bool = False

    def met(self, value: float) -> bool | None:
        """Whether a value reaches the bar; None where there is none."""
        if self.reach is None:
            return None
        return value >= self.reach if self.at_least else value <= self.reach

    def worse(self, value: float, other: float) -> float:
        """By which share a value is worse than another; negative where it is better."""
        change = value / other - 1 if other else 0.0
        return -change if self.at_least else change


def _lens(what: str) -> str:
    return f"{what} ÷ TransformerLens run_with_cache"


_KEPT = "one block, every listed stage kept"

BLOCK = (
    Bar(name="block-16", what=f"{_KEPT}, n = 16 ÷ bare", reach=1.12, aim=1.04),
    Bar(name="block-128", what=f"{_KEPT}, n = 128 ÷ bare", reach=1.12, aim=1.04),
    Bar(name="block-512", what=f"{_KEPT}, n = 512 ÷ bare", reach=1.15, aim=1.04),
    Bar(name="block-1024", what=f"{_KEPT}, n = 1024 ÷ bare", reach=1.18, aim=1.04),
    Bar(name="heads-128", what="and every head's contribution, n = 128", reach=1.25, aim=1.12),
    Bar(name="heads-512", what="and every head's contribution, n = 512", reach=1.25, aim=1.12),
    Bar(name="erf-512", what="the same with erf GELU, n = 512", reach=1.25),
    Bar(name="threads-512", what="two threads, n = 512 ÷ bare", reach=1.20, aim=1.03),
    Bar(name="threads-1024", what="two threads, n = 1024 ÷ bare", reach=1.25, aim=1.03),
)

PEERS = (
    Bar(name="torch-128", what="block, n = 128 ÷ PyTorch eager", reach=1.03, aim=0.95, peers=True),
    Bar(name="torch-512", what="block, n = 512 ÷ PyTorch eager", reach=0.97, aim=0.88, peers=True),
    Bar(name="lens-16", what=_lens("block, n = 16"), reach=0.70, aim=0.55, peers=True),
    Bar(name="lens-128", what=_lens("block, n = 128"), reach=0.82, aim=0.70, peers=True),
    Bar(name="lens-512", what=_lens("block, n = 512"), reach=0.92, aim=0.80, peers=True),
    Bar(
        name="lens-heads-128",
        what="with contributions, n = 128 ÷ TransformerLens use_attn_result",
        reach=0.88,
        aim=0.72,
        peers=True,
    ),
    Bar(
        name="lens-heads-512",
        what="with contributions, n = 512 ÷ TransformerLens use_attn_result",
        reach=0.95,
        aim=0.82,
        peers=True,
    ),
    Bar(name="lens-stack", what=_lens("12 blocks, n = 512"), reach=0.95, aim=0.85, peers=True),
    Bar(name="lens-kept-128", what="n = 128 ÷ TransformerLens, our stages alone", peers=True),
    Bar(name="lens-kept-512", what="n = 512 ÷ TransformerLens, our stages alone", peers=True),
    Bar(name="lens-native-128", what="n = 128 ÷ TransformerLens' own model", peers=True),
    Bar(name="lens-native-512", what="n = 512 ÷ TransformerLens' own model", peers=True),
    Bar(name="transformers-128", what="n = 128 ÷ transformers, pattern and stream", peers=True),
    Bar(name="transformers-512", what="n = 512 ÷ transformers, pattern and stream", peers=True),
    Bar(name="nnsight-128", what="n = 128 ÷ nnsight, 8 values saved", peers=True),
    Bar(name="nnsight-512", what="n = 512 ÷ nnsight, 8 values saved", peers=True),
)

MEMORY = (
    Bar(
        name="memory-all",
        what="peak memory of a full 12-block trace, n = 512 ÷ bytes of its outputs",
        reach=1.10,
        aim=1.01,
    ),
    Bar(
        name="memory-last",
        what="the same with only the last resid_post kept, beyond weights",
        reach=65,
        aim=30,
        unit="MiB",
    ),
)

SMALL = (
    Bar(
        name="small",
        what="small model, all stages, in process ÷ a function written by hand",
        reach=1.6,
        aim=1.2,
    ),
)

WIRE = (
    Bar(
        name="asgi-small",
        what="small request over ASGI ÷ (hello world + compute + orjson)",
        reach=1.6,
        aim=1.25,
    ),
    Bar(
        name="json-answer",
        what="JSON answer of (12, 128, 128) + (12, 128, 768) ÷ (compute + orjson)",
        reach=1.15,
        aim=1.05,
    ),
    Bar(
        name="safetensors-answer",
        what="safetensors answer of the same ÷ (compute + one copy)",
        reach=1.10,
        aim=1.03,
    ),
    Bar(
        name="json-parse",
        what="strict parse of a (512, 768) JSON input ÷ (orjson.loads + np.asarray)",
        reach=1.25,
        aim=1.1,
    ),
    Bar(name="base64-parse", what="the same input as base64", reach=0.35, aim=0.27),
)

SERVICE = (
    Bar(
        name="rate-typed",
        what="requests a second, 8 connections, small model ÷ a typed FastAPI endpoint",
        reach=1.7,
        aim=3,
        at_least=True,
    ),
    Bar(
        name="rate-naive",
        what="requests a second, 8 connections, small model ÷ a naive FastAPI endpoint",
        reach=18,
        aim=40,
        at_least=True,
    ),
    Bar(
        name="stall-answer",
        what="event loop's longest stall, answer of a million elements",
        reach=20,
        aim=5,
        unit="ms",
    ),
    Bar(
        name="stall-binary",
        what="event loop's longest stall, binary body of a million elements",
        reach=20,
        aim=5,
        unit="ms",
    ),
    Bar(
        name="stall-json",
        what="event loop's longest stall, JSON body of a million elements",
        reach=120,
        aim=90,
        unit="ms",
    ),
    Bar(
        name="stream-memory",
        what="memory of a streamed 12-block trace ÷ (two blocks' kept stages + 16 MiB)",
        reach=1,
    ),
    Bar(
        name="start",
        what="import and start to first answer ÷ a hello world that imports NumPy",
        reach=2,
        aim=1.5,
    ),
    Bar(name="start-healthz", what="the same, first answer of GET /healthz"),
)

REST = (
    Bar(
        name="flops",
        what="time ÷ predicted FLOPs over n, d, blocks: largest distance from the median",
        reach=20,
        unit="%",
    ),
    Bar(
        name="error",
        what="largest error against float64 ÷ largest entry, every stage",
        reach=1e-6,
        aim=5e-7,
    ),
)

BARS = (*BLOCK, *PEERS, *MEMORY, *SMALL, *WIRE, *SERVICE, *REST)

BY_NAME = {bar.name: bar for bar in BARS}


def chosen(only: list[str], peers: bool) -> Iterator[Bar]:
    """The bars of a run: those named (a name, or its beginning), or all; peers' where asked."""
    for bar in BARS:
        named = not only or any(bar.name == name or bar.name.startswith(name) for name in only)
        if named and (peers or not bar.peers):
            yield bar
