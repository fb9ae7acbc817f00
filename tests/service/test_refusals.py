"""What POST /v1/trace refuses: each fault at its place, all at once."""

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

AssertProblem = Callable[..., dict[str, Any]]

CONFIG: dict[str, Any] = {"d_model": 4, "attention": {"n_heads": 2}}
INPUT: dict[str, Any] = {"tensor": [[1, 2, 3, 4], [5, 6, 7, 8]]}


def request(**changes: object) -> dict[str, Any]:
    return {"model": {"config": CONFIG}, "input": INPUT, **changes}


def pointers(body: dict[str, Any]) -> list[str]:
    return [fault["pointer"] for fault in body["errors"]]


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity"])
def test_numbers_json_does_not_have_are_no_json(
    client: TestClient, assert_problem: AssertProblem, literal: str
) -> None:
    body = f'{{"model": {{"name": "eiffel-toy"}}, "input": {{"tensor": [[{literal}, 1]]}}}}'
    response = client.post("/v1/trace", content=body, headers={"Content-Type": "application/json"})
    assert_problem(response, "malformed-json")


@pytest.mark.parametrize("literal", ["1e400", "-1e400", "1" + "0" * 400])
def test_number_beyond_float64_is_found_in_its_place(
    client: TestClient, assert_problem: AssertProblem, literal: str
) -> None:
    body = f'{{"model": {{"name": "eiffel-toy"}}, "input": {{"tensor": [[1, {literal}]]}}}}'
    response = client.post("/v1/trace", content=body, headers={"Content-Type": "application/json"})
    (fault,) = assert_problem(response, "invalid-request")["errors"]
    assert (fault["pointer"], fault["code"]) == ("/input/tensor/0/1", "not_finite")


@pytest.mark.parametrize("wrong", ["NaN", "1.5", True, None, [1], {"a": 1}])
def test_what_is_no_number_is_found_in_its_place(
    client: TestClient, assert_problem: AssertProblem, wrong: object
) -> None:
    tensor = [[1, 2, 3, 4], [5, wrong, 7, wrong]]
    response = client.post("/v1/trace", json=request(input={"tensor": tensor}))
    body = assert_problem(response, "invalid-request")
    assert pointers(body) == ["/input/tensor/1/1", "/input/tensor/1/3"]
    assert "NaN" not in response.text


@pytest.mark.parametrize(
    ("tensor", "pointer"),
    [
        ([[1, 2, 3, 4], [5, 6]], "/input/tensor/1"),
        ([1, 2], "/input/tensor"),
        ([[[[1]]]], "/input/tensor"),
        ([], "/input/tensor"),
        ([[]], "/input/tensor/0"),
        ("rows", "/input/tensor"),
        ([[1, 2, 3, 4], 5], "/input/tensor/1"),
        ([[1, 2, 3, 10**400]], "/input/tensor/0/3"),
    ],
)
def test_malformed_tensors_are_located(
    client: TestClient, assert_problem: AssertProblem, tensor: object, pointer: str
) -> None:
    response = client.post("/v1/trace", json=request(input={"tensor": tensor}))
    if response.status_code == 400:  # a number too long for the parser itself
        assert_problem(response, "malformed-json")
    else:
        assert pointers(assert_problem(response, "invalid-request")) == [pointer]


def test_number_beyond_float32_is_located_and_fits_float64(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    large = request(input={"tensor": [[1, 2, 3, 1e39]]}, select=["X"])
    body = assert_problem(client.post("/v1/trace", json=large), "invalid-input")
    assert pointers(body) == ["/input/tensor/0/3"]
    assert client.post("/v1/trace", json={**large, "dtype": "float64"}).status_code == 200


def test_edit_beyond_float32_is_located(client: TestClient, assert_problem: AssertProblem) -> None:
    edits = [{"tensor": "blocks.0.attn.W_O", "op": "scale", "value": 1e300}]
    model = {"config": CONFIG, "weights": {"edits": edits}}
    body = assert_problem(client.post("/v1/trace", json=request(model=model)), "shape-mismatch")
    assert pointers(body) == ["/model/weights/edits/0/value"]
    large = request(model={**model, "weights": {"edits": [{**edits[0], "value": 1e38}] * 2}})
    assert client.post("/v1/trace", json=large).status_code == 200


def test_index_that_an_edit_names_twice_is_refused(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    edits = [{"tensor": "blocks.0.attn.W_O", "where": {"head": [1, -1]}, "op": "zero"}]
    model = {"config": CONFIG, "weights": {"edits": edits}}
    body = assert_problem(client.post("/v1/trace", json=request(model=model)), "shape-mismatch")
    assert pointers(body) == ["/model/weights/edits/0/where/head"]


FLOODS = {
    "indices of a selection": {"select": [{"name": "*", "position": [9] * 8192}] * 50},
    "indices of edits": {
        "model": {
            "config": CONFIG,
            "weights": {
                "edits": [
                    {"tensor": "blocks.0.attn.W_O", "where": {"head": [9] * 8192}, "op": "zero"}
                ]
                * 100
            },
        }
    },
    "names of tensors": {
        "model": {
            "config": {**CONFIG, "n_layers": 64},
            "weights": {"tensors": {f"blocks.7.attn.W_{i}": [1] for i in range(4096)}},
        }
    },
    "texts": {"model": {"name": "letter-sort"}, "input": {"text": ["A"] * 100_000}},
    "stars": {"select": ["*" * 126 + "Xq"] * 1000},
    "words of an edit": {
        "model": {
            "config": CONFIG,
            "weights": {
                "edits": [
                    {
                        "tensor": "x",
                        "op": "zero",
                        "where": {str(i): [0] for i in range(300_000)},
                    }
                ]
            },
        }
    },
    "tensors": {
        "model": {
            "config": CONFIG,
            "weights": {"tensors": {str(i): [[]] for i in range(300_000)}},
        }
    },
}


@pytest.mark.parametrize("kind", sorted(FLOODS))
def test_flood_of_faults_is_cut_short(client: TestClient, kind: str) -> None:
    response = client.post("/v1/trace", json=request(**FLOODS[kind]))
    assert response.status_code in (413, 422)
    assert response.json()["errors_total"] <= 1000
    assert len(response.content) < 16_384


def test_weights_that_do_not_fit_are_reported_all_at_once(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    tensors = {"blocks.0.attn.W_Q": [[1, 2]], "blocks.0.ffn.b_in": [1], "blocks.1.attn.W_Q": [1]}
    edits = [{"tensor": "blocks.0.attn.W_O", "where": {"head": [2]}, "op": "zero"}]
    model = {"config": CONFIG, "weights": {"tensors": tensors, "edits": edits}}
    body = assert_problem(client.post("/v1/trace", json=request(model=model)), "shape-mismatch")
    assert pointers(body) == [
        "/model/weights/tensors/blocks.0.attn.W_Q",
        "/model/weights/tensors/blocks.0.ffn.b_in",
        "/model/weights/tensors/blocks.1.attn.W_Q",
        "/model/weights/edits/0/where/head/0",
    ]
    first = body["errors"][0]
    assert (first["expected"], first["got"]) == ([2, 4, 2], [1, 2])


@pytest.mark.parametrize(
    ("config", "pointer"),
    [
        ({"d_model": 5, "attention": {"n_heads": 2}}, "attention/n_heads"),
        (
            {"d_model": 4, "attention": {"n_heads": 3, "n_kv_heads": 2, "d_head": 2}},
            "attention/n_kv_heads",
        ),
        ({"d_model": 4, "attention": {"kind": "none"}, "ffn": {"kind": "none"}}, "ffn/kind"),
        ({**CONFIG, "position": {"kind": "learned"}}, "position/n_positions"),
        ({**CONFIG, "position": {"kind": "none", "theta": 10}}, "position/theta"),
        ({**CONFIG, "position": {"kind": "rope", "rotary_dim": 3}}, "position/rotary_dim"),
        ({**CONFIG, "norm": {"kind": "none", "placement": "post"}}, "norm/placement"),
        ({**CONFIG, "tied": True}, "tied"),
        ({**CONFIG, "ffn": {"kind": "none", "d_ff": 3}}, "ffn/d_ff"),
        ({**CONFIG, "norm": {"kind": "none", "eps": 0.1}}, "norm/eps"),
        ({**CONFIG, "norm": {"kind": "none"}, "final_norm": True}, "final_norm"),
        ({**CONFIG, "ffn": {"bias": {"gate": True}}}, "ffn/bias/gate"),
    ],
)
def test_config_rules_point_at_the_field(
    client: TestClient, assert_problem: AssertProblem, config: dict[str, Any], pointer: str
) -> None:
    response = client.post("/v1/trace", json=request(model={"config": config}))
    assert pointers(assert_problem(response, "config-rule")) == [f"/model/config/{pointer}"]


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"model": {}}, "/model"),
        ({"model": {"name": "eiffel-toy", "preset": "gpt2"}}, "/model"),
        ({"model": {"name": "eiffel-toy", "weights": {"seed": 1}}}, "/model"),
        ({"model": {"config": CONFIG, "weights": {"init": "zeros", "seed": 1}}}, "/model/weights"),
        ({"input": {}}, "/input"),
        ({"input": {**INPUT, "text": "the"}}, "/input"),
        ({"input": {**INPUT, "special_tokens": True}}, "/input"),
        ({"model": {"config": {**CONFIG, "d_modle": 4}}}, "/model/config/d_modle"),
        (
            {"model": {"config": {**CONFIG, "attention": {"n_heads": 2, "window": 0}}}},
            "/model/config/attention/window",
        ),
        ({"model": {"config": {**CONFIG, "d_model": True}}}, "/model/config/d_model"),
        ({"model": {"config": {**CONFIG, "d_model": "4"}}}, "/model/config/d_model"),
        ({"dtype": "float16"}, "/dtype"),
        ({"select": [{"name": "A", "heads": [0]}]}, "/select/0/heads"),
        ({"select": ["A", 3]}, "/select/1"),
    ],
)
def test_schema_rules_point_at_the_field(
    client: TestClient, assert_problem: AssertProblem, changes: dict[str, Any], pointer: str
) -> None:
    body = assert_problem(client.post("/v1/trace", json=request(**changes)), "invalid-request")
    assert pointers(body) == [pointer]


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"tensor": [[1, 2]]}, "/input/tensor"),
        ({"token_ids": [0]}, "/input/token_ids"),
        ({"text": "the"}, "/input/text"),
        ({**INPUT, "key_mask": [True]}, "/input/key_mask"),
        ({**INPUT, "attention_mask": [[True, False]]}, "/input/attention_mask"),
        ({**INPUT, "position_ids": [0, 1, 2]}, "/input/position_ids"),
    ],
)
def test_input_that_does_not_fit_is_located(
    client: TestClient, assert_problem: AssertProblem, given: dict[str, Any], pointer: str
) -> None:
    body = assert_problem(client.post("/v1/trace", json=request(input=given)), "invalid-input")
    assert pointers(body) == [pointer]


def test_tokens_outside_the_vocabulary_are_located(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    toy = {"name": "eiffel-toy"}
    ids = {"token_ids": [[0, 3], [2, 7]]}
    body = assert_problem(
        client.post("/v1/trace", json={"model": toy, "input": ids}), "invalid-input"
    )
    assert pointers(body) == ["/input/token_ids/0/1", "/input/token_ids/1/1"]
    text = {"text": ["the tower", "the Louvre"]}
    response = client.post("/v1/trace", json={"model": toy, "input": text})
    assert pointers(assert_problem(response, "invalid-input")) == ["/input/text/1"]
    assert "Louvre" not in response.text


def test_learned_positions_end_where_their_table_ends(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    model = {"name": "letter-sort"}
    long = {"model": model, "input": {"text": "A" * 12}}
    body = assert_problem(client.post("/v1/trace", json=long), "invalid-input")
    assert "0 to 10" in body["errors"][0]["detail"]
    assert pointers(body) == ["/input/text"]
    ids = {"model": model, "input": {"text": "AB", "position_ids": [3, 11]}}
    body = assert_problem(client.post("/v1/trace", json=ids), "invalid-input")
    assert pointers(body) == ["/input/position_ids/1"]


def test_unknown_model_names_those_there_are(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    response = client.post("/v1/trace", json=request(model={"name": "eiffel"}))
    assert assert_problem(response, "unknown-model")["models"] == [
        "eiffel-toy",
        "induction",
        "letter-sort",
    ]
    assert_problem(client.get("/v1/models/none"), "unknown-model")


@pytest.mark.parametrize(
    "name", ["blocks.7.attn.z", "blocks.0.attn.zz", "nothing", "blocks..", "*.x"]
)
def test_unknown_stages_are_refused(
    client: TestClient, assert_problem: AssertProblem, name: str
) -> None:
    body = assert_problem(
        client.post("/v1/trace", json=request(select=[name])), "invalid-selection"
    )
    assert body["errors"][0]["code"] == "unknown_stage"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("blocks.3.A", "the blocks are 0 to 0"),
        ("blocks.-1.attn.z", "the blocks are 0 to 0"),
        ("hook_scale", "ln1.hook_scale, ln1_post.hook_scale, ln2.hook_scale"),
        ("scale", "norm1.scale, norm1_post.scale, norm2.scale"),
        ("blocks.0.attn.outt", "attn_out"),
        ("a", "Near it: A."),
        ("ATTN.PATTERN", "attn.pattern"),
        ("hook_normalized_resid_post", "post-norm configs only"),
    ],
)
def test_unknown_stage_is_answered_with_the_reason(
    client: TestClient, assert_problem: AssertProblem, name: str, says: str
) -> None:
    response = client.post("/v1/trace", json=request(select=[name]))
    assert says in assert_problem(response, "invalid-selection")["errors"][0]["detail"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"modle": 1}, "Near it: model"),
        ({"model": {"config": {**CONFIG, "attention": {"n_head": 2}}}}, "n_heads"),
        ({"input": {**INPUT, "zzz": 1}}, "tensor, token_ids, text"),
        ({"select": [{"name": "A", "heads": [0]}]}, "Near it: head"),
        ({"model": {"config": {**CONFIG, "norm": "none"}}}, "Its keys: kind, placement"),
        ({"model": "letter-sort"}, "Its keys: name, preset, config"),
        ({"model": {"config": {**CONFIG, "ffn": {"bias": {"inn": True}}}}}, "Near it: in"),
    ],
)
def test_misspelt_key_is_answered_with_its_neighbours(
    client: TestClient, assert_problem: AssertProblem, changes: dict[str, Any], says: str
) -> None:
    body = assert_problem(client.post("/v1/trace", json=request(**changes)), "invalid-request")
    assert says in body["errors"][0]["detail"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("swish", " swish is silu here."),
        ("gelu_new", " gelu_new is gelu_tanh here."),
        ("gelu_pytorch_tanh", " gelu_pytorch_tanh is gelu_tanh here."),
        ("gelu_fast", " gelu_fast is gelu_tanh here."),
        ("relu_squared", " relu_squared is relu2 here."),
        ("SwiGLU", " swiglu is silu with ffn.kind = gated here."),
        ("GELU", " It is written gelu here."),
        ("tanh", "'silu' or 'identity' is due here. Near it: gelu_tanh."),
    ],
)
def test_activation_of_another_library_is_answered_with_our_name(
    client: TestClient, assert_problem: AssertProblem, name: str, says: str
) -> None:
    model = {"config": {**CONFIG, "ffn": {"activation": name}}}
    body = assert_problem(client.post("/v1/trace", json=request(model=model)), "invalid-request")
    assert pointers(body) == ["/model/config/ffn/activation"]
    assert body["errors"][0]["code"] == "literal_error"
    assert body["errors"][0]["detail"].endswith(says)


def test_forgotten_head_count_is_named(client: TestClient, assert_problem: AssertProblem) -> None:
    for model in ({"config": {"d_model": 4}}, {"config": {"d_model": 4, "attention": {}}}):
        response = client.post("/v1/trace", json=request(model=model))
        body = assert_problem(response, "invalid-request")
        assert pointers(body) == ["/model/config/attention/n_heads"]


def test_tensor_of_another_config_is_answered_with_when_it_exists(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    model = {"config": CONFIG, "weights": {"tensors": {"blocks.0.attn.b_O": [1, 2, 3, 4]}}}
    body = assert_problem(client.post("/v1/trace", json=request(model=model)), "shape-mismatch")
    assert "attention.bias" in body["errors"][0]["detail"]
    assert "expected" not in body["errors"][0]
    model["weights"]["tensors"] = {"blocks.1.attn.W_O": [1]}
    body = assert_problem(client.post("/v1/trace", json=request(model=model)), "shape-mismatch")
    assert "The blocks are 0 to 0." in body["errors"][0]["detail"]


@pytest.mark.parametrize(
    ("text", "pointer"),
    [("AAx", "/input/text"), (["A", "x"], "/input/text/1"), ("", "/input/text")],
)
def test_text_is_located_in_what_was_sent(
    client: TestClient, assert_problem: AssertProblem, text: object, pointer: str
) -> None:
    asked = {"model": {"name": "letter-sort"}, "input": {"text": text}}
    assert pointers(assert_problem(client.post("/v1/trace", json=asked), "invalid-input")) == [
        pointer
    ]


def test_misspelt_stage_is_answered_with_its_neighbours(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    response = client.post("/v1/trace", json=request(select=["blocks.0.attn.patern"]))
    body = assert_problem(response, "invalid-selection")
    assert "attn.pattern" in body["errors"][0]["detail"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"model": {"config": {"d_model": 4, "n_heads": 2}}},
            "belongs at /model/config/attention/n_heads",
        ),
        ({"weights": {"init": "zeros"}}, "belongs at /model/weights"),
        (
            {"model": {"config": CONFIG, "weights": {"blocks.0.attn.W_Q": [[1]]}}},
            "belong in tensors",
        ),
        ({"model": {"config": {**CONFIG, "ffn": "none"}}}, "kind = none switches it off"),
        ({"input": {"tensor": "AAAA"}}, "an object of dtype, shape and data"),
        ({"input": {"tensor": {"dtype": "float32", "shape": [1, 4], "dat": ""}}}, "Near it: data"),
    ],
)
def test_what_stands_in_the_wrong_place_is_told_its_right_one(
    client: TestClient, assert_problem: AssertProblem, changes: dict[str, Any], says: str
) -> None:
    body = assert_problem(client.post("/v1/trace", json=request(**changes)), "invalid-request")
    assert any(says in fault["detail"] for fault in body["errors"])


@pytest.mark.parametrize(
    ("model", "text", "at"),
    [("eiffel-toy", "the eiffel tower", 4), ("induction", "QWErTY", 3), ("letter-sort", "x", 0)],
)
def test_text_that_is_no_token_is_told_by_its_character(
    client: TestClient, assert_problem: AssertProblem, model: str, text: str, at: int
) -> None:
    response = client.post("/v1/trace", json={"model": {"name": model}, "input": {"text": text}})
    (fault,) = assert_problem(response, "invalid-input")["errors"]
    assert fault["detail"].startswith(f"At character {at} stands what is no token")
