"""A service in a process of its own, and the memory it takes."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.error import URLError
from urllib.request import urlopen

ROOT = Path(__file__).parents[1]
_PATIENCE = 60
_SERVE = (ROOT / "scripts" / "serve").read_text("utf-8")
_AS_SERVED = dict(re.findall(r"\b((?:MALLOC|OPENBLAS|OMP)_\w+)=(\d+)", _SERVE))
"""The environment that scripts/serve, like the image, gives the service."""


@dataclass(frozen=True, slots=True)
class Service:
    """A process that serves, and the port it listens on."""

    process: subprocess.Popen[bytes]
    port: int

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def bytes_of(self, key: str) -> int:
        """A line of /proc/{pid}/status, VmRSS for instance, in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(rf"^{key}:\s+(\d+) kB$", status, re.M)
        assert found is not None
        return 1024 * int(found[1])

    def forget_peak(self) -> None:
        """Let VmHWM begin again."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")


@contextmanager
def service(log: IO[bytes] | None = None, **settings: str) -> Iterator[Service]:
    """A service that answers, with settings; its log goes to a file, or here."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    chosen = {f"GLASSBLOCK_{name.upper()}": value for name, value in settings.items()}
    environment = {
        **os.environ,
        **_AS_SERVED,
        "GLASSBLOCK_LOG_LEVEL": "error",
        "GLASSBLOCK_UPLOADS": "",
    }
    command = [sys.executable, "-m", "service.cli", "serve", "--port", str(port)]
    with subprocess.Popen(command, cwd=ROOT, env=environment | chosen, stderr=log) as process:
        started = Service(process, port)
        try:
            _wait_for(started)
            yield started
        finally:
            process.terminate()


def _wait_for(started: Service) -> None:
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            with urlopen(f"{started.address}/healthz"):
                return
        except URLError:
            assert started.process.poll() is None, "the service ended"
            assert time.monotonic() < until, "the service does not answer"
            time.sleep(0.05)
