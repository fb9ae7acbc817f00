"""Masks, as implementations have got them wrong in public: small exact cases."""

from typing import Any

import numpy as np
import pytest

from cases import small
from cases.small import Array
from compute.trace import trace

T, F = True, False


def zero_scores(n: int, *, select: Any = None, **given: Any) -> dict[str, Array]:  # noqa: ANN401
    """Three heads whose dot products are all 0: a row's weights count the keys it may see."""
    inputs = {name: given.pop(name) for name in ("key_mask", "attention_mask") if name in given}
    config = small.model(5, attention=small.attention(3, 2, **given))
    return small.block(config, select=select, tensor=np.ones((n, 5)), **inputs)


def shares(allowed: Any) -> Array:  # noqa: ANN401
    """The pattern of equal scores: 1/count for each allowed key, zeros where there is none."""
    pairs = np.asarray(allowed, float)
    return pairs / np.maximum(pairs.sum(axis=-1, keepdims=True), 1)


def of_each_head(pattern: Array) -> Array:
    return np.broadcast_to(pattern[..., None, :, :], (*pattern.shape[:-2], 3, *pattern.shape[-2:]))


# A row without a key.

BLIND: dict[str, tuple[dict[str, Any], list[list[bool]]]] = {
    "causal, first key masked": (
        {"mask": "causal", "key_mask": [F, T, T]},
        [[F, F, F], [F, T, F], [F, T, T]],
    ),
    "causal, first two keys masked": (
        {"mask": "causal", "key_mask": [F, F, T]},
        [[F, F, F], [F, F, F], [F, F, T]],
    ),
    "full, every key masked": ({"key_mask": [F, F, F]}, [[F, F, F]] * 3),
    "causal, every key masked": ({"mask": "causal", "key_mask": [F, F, F]}, [[F, F, F]] * 3),
    "a row of the attention mask": (
        {"attention_mask": [[T, T, T], [F, F, F], [T, F, T]]},
        [[T, T, T], [F, F, F], [T, F, T]],
    ),
    "causal, only later pairs allowed": (
        {"mask": "causal", "attention_mask": [[T, T, T], [F, F, T], [T, T, T]]},
        [[T, F, F], [F, F, F], [T, T, T]],
    ),
    "both masks together": (
        {"key_mask": [T, F, T], "attention_mask": [[T, T, T], [F, T, F], [T, T, F]]},
        [[T, F, T], [F, F, F], [T, F, F]],
    ),
    "window, own key masked": (
        {"window": 1, "key_mask": [T, F, T]},
        [[T, F, F], [F, F, F], [F, F, T]],
    ),
    "causal window, both keys masked": (
        {"mask": "causal", "window": 2, "key_mask": [F, F, T]},
        [[F, F, F], [F, F, F], [F, F, T]],
    ),
}


def heads_of_constants(**given: Any) -> small.Config:  # noqa: ANN401
    heads = small.attention(3, 2, bias=small.biases("v", "o"), **given)
    return small.model(5, attention=heads, ffn=small.mlp(7))


B_O = [1.0, 2.0, 3.0, 5.0, 7.0]
CONSTANTS = {
    "attn.b_V": np.full((3, 2), 11.0),
    "attn.W_O": np.ones((3, 2, 5)),
    "attn.b_O": B_O,
}
SEEING = [66.0 + b for b in B_O]  # three heads, two values of 11


@pytest.mark.parametrize("name", BLIND)
def test_a_row_without_a_key_mixes_nothing_and_its_update_is_the_output_bias(name: str) -> None:
    given, allowed = BLIND[name]
    masks = {key: value for key, value in given.items() if key.endswith("_mask")}
    config = heads_of_constants(**{k: v for k, v in given.items() if k not in masks})
    run = small.run(config, small.values(config, CONSTANTS), tensor=np.ones((3, 5)), **masks)
    stages = small.stages_of(run)
    sees = np.any(allowed, axis=1)
    small.close(stages["attn.pattern"], of_each_head(shares(allowed)), atol=1e-16)
    assert not stages["attn.z"][:, ~sees].any()
    assert not stages["attn.head_out"][:, ~sees].any()
    assert stages["attn_out"][~sees].tolist() == [B_O] * int((~sees).sum())
    small.close(stages["attn_out"][sees], np.tile(SEEING, (int(sees.sum()), 1)), atol=1e-13)
    assert trace(run).fully_masked["blocks.0.attn.pattern"].tolist() == (~sees).tolist()
    assert all(np.isfinite(v).all() for k, v in stages.items() if k != "attn.scores")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_batch_may_have_a_row_without_a_key_in_one_example_alone(dtype: str) -> None:
    config = heads_of_constants(mask="causal")
    run = small.run(
        config,
        small.values(config, CONSTANTS),
        dtype=dtype,
        tensor=np.ones((3, 3, 5)),
        key_mask=[[T, T, T], [F, T, T], [F, F, F]],
    )
    stages = small.stages_of(run)
    see = np.array([[T, T, T], [F, T, T], [F, F, F]])
    assert stages["attn_out"][~see].tolist() == [B_O] * 4
    small.close(stages["attn_out"][see], [SEEING] * 5, atol=1e-4 if dtype == "float32" else 1e-13)
    assert (
        stages["attn.pattern"].sum(axis=-1).round(6).tolist()
        == np.broadcast_to(see[:, None], (3, 3, 3)).astype(float).tolist()
    )
    flagged = trace(run).fully_masked["blocks.0.attn.pattern"]
    assert flagged[:, 0].tolist() == (~see).tolist()


def test_without_a_mask_no_row_is_flagged() -> None:
    config = small.model(5, attention=small.attention(3, 2))
    found = trace(small.run(config, small.values(config, {}), tensor=np.ones((3, 5)))).fully_masked
    assert not any(flagged.any() for flagged in found.values())


# True means: may be attended to.


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        ([[1, 0], [1, 1]], [[1, 0], [0.5, 0.5]]),
        ([[0, 1], [1, 0]], [[0, 1], [1, 0]]),
        ([[1, 1], [1, 1]], [[0.5, 0.5], [0.5, 0.5]]),
    ],
)
def test_true_in_the_attention_mask_means_attend(
    allowed: list[list[int]], expected: list[list[float]]
) -> None:
    pattern = zero_scores(2, attention_mask=allowed)["attn.pattern"]
    small.close(pattern, [expected] * 3, atol=0)


def test_true_in_the_key_mask_means_attend() -> None:
    pattern = zero_scores(3, key_mask=[0, 1, 1])["attn.pattern"]
    small.close(pattern, [[[0, 0.5, 0.5]] * 3] * 3, atol=0)


def test_forbidden_pairs_have_the_score_minus_infinity_and_the_others_are_finite() -> None:
    scores = zero_scores(2, attention_mask=[[1, 0], [1, 1]])["attn.scores"]
    assert scores.tolist() == [[[0.0, -np.inf], [0.0, 0.0]]] * 3


def test_the_masks_and_the_config_forbid_together() -> None:
    given = {"key_mask": [T, F, T, T], "attention_mask": np.tri(4) + np.tri(4, k=1) > 0}
    pattern = zero_scores(4, mask="causal", window=3, **given)["attn.pattern"]
    allowed = [[T, F, F, F], [T, F, F, F], [T, F, T, F], [F, F, T, T]]
    small.close(pattern, of_each_head(shares(allowed)), atol=1e-16)


MEMORY = {
    "every row of the memory masked": [F, F, F],
    "the first row alone": [T, F, F],
    "all but the first": [F, T, T],
}


@pytest.mark.parametrize("name", MEMORY)
def test_a_memory_without_a_key_gives_nothing_and_the_update_is_the_output_bias(name: str) -> None:
    keys = MEMORY[name]
    config = heads_of_constants() | {"cross_attention": True}
    given = {part.replace("attn", "cross"): value for part, value in CONSTANTS.items()}
    run = small.run(
        config,
        small.values(config, given),
        tensor=np.ones((2, 5)),
        memory={"tensor": np.ones((3, 5)), "key_mask": keys},
    )
    stages = small.stages_of(run)
    small.close(stages["cross.pattern"], of_each_head(shares([keys, keys])), atol=1e-16)
    flagged = trace(run).fully_masked["blocks.0.cross.pattern"]
    assert np.broadcast_to(flagged, (2,)).tolist() == [not any(keys)] * 2
    if any(keys):
        small.close(stages["cross_out"], [SEEING] * 2, atol=1e-13)
    else:
        assert stages["cross_out"].tolist() == [B_O] * 2
        assert not stages["cross.z"].any()


# A masked token reaches no other.


def all_but(row: int, values: Array) -> bytes:
    return np.delete(values, row, axis=0).tobytes()


@pytest.mark.parametrize("norm", [small.NONE, small.norm("layernorm"), small.norm("rmsnorm")])
@pytest.mark.parametrize("masked", range(4))
@pytest.mark.parametrize("by", ["key_mask", "attention_mask"])
@pytest.mark.parametrize("mask", ["full", "causal"])
def test_a_masked_token_changes_no_other_row_by_a_bit(
    mask: str, by: str, masked: int, norm: small.Config
) -> None:
    config = small.model(
        5, attention=small.attention(3, 2, mask=mask), ffn=small.mlp(7), norm=norm
    ) | {"n_layers": 2}
    keys = np.arange(4) != masked
    given = {by: keys if by == "key_mask" else np.tile(keys, (4, 1))}
    rows = np.random.default_rng(0).standard_normal((4, 5))
    changed = rows + 1e3 * (np.arange(4) == masked)[:, None] * np.arange(1, 6)
    one, other = (
        small.stages_of(small.run(config, small.drawn(config, 0), tensor=x, **given))
        for x in (rows, changed)
    )
    last = "blocks.1.resid_post"
    assert all_but(masked, one[last]) == all_but(masked, other[last])
    assert one[last][masked].tolist() != other[last][masked].tolist()


@pytest.mark.parametrize("masked", range(3))
@pytest.mark.parametrize("encoded", [False, True])
def test_a_masked_row_of_the_memory_changes_nothing_by_a_bit(masked: int, *, encoded: bool) -> None:
    parts = {"ffn": small.mlp(7), "norm": small.norm("rmsnorm")}
    config = small.model(5, attention=small.attention(3, 2), **parts) | {"cross_attention": True}
    if encoded:
        config["encoder"] = small.model(5, attention=small.attention(2, 3), **parts)
    rng = np.random.default_rng(0)
    rows, memory = rng.standard_normal((4, 5)), rng.standard_normal((3, 5))
    changed = memory + 1e3 * (np.arange(3) == masked)[:, None] * np.arange(1, 6)
    one, other = (
        small.run(
            config,
            small.drawn(config, 0),
            tensor=rows,
            memory={"tensor": x, "key_mask": np.arange(3) != masked},
        )
        for x in (memory, changed)
    )
    last = "resid_post"
    assert small.stages_of(one)[last].tobytes() == small.stages_of(other)[last].tobytes()


# A window counts the query itself.


def near(n: int, window: int, mask: str) -> list[list[bool]]:
    """Row by row: the keys less than `window` away, later ones only without a causal mask."""
    return [
        [abs(i - j) < window and (mask == "full" or j <= i) for j in range(n)] for i in range(n)
    ]


def test_a_window_of_two_sees_itself_and_one_before() -> None:
    pattern = zero_scores(4, mask="causal", window=2)["attn.pattern"][0]
    expected = [[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0.5, 0.5]]
    small.close(pattern, expected, atol=0)


def test_a_window_of_one_sees_itself_alone() -> None:
    for mask in ("causal", "full"):
        small.close(zero_scores(3, mask=mask, window=1)["attn.pattern"][0], np.eye(3), atol=0)


def test_a_full_mask_windows_both_sides() -> None:
    pattern = zero_scores(4, mask="full", window=2)["attn.pattern"][0]
    third = 1 / 3
    expected = [[0.5, 0.5, 0, 0], [third, third, third, 0], [0, third, third, third]]
    small.close(pattern, [*expected, [0, 0, 0.5, 0.5]], atol=1e-16)


@pytest.mark.parametrize("mask", ["causal", "full"])
@pytest.mark.parametrize("n", [1, 2, 5, 7, 11])
@pytest.mark.parametrize("window", [1, 2, 3, 5, 7, 8, 12])
def test_each_row_sees_the_window_and_no_more(window: int, n: int, mask: str) -> None:
    pattern = zero_scores(n, mask=mask, window=window)["attn.pattern"]
    small.close(pattern, of_each_head(shares(near(n, window, mask))), atol=1e-15)


def test_a_window_goes_by_rows_and_not_by_position_ids() -> None:
    config = small.model(5, attention=small.attention(1, 2, mask="causal", window=2))
    ids = [0, 10, 20]
    stages = small.block(config, tensor=np.ones((3, 5)), position_ids=ids)
    small.close(stages["attn.pattern"][0], [[1, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]], atol=0)
