"""Servers in processes of their own, on this machine's loopback."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks import settled

_PATIENCE = 60
_OURS = ("-m", "service.cli", "serve", "--port")


@dataclass(frozen=True, slots=True)
class Server:
    """A process that serves, and the port it listens on."""

    process: subprocess.Popen[bytes]
    port: int


@contextmanager
def product(python: str, models: str, **more: str) -> Iterator[Server]:
    """`glassblock serve` with a folder of models and more settings."""
    chosen = {"models": models, "uploads": "", "log_level": "error", **more}
    named = {f"GLASSBLOCK_{name.upper()}": word for name, word in chosen.items()}
    with _started([python, *_OURS], named) as server:
        yield server


@contextmanager
def endpoint(python: str, name: str, **named: str) -> Iterator[Server]:
    """One of `benchmarks.sides.endpoints`, with more environment."""
    with _started([python, "-m", "benchmarks.sides.endpoints", name], named) as server:
        yield server


@contextmanager
def _started(command: list[str], named: Mapping[str, str]) -> Iterator[Server]:
    """The server at once, before it answers; see `wait`."""
    port = free_port()
    environment = settled.environment(1, **named)
    process = subprocess.Popen([*command, str(port)], cwd=settled.ROOT, env=environment)
    try:
        yield Server(process, port)
    finally:
        process.terminate()
        process.wait()


def wait(server: Server) -> None:
    """Until the server takes a connection."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", server.port), 1).close()
        except OSError:
            if server.process.poll() is not None:
                raise RuntimeError("a server stopped before it answered") from None
            time.sleep(0.001)
        else:
            return
    raise TimeoutError("a server did not answer")


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def keep_to(process: int, core: int) -> None:
    """Let a process run on one core, where the system can say so and has a second one."""
    if hasattr(os, "sched_setaffinity") and len(os.sched_getaffinity(0)) > 1:
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(process, {cores[core % len(cores)]})
