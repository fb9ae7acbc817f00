"""A traced block over its bare matrix products, in one run: the price of seeing everything.

    python benchmarks/block.py [--positions 128 512] [--rounds 15]

The block: d = 768, 12 heads, d_ff = 3072, causal, LayerNorm, gelu, biases everywhere, float32,
one BLAS thread; every primary stage is kept, in fresh memory; identities are not checked. Bare:
the same block's products alone (Q K V, Q K^T, A V, W_O, W_in, W_out) on arrays made beforehand,
with full attention matrices. Both sides run in this process with the same malloc and BLAS
settings; their order is shuffled; the ratio is the median of the rounds' ratios.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable

import settled

LIMIT = 1.35


def main() -> int:
    """Print a line for each length; exit 1 where a ratio is above the limit."""
    asked = _arguments()
    ratios = [_ratio(positions, asked.rounds) for positions in asked.positions]
    return int(any(ratio > LIMIT for ratio in ratios))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--positions", type=int, nargs="+", default=[128, 512])
    parser.add_argument("--rounds", type=int, default=15)
    return parser.parse_args()


def _ratio(positions: int, rounds: int) -> float:
    from benchmarks.sides import bare_products, traced_block  # noqa: PLC0415 - after the settings

    sides: dict[str, Callable[[], object]] = {
        "traced": traced_block(positions),
        "bare": bare_products(positions),
    }
    times: dict[str, list[float]] = {name: [] for name in sides}
    _warm_up(sides)
    for _ in range(rounds):
        for name in random.sample(list(sides), len(sides)):
            times[name].append(_seconds(sides[name]))
    ratio = statistics.median(
        traced / bare for traced, bare in zip(times["traced"], times["bare"], strict=True)
    )
    bare, traced = (1e3 * statistics.median(times[name]) for name in ("bare", "traced"))
    print(f"n = {positions:5}: bare {bare:7.1f} ms, traced {traced:7.1f} ms, ratio {ratio:.3f}")
    return ratio


def _warm_up(sides: dict[str, Callable[[], object]]) -> None:
    for side in sides.values():
        until = time.perf_counter() + 0.3
        while time.perf_counter() < until:
            side()


def _seconds(side: Callable[[], object]) -> float:
    start = time.perf_counter()
    kept = side()
    elapsed = time.perf_counter() - start
    del kept
    return elapsed


if __name__ == "__main__":
    settled.restart()
    raise SystemExit(main())
