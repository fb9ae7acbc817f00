"""A norm may be folded into what reads it; b_V into b_O only where every row has a key."""

import numpy as np
import pytest

import runs
from cases import small

D, N = 8, 5


def of_norm(kind: str, ffn: small.Config, **attention: object) -> small.Config:
    """One block with biases everywhere."""
    return small.model(
        D,
        attention=small.attention(2, 4, bias=small.biases(*"qkvo"), **attention),
        ffn=ffn,
        norm=small.norm(kind),
    )


GATED = small.mlp(7, kind="gated", activation="silu", bias={"in": True, "gate": True, "out": True})
MLP = small.mlp(7)


@pytest.mark.parametrize("kind", ["layernorm", "rmsnorm"])
@pytest.mark.parametrize("ffn", [GATED, MLP], ids=["gated", "mlp"])
def test_a_folded_norm_gives_the_same_block(kind: str, ffn: small.Config) -> None:
    config = of_norm(kind, ffn, mask="causal")
    weights = small.drawn(config, 0)
    rows = np.random.default_rng(1).normal(size=(N, D))
    whole = small.stages_of(small.run(config, weights, tensor=rows))
    again = small.stages_of(small.run(config, folded(weights, ffn), tensor=rows))
    for name in ("attn.q", "attn.k", "attn.v", "attn_out", "ffn.up", "ffn_out", "resid_post"):
        small.close(again[name], whole[name], atol=1e-10)
    assert np.abs(again["norm1.out"] - whole["norm1.out"]).max() > 0.1


def folded(weights: dict[str, small.Array], ffn: small.Config) -> dict[str, small.Array]:
    """diag(gain) W for W, b + bias W for b, in all that read the norm; gain 1, bias 0."""
    made = dict(weights)
    readers = {"norm1": ["attn.W_Q", "attn.W_K", "attn.W_V"], "norm2": ["ffn.W_in"]}
    if ffn["kind"] == "gated":
        readers["norm2"].append("ffn.W_gate")
    for norm, names in readers.items():
        gain = weights[f"blocks.0.{norm}.weight"]
        bias = weights.get(f"blocks.0.{norm}.bias", np.zeros(D))
        for name in names:
            W, b = f"blocks.0.{name}", f"blocks.0.{name.replace('W_', 'b_')}"
            made[W] = gain[:, None] * weights[W]
            made[b] = weights[b] + np.einsum("d,...dk->...k", bias, weights[W])
        made[f"blocks.0.{norm}.weight"] = np.ones(D)
        if f"blocks.0.{norm}.bias" in made:
            made[f"blocks.0.{norm}.bias"] = np.zeros(D)
    return made


def test_b_V_may_be_folded_into_b_O_but_where_a_row_has_no_key() -> None:
    config = of_norm("layernorm", MLP, mask="causal")
    weights = small.drawn(config, 2)
    name = {letter: f"blocks.0.attn.{letter}" for letter in ("b_V", "b_O", "W_O")}
    other = dict(weights)
    moved = np.einsum("hv,hvd->d", weights[name["b_V"]], weights[name["W_O"]])
    other[name["b_O"]] = weights[name["b_O"]] + moved
    other[name["b_V"]] = np.zeros_like(weights[name["b_V"]])
    rows = np.random.default_rng(3).normal(size=(N, D))
    mask = [False, True, True, True, True]  # causal: row 0 has no key
    whole, again = (
        runs.states(small.run(config, given, tensor=rows, key_mask=mask))["blocks.0.attn_out"]
        for given in (weights, other)
    )
    small.close(again[1:], whole[1:], atol=1e-10)
    small.close(whole[0], weights[name["b_O"]], atol=0)
    small.close(again[0] - whole[0], moved, atol=1e-12)
    assert np.abs(moved).max() > 0.1
