"""A running container of the image, and what can be asked of it from outside and inside."""

import http.client
import json
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import psutil

from scripts.image_trial.engine import Engine, Failed

PYTHON = "/opt/glassblock/bin/python"
ADDRESS = "127.0.0.1"
ANSWER_SECONDS = 60  # a large trace computes for some seconds, and may wait for its turn


def free_port() -> int:
    """A port of the loopback address on which nothing listens."""
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        port: int = probe.getsockname()[1]
        return port


def start(engine: Engine, image: str, options: Sequence[str]) -> "Container":
    """Run an image on the network of this machine, reachable from it alone."""
    port = free_port()
    settings = {"GLASSBLOCK_HOST": ADDRESS, "GLASSBLOCK_PORT": str(port)}
    own = [word for name, value in settings.items() for word in ("--env", f"{name}={value}")]
    # podman's timer for health checks needs systemd; the trial makes the check itself.
    how = ["--detach", "--no-healthcheck", "--cgroup-parent", f"/{engine.folder.name}"]
    words = [*how, "--network", "host", *options, *own, image]
    identity = engine.output("podman", "run", *words)
    return Container(engine, identity, port)


@dataclass(frozen=True)
class Container:
    """One container, and the port on which its service listens."""

    engine: Engine
    identity: str
    port: int

    def inspect(self, template: str) -> str:
        """A field of what podman knows about the container."""
        return self.engine.output("podman", "inspect", "--format", template, self.identity)

    def execute(self, *words: str, options: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        """A command run beside the service, under the same limits."""
        return self.engine.attempt("podman", "exec", *options, self.identity, *words)

    def python(self, code: str, options: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        """Python run beside the service."""
        return self.execute(PYTHON, "-I", "-c", code, options=options)

    def answer(
        self,
        method: str,
        path: str,
        body: str | bytes | None = None,
        kind: str = "application/json",
    ) -> tuple[int, bytes]:
        """Status and body of the service's answer; status 0 where there is none."""
        connection = http.client.HTTPConnection(ADDRESS, self.port, timeout=ANSWER_SECONDS)
        try:
            content = body.encode() if isinstance(body, str) else body
            connection.request(method, path, content or None, {"Content-Type": kind})
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as failure:
            return 0, str(failure).encode()
        finally:
            connection.close()

    @cached_property
    def health_check(self) -> list[str]:
        """The command of the image's own HEALTHCHECK."""
        template = "{{json .HealthCheck.Test}}"
        image = self.inspect("{{.Image}}")
        words = self.engine.output("podman", "image", "inspect", "--format", template, image)
        kind, *command = json.loads(words)
        return command if kind == "CMD" else ["/bin/sh", "-c", *command]

    def healthy(self, port: int | None = None) -> bool:
        """Whether the image's health check passes, for the service's port or another."""
        elsewhere = ["--env", f"GLASSBLOCK_PORT={port}"] if port else []
        return self.execute(*self.health_check, options=elsewhere).returncode == 0

    def seconds_to_healthy(self, patience: float) -> float:
        """How long the first passed health check takes to come; Failed where it does not."""
        begin = time.monotonic()
        while (waited := time.monotonic() - begin) < patience:
            if self.healthy():
                return time.monotonic() - begin
            time.sleep(0.2)
        log = self.engine.attempt("podman", "logs", "--tail", "20", self.identity)
        raise Failed(f"Not healthy after {waited:.0f} s; its log:\n{log.stdout}{log.stderr}")

    def processes(self) -> list[psutil.Process]:
        """The init of the container and all below it, as this machine sees them."""
        try:
            init = psutil.Process(int(self.inspect("{{.State.Pid}}")))
            return [init, *init.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def status(self, *fields: str) -> list[str]:
        """What the kernel has in these fields of its processes' status, each word once."""
        texts = [Path(f"/proc/{process.pid}/status").read_text() for process in self.processes()]
        pairs = [line.split(":", 1) for text in texts for line in text.splitlines()]
        return sorted({word for name, told in pairs if name in fields for word in told.split()})

    def traced(self, request: str) -> tuple[int, bytes]:
        """What POST /v1/trace answers."""
        return self.answer("POST", "/v1/trace", request)
