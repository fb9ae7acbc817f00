"""What a stream costs in memory, measured on a real process; bytes, not seconds."""

import time
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np
import orjson
import pytest

import running
from running import Service
from service import idle

MIB = 1 << 20
ROWS, WIDTH, HEADS, HIDDEN, BLOCKS = 256, 768, 12, 3072, 4
WEIGHTS = 4 * BLOCKS * 7_087_872  # 12 d² + 13 d numbers a block
KEPT = 4 * (HEADS * ROWS * (2 * ROWS + WIDTH) + 2 * ROWS * HIDDEN + 13 * ROWS * WIDTH)
"""Of one block: scores, pattern, head_out; up, hidden; the stream, norms, q, k, v, z, updates."""

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="needs /proc to read memory from"
)


def ask(server: Service, rows: int, blocks: int) -> int:
    """The bytes of a streamed trace, which are not kept."""
    tensor = np.random.default_rng(0).standard_normal((rows, WIDTH)).round(4)
    config = {"d_model": WIDTH, "n_layers": blocks, "attention": {"n_heads": HEADS, "bias": True}}
    request = {"model": {"config": config}, "input": {"tensor": tensor.tolist()}}
    headers = {"Content-Type": "application/json", "Accept": "application/jsonl"}
    sent = Request(f"{server.address}/v1/trace", orjson.dumps(request), headers)
    size, last = 0, b""
    with urlopen(sent) as response:
        while some := response.read(MIB):
            size, last = size + len(some), last[-MIB:] + some
    end = orjson.loads(last.splitlines()[-1])
    assert end["end"] is True
    assert all(identity["holds"] in (True, None) for identity in end["identities"])
    return size


def test_stream_of_four_blocks_holds_less_than_two() -> None:
    with running.service() as server:
        ask(server, 2, 1)  # what is loaded once is not this answer's
        time.sleep(2 * idle.QUIET_SECONDS + 0.5)  # and what is free goes back
        before = server.bytes_of("VmRSS")
        server.forget_peak()
        size = ask(server, ROWS, BLOCKS)
        beyond = server.bytes_of("VmHWM") - before - WEIGHTS
    print(f"told {size / MIB:.0f} MiB, held {beyond / MIB:.1f} of {2 * KEPT / MIB:.1f} + 16 MiB")
    assert size > 10 * KEPT
    assert beyond < 2 * KEPT + 16 * MIB
