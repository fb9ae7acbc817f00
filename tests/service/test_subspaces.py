"""POST /v1/subspaces over HTTP, against whole matrices of the weights that were posted."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from compute.circuits import cost
from compute.circuits.asked import Question
from compute.circuits.heads import HeadId
from oracle.circuits import Dense, overlap, product_score, rank
from schemas.model import ModelAsked
from schemas.subspaces import SubspacesRequest
from service.settings import Settings

AssertProblem = Callable[..., dict[str, Any]]
EVERYTHING = ["rank", "singular_values", "effective_rank", "basis", "overlap", "angles", "reads",
              "ffn", "qk", "ov", "token_copying", "composition"]  # fmt: skip
D, H, G, K, V, F, L = 11, 4, 2, 2, 3, 7, 2  # the heads go by pairs to a key/value head
CLOSE = {"abs": 1e-6}  # the posted numbers are float64, the networks' scores come of Gram matrices


def random_weights(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = {
        "norm1.weight": (D,),
        "attn.W_Q": (H, D, K),
        "attn.W_K": (G, D, K),
        "attn.W_V": (G, D, V),
        "attn.W_O": (H, V, D),
        "norm2.weight": (D,),
        "ffn.W_in": (D, F),
        "ffn.W_out": (F, D),
    }
    made = {
        f"blocks.{block}.{name}": rng.standard_normal(shape)
        for block in range(L)
        for name, shape in shapes.items()
    }
    made["blocks.0.attn.W_O"][1, 2] = made["blocks.0.attn.W_O"][1, 0]  # of rank 2
    vocab = {"embed.W_E": (5, D), "unembed.W_U": (D, 5)}
    return {**made, **{name: rng.standard_normal(shape) for name, shape in vocab.items()}}


CONFIG: dict[str, Any] = {
    "d_model": D,
    "n_layers": L,
    "attention": {"n_heads": H, "n_kv_heads": G, "d_head": K, "d_value": V, "scale": 0.3},
    "ffn": {"kind": "mlp", "d_ff": F},
    "norm": {"kind": "layernorm", "bias": False},
    "position": {"kind": "none"},
    "vocab": 5,
    "tied": False,
}
WEIGHTS = random_weights(0)
RESOLVED = {
    **CONFIG,
    "norm": {"kind": "layernorm", "placement": "pre", "gain_offset": 0.0, "shared": False},
}
MODEL = {
    "config": CONFIG,
    "weights": {
        "init": "zeros",
        "tensors": {name: values.tolist() for name, values in WEIGHTS.items()},
    },
}
INDUCTION = {"name": "induction"}
FIRST = {"block": 0, "head": 0}


def answered(client: TestClient, **asked: Any) -> dict[str, Any]:  # noqa: ANN401 - plain JSON
    response = client.post("/v1/subspaces", json=asked)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


@pytest.mark.parametrize("fold_norm", [False, True])
def test_everything_is_as_whole_matrices_have_it(client: TestClient, fold_norm: bool) -> None:
    tokens = [4, 0]
    found = answered(
        client,
        model=MODEL,
        ask=EVERYTHING,
        tokens=tokens,
        fold_norm=fold_norm,
        dtype="float64",
    )
    dense = Dense(RESOLVED, WEIGHTS, fold_norm)
    assert [(x["block"], x["head"]) for x in found["heads"]] == dense.heads
    for head in found["heads"]:
        assert_head(head, dense, tokens)
    for i, a in enumerate(dense.heads):
        for j, b in enumerate(dense.heads):
            score = overlap(dense.O(*a), dense.O(*b))
            assert found["overlap"]["score"][i][j] == pytest.approx(score, abs=1e-9)
            for kind in "qkv":
                expected = dense.composition(kind, a, b) if a[0] < b[0] else None
                assert_close(found["composition"][kind]["score"][i][j], expected)
    assert_met(found["reads"], dense, written=False)
    assert_met(found["ffn"], dense, written=True)


def assert_head(head: dict[str, Any], dense: Dense, tokens: list[int]) -> None:
    """Its subspace and its circuits, with the rows of two tokens."""
    at = head["block"], head["head"]
    O = dense.O(*at)  # noqa: E741 - the article's letter
    assert head["kv_head"] == dense.kv(at[1])
    assert head["rank"] == rank(O) == len(head["basis"])
    singular = np.linalg.svd(O, compute_uv=False)
    np.testing.assert_allclose(head["singular_values"], singular, atol=1e-9)
    np.testing.assert_allclose(O @ np.transpose(head["basis"]) @ head["basis"], O, atol=1e-9)
    QK, OV = dense.QK(*at), dense.OV(*at)
    assert head["qk"]["norm"] == pytest.approx(np.linalg.norm(QK))
    assert head["ov"]["norm"] == pytest.approx(np.linalg.norm(OV))
    traces = [np.sum(head[x]["eigenvalues"], axis=0) for x in ("qk", "ov")]
    np.testing.assert_allclose(traces, [[np.trace(QK), 0], [np.trace(OV), 0]], atol=1e-9)
    whole = np.linalg.eigvals(WEIGHTS["embed.W_E"] @ OV @ WEIGHTS["unembed.W_U"])
    copied = whole.sum().real / np.abs(whole).sum()
    assert head["token_copying"]["score"] == pytest.approx(copied, abs=1e-6)
    E, U = WEIGHTS["embed.W_E"][tokens], WEIGHTS["unembed.W_U"][:, tokens]
    np.testing.assert_allclose(head["qk"]["token_scores"], 0.3 * E @ QK @ E.T, atol=1e-9)
    np.testing.assert_allclose(head["ov"]["token_logits"], E @ OV @ U, atol=1e-9)


def assert_close(found: float | None, expected: float | None) -> None:
    assert (found is None) == (expected is None)
    if expected is not None:
        assert found == pytest.approx(expected, **CLOSE)


def assert_met(met: dict[str, Any], dense: Dense, *, written: bool) -> None:
    """Each head against each matrix: the networks read heads of their own block too."""
    for j, column in enumerate(met["columns"]):
        block, is_network = column["block"], column["head"] is column["kv_head"] is None
        if is_network:
            M = dense.ffn(block, column["matrix"])
        else:
            head = column["head"] if column["head"] is not None else 2 * column["kv_head"]
            M = getattr(dense, column["matrix"][-1])(block, head)
        assert column["rank"] == rank(M)
        for i, a in enumerate(dense.heads):
            there = written or a[0] < block or (is_network and a[0] == block)
            O = dense.O(*a)  # noqa: E741 - the article's letter
            assert_close(met["overlap"]["score"][i][j], overlap(O, M.T) if there else None)
            assert_close(met["weighted"]["score"][i][j], product_score(O, M) if there else None)
            chance = max(rank(O), rank(M)) / D if there else None
            assert_close(met["overlap"]["baseline"]["mean"][i][j], chance)


def test_induction_and_previous_token_heads_compose_most_by_keys(client: TestClient) -> None:
    found = answered(client, model=INDUCTION, ask=["composition"])
    k = found["composition"]["k"]
    best = k["largest"][0]
    assert best["writer"] == {"block": 0, "head": 1}
    assert best["reader"] == {"block": 1, "head": 2}
    assert best["score"] > k["baseline"]["mean"] + 20 * k["baseline"]["std"]
    assert [x["score"] for x in k["largest"]] == sorted(
        (x for row in k["score"] for x in row if x is not None), reverse=True
    )[:10]


def test_induction_head_copies_tokens_though_it_turns_the_stream_round(client: TestClient) -> None:
    heads = [{"block": 1, "head": 2}]
    (head,) = answered(client, model=INDUCTION, heads=heads, ask=["ov", "token_copying"])["heads"]
    assert head["token_copying"]["score"] > 0.9
    assert head["ov"]["copying"]["score"] < -0.9


def test_only_what_is_asked_for_is_answered(client: TestClient) -> None:
    for name in EVERYTHING:
        found = answered(client, model=MODEL, ask=[name])
        extra = set(found) - {"model", "fold_norm", "heads", "notes"}
        of_heads = set(found["heads"][0]) - {"block", "head", "kv_head"}
        told = {"effective_rank": {"effective_rank", "participation_ratio"}}.get(name, {name})
        assert extra | of_heads == told


def test_heads_are_counted_from_either_end_and_kept_in_order(client: TestClient) -> None:
    heads = [{"block": -1, "head": -1}, {"block": 0, "head": 1}]
    found = answered(client, model=MODEL, heads=heads, ask=["rank", "composition"])
    assert [(x["block"], x["head"]) for x in found["heads"]] == [(1, 3), (0, 1)]
    scores = found["composition"]["k"]["score"]
    assert [[x is None for x in row] for row in scores] == [[True, True], [False, True]]


def test_readers_may_be_others_than_the_heads(client: TestClient) -> None:
    heads = [{"block": 0, "head": 1}]
    asked = {"model": INDUCTION, "heads": heads, "ask": ["composition", "reads"]}
    alone, by_all = answered(client, **asked), answered(client, **asked, readers="all")
    assert alone["composition"]["k"]["score"] == [[None]]
    whole = answered(client, model=INDUCTION, ask=["composition"])
    np.testing.assert_allclose(
        by_all["composition"]["k"]["score"][0][4:],
        whole["composition"]["k"]["score"][1][4:],
        atol=1e-12,
    )
    matrices = {(x["block"], x["matrix"]) for x in by_all["reads"]["columns"]}
    assert matrices == {(b, m) for b in (0, 1) for m in ("W_Q", "W_K", "W_V", "W_in", "W_gate")}


def test_angles_of_reads_are_there_where_overlaps_are(client: TestClient) -> None:
    reads = answered(client, model=MODEL, ask=["reads", "angles"])["reads"]
    for scores, degrees in zip(reads["overlap"]["score"], reads["degrees"], strict=True):
        for score, angles in zip(scores, degrees, strict=False):  # networks have no angles
            assert (score is None) == (angles is None)
            if angles is not None:
                assert np.mean(np.cos(np.radians(angles)) ** 2) == pytest.approx(score)


def test_tokens_are_read_as_text_or_id(client: TestClient) -> None:
    heads = [{"block": 1, "head": 2}]
    found = answered(client, model=INDUCTION, heads=heads, ask=["ov"], tokens=["C", 0])
    assert found["tokens"] == [{"id": 2, "text": "C"}, {"id": 0, "text": "A"}]
    logits = np.array(found["heads"][0]["ov"]["token_logits"])
    assert (logits.diagonal() > logits[[0, 1], [1, 0]]).all()  # the induction head copies


@pytest.mark.parametrize(
    ("asked", "faults"),
    [
        (
            {
                "heads": [
                    {"block": 2, "head": -5},
                    {"block": 0, "head": 0},
                    {"block": -2, "head": 0},
                ]
            },
            [
                ("/heads/0/block", "index_out_of_range"),
                ("/heads/0/head", "index_out_of_range"),
                ("/heads/2", "repeated"),
            ],
        ),
        ({"readers": [{"block": 9, "head": 0}]}, [("/readers/0/block", "index_out_of_range")]),
        (
            {"ask": ["qk"], "tokens": ["AB", 26, "A", "é"]},
            [
                ("/tokens/0", "not_one_token"),
                ("/tokens/1", "out_of_vocabulary"),
                ("/tokens/3", "not_one_token"),
            ],
        ),
    ],
    ids=["heads", "readers", "tokens"],
)
def test_what_is_not_there_is_told_all_at_once(
    client: TestClient, assert_problem: AssertProblem, asked: dict[str, Any], faults: list[Any]
) -> None:
    response = client.post("/v1/subspaces", json={"model": INDUCTION, **asked})
    found = assert_problem(response, "unanswerable")
    assert [(fault["pointer"], fault["code"]) for fault in found["errors"]] == faults


WITHOUT = {
    "attention": ({"attention": {"kind": "none"}}, {}, "/model", "no_heads"),
    "ffn": ({"ffn": {"kind": "none"}}, {"ask": ["rank", "ffn"]}, "/ask/1", "no_ffn"),
    "vocab": ({"vocab": None}, {"ask": ["qk"], "tokens": [0]}, "/tokens", "no_vocab"),
    "readout of all": (
        {"readout": False},
        {"ask": ["qk", "token_copying"]},
        "/ask/1",
        "no_readout",
    ),
    "readout": ({"readout": False}, {"ask": ["ov"], "tokens": [0]}, "/tokens", "no_readout"),
}


@pytest.mark.parametrize("part", WITHOUT)
def test_model_without_the_part_is_refused(
    client: TestClient, assert_problem: AssertProblem, part: str
) -> None:
    change, asked, pointer, code = WITHOUT[part]
    config = {key: value for key, value in (CONFIG | change).items() if value is not None}
    if "readout" in change or "vocab" not in config:
        config.pop("tied", None)
    body = {"model": {"config": config}, **asked}
    found = assert_problem(client.post("/v1/subspaces", json=body), "unanswerable")
    assert [(fault["pointer"], fault["code"]) for fault in found["errors"]] == [(pointer, code)]


@pytest.mark.parametrize(
    ("dtype", "value"), [("float32", 1e31), ("float64", 1e31), ("float64", 1e308)]
)
def test_weights_too_large_for_scores_are_refused(
    client: TestClient, assert_problem: AssertProblem, dtype: str, value: float
) -> None:
    tensors = {"blocks.0.attn.W_O": np.full((H, V, D), value).tolist()}
    body = {"model": {"config": CONFIG, "weights": {"tensors": tensors}}, "dtype": dtype}
    found = assert_problem(client.post("/v1/subspaces", json=body), "unanswerable")
    assert found["errors"][0]["code"] == "out_of_range"


@pytest.mark.parametrize("init", ["zeros", "identity", "seeded"])
@pytest.mark.parametrize("value", [1e-300, 1e-30, 1e29])
def test_degenerate_weights_are_answered_without_a_fault(
    client: TestClient, init: str, value: float
) -> None:
    tensors = {"blocks.0.attn.W_O": np.full((H, V, D), value).tolist()}
    model = {"config": CONFIG, "weights": {"init": init, "tensors": tensors}}
    found = answered(
        client, model=model, ask=EVERYTHING, tokens=[1], dtype="float64", fold_norm=True
    )
    assert [head["rank"] for head in found["heads"][:H]] == [1] * H


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"position": {"kind": "rope"}}, "before RoPE"),
        ({"position": {"kind": "alibi"}}, "positions add"),
        ({"norm": {"kind": "rmsnorm", "placement": "post"}}, "on the stream itself"),
        ({"norm": {"kind": "rmsnorm", "placement": "output"}}, "after each sublayer"),
        ({"attention": {**CONFIG["attention"], "qk_norm": "head"}}, "normalized in a run"),
        ({"attention": {**CONFIG["attention"], "softcap": 5.0}}, "capped"),
        ({"attention": {**CONFIG["attention"], "bias": True}}, "biases"),
        ({"cross_attention": True}, "cross-attention"),
        ({"ffn": {"kind": "moe", "d_ff": 7, "n_experts": 3, "top_k": 1}}, "side by side"),
        ({"embed_multiplier": 2.0}, "embed_multiplier"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_the_weights_hide_is_said(
    client: TestClient, config: dict[str, Any], words: str
) -> None:
    model = {"config": CONFIG | config}
    found = answered(client, model=model, ask=["qk", "ov", "reads", "composition"], tokens=[0])
    assert any(words in note for note in found["notes"])
    plain = answered(client, model={"config": CONFIG}, ask=["qk", "ov", "reads"], tokens=[0])
    assert not any(words in note for note in plain["notes"])


def test_whole_gpt2_composes_within_the_limits(client: TestClient) -> None:
    model = {"preset": "gpt2", "config": {"n_layers": 3}, "weights": {"init": "seeded"}}
    found = answered(client, model=model, ask=["composition", "overlap"])
    for kind in "qkv":
        told = found["composition"][kind]
        scores = np.array([x for row in told["score"] for x in row if x is not None])
        assert len(scores) == 3 * 144
        chance = told["baseline"]
        assert abs(scores.mean() - chance["mean"]) < 3 * chance["std"]


def test_whole_gpt2_is_within_the_work_limit_by_default() -> None:
    config = ModelAsked.model_validate({"preset": "gpt2"}).to_compute(None)
    heads = [HeadId(block, head) for block in range(12) for head in range(12)]
    asked = SubspacesRequest.model_validate({"model": {"preset": "gpt2"}})
    question = Question(config=config, heads=heads, readers=heads, ask=frozenset(asked.ask))
    assert cost.flops(question) < Settings().work_flops
    assert cost.held_bytes(question, 4) < Settings().memory_bytes


@pytest.mark.parametrize(
    "config",
    [
        {"d_model": 8192, "n_layers": 1, "attention": {"n_heads": 1}},
        {"d_model": 8192, "n_layers": 64, "attention": {"n_heads": 128}, "ffn": {"kind": "gated"}},
        {"d_model": 4096, "n_layers": 1, "attention": {"n_heads": 4096, "d_head": 1}},
    ],
    ids=["wide head", "large", "many heads"],
)
@pytest.mark.parametrize("name", EVERYTHING)
def test_hostile_sizes_are_refused_or_answered_at_once(
    client: TestClient, config: dict[str, Any], name: str
) -> None:
    body = {"model": {"config": {**config, "vocab": 1 << 17}}, "ask": [name]}
    response = client.post("/v1/subspaces", json=body)
    assert response.status_code in (200, 413), response.text[:500]


def numbers_in(value: object) -> int:
    """Numbers and nulls of a part of an answer."""
    if isinstance(value, dict):
        return sum(map(numbers_in, value.values()))
    if isinstance(value, list):
        return sum(map(numbers_in, value))
    return not isinstance(value, str)


@pytest.mark.parametrize("name", EVERYTHING)
@pytest.mark.parametrize("model", [MODEL, INDUCTION], ids=["posted", "induction"])
def test_numbers_of_an_answer_are_counted_before_they_are_made(
    client: TestClient,
    make_client: Callable[..., TestClient],
    assert_problem: AssertProblem,
    model: dict[str, Any],
    name: str,
) -> None:
    asked = {"model": model, "ask": [name], **({"tokens": [1, 2]} if name in ("qk", "ov") else {})}
    found = answered(client, **asked)
    of_heads = [{x: head[x] for x in head if x not in ("block", "head", "kv_head")}
                for head in found.pop("heads")]  # fmt: skip
    rest = {x: found[x] for x in found if x not in ("model", "fold_norm", "tokens", "notes")}
    got = numbers_in([of_heads, rest])
    refused = make_client(answer_elements=1).post("/v1/subspaces", json=asked)
    counted = assert_problem(refused, "beyond-limit")["estimate"]["elements"]
    assert got <= 1.1 * counted + 100  # names of columns and readers are not counted
    assert counted <= 3 * got + 200
