"""The service in a process of its own: requests a second, stalls of its loop, memory, start."""

import base64
import random
import time
from collections.abc import Callable
from contextlib import ExitStack

import orjson

from benchmarks import load, resident, serving
from benchmarks.groups.wire import models
from benchmarks.paired import Effort, Measured, told
from benchmarks.serving import Server
from benchmarks.sides import kept, requests, ticking
from benchmarks.sides.requests import Asked

_CONNECTIONS = 8
_DEPTH, _POSITIONS = 12, 512
_MIB = 1 << 20
_QUIET = 3.0
_HELLO = load.raw("GET", "/", {}, b"")


def _posted(asked: Asked, path: str = "/v1/trace") -> bytes:
    return load.raw("POST", path, asked.sent, asked.body)


def rates(rival: str) -> Callable[[Effort], Measured]:
    """Requests a second of the product ÷ those of an endpoint, at 8 connections."""

    def measure(effort: Effort) -> Measured:
        with models("small") as folder, ExitStack() as stack:
            ours = stack.enter_context(serving.product(effort.python, folder))
            other = stack.enter_context(serving.endpoint(effort.python, rival))
            asked = {"ours": (ours, _posted(requests.small())), "other": (other, _rows())}
            for server, _ in asked.values():
                serving.wait(server)
                serving.keep_to(server.process.pid, 0)
            found: dict[str, list[float]] = {"ours": [], "other": []}
            for _ in range(effort.rounds):
                for name in random.sample(list(asked), len(asked)):
                    found[name].append(_rate(*asked[name], effort))
        values = tuple(a / b for a, b in zip(found["ours"], found["other"], strict=True))
        return Measured(values, {f"{name}_per_second": each for name, each in found.items()})

    return measure


def _rows() -> bytes:
    given = requests.tensor(kept.SMALL_POSITIONS, kept.SMALL.d)
    return _posted(Asked(orjson.dumps(given, option=orjson.OPT_SERIALIZE_NUMPY)), "/")


def _rate(server: Server, request: bytes, effort: Effort) -> float:
    arguments = {
        "port": server.port,
        "request": base64.b64encode(request).decode(),
        "connections": _CONNECTIONS,
        "warm": 0.3,
        "seconds": 1.5,
    }
    return float(str(told("benchmarks.load", arguments, effort)["rate"]))


def stalls(make: Callable[[], Asked]) -> Callable[[Effort], Measured]:
    """The longest stall of the event loop, in milliseconds, while one request is answered."""

    def measure(effort: Effort) -> Measured:
        request, found = _posted(make()), []
        with models("large") as folder:
            named = {"GLASSBLOCK_MODELS": folder, "GLASSBLOCK_LOG_LEVEL": "error"}
            with serving.endpoint(effort.python, "ticking", **named) as server:
                serving.wait(server)
                load.one(server.port, request)
                for _ in range(effort.rounds):
                    _stall(server)
                    time.sleep(0.05)
                    load.one(server.port, request)
                    found.append(_stall(server))
        return Measured(tuple(found))

    return measure


def _stall(server: Server) -> float:
    return float(load.one(server.port, load.raw("GET", ticking.PATH, {}, b"")))


def stream_memory(effort: Effort) -> Measured:
    """Peak beyond weights and idle ÷ (two blocks' kept stages + 16 MiB)."""
    allowed = 2 * _block_bytes() + 16 * _MIB
    values = []
    with models("deep") as folder:
        for _ in range(min(3, effort.rounds)):
            more = dict.fromkeys(("answer_elements", "binary_elements"), str(1 << 30))
            more["memory_bytes"] = str(1 << 33)
            with serving.product(effort.python, folder, **more) as server:
                serving.wait(server)
                values.append(_beyond_idle(server))
    return Measured(
        tuple(value / allowed for value in values),
        {"allowed_mib": allowed / _MIB, "mib": [value / _MIB for value in values]},
    )


def _beyond_idle(server: Server) -> float:
    load.one(server.port, _posted(requests.first(_DEPTH)))
    time.sleep(_QUIET)  # the service gives back what it freed
    resident.forget_peak(server.process.pid)
    before = resident.now(server.process.pid)
    load.read_and_drop(server.port, _posted(requests.streamed(_DEPTH, _POSITIONS)))
    return resident.peak(server.process.pid) - before


def _block_bytes() -> int:
    d, heads, d_ff = kept.LARGE.d, kept.LARGE.heads, kept.LARGE.d_ff
    streams, wide, square = 10 * d, 2 * d_ff, 2 * heads * _POSITIONS
    return 4 * _POSITIONS * (streams + wide + square)


def starts(ours: bytes) -> Callable[[Effort], Measured]:
    """From the start of the process to the first answer ÷ the same for the hello world."""

    def measure(effort: Effort) -> Measured:
        found: dict[str, list[float]] = {"ours": [], "other": []}
        with models("small") as folder:
            for at in range(effort.rounds + 1):
                for name in random.sample(list(found), len(found)):
                    seconds = _first_answer(name, folder, ours, effort)
                    if at:  # the first round compiles and fills the page cache
                        found[name].append(seconds)
        values = tuple(a / b for a, b in zip(found["ours"], found["other"], strict=True))
        return Measured(values, {f"{name}_seconds": each for name, each in found.items()})

    return measure


def _first_answer(name: str, folder: str, request: bytes, effort: Effort) -> float:
    start = time.perf_counter()
    made = (
        serving.product(effort.python, folder)
        if name == "ours"
        else serving.endpoint(effort.python, "hello")
    )
    with made as server:
        serving.wait(server)
        load.one(server.port, request if name == "ours" else _HELLO)
        return time.perf_counter() - start


MEASURES = {
    "rate-typed": rates("typed"),
    "rate-naive": rates("naive"),
    "stall-answer": stalls(requests.million_out),
    "stall-binary": stalls(requests.million_in_binary),
    "stall-json": stalls(requests.million_in),
    "stream-memory": stream_memory,
    "start": starts(_posted(requests.small())),
    "start-healthz": starts(load.raw("GET", "/healthz", {}, b"")),
}
"""Bar -> how it is measured."""
