"""Blocks of few numbers, run thousands of times: refused before they run, not at the deadline."""

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

AssertProblem = Callable[..., dict[str, Any]]

DEEP = {
    "config": {
        "d_model": 2,
        "n_layers": 64,
        "vocab": 3,
        "attention": {"n_heads": 2},
        "position": {"kind": "none"},
        "ffn": {"d_ff": 2},
    }
}
SWEEP = {
    "model": DEEP,
    "clean": {"token_ids": [1] * 40},
    "stage": "attn.pattern",
    "op": "zero",
    "over": ["block", "head", "position"],
    "measure": {"logit": 0},
}
DECODE = {
    "model": DEEP,
    "input": {"token_ids": [0] * 10},
    "steps": 1000,
    "select": [],
    "logits": False,
    "top": 1,
}


@pytest.mark.parametrize(("path", "body"), [("/v1/sweep", SWEEP), ("/v1/decode", DECODE)])
def test_thousands_of_thin_blocks_are_refused_before_they_run(
    client: TestClient, assert_problem: AssertProblem, path: str, body: dict[str, Any]
) -> None:
    found = assert_problem(client.post(path, json=body), "beyond-limit")
    assert found["limit"]["name"] == "work_flops"
    assert found["advice"]["text"]
