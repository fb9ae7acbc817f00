"""Forbidden pairs and queries without a key, in the shapes that are documented."""

import numpy as np
import pytest

from cases import small
from compute import config_json, masks
from compute.config import attention_config
from compute.types import Bools, Inputs

T, F = True, False
CAUSAL, FULL = attention_config(4, 2), attention_config(4, 2, mask="full")
KEYS = np.array([F, T, T])
PAIRS = np.array([[T, T, T], [F, F, F], [T, F, T]])


def forbidden(mask: str, keys: Bools | None = None, pairs: Bools | None = None) -> Bools | None:
    return masks.forbidden_pairs(CAUSAL if mask == "causal" else FULL, 3, keys, pairs)


def test_without_any_rule_nothing_is_forbidden() -> None:
    assert forbidden("full") is None
    assert masks.fully_masked(None) is None


def test_a_window_as_wide_as_the_input_forbids_nothing() -> None:
    assert (
        masks.forbidden_pairs(attention_config(4, 2, mask="full", window=3), 3, None, None) is None
    )


@pytest.mark.parametrize("mask", ["causal", "full"])
@pytest.mark.parametrize("pairs", [None, PAIRS])
@pytest.mark.parametrize("keys", [None, KEYS, np.array([F, F, F])])
def test_an_input_without_a_batch_has_one_flag_for_each_query(
    mask: str, keys: Bools | None, pairs: Bools | None
) -> None:
    found = forbidden(mask, keys, pairs)
    if found is None:
        return
    allowed = np.tri(3, dtype=bool) if mask == "causal" else np.ones((3, 3), bool)
    allowed = allowed & (T if keys is None else keys) & (T if pairs is None else pairs)
    assert np.broadcast_to(found, (1, 2, 3, 3))[0, 0].tolist() == (~allowed).tolist()
    flags = masks.fully_masked(found)
    assert flags is not None
    assert flags.tolist() == (~allowed.any(axis=1)).tolist()


@pytest.mark.parametrize("mask", ["causal", "full"])
@pytest.mark.parametrize("pairs", [None, PAIRS, np.stack([PAIRS, ~PAIRS])])
@pytest.mark.parametrize("keys", [None, KEYS, np.stack([KEYS, ~KEYS])])
def test_a_batch_has_one_flag_for_each_query_of_each_row(
    mask: str, keys: Bools | None, pairs: Bools | None
) -> None:
    if getattr(keys, "ndim", 0) < 2 and getattr(pairs, "ndim", 0) < 3:
        return  # no mask of its own for each row
    own_keys = np.ones((2, 3), bool) if keys is None else np.broadcast_to(keys, (2, 3))
    own_pairs = np.ones((2, 3, 3), bool) if pairs is None else np.broadcast_to(pairs, (2, 3, 3))
    order = np.tri(3, dtype=bool) if mask == "causal" else np.ones((3, 3), bool)
    allowed = order & own_keys[:, None] & own_pairs
    found = forbidden(mask, keys, pairs)
    assert found is not None
    assert np.broadcast_to(found, (2, 5, 3, 3))[:, 4].tolist() == (~allowed).tolist()
    flags = masks.fully_masked(found)
    assert flags is not None
    assert flags.tolist() == (~allowed.any(axis=2))[:, None].tolist()


# Of a memory, and of each pattern.


def test_a_memory_without_a_mask_is_read_whole() -> None:
    assert masks.of_memory(None) is None
    assert masks.of_memory(Inputs(tensor=np.zeros((3, 4)))) is None


def test_masked_rows_of_a_memory_are_hidden_from_every_query() -> None:
    rows = np.zeros((3, 4))
    one = masks.of_memory(Inputs(tensor=rows, key_mask=KEYS))
    assert one is not None
    assert one.tolist() == [[T, F, F]]
    each = masks.of_memory(Inputs(tensor=np.stack([rows, rows]), key_mask=np.stack([KEYS, ~KEYS])))
    assert each is not None
    assert each.tolist() == [[[[T, F, F]]], [[[F, T, T]]]]
    shared = masks.of_memory(Inputs(tensor=np.stack([rows, rows]), key_mask=KEYS))
    assert shared is not None
    assert np.broadcast_to(shared, (2, 5, 7, 3))[1, 4, 6].tolist() == [T, F, F]


def stack_of(**given: object) -> small.Config:
    return small.model(4, attention=small.attention(2, 2), ffn=small.mlp(3), **given)


def without_keys(raw: small.Config, read: Inputs) -> dict[str, object]:
    found = masks.without_keys(config_json.from_json(raw), read)
    return {name: rows.tolist() for name, rows in found.items()}


def test_nothing_is_said_where_nothing_is_masked() -> None:
    assert without_keys(stack_of(), Inputs(tensor=np.zeros((3, 4)))) == {}
    ffn_only = small.model(4, ffn=small.mlp(3))
    assert without_keys(ffn_only, Inputs(tensor=np.zeros((3, 4)), key_mask=KEYS)) == {}


def test_each_block_has_the_queries_without_a_key_of_its_own_window() -> None:
    own = {"scale": 1.0, "theta": None, "scaling": {"kind": "none"}}
    layers = [{**own, "window": window} for window in (None, 1, None)]
    raw = stack_of() | {"n_layers": 3, "layers": layers}
    read = Inputs(tensor=np.zeros((3, 4)), key_mask=KEYS)
    assert without_keys(raw, read) == {
        "blocks.0.attn.pattern": [F, F, F],
        "blocks.1.attn.pattern": [T, F, F],
        "blocks.2.attn.pattern": [F, F, F],
    }


def test_cross_attention_has_its_memorys_and_the_encoder_its_own() -> None:
    nothing = np.zeros((2, 5), bool)
    nothing[1, 0] = True
    memory = Inputs(tensor=np.zeros((2, 5, 4)), key_mask=nothing)
    read = Inputs(tensor=np.zeros((2, 3, 4)), memory=memory)
    across = [[[T] * 3], [[F] * 3]]
    raw = stack_of() | {"cross_attention": True}
    assert without_keys(raw, read) == {"blocks.0.cross.pattern": across}
    causal = small.model(4, attention=small.attention(2, 2, mask="causal"))
    assert without_keys(raw | {"encoder": causal}, read) == {
        "blocks.0.cross.pattern": across,
        "encoder.blocks.0.attn.pattern": [[[T] * 5], [[F] * 5]],
    }
