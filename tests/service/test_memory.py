"""What a large answer costs in memory, measured on a real process; bytes, not seconds."""

from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import orjson
import pytest

import running
from running import Service

MIB = 1 << 20
WEIGHTS = 4 * 7_087_872  # GPT-2's block at d = 768: 12 d² + 13 d numbers
STATUS = Path("/proc/self/status")

pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="needs /proc to read memory from")


@pytest.fixture(scope="module")
def server() -> Iterator[Service]:
    with running.service() as started:
        yield started


def post(server: Service, request: object) -> tuple[int, bytes]:
    headers = {"Content-Type": "application/json"}
    sent = Request(f"{server.address}/v1/trace", orjson.dumps(request), headers)
    try:
        with urlopen(sent) as response:
            return response.status, response.read()
    except HTTPError as refused:
        return refused.code, refused.read()


def request(positions: int) -> dict[str, object]:
    rows = np.random.default_rng(0).standard_normal((positions, 768)).round(4)
    config = {"d_model": 768, "attention": {"n_heads": 12, "bias": True}}
    return {"model": {"config": config}, "input": {"tensor": rows.tolist()}}


def test_everything_of_a_wide_block_fits_three_times_its_answer(server: Service) -> None:
    post(server, request(2))  # what is loaded once is not this answer's
    idle = server.bytes_of("VmRSS")
    server.forget_peak()
    status, body = post(server, request(128))
    above = server.bytes_of("VmHWM") - idle
    print(f"answer {len(body) / MIB:.1f} MiB, peak {above / MIB:.1f} MiB above idle")
    assert status == 200
    assert len(orjson.loads(body)["tensors"]) == 20
    assert above < 3 * len(body) + 32 * MIB + WEIGHTS


def test_what_does_not_fit_is_refused_whole_with_a_selection_that_fits(server: Service) -> None:
    server.forget_peak()
    asked = request(1024)
    status, body = post(server, asked)
    assert status == 413
    problem = orjson.loads(body)
    assert {"blocks.*.attn.scores", "blocks.*.ffn.hidden"} <= {
        part["stage"] for part in problem["estimate"]["parts"]
    }
    again, answer = post(server, {**asked, "select": problem["advice"]["select"]})
    assert again == 200
    assert orjson.loads(answer)["cost"]["elements"] <= problem["limit"]["value"]
