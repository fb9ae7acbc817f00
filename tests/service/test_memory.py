"""What a large answer costs in memory, measured on a real process; bytes, not seconds."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import numpy as np
import orjson
import pytest

ROOT = Path(__file__).parents[2]
MIB = 1 << 20
WEIGHTS = 4 * 7_087_872  # GPT-2's block at d = 768: 12 d² + 13 d numbers
STATUS = Path("/proc/self/status")

pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="needs /proc to read memory from")


class Server:
    """A service process and its memory."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self._folder = Path(f"/proc/{process.pid}")
        self._address = f"http://127.0.0.1:{port}"

    def bytes_of(self, key: str) -> int:
        found = re.search(rf"^{key}:\s+(\d+) kB$", (self._folder / "status").read_text(), re.M)
        assert found is not None
        return 1024 * int(found[1])

    def forget_peak(self) -> None:
        (self._folder / "clear_refs").write_text("5")

    def get(self, path: str) -> bytes:
        with urlopen(self._address + path) as response:
            body: bytes = response.read()
            return body

    def post(self, request: object) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json"}
        sent = Request(f"{self._address}/v1/trace", orjson.dumps(request), headers)
        try:
            with urlopen(sent) as response:
                return response.status, response.read()
        except HTTPError as refused:
            return refused.code, refused.read()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    command = [sys.executable, "-m", "service.cli", "serve", "--port", str(port)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "GLASSBLOCK_LOG_LEVEL": "error"}
    with subprocess.Popen(command, cwd=ROOT, env=environment) as process:
        started = Server(process, port)
        _wait_for(started)
        yield started
        process.terminate()


def _wait_for(server: Server) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            server.get("/healthz")
            return
        except URLError:
            assert time.monotonic() < until
            time.sleep(0.1)


def request(positions: int) -> dict[str, object]:
    rows = np.random.default_rng(0).standard_normal((positions, 768)).round(4)
    config = {"d_model": 768, "attention": {"n_heads": 12, "bias": True}}
    return {"model": {"config": config}, "input": {"tensor": rows.tolist()}}


def test_everything_of_a_wide_block_fits_three_times_its_answer(server: Server) -> None:
    server.post(request(2))  # what is loaded once is not this answer's
    idle = server.bytes_of("VmRSS")
    server.forget_peak()
    status, body = server.post(request(128))
    above = server.bytes_of("VmHWM") - idle
    print(f"answer {len(body) / MIB:.1f} MiB, peak {above / MIB:.1f} MiB above idle")
    assert status == 200
    assert len(orjson.loads(body)["tensors"]) == 20
    assert above < 3 * len(body) + 32 * MIB + WEIGHTS


def test_what_does_not_fit_is_refused_whole_with_a_selection_that_fits(server: Server) -> None:
    server.forget_peak()
    asked = request(1024)
    status, body = server.post(asked)
    assert status == 413
    problem = orjson.loads(body)
    assert {"blocks.*.attn.scores", "blocks.*.ffn.hidden"} <= {
        part["stage"] for part in problem["estimate"]["parts"]
    }
    again, answer = server.post({**asked, "select": problem["advice"]["select"]})
    assert again == 200
    assert orjson.loads(answer)["cost"]["elements"] <= problem["limit"]["value"]
