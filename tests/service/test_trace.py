"""POST /v1/trace: what is asked for is what comes, in its order, whole and readable."""

import json
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import pytest
from pydantic import TypeAdapter
from starlette.testclient import TestClient

from near import near
from schemas.answers import TraceAnswer
from service import examples

TOY = {"name": "eiffel-toy"}
LETTERS = {"name": "letter-sort"}
SENTENCE = {"text": "the Eiffel tower"}


def _not_json(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is not JSON")


def post(client: TestClient, request: object) -> dict[str, Any]:
    response = client.post("/v1/trace", json=request)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = json.loads(response.content, parse_constant=_not_json)
    return answer


def array(tensor: dict[str, Any]) -> np.ndarray:
    """A tensor of an answer, its nulls put back."""
    values = np.array(tensor["data"], np.float64).reshape(-1)
    nonfinite = tensor.get("nonfinite", {})
    if nonfinite == "-inf":
        values[np.isnan(values)] = -np.inf
    else:
        for kind, runs in nonfinite.items():
            for offset, length in runs:
                values[offset : offset + length] = float(kind)
    return values.reshape(tensor["shape"])


def test_articles_toy_written_out_gives_the_articles_numbers(client: TestClient) -> None:
    answer = post(client, examples.TRACE["article"]["value"])
    tensors = answer["tensors"]
    row = tensors["blocks.0.attn.pattern"]["data"][0][2]
    assert near(row, [0.24825508, 0.50348984, 0.24825508])
    assert near(tensors["blocks.0.resid_post"]["data"][2], [1.24825508, 0.50348984])
    assert answer["input"]["positions"] == 3
    assert answer["model"]["name"] is None
    assert answer["cost"]["parameters"] == 16


@pytest.mark.parametrize("given", [SENTENCE, {"token_ids": [0, 1, 2]}])
def test_toy_is_the_same_by_name(client: TestClient, given: object) -> None:
    answer = post(client, {"model": TOY, "input": given})
    written_out = post(client, examples.TRACE["article"]["value"])
    for name, tensor in written_out["tensors"].items():
        assert answer["tensors"][name]["data"] == tensor["data"]
    assert answer["input"]["tokens"] == ["the", "Eiffel", "tower"]


def test_negated_output_projection_takes_away(client: TestClient) -> None:
    answer = post(client, examples.TRACE["negate-structure"]["value"])
    assert near(answer["tensors"]["blocks.0.resid_post"]["data"][2], [0.75174492, 0.50348984])


@pytest.mark.parametrize("name", sorted(examples.TRACE))
def test_every_example_answers_as_its_schema_says(client: TestClient, name: str) -> None:
    answer = post(client, examples.TRACE[name]["value"])
    TypeAdapter(TraceAnswer).validate_python(answer)
    assert not [one for one in answer["identities"] or [] if one["holds"] is False]


def test_example_answer_is_what_its_request_gets(client: TestClient) -> None:
    assert near(post(client, examples.TRACE["row"]["value"]), dict(examples.ANSWER))


def test_full_trace_of_letter_sort_has_every_stage_of_every_block(client: TestClient) -> None:
    answer = post(client, {"model": LETTERS, "input": {"text": "CABBACAAB"}})
    stages = client.get("/v1/models/letter-sort").json()["stages"]
    by_default = {s["name"]: s for s in client.get("/v1/stages").json()["stages"]}
    expected = set()
    for name in stages:
        if by_default[name]["by_default"]:
            block = by_default[name]["level"] == "block"
            expected |= {f"blocks.{layer}.{name}" for layer in range(3)} if block else {name}
    assert set(answer["tensors"]) == expected
    assert all(one["holds"] for one in answer["identities"])


def test_masked_scores_are_null_and_recoverable(client: TestClient) -> None:
    answer = post(client, {"model": LETTERS, "input": {"text": "CABBA"}, "select": ["S", "A"]})
    scores = answer["tensors"]["blocks.1.attn.scores"]
    assert scores["nonfinite"] == "-inf"
    assert scores["data"][0][0][1:] == [None] * 4
    restored = array(scores)
    weights = np.exp(restored - restored.max(-1, keepdims=True))
    pattern = array(answer["tensors"]["blocks.1.attn.pattern"])
    np.testing.assert_allclose(weights / weights.sum(-1, keepdims=True), pattern, atol=3e-7)


def test_tensors_come_in_the_order_of_computation(client: TestClient) -> None:
    answer = post(client, {"model": LETTERS, "input": {"text": "CAB"}})
    names = list(answer["tensors"])
    assert names[:3] == ["embed", "pos_embed", "blocks.0.resid_pre"]
    assert names.index("blocks.0.attn.z") + 1 == names.index("blocks.0.attn.head_out")
    assert names.index("blocks.0.resid_post") + 1 == names.index("blocks.1.resid_pre")
    assert names[-1] == "logits"


def test_same_request_gets_the_same_bytes(client: TestClient) -> None:
    request = {"model": LETTERS, "input": {"text": "CABBAC"}}
    first, second = (client.post("/v1/trace", json=request).content for _ in range(2))
    assert first == second


def test_slices_carry_their_index(client: TestClient) -> None:
    whole = post(client, {"model": LETTERS, "input": {"text": "CABBAC"}, "select": ["A"]})
    cut = {"name": "blocks.1.attn.pattern", "head": [2, 0], "position": [-1, 1]}
    answer = post(client, {"model": LETTERS, "input": {"text": "CABBAC"}, "select": [cut]})
    tensor = answer["tensors"]["blocks.1.attn.pattern"]
    assert tensor["index"] == {"head": [2, 0], "position": [5, 1]}
    assert tensor["shape"] == [2, 2, 6]
    pattern = array(whole["tensors"]["blocks.1.attn.pattern"])
    assert (array(tensor) == pattern[[2, 0]][:, [5, 1]]).all()


def test_summary_measures_each_row(client: TestClient) -> None:
    request = {"model": LETTERS, "input": {"text": "CABBAC"}}
    whole = post(client, {**request, "select": ["resid_post", "S"]})["tensors"]
    items = [{"name": name, "summary": True} for name in ("resid_post", "S")]
    tensors = post(client, {**request, "select": items})["tensors"]
    rows = array(whole["blocks.2.resid_post"])
    summary = tensors["blocks.2.resid_post"]["summary"]
    assert tensors["blocks.2.resid_post"]["axes"] == ["position"]
    np.testing.assert_allclose(summary["norm"], np.linalg.norm(rows, axis=-1), rtol=2e-7)
    np.testing.assert_allclose(summary["rms"], np.sqrt((rows**2).mean(-1)), rtol=2e-7)
    np.testing.assert_allclose(summary["mean"], rows.mean(-1), rtol=2e-6)
    assert summary["min"] == rows.min(-1).tolist()
    assert summary["max"] == rows.max(-1).tolist()
    scores = array(whole["blocks.0.attn.scores"])
    largest = tensors["blocks.0.attn.scores"]["summary"]["max"]
    assert largest == scores.max(-1).tolist()


def test_only_a_wildcard_meets_an_absent_stage_silently(
    client: TestClient, assert_problem: Callable[..., dict[str, Any]]
) -> None:
    request = {"model": TOY, "input": SENTENCE}
    answer = post(client, {**request, "select": ["blocks.*"]})
    assert answer["absent"]["blocks.0.ffn.up"] == "ffn.kind = none"
    response = client.post("/v1/trace", json={**request, "select": ["A", "ffn.up"]})
    body = assert_problem(response, "invalid-selection")
    assert body["errors"][0]["pointer"] == "/select/1"
    assert "ffn.kind = none" in body["errors"][0]["detail"]


def test_batch_of_texts_is_padded_on_the_left_and_moves_nothing(client: TestClient) -> None:
    request = {"model": LETTERS, "select": ["resid_post", "A", "logits"]}
    batch = post(client, {**request, "input": {"text": ["CABBAC", "CAB"]}})
    alone = post(client, {**request, "input": {"text": "CAB"}})
    assert batch["input"]["key_mask"][1] == [False] * 3 + [True] * 3
    assert batch["input"]["position_ids"][1] == [0, 0, 0, 0, 1, 2]
    padded = array(batch["tensors"]["blocks.2.resid_post"])[1, 3:]
    single = array(alone["tensors"]["blocks.2.resid_post"])
    np.testing.assert_allclose(padded, single, atol=5e-6)  # float32, entries up to 20
    assert batch["next_token"][1]["token"] == alone["next_token"]["token"]
    assert batch["fully_masked_rows"][0] == {
        "stage": "blocks.0.attn.pattern",
        "batch": 1,
        "position": [0, 1, 2],
    }


@pytest.mark.parametrize(
    "given",
    [
        {"text": ["CAB", "CBA"]},
        {"text": ["C"]},
        {"text": ["CABBAC", "A", "CC"]},
        {"token_ids": [[0, 1], [1, 2]]},
        {"tensor": [[[0.5] * 48] * 3] * 2},
        {"token_ids": [[0, 1], [1, 2]], "position_ids": [1, 2]},
        {"token_ids": [[0, 1], [1, 2]], "key_mask": [False, True]},
        {"token_ids": [[0, 1], [1, 2]], "attention_mask": [[False, False], [True, True]]},
        {"token_ids": [[0, 1], [1, 2]], "attention_mask": [[[False, False], [True, True]]] * 2},
        {"token_ids": [0, 1], "key_mask": [False, True]},
        {"token_ids": [0, 1], "key_mask": [False, False]},
        {"token_ids": [0, 1], "attention_mask": [[False, False], [True, True]]},
        {"token_ids": [0]},
    ],
)
def test_every_form_of_batch_and_mask_answers(client: TestClient, given: dict[str, Any]) -> None:
    answer = post(client, {"model": LETTERS, "input": given})
    TypeAdapter(TraceAnswer).validate_python(answer)
    assert not [one for one in answer["identities"] if one["holds"] is False]
    scores = array(answer["tensors"]["blocks.0.attn.scores"])
    without = np.isneginf(scores).all(axis=-1)[..., 0, :]  # the same for every head
    rows = {
        (row.get("batch"), position)
        for row in answer["fully_masked_rows"]
        if row["stage"] == "blocks.0.attn.pattern"
        for position in row["position"]
    }
    places = [tuple(int(i) for i in place) for place in np.argwhere(without)]
    batched = answer["input"]["batch"] is not None
    assert rows == {place if batched else (None, *place) for place in places}


@pytest.mark.parametrize("name", ["Q", "K", "V", "q_rot", "k_rot", "head_out", "A", "dots"])
def test_every_stage_can_be_summed_up(client: TestClient, name: str) -> None:
    config = {
        "d_model": 8,
        "attention": {"n_heads": 4, "n_kv_heads": 2},
        "position": {"kind": "rope"},
    }
    tensor = np.random.default_rng(3).standard_normal((5, 8)).tolist()
    request = {"model": {"config": config}, "input": {"tensor": tensor}}
    whole = post(client, {**request, "select": [name]})["tensors"]
    summed = post(client, {**request, "select": [{"name": name, "summary": True}]})["tensors"]
    for stage, answer in summed.items():
        rows = array(whole[stage])
        assert near(answer["summary"]["norm"], np.linalg.norm(rows, axis=-1).tolist())
        assert near(answer["summary"]["max"], rows.max(-1).tolist())


def test_bias_may_be_true_for_every_kind_of_ffn(client: TestClient) -> None:
    biases = {
        ("mlp", True): {"in": True, "gate": False, "out": True},
        ("mlp", False): {"in": False, "gate": False, "out": False},
        ("gated", True): {"in": True, "gate": True, "out": True},
        ("gated", False): {"in": False, "gate": False, "out": False},
    }
    for (kind, bias), resolved in biases.items():
        config = {"d_model": 2, "attention": {"n_heads": 1}, "ffn": {"kind": kind, "bias": bias}}
        request = {"model": {"config": config}, "input": {"tensor": [[1, 2]]}, "select": []}
        assert post(client, request)["model"]["config"]["ffn"]["bias"] == resolved


def test_padding_is_null_among_the_tokens(client: TestClient) -> None:
    request = {"model": LETTERS, "input": {"text": ["CAB", "C"]}, "select": ["A"]}
    assert post(client, request)["input"]["tokens"] == [["C", "A", "B"], [None, None, "C"]]


def test_symbol_that_means_another_tensor_is_left_out(client: TestClient) -> None:
    config = {"d_model": 4, "attention": {"n_heads": 2}}
    for placement, symbol in (("pre", "U"), ("post", None)):
        model = {"config": {**config, "norm": {"placement": placement}}}
        request = {"model": model, "input": {"tensor": [[1, 2, 3, 4]]}, "select": ["norm1.out"]}
        assert post(client, request)["tensors"]["blocks.0.norm1.out"]["symbol"] == symbol


def test_answer_says_where_the_weights_came_from(client: TestClient) -> None:
    answer = post(client, {**examples.TRACE["article"]["value"], "select": ["A"]})
    assert answer["model"]["weights"] == {
        "init": "identity",
        "seed": None,
        "given": ["blocks.0.attn.W_Q"],
        "edited": [],
        "filled": [],
        "unused": [],
    }
    answer = post(client, examples.TRACE["negate-structure"]["value"])
    assert answer["model"]["weights"]["edited"] == ["blocks.0.attn.W_O"]
    assert answer["model"]["weights"]["init"] is None


def test_padding_and_a_given_mask_are_joined(client: TestClient) -> None:
    given = {"text": ["CAB", "C"], "key_mask": [[True, False, True], [True, True, True]]}
    answer = post(client, {"model": LETTERS, "input": given, "select": ["A"]})
    assert answer["input"]["key_mask"] == [[True, False, True], [False, False, True]]


def test_next_token_is_the_largest_logit_of_the_last_row(client: TestClient) -> None:
    answer = post(client, {"model": LETTERS, "input": {"text": "CABBAC"}})
    logits = array(answer["tensors"]["logits"])[-1]
    chosen = answer["next_token"]
    assert chosen["token_id"] == logits.argmax() == 0
    assert chosen["token"] == "A"
    assert chosen["logit"] == logits.max()
    without = post(client, {"model": LETTERS, "input": {"text": "CABBAC"}, "select": ["A"]})
    assert without["next_token"] is None


def test_greedy_decoding_sorts_the_letters(client: TestClient) -> None:
    letters = "BACCAB"
    for _ in range(6):
        request = {"model": LETTERS, "input": {"text": letters}, "select": ["logits"]}
        letters += post(client, request)["next_token"]["token"]
    assert letters[6:] == "AABBCC"


def test_overflow_is_answered_lossless(client: TestClient) -> None:
    config = {"d_model": 2, "attention": {"n_heads": 1}, "norm": {"kind": "none"}}
    request = {
        "model": {"config": config, "weights": {"init": "identity"}},
        "input": {"tensor": [[3e38, -3e38], [3e38, 1]]},
    }
    answer = post(client, request)
    scores = answer["tensors"]["blocks.0.attn.scores"]
    assert set(scores["nonfinite"]) <= {"-inf", "+inf", "nan"}
    assert array(scores)[0, 0].tolist() == [np.inf, -np.inf]
    reasons = {one["name"]: one["reason"] for one in answer["identities"]}
    assert reasons["blocks.0.pattern_softmax"] == "a stage is not finite"


def test_identities_can_be_turned_off(client: TestClient) -> None:
    request = {"model": TOY, "input": SENTENCE, "identities": False}
    assert post(client, request)["identities"] is None


def test_float64_prints_to_the_last_digit(client: TestClient) -> None:
    request = {"model": TOY, "input": SENTENCE, "select": ["A"], "dtype": "float64"}
    row = post(client, request)["tensors"]["blocks.0.attn.pattern"]["data"][0][2]
    ratio = np.exp(1 / np.sqrt(2))
    np.testing.assert_allclose(row, np.array([1, ratio, 1]) / (2 + ratio), rtol=1e-15)


def test_digest_names_config_and_weights(client: TestClient) -> None:
    def digest(model: object) -> str:
        tensor = [[1, 2]]
        request = {"model": model, "input": {"tensor": tensor}, "select": []}
        return str(post(client, request)["model"]["digest"])

    config = {"d_model": 2, "attention": {"n_heads": 1}}
    plain = digest({"config": config})
    assert digest({"config": {**config, "n_layers": 1}, "weights": {"seed": 0}}) == plain
    changed = [
        digest({"config": config, "weights": {"seed": 1}}),
        digest({"config": {**config, "d_model": 2, "n_layers": 2}}),
        digest({"config": config, "weights": {"init": "zeros"}}),
        digest(
            {"config": config, "weights": {"tensors": {"blocks.0.attn.W_Q": [[[1, 0], [0, 1]]]}}}
        ),
        digest(
            {
                "config": config,
                "weights": {"edits": [{"tensor": "blocks.0.attn.W_Q", "op": "zero"}]},
            }
        ),
    ]
    assert len({plain, *changed}) == 6


def test_digest_of_a_named_model_is_the_models(client: TestClient) -> None:
    answer = post(client, {"model": TOY, "input": SENTENCE, "select": ["A"]})
    assert answer["model"]["digest"] == client.get("/v1/models/eiffel-toy").json()["digest"]


def test_steps_are_timed_in_a_header(client: TestClient) -> None:
    response = client.post("/v1/trace", json={"model": TOY, "input": SENTENCE})
    steps = [step.split(";")[0] for step in response.headers["server-timing"].split(", ")]
    assert steps == ["parse", "compute", "encode"]


EXPERTS = {
    "model": {
        "config": {
            "d_model": 4,
            "n_layers": 2,
            "attention": {"n_heads": 2},
            "ffn": {"kind": "moe", "n_experts": 5, "top_k": 2},
        }
    },
    "input": {"tensor": [[1, 2, 3, 4], [4, 3, -2, 1], [0, 1, 0, 9]]},
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_chosen_experts_are_whole_numbers(client: TestClient, dtype: str) -> None:
    asked = {**EXPERTS, "dtype": dtype, "select": ["ffn.router", "ffn.experts"]}
    tensors = post(client, asked)["tensors"]
    for block in ("blocks.0.ffn.", "blocks.1.ffn."):
        experts = tensors[f"{block}experts"]
        assert (experts["dtype"], experts["axes"]) == ("int64", ["position", "choice"])
        assert all(type(expert) is int for row in experts["data"] for expert in row)
        logits = array(tensors[f"{block}router"])
        assert experts["data"] == np.argsort(-logits, axis=-1)[:, :2].tolist()
        assert tensors[f"{block}router"]["dtype"] == dtype


def test_summary_of_chosen_experts_is_not_rounded_to_whole_numbers(client: TestClient) -> None:
    whole = post(client, {**EXPERTS, "select": ["ffn.experts"]})["tensors"]
    select = [{"name": "ffn.experts", "summary": True}]
    for name, tensor in post(client, {**EXPERTS, "select": select})["tensors"].items():
        rows, summary = array(whole[name]), tensor["summary"]
        assert tensor["dtype"] == "int64"
        np.testing.assert_allclose(summary["mean"], rows.mean(axis=-1))
        np.testing.assert_allclose(summary["norm"], np.linalg.norm(rows, axis=-1))
        assert summary["max"] == rows.max(axis=-1).tolist()


def test_experts_can_be_cut(client: TestClient) -> None:
    whole = post(client, {**EXPERTS, "select": ["ffn.experts"]})["tensors"]
    select = [{"name": "ffn.experts", "position": [-1], "choice": [1, 0]}]
    cut = post(client, {**EXPERTS, "select": select})["tensors"]
    for name, tensor in cut.items():
        assert tensor["index"] == {"position": [2], "choice": [1, 0]}
        assert tensor["data"] == [whole[name]["data"][2][::-1]]


def test_answer_says_what_the_memory_was_read_as(client: TestClient) -> None:
    config = {
        "d_model": 4,
        "attention": {"n_heads": 2},
        "vocab": 6,
        "encoder": {"attention": {"n_heads": 1}, "token_types": 2},
    }
    memory = {
        "token_ids": [[5, 4, 3], [2, 1, 0]],
        "key_mask": [[False, True, True], [True, True, True]],
        "token_types": [0, 1, 1],
    }
    asked = {"token_ids": [[1, 2], [3, 4]], "memory": memory}
    read = post(client, {"model": {"config": config}, "input": asked})["input"]
    assert read["memory"] == {
        **memory,
        "positions": 3,
        "batch": 2,
        "tokens": None,
        "position_ids": [[0, 0, 1], [0, 1, 2]],
    }
    assert read["token_types"] is None
    without = {"model": {"config": {**config, "encoder": None}}, "input": {"token_ids": [1]}}
    assert post(client, without)["input"]["memory"] is None
