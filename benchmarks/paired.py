"""Two sides, each in its own process, taking turns in a random order: one ratio a round."""

import json
import random
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import IO

from benchmarks import settled

_LONG = 1.0
"""Seconds from which a call is timed once."""

_OFFLINE = {"HF_HUB_OFFLINE": "1"}
"""Nothing is fetched while it is timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is measured: rounds of each ratio, spread over so many fresh pairs of processes.

    `python` runs the product; `peers` runs the other packages, None where they are not installed.
    """

    rounds: int
    fresh: int
    python: str
    peers: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What a side's process makes: `module:function`, its arguments, which packages it needs."""

    factory: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    threads: int = 1
    peers: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """A bar's number in each round, and what else is worth reading."""

    values: tuple[float, ...]
    details: Mapping[str, object] = field(default_factory=dict)


def ratio(ours: Side, other: Side, effort: Effort) -> Measured:
    """Time of `ours` ÷ time of `other`, in each round; the milliseconds of both as details."""
    times: dict[str, list[float]] = {"ours": [], "other": []}
    sides = {"ours": ours, "other": other}
    for rounds in _shares(effort):
        with ExitStack() as stack:
            running = {name: stack.enter_context(_run(sides[name], effort)) for name in sides}
            for _ in range(rounds):
                for name in random.sample(list(sides), len(sides)):
                    times[name].append(_turn(running[name]))
    values = tuple(a / b for a, b in zip(times["ours"], times["other"], strict=True))
    return Measured(values, {f"{name}_ms": [1e3 * x for x in times[name]] for name in sides})


def once(side: Side, effort: Effort) -> float:
    """The quickest of a few turns of a side in a fresh process, in seconds; a long one has one."""
    with _run(side, effort) as running:
        first = _turn(running)
        return min([first, *(_turn(running) for _ in range(4 if first < _LONG else 0))])


def _shares(effort: Effort) -> Iterator[int]:
    """Rounds of each fresh pair: as even as can be."""
    fresh = min(effort.fresh, effort.rounds)
    for at in range(fresh):
        yield effort.rounds // fresh + (at < effort.rounds % fresh)


@contextmanager
def _run(side: Side, effort: Effort) -> Iterator[subprocess.Popen[str]]:
    command = [_python(side, effort), "-m", "benchmarks.side"]
    process = subprocess.Popen(
        [*command, side.factory, json.dumps(dict(side.arguments))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=settled.ROOT,
        env=settled.environment(side.threads, **_OFFLINE),
    )
    try:
        _line(process)
        yield process
    finally:
        _of(process.stdin).close()
        process.wait()


def _python(side: Side, effort: Effort) -> str:
    if not side.peers:
        return effort.python
    if effort.peers is None:
        raise LookupError("the other packages are not installed")
    return effort.peers


def _turn(process: subprocess.Popen[str]) -> float:
    given = _of(process.stdin)
    given.write("\n")
    given.flush()
    return float(_line(process))


def _line(process: subprocess.Popen[str]) -> str:
    line = _of(process.stdout).readline()
    if not line:
        raise RuntimeError(f"a side stopped: {process.args!r}")
    return line


def _of(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def told(
    module: str, arguments: Mapping[str, object], effort: Effort, *, peers: bool = False
) -> dict[str, object]:
    """What a module prints as JSON when it is run on its own with arguments."""
    side = Side(factory="", peers=peers)
    done = subprocess.run(
        [_python(side, effort), "-m", module, json.dumps(dict(arguments))],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        cwd=settled.ROOT,
        env=settled.environment(1, **_OFFLINE),
    )
    found: dict[str, object] = json.loads(done.stdout)
    return found
