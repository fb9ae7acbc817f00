"""Input and memory: what cross-attention reads, token types, texts of both."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from starlette.testclient import TestClient

from compute import config_json, initial, tensors
from schemas.config import ConfigAsked

SHIPPED = Path(__file__).parents[2] / "models"
MakeClient = Callable[..., TestClient]
AssertProblem = Callable[..., dict[str, Any]]

BASE = {"d_model": 6, "attention": {"n_heads": 2}}
CROSSED = {**BASE, "cross_attention": True}
READER = {**BASE, "vocab": 3, "encoder": {"attention": {"n_heads": 3}, "n_layers": 2}}
ROWS = [[0.5, 1, 0, -1, 2, 0.25], [1, 0, 3, 0.5, 0, 1]]
IDS = {"token_ids": [0, 2, 1]}


def run(client: TestClient, model: dict[str, Any], given: dict[str, Any], **more: object) -> Any:  # noqa: ANN401
    response = client.post("/v1/trace", json={"model": model, "input": given, **more})
    assert response.status_code == 200, response.text
    return response.json()


def logits(answer: Any) -> np.ndarray:  # noqa: ANN401 - plain JSON
    return np.array(answer["tensors"]["logits"]["data"])


def test_rows_of_a_memory_are_attended_to(client: TestClient) -> None:
    given = {"tensor": ROWS[:1] * 3, "memory": {"tensor": ROWS, "key_mask": [False, True]}}
    answer = run(client, {"config": CROSSED}, given)
    pattern = np.array(answer["tensors"]["blocks.0.cross.pattern"]["data"])
    assert pattern.shape == (2, 3, 2)
    assert np.array_equal(pattern[..., 1], np.ones((2, 3)))
    assert answer["input"]["memory"] == {
        "positions": 2,
        "batch": None,
        "tokens": None,
        "token_ids": None,
        "position_ids": [0, 0],
        "key_mask": [False, True],
        "token_types": None,
    }


def test_encoder_reads_the_token_ids_of_the_memory(client: TestClient) -> None:
    memories = ([1, 1], [1, 2])
    answers = [
        run(client, {"config": READER}, {**IDS, "memory": {"token_ids": ids}}) for ids in memories
    ]
    for ids, answer in zip(memories, answers, strict=True):
        assert answer["input"]["memory"]["token_ids"] == ids
        assert answer["tensors"]["encoder.blocks.1.resid_post"]["shape"] == [2, 6]
    assert not np.allclose(logits(answers[0]), logits(answers[1]))


def test_input_without_a_memory_says_so(client: TestClient) -> None:
    answer = run(client, {"config": BASE}, {"tensor": ROWS})
    assert answer["input"]["memory"] is None
    assert answer["input"]["token_types"] is None


def test_batches_of_input_and_memory_go_row_by_row(client: TestClient) -> None:
    ids, sources = [[0, 2], [1, 1]], [[1, 2, 0], [2, 2, 1]]
    both = run(client, {"config": READER}, {"token_ids": ids, "memory": {"token_ids": sources}})
    for at in (0, 1):
        given = {"token_ids": ids[at], "memory": {"token_ids": sources[at]}}
        single = run(client, {"config": READER}, given)
        assert np.allclose(logits(both)[at], logits(single), rtol=0, atol=1e-6)  # float32 rounding


def test_token_types_are_added_and_told(client: TestClient) -> None:
    model = {"config": {**BASE, "token_types": 2}}
    answer = run(client, model, {"tensor": ROWS, "token_types": [1, 0]})
    assert answer["input"]["token_types"] == [1, 0]
    types = np.array(answer["tensors"]["type_embed"]["data"])
    assert not np.allclose(types[0], types[1])


@pytest.fixture
def named(make_client: MakeClient, tmp_path: Path) -> TestClient:
    """A client that has an encoder and decoder by the name `both`, with the letters' tokenizer."""
    config = ConfigAsked.model_validate(READER).to_compute()
    made = Path(shutil.copytree(SHIPPED / "letter-sort", tmp_path / "both"))
    written = {"model_type": "glassblock", **config_json.as_json(config)}
    (made / "config.json").write_text(json.dumps(written))
    source = initial.seeded(5, "float32", 0.0)
    values = {name: source(tensor) for name, tensor in tensors.tensors(config).items()}
    save_file(values, made / "model.safetensors")
    return make_client(models=(tmp_path,))


def test_texts_of_input_and_memory_become_tokens(named: TestClient) -> None:
    by_text = run(named, {"name": "both"}, {"text": "ACB", "memory": {"text": "BA"}})
    by_ids = run(named, {"name": "both"}, {**IDS, "memory": {"token_ids": [1, 0]}})
    assert by_text == by_ids
    assert by_text["input"]["memory"]["tokens"] == ["B", "A"]


def test_shorter_text_of_a_memory_is_padded_and_masked(named: TestClient) -> None:
    given = {"text": ["ACB", "CCA"], "memory": {"text": ["BAC", "A"]}}
    answer = run(named, {"name": "both"}, given)
    memory = answer["input"]["memory"]
    assert memory["tokens"] == [["B", "A", "C"], [None, None, "A"]]
    assert memory["key_mask"] == [[True] * 3, [False, False, True]]
    single = run(named, {"name": "both"}, {"text": "CCA", "memory": {"text": "A"}})
    assert np.allclose(logits(answer)[1], logits(single), rtol=0, atol=1e-6)  # float32 rounding


def test_encoder_of_a_stored_model_may_be_changed(named: TestClient) -> None:
    given = {"text": "ACB", "memory": {"text": "BA"}}
    changed = {"name": "both", "config": {"encoder": {"norm": {"placement": "post"}}}}
    model = run(named, changed, given)["model"]
    assert model["overrides"] == ["encoder.norm.placement", "encoder.final_norm"]
    assert set(model["weights"]["unused"]) == {
        "encoder.final_norm.weight",
        "encoder.final_norm.bias",
    }
    assert model["config"]["encoder"]["attention"]["n_heads"] == 3


def test_cross_attention_of_a_stored_model_may_be_taken_away(named: TestClient) -> None:
    changed = {"name": "both", "config": {"cross_attention": False, "encoder": None}}
    model = run(named, changed, {"text": "ACB"})["model"]
    assert model["overrides"] == ["cross_attention", "encoder"]
    assert any(name.startswith("encoder.") for name in model["weights"]["unused"])


@pytest.mark.parametrize(
    ("config", "given", "faults"),
    [
        (CROSSED, {"tensor": ROWS}, {"/input/memory": "missing"}),
        (
            BASE,
            {"tensor": ROWS, "memory": {"tensor": ROWS}},
            {"/input/memory": "no_cross_attention"},
        ),
        (
            CROSSED,
            {"tensor": ROWS, "memory": {"tensor": [ROWS]}},
            {"/input/memory": "shape_mismatch"},
        ),
        (
            CROSSED,
            {"tensor": ROWS, "memory": {"tensor": [[1, 2]]}},
            {"/input/memory/tensor": "shape_mismatch"},
        ),
        (
            READER,
            {**IDS, "memory": {"token_ids": [1, 3]}},
            {"/input/memory/token_ids/1": "out_of_vocabulary"},
        ),
        (
            {**BASE, "token_types": 2},
            {"tensor": ROWS, "token_types": [0, 2]},
            {"/input/token_types/1": "out_of_token_types"},
        ),
        (BASE, {"tensor": ROWS, "token_types": [0, 0]}, {"/input/token_types": "no_token_types"}),
    ],
)
def test_what_cannot_be_read_is_pointed_at(
    client: TestClient,
    assert_problem: AssertProblem,
    config: dict[str, Any],
    given: dict[str, Any],
    faults: dict[str, str],
) -> None:
    response = client.post("/v1/trace", json={"model": {"config": config}, "input": given})
    problem = assert_problem(response, "invalid-input")
    assert {fault["pointer"]: fault["code"] for fault in problem["errors"]} == faults


@pytest.mark.parametrize(
    ("texts", "pointer"),
    [("AX", "/input/memory/text"), (["A", "BX"], "/input/memory/text/1")],
)
def test_letters_of_a_memory_that_are_no_tokens_are_pointed_at(
    named: TestClient, assert_problem: AssertProblem, texts: object, pointer: str
) -> None:
    request = {"model": {"name": "both"}, "input": {"text": ["A", "B"], "memory": {"text": texts}}}
    problem = assert_problem(named.post("/v1/trace", json=request), "invalid-input")
    assert [fault["pointer"] for fault in problem["errors"]] == [pointer]


@pytest.mark.parametrize(
    ("limit", "memory", "pointer"),
    [
        ({"positions": 2}, {"token_ids": [0, 1, 2]}, "/input/memory/token_ids"),
        ({"batch": 2}, {"token_ids": [[0]] * 3}, "/input/memory/token_ids"),
        ({"rank": 2}, {"tensor": [ROWS]}, "/input/memory/tensor"),
    ],
)
def test_memory_beyond_a_limit_is_refused(
    make_client: MakeClient,
    assert_problem: AssertProblem,
    limit: dict[str, int],
    memory: dict[str, Any],
    pointer: str,
) -> None:
    client = make_client(**limit)
    request = {"model": {"config": READER}, "input": {"token_ids": [0], "memory": memory}}
    problem = assert_problem(client.post("/v1/trace", json=request), "beyond-limit")
    assert [fault["pointer"] for fault in problem["errors"]] == [pointer]
    assert problem["limit"]["name"] == next(iter(limit))


def test_encoder_deeper_than_blocks_may_be_is_refused(
    make_client: MakeClient, assert_problem: AssertProblem
) -> None:
    request = {"model": {"config": READER}, "input": {**IDS, "memory": IDS}}
    response = make_client(blocks=1).post("/v1/trace", json=request)
    problem = assert_problem(response, "beyond-limit")
    assert problem["errors"][0]["pointer"] == "/model/config/encoder/n_layers"
