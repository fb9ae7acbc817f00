"""What docs/errors.md says of the steps, and docs/weights.md of zeros, is so."""

import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from service.app import create_app
from service.settings import Settings

DOCS = Path(__file__).parents[2] / "docs"
ERRORS, WEIGHTS = ((DOCS / f"{name}.md").read_text("utf-8") for name in ("errors", "weights"))

MENDED: dict[str, Any] = {
    "model": {
        "config": {"d_model": 4, "attention": {"n_heads": 2}, "n_layers": 1},
        "weights": {
            "tensors": {"blocks.0.ffn.b_out": [0, 0, 0, 0], "blocks.0.norm2.bias": [0] * 4}
        },
    },
    "input": {"tensor": [[1, 2, 3, 4]], "position_ids": [0]},
    "select": ["Z"],
}
STEPS: dict[str, tuple[str, int, dict[str, object]]] = {
    "the form of the body": (
        "invalid-request",
        2,
        {"/dtype": "float16", "/identities": "yes"},
    ),
    "the config's rules": (
        "config-rule",
        2,
        {"/model/config/attention": {"n_heads": 3}, "/model/config/tied": True},
    ),
    "limits of size": ("beyond-limit", 1, {"/model/config/n_layers": 3}),
    "the input": ("invalid-input", 2, {"/input": {"tensor": [[1, 2, 3]], "position_ids": [0, 1]}}),
    "the selection": ("invalid-selection", 2, {"/select": ["no_such", "nor_this"]}),
    "limits of work": ("beyond-limit", 1, {"/select": ["X", "Z"]}),
    "the weights": (
        "shape-mismatch",
        2,
        {"/model/weights/tensors": {"blocks.0.ffn.b_out": [0], "blocks.0.norm2.bias": [0]}},
    ),
}
"""What answers a fault of a step; how many faults come at once; the faults, by pointer."""


def post(request: object) -> Any:  # noqa: ANN401 - plain JSON
    client = TestClient(create_app(Settings(blocks=2, answer_elements=4)))
    return client.post("/v1/trace", json=request).json()


def put(request: dict[str, Any], pointer: str, value: object) -> None:
    *path, last = pointer.split("/")[1:]
    for key in path:
        request = request[key]
    request[last] = value


def test_page_lists_the_steps() -> None:
    told = re.search(r"the first with a fault answers: (.*?)\. A limit", ERRORS, re.S)
    assert told is not None
    steps = re.sub(r" \(.*?\)", "", " ".join(told[1].split()))
    assert steps.split("; ") == list(STEPS)


def test_mended_request_is_answered() -> None:
    assert "tensors" in post(MENDED)


@pytest.mark.parametrize("step", STEPS)
def test_first_step_with_faults_answers_with_all_of_its_own(step: str) -> None:
    names = list(STEPS)
    request = deepcopy(MENDED)
    for name in reversed(names[names.index(step) :]):
        for pointer, value in STEPS[name][2].items():
            put(request, pointer, value)
    kind, faults, _ = STEPS[step]
    problem = post(request)
    assert problem["type"] == f"/problems/{kind}", problem
    assert problem["errors_total"] == faults, problem


def test_fields_without_a_meaning_come_before_contradictions() -> None:
    request = deepcopy(MENDED)
    for pointer, value in STEPS["the config's rules"][2].items():
        put(request, pointer, value)
    put(request, "/model/config/norm", {"kind": "none", "eps": 1})
    put(request, "/model/config/ffn", {"kind": "none", "d_ff": 3})
    pointers = [fault["pointer"] for fault in post(request)["errors"]]
    assert pointers == ["/model/config/ffn/d_ff", "/model/config/norm/eps"]


SIZES = {"d_model": 2, "attention": {"n_heads": 1}}
CROSSED = {"config": SIZES | {"cross_attention": True}}
TYPED = {"config": SIZES | {"token_types": 2}}
ROWS = {"tensor": [[1, 2]]}
CODES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "weights_cannot_serve": (
        {"name": "letter-sort", "config": {"attention": {"sinks": True}}},
        {"text": "ABCABC"},
        "/model/config/attention/sinks",
    ),
    "no_tokenizer": ({"config": SIZES | {"vocab": 3}}, {"text": "A"}, "/input/text"),
    "missing": (CROSSED, ROWS, "/input/memory"),
    "no_cross_attention": ({"config": SIZES}, ROWS | {"memory": ROWS}, "/input/memory"),
    "no_encoder": (CROSSED, ROWS | {"memory": {"token_ids": [1]}}, "/input/memory/token_ids"),
    "no_token_types": ({"config": SIZES}, ROWS | {"token_types": [0]}, "/input/token_types"),
    "out_of_token_types": (TYPED, ROWS | {"token_types": [2]}, "/input/token_types/0"),
}
"""A code of the page: a model and an input that get it, and where."""


@pytest.mark.parametrize("code", CODES)
def test_code_of_the_page_is_told_at_its_place(code: str) -> None:
    assert f"| `{code}` |" in ERRORS
    model, given, pointer = CODES[code]
    client = TestClient(create_app(Settings()))
    problem = client.post("/v1/trace", json={"model": model, "input": given}).json()
    assert [(x["pointer"], x["code"]) for x in problem["errors"]] == [(pointer, code)]


def test_limit_is_told_alone() -> None:
    assert "A limit is told alone." in ERRORS
    request = deepcopy(MENDED)
    put(request, "/model/config/n_layers", 3)
    put(request, "/model/config/d_model", 10_000)
    assert post(request)["errors_total"] == 1


@pytest.mark.parametrize("norm", ["layernorm", "rmsnorm", "none"])
@pytest.mark.parametrize("offset", [0, 1])
def test_pre_norm_block_of_zeros_passes_the_stream_on(norm: str, offset: int) -> None:
    assert "gains 1, so that a pre-norm block passes the stream on unchanged" in WEIGHTS
    kind = {"kind": norm} | ({} if norm == "none" else {"gain_offset": offset})
    bias = {"attention": {"n_heads": 2, "bias": True}, "norm": kind}
    request = {
        "model": {"config": {"d_model": 4} | bias, "weights": {"init": "zeros"}},
        "input": {"tensor": [[1, 2, 3, 5]]},
    }
    found = TestClient(create_app(Settings())).post("/v1/trace", json=request).json()
    assert found["tensors"]["blocks.0.resid_post"]["data"] == [[1, 2, 3, 5]]
    if norm == "layernorm":
        gained = found["tensors"]["blocks.0.norm1.out"]["data"]
        assert gained == found["tensors"]["blocks.0.norm1.normalized"]["data"]
