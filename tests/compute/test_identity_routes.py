"""What each identity sees: a disturbed stage, a wrong W_O, a bias twice."""

from dataclasses import replace

import numpy as np
import pytest

from cases import small
from compute.trace import Run, Trace, identities_of, trace
from compute.types import Array, DType

DTYPES = pytest.mark.parametrize("dtype", ["float64", "float32"])
ROWS = np.random.default_rng(1).standard_normal((5, 11))
GATED = {"kind": "gated", "bias": {"in": True, "gate": True, "out": True}}
HEADS = small.attention(4, 2, n_kv_heads=2, d_value=3, scale=0.3, bias=small.biases(*"qkvo"))
"""Scores of order one, so that every weight is far from 0 and from 1."""


def parts(**given: object) -> small.Config:
    both = {"attention": HEADS, "ffn": small.mlp(13), "norm": small.norm("layernorm")}
    return small.model(11, **(both | given))


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
    "tokens": parts(position={"kind": "sinusoidal"}) | {"vocab": 17},
}

TIES = {
    "pattern_softmax": {"attn.scores", "attn.pattern"},
    "pattern_rows": {"attn.pattern"},
    "mixture": {"attn.pattern", "attn.v", "attn.z"},
    "head_sum": {"attn.head_out", "attn_out"},
    "ffn_product": {"ffn.hidden", "ffn_out"},
}
"""Identity -> the stages of its block that it ties together, whatever the arrangement."""


def ties(name: str, config: small.Config) -> set[str]:
    """The full names of the stages that an identity ties together."""
    last, post = config["n_layers"] - 1, config["norm"].get("placement") == "post"
    both = "none" not in (config["attention"]["kind"], config["ffn"]["kind"])
    if name == "embedding_sum":
        return {"embed", "pos_embed", "blocks.0.resid_pre"}
    if name == "expansion":
        updates = {f"blocks.{i}.{u}_out" for i in range(last + 1) for u in ("attn", "ffn")}
        return {"blocks.0.resid_pre", f"blocks.{last}.resid_post"} | updates
    _, layer, local = name.split(".")
    middle = "resid_mid" if both else "resid_post"
    first = {"resid_pre", "attn_out", "attn_sum" if post else middle}
    base = "resid_mid" if both else "resid_pre"
    second = {base, "ffn_out", "ffn_sum" if post else "resid_post"}
    of_block = TIES | {"attn_addition": first, "ffn_addition": second}
    return {f"blocks.{layer}.{stage}" for stage in of_block[local]}


def run_of(config: small.Config, dtype: DType) -> Run:
    named = small.drawn(config, 2)
    if config["vocab"] is None:
        return small.run(config, named, dtype=dtype, tensor=ROWS)
    return small.run(config, named, dtype=dtype, token_ids=[3, 1, 4, 1, 5])


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
    for stage, values in traced.whole.items():
        after = verdicts(replace(traced, whole={**traced.whole, stage: disturb(values)}))
        expected = {
            name: False if holds and stage in ties(name, config) else holds
            for name, holds in before.items()
        }
        assert after == expected, stage


def test_each_identity_is_broken_by_some_stage_of_these_models() -> None:
    checked = {
        name.rpartition(".")[2]
        for config in MODELS.values()
        for name, holds in verdicts(trace(run_of(config, "float64"))).items()
        if holds
    }
    assert checked == {*TIES, "attn_addition", "ffn_addition", "embedding_sum", "expansion"}


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
