"""What each identity sees: a disturbed stage, a wrong W_O, a bias twice."""

from dataclasses import replace

import numpy as np
import pytest

import runs
from cases import small
from compute.trace import Run, Trace, identities_of, trace
from compute.types import Array, DType

DTYPES = pytest.mark.parametrize("dtype", ["float64", "float32"])
ROWS = np.random.default_rng(1).standard_normal((5, 11))
MEMORY = np.random.default_rng(2).standard_normal((7, 11))
GATED = {"kind": "gated", "bias": {"in": True, "gate": True, "out": True}}
HEADS = small.attention(4, 2, n_kv_heads=2, d_value=3, scale=0.3, bias=small.biases(*"qkvo"))
"""Scores of order one, so that every weight is far from 0 and from 1."""


def parts(**given: object) -> small.Config:
    both = {"attention": HEADS, "ffn": small.mlp(13), "norm": small.norm("layernorm")}
    return small.model(11, **(both | given))


def sandwiched(placement: str, **given: object) -> small.Config:
    return parts(norm=small.norm("rmsnorm", placement=placement), **given)


EXPERTS = small.moe(13, 4, 2, bias={"in": True, "gate": False, "out": True}, router_bias=True)
GATED_EXPERTS = small.moe(13, 5, 3, expert="gated", renormalize=False, d_shared=7)
LEARNED = {"kind": "learned", "n_positions": 7}
T5 = {"kind": "t5_bias", "n_buckets": 8, "max_distance": 20, "bidirectional": True}
CROSSING = {"cross_attention": True}
ENCODER = sandwiched("sandwich", ffn=EXPERTS, position=LEARNED) | {"token_types": 2}

MODELS = {
    "pre-norm": parts(),
    "two blocks": parts() | {"n_layers": 2},
    "post-norm": parts(norm=small.norm("rmsnorm", placement="post")),
    "no norm": parts(norm=small.NONE),
    "gated": parts(ffn=small.mlp(13, **GATED)),
    "attention only": parts(ffn=small.NONE),
    "ffn only": parts(attention=small.NONE),
    "rope": parts(position=small.rope(2)),
    "alibi": parts(position={"kind": "alibi", "alibi_rule": "bloom"}),
    "t5": parts(position=T5),
    "tokens": parts(position={"kind": "sinusoidal"}) | {"vocab": 17},
    "types": parts() | {"vocab": 17, "token_types": 3},
    "positions and types": parts(position=LEARNED) | {"vocab": 17, "token_types": 3},
    "multiplied embedding": parts(position=LEARNED) | {"vocab": 17, "embed_multiplier": 1.7},
    "normalized embedding": parts(position=LEARNED) | {"vocab": 17, "embed_norm": True},
    "sandwich": sandwiched("sandwich"),
    "output": sandwiched("output") | {"n_layers": 2},
    "sandwich, attention only": sandwiched("sandwich", ffn=small.NONE),
    "output, ffn only": sandwiched("output", attention=small.NONE),
    "multiplied": parts() | {"residual_multiplier": 0.4},
    "sandwich, multiplied": sandwiched("sandwich") | {"residual_multiplier": 1.3},
    "post-norm, multiplied": parts(norm=small.norm("layernorm", placement="post"))
    | {"residual_multiplier": 0.4},
    "parallel": parts() | {"topology": "parallel", "n_layers": 2},
    "parallel, one norm": parts(norm=small.norm("layernorm", shared=True))
    | {"topology": "parallel"},
    "parallel, multiplied": parts(ffn=EXPERTS)
    | {"topology": "parallel", "residual_multiplier": 0.4},
    "capped": parts(attention=HEADS | {"softcap": 2.0, "qk_norm": "full"}),
    "sinks": parts(attention=HEADS | {"sinks": True}),
    "experts": parts(ffn=EXPERTS),
    "gated experts and one for all": parts(ffn=GATED_EXPERTS),
    "one for all, weighed": parts(ffn=GATED_EXPERTS | {"shared_gate": True}),
    "experts, output": sandwiched("output", ffn=EXPERTS),
    "crossing": parts() | CROSSING,
    "crossing, post-norm": parts(norm=small.norm("rmsnorm", placement="post")) | CROSSING,
    "crossing, no norm, experts": parts(norm=small.NONE, ffn=GATED_EXPERTS) | CROSSING,
    "crossing, multiplied, sinks": parts(attention=HEADS | {"sinks": True})
    | CROSSING
    | {"residual_multiplier": 0.4, "n_layers": 2},
    "encoder": parts() | CROSSING | {"vocab": 17, "encoder": ENCODER},
    "parallel encoder": parts(norm=small.norm("layernorm", placement="post"))
    | CROSSING
    | {"encoder": parts() | {"topology": "parallel"}},
}


def parts_of(config: small.Config) -> list[str]:
    """The sublayers of a block, in order."""
    there = {
        "attn": config["attention"]["kind"] != "none",
        "cross": config.get("cross_attention", False),
        "ffn": config["ffn"]["kind"] != "none",
    }
    return [part for part, exists in there.items() if exists]


def of_block(config: small.Config) -> dict[str, set[str]]:
    """Identity -> the stages of its block that it ties together."""
    found: dict[str, set[str]] = {}
    raw = {part: raw_of(part, config) for part in parts_of(config)}
    for part, stage in raw.items():
        found |= {} if part == "ffn" else of_attention(part, stage, config)
    if config["ffn"]["kind"] == "moe":
        found["expert_product"] = {"ffn.expert_hidden", "ffn.expert_out"}
        found["expert_sum"] = {"ffn.expert_weights", "ffn.expert_out", raw["ffn"]}
        found["expert_sum"] |= {"ffn.shared_out"} if config["ffn"]["d_shared"] else set()
    elif "ffn" in raw:
        found["ffn_product"] = {"ffn.hidden", raw["ffn"]}
    for part, stage in raw.items():
        if stage != f"{part}_out":
            source = {"attn": "norm1_post.out", "ffn": "norm2_post.out"}.get(part)
            is_normed = config["norm"].get("placement") in ("sandwich", "output")
            found[f"{part}_update"] = {source if is_normed and source else stage, f"{part}_out"}
    return found | additions(config)


def raw_of(part: str, config: small.Config) -> str:
    """What the products of a sublayer give: its update, unless something follows them."""
    is_normed = config["norm"].get("placement") in ("sandwich", "output")
    is_multiplied = config.get("residual_multiplier", 1.0) != 1.0
    return f"{part}.out_raw" if is_normed or is_multiplied else f"{part}_out"


def of_attention(part: str, written: str, config: small.Config) -> dict[str, set[str]]:
    """The identities between scores and what is written, of attention or cross-attention."""
    before = "" if part == "attn" else "cross_"
    sink = {"attn.sink"} if part == "attn" and config["attention"].get("sinks") else set()
    return {
        f"{before}pattern_softmax": {f"{part}.scores", f"{part}.pattern"},
        f"{before}pattern_rows": {f"{part}.pattern"} | sink,
        f"{before}mixture": {f"{part}.pattern", f"{part}.v", f"{part}.z"},
        f"{before}head_sum": {f"{part}.head_out", written},
    }


def additions(config: small.Config) -> dict[str, set[str]]:
    """Each update with the stream it is added to and the sum; all at once in a parallel block."""
    if config.get("topology") == "parallel":
        return {"block_addition": {"resid_pre", "attn_out", "ffn_out", "resid_post"}}
    is_post = config["norm"].get("placement") == "post"
    found, before, there = {}, "resid_pre", parts_of(config)
    for part in there:
        after = "resid_post" if part == there[-1] else MIDDLE[part]
        total = f"{part}_sum" if is_post else after
        found[f"{part}_addition"] = {before, f"{part}_out", total}
        before = after
    return found


MIDDLE = {"attn": "resid_mid", "cross": "resid_cross"}
"""The stream after a sublayer that another one follows."""


def ties(name: str, config: small.Config) -> set[str]:
    """The full names of the stages that an identity ties together."""
    if name.startswith("encoder."):
        own = ties(name.removeprefix("encoder."), config["encoder"])
        return {f"encoder.{stage}" for stage in own}
    last = config["n_layers"] - 1
    if name == "embedding_sum":
        added = {"type_embed"} if config.get("token_types") else set()
        return {"embed", "pos_embed", "blocks.0.resid_pre"} | added
    if name == "expansion":
        updates = {f"blocks.{i}.{part}_out" for i in range(last + 1) for part in parts_of(config)}
        return {"blocks.0.resid_pre", f"blocks.{last}.resid_post"} | updates
    _, layer, local = name.split(".")
    return {f"blocks.{layer}.{stage}" for stage in of_block(config)[local]}


def run_of(config: small.Config, dtype: DType) -> Run:
    named = small.drawn(config, 2)
    memory = {"memory": memory_of(config)} if config.get("cross_attention") else {}
    types = {"token_types": [0, 1, 2, 1, 0]} if config.get("token_types") else {}
    if config["vocab"] is None:
        return small.run(config, named, dtype=dtype, tensor=ROWS, **memory, **types)
    ids = [3, 1, 4, 1, 5]
    return small.run(config, named, dtype=dtype, token_ids=ids, **memory, **types)


def memory_of(config: small.Config) -> dict[str, object]:
    """Seven rows, or what an encoder makes of as many tokens."""
    if config["vocab"] is not None and config.get("encoder"):
        return {"token_ids": [2, 7, 1, 8, 2, 8, 1], "token_types": [0, 1, 1, 0, 1, 0, 0]}
    return {"tensor": MEMORY}


def verdicts(traced: Trace) -> dict[str, bool | None]:
    return {identity.name: identity.holds for identity in identities_of(traced)}


def scaled(values: Array) -> Array:
    return values * values.dtype.type(1.001)


def nudged(values: Array) -> Array:
    """The largest entry moved by a thousandth of itself."""
    disturbed = np.array(values)
    finite = np.where(np.isfinite(values), np.abs(values), 0.0)
    at = np.unravel_index(finite.argmax(), finite.shape)
    disturbed[at] += values.dtype.type(1e-3) * finite[at]
    return disturbed


@DTYPES
@pytest.mark.parametrize("disturb", [scaled, nudged])
@pytest.mark.parametrize("model", MODELS)
def test_a_disturbed_stage_breaks_the_identities_that_tie_it_and_no_other(
    model: str, disturb: object, dtype: DType
) -> None:
    config = MODELS[model]
    traced = trace(run_of(config, dtype))
    before = verdicts(traced)
    assert False not in before.values()
    disturbable = {n: x for n, x in traced.whole.items() if not n.endswith("ffn.experts")}
    for stage, values in disturbable.items():
        after = verdicts(replace(traced, whole={**traced.whole, stage: disturb(values)}))
        expected = {
            name: False if holds and stage in ties(name, config) else holds
            for name, holds in before.items()
        }
        assert after == expected, stage


def test_each_identity_of_the_seeded_configs_is_checked_in_these_models() -> None:
    checked = {
        name.rpartition(".")[2]
        for config in MODELS.values()
        for name, holds in verdicts(trace(run_of(config, "float64"))).items()
        if holds
    }
    known = {
        identity.name.rpartition(".")[2]
        for case in map(runs.case_of, range(300))
        for identity in identities_of(trace(runs.run_of_case(case, select=[])))
    }
    assert checked == known


def test_a_token_sent_to_another_expert_breaks_the_experts_product() -> None:
    traced = trace(run_of(MODELS["experts"], "float32"))
    experts = traced.whole["blocks.0.ffn.experts"]
    whole = {**traced.whole, "blocks.0.ffn.experts": (experts + 1) % 4}
    after = verdicts(replace(traced, whole=whole))
    assert after["blocks.0.expert_product"] is False
    assert after["blocks.0.expert_sum"] is True


# Contributions made with a wrong matrix, or a bias twice.


def square_heads() -> tuple[Trace, Array, Array]:
    """A trace whose W_O^(r) are square, as is their stack, with z (h, n, v) and W_O (h, v, d)."""
    heads = small.attention(2, 2, d_value=4, bias=small.biases("v", "o"))
    config = small.model(4, attention=heads)
    named = small.drawn(config, 3)
    traced = trace(small.run(config, named, tensor=ROWS[:, :4]))
    return traced, traced.whole["blocks.0.attn.z"], named["blocks.0.attn.W_O"]


def head_sum_of(contributions: Array, traced: Trace) -> bool | None:
    whole = {**traced.whole, "blocks.0.attn.head_out": contributions}
    return verdicts(replace(traced, whole=whole))["blocks.0.head_sum"]


def test_contributions_through_the_right_matrix_sum_to_the_update() -> None:
    traced, z, W_O = square_heads()
    assert head_sum_of(np.matmul(z, W_O), traced) is True


def test_a_transposed_square_output_matrix_breaks_the_sum_of_heads() -> None:
    traced, z, W_O = square_heads()
    assert head_sum_of(np.matmul(z, W_O.swapaxes(1, 2)), traced) is False


def test_heads_that_swap_their_output_matrices_break_the_sum_of_heads() -> None:
    traced, z, W_O = square_heads()
    assert head_sum_of(np.matmul(z, W_O[::-1]), traced) is False


def test_a_value_bias_added_twice_breaks_the_sum_of_heads() -> None:
    traced, z, W_O = square_heads()
    b_V = np.full((2, 1, 4), 1e-3)
    assert head_sum_of(np.matmul(z + b_V, W_O), traced) is False


def test_an_output_bias_in_each_contribution_breaks_the_sum_of_heads() -> None:
    traced, z, W_O = square_heads()
    b_O = traced.run.weights.blocks[0].attention.b_O
    assert head_sum_of(np.matmul(z, W_O) + b_O, traced) is False
