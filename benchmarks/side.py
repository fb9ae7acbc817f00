"""A side of a ratio, in a process of its own: makes a call, then times it whenever it is told.

    python -m benchmarks.side MODULE:FACTORY '{"argument": value}'

Each line on standard input is a turn: warm up, then time the call for a while; the median goes to
standard output, in seconds. Sides take turns, so that what a noisy moment does to one it does to
the other of its round.
"""

import gc
import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable

Call = Callable[[], object]

WARM, TIMED, MOST = 0.08, 0.06, 200
"""Seconds of warming up, seconds of timing, most calls of a turn."""


def main() -> None:
    """Make the side, say so, take turns until the input ends."""
    call = made(sys.argv[1], json.loads(sys.argv[2]))
    print("ready", flush=True)
    for _ in sys.stdin:
        print(json.dumps(turn(call)), flush=True)


def made(factory: str, arguments: dict[str, object]) -> Call:
    """What a factory, named as `module:function`, gives for its arguments."""
    module, name = factory.split(":")
    call: Call = getattr(importlib.import_module(module), name)(**arguments)
    return call


def turn(call: Call) -> float:
    """The median time of a call, in seconds, after warming up."""
    until = time.perf_counter() + WARM
    while time.perf_counter() < until:
        call()
    gc.collect()
    times: list[float] = []
    until = time.perf_counter() + TIMED
    while not times or (len(times) < MOST and time.perf_counter() < until):
        times.append(seconds(call))
    return statistics.median(times)


def seconds(call: Call) -> float:
    """How long one call takes; what it gives is let go outside of the time."""
    start = time.perf_counter()
    kept = call()
    elapsed = time.perf_counter() - start
    del kept
    return elapsed


if __name__ == "__main__":
    main()
