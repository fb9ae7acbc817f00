"""A state read through the final norm: with its own scale (lens), or with the last one (frozen)."""

import numpy as np
import pytest

import runs
from cases import small

D, N, V = 8, 5, 11


@pytest.mark.parametrize("kind", ["layernorm", "rmsnorm"])
def test_the_stages_allow_both_readings_of_a_state(kind: str) -> None:
    config = small.model(
        D,
        n_layers=3,
        attention=small.attention(2, 4, mask="causal", bias=small.biases(*"qkvo")),
        ffn=small.mlp(7),
        norm=small.norm(kind),
        vocab=V,
        unembed_bias=True,
        final_norm=True,
    )
    weights = small.drawn(config, 0)
    tokens = np.random.default_rng(1).integers(0, V, N)
    got = runs.states(small.run(config, weights, token_ids=tokens))
    last = got["blocks.2.resid_post"]
    scale = {"lens": scale_of(kind, last), "frozen": got["final_norm.scale"]}
    # The last state, read either way, is the model's logits.
    for reading in scale.values():
        small.close(read(kind, weights, last, reading), got["logits"], atol=1e-12)
    # An earlier state's own scale is another one: the two readings of it differ.
    early = got["blocks.0.resid_post"]
    apart = read(kind, weights, early, scale_of(kind, early)) - read(
        kind, weights, early, scale["frozen"]
    )
    assert np.abs(apart).max() > 0.01
    # With the frozen scale the readout is linear: the parts' logits and the bias are the whole's.
    parts = [got["embed"]]
    parts += [
        got[f"blocks.{layer}.{name}"] for layer in range(3) for name in ("attn_out", "ffn_out")
    ]
    bias = read(kind, weights, np.zeros((N, D)), scale["frozen"])
    alone = [read(kind, weights, part, scale["frozen"]) - bias for part in parts]
    small.close(sum(alone) + bias, got["logits"], atol=1e-12)


def scale_of(kind: str, x: small.Array) -> small.Array:
    """What the final norm would divide a state by."""
    centred = x - x.mean(axis=-1, keepdims=True) if kind == "layernorm" else x
    return np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)


def read(
    kind: str, weights: dict[str, small.Array], x: small.Array, scale: small.Array
) -> small.Array:
    """(x / scale · gain + bias) W_U + b_U, centred before where the norm centres."""
    centred = x - x.mean(axis=-1, keepdims=True) if kind == "layernorm" else x
    normed = centred / scale * weights["final_norm.weight"]
    if kind == "layernorm":
        normed = normed + weights["final_norm.bias"]
    return normed @ weights["unembed.W_U"] + weights["unembed.b_U"]
