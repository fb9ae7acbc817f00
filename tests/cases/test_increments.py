"""What is known of a prefix does not change as more tokens come: the ground of cached decoding."""

from itertools import product

import numpy as np
import pytest

import runs
from cases import small
from compute.types import Selected

KINDS = {
    "none": small.NONE,
    "rope": small.rope(4),
    "rope, yarn": small.rope(
        4,
        scaling={
            "kind": "yarn",
            "factor": 4.0,
            "original_positions": 4,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "attention_factor": 1.2,
        },
    ),
    "alibi": {"kind": "alibi", "alibi_rule": "bloom"},
    "t5_bias": {"kind": "t5_bias", "n_buckets": 8, "max_distance": 6, "bidirectional": False},
    "sinusoidal": {"kind": "sinusoidal"},
}
D, N, EVERY = 12, 9, [Selected(name="*")]


def of_kind(kind: str, window: int | None) -> small.Config:
    """Two blocks of three heads, one of them with keys and values of its own."""
    own = {"mask": "causal", "window": window, "n_kv_heads": 1, "bias": small.biases(*"qkvo")}
    return small.model(
        D,
        n_layers=2,
        attention=small.attention(3, 4, **own),
        ffn=small.mlp(7),
        norm=small.norm("rmsnorm"),
        position=KINDS[kind],
    )


@pytest.mark.parametrize(("kind", "window"), list(product(KINDS, [None, 1, 3])))
def test_each_prefix_has_the_states_of_the_whole(kind: str, window: int | None) -> None:
    config = of_kind(kind, window)
    weights = small.drawn(config, 0)
    rows = np.random.default_rng(1).normal(size=(N, D))
    whole = runs.states(small.run(config, weights, select=EVERY, tensor=rows))
    for count in range(1, N):
        part = runs.states(small.run(config, weights, select=EVERY, tensor=rows[:count]))
        for name, values in part.items():
            cut = whole[name]
            for axis, length in enumerate(cut.shape):
                if length == N:
                    cut = np.take(cut, range(count), axis=axis)
            small.close(values, cut, atol=1e-12)


@pytest.mark.parametrize(("kind", "window"), list(product(KINDS, [None, 1, 3])))
def test_a_step_from_returned_keys_and_values_is_the_row_of_the_whole(
    kind: str, window: int | None
) -> None:
    config = of_kind(kind, window)
    weights = small.drawn(config, 2)
    rows = np.random.default_rng(3).normal(size=(N, D))
    whole = runs.states(small.run(config, weights, select=EVERY, tensor=rows))
    before = runs.states(small.run(config, weights, select=EVERY, tensor=rows[:-1]))
    turned = "_rot" if "rope" in kind else ""
    for layer in ("blocks.0.", "blocks.1."):
        # The new row attends to the prefix's keys and values and its own.
        keys = np.concatenate(
            [before[f"{layer}attn.k{turned}"], whole[f"{layer}attn.k{turned}"][:, -1:]], axis=1
        )
        values = np.concatenate([before[f"{layer}attn.v"], whole[f"{layer}attn.v"][:, -1:]], axis=1)
        query = whole[f"{layer}attn.q{turned}"][:, -1]
        scores = np.einsum("hk,mk->hm", query, keys[0]) * 0.5
        scores += bias_of_last_row(kind, weights)
        if window is not None:
            scores[:, : N - window] = -np.inf
        pattern = np.exp(scores - scores.max(axis=1, keepdims=True))
        pattern /= pattern.sum(axis=1, keepdims=True)
        small.close(pattern, whole[f"{layer}attn.pattern"][:, -1], atol=1e-12)
        small.close(pattern @ values[0], whole[f"{layer}attn.z"][:, -1], atol=1e-12)


def bias_of_last_row(kind: str, weights: dict[str, small.Array]) -> small.Array:
    """What position adds to the last row's scores: (h, m). The last row's, not the first's."""
    distance = np.arange(N - 1, -1, -1)
    if kind == "alibi":
        return -np.array([1 / 16, 1 / 256, 1 / 4])[:, None] * distance
    if kind == "t5_bias":  # 0 to 3 have a bucket each; from 6 on all share the last
        buckets = [0, 1, 2, 3, 4, 6, 7, 7, 7]
        return weights["rel_bias.W_rel"][[buckets[x] for x in distance]].T
    return np.zeros((3, N))
