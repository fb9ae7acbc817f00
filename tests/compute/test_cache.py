"""A cache as it was sent becomes a past, or every misfit is told."""

import numpy as np
import pytest

import decoders
from cases import small
from compute import cache, config_json
from compute.config import ModelConfig
from compute.errors import QuestionError
from compute.types import Array, Bools, Inputs, Ints, Past

CONFIG = config_json.from_json(decoders.decoder(decoders.POSITIONS["rope"], None))
NAMES = [f"blocks.{layer}.attn.{x}" for layer in (0, 1) for x in "kv"]
ONE = Inputs(token_ids=np.zeros(1, np.int64))
FIVE = np.arange(5)
TWO = Inputs(token_ids=np.zeros((2, 1), np.int64))


def named(*shape: int) -> dict[str, Array]:
    return {name: np.full(shape, float(at)) for at, name in enumerate(NAMES)}


def past_of(
    inputs: Inputs,
    heads: dict[str, Array],
    config: ModelConfig = CONFIG,
    *,
    ids: Ints = FIVE,
    mask: Bools | None = None,
) -> Past:
    return cache.past_of(config, inputs, heads, ids, mask)


@pytest.mark.parametrize(("inputs", "shape"), [(ONE, (2, 5, 4)), (TWO, (2, 2, 5, 4))])
def test_keys_and_values_are_told_apart_block_by_block(
    inputs: Inputs, shape: tuple[int, ...]
) -> None:
    past = past_of(inputs, named(*shape))
    assert [int(keys.flat[0]) for keys in past.keys] == [0, 2]
    assert [int(values.flat[0]) for values in past.values] == [1, 3]
    assert past.positions == 5


def test_ids_and_masks_may_serve_a_whole_batch_or_each_row() -> None:
    mask = np.ones((2, 5), bool)
    past = past_of(TWO, named(2, 2, 5, 4), mask=mask)
    assert past.key_mask is mask
    assert past.position_ids.shape == (5,)


def faults(
    inputs: Inputs, heads: dict[str, Array], *, ids: Ints = FIVE, mask: Bools | None = None
) -> set[tuple[str, str]]:
    with pytest.raises(QuestionError) as caught:
        past_of(inputs, heads, ids=ids, mask=mask)
    assert all(fault.place[0] == "cache" for fault in caught.value.faults)
    return {(str(fault.place[1]), fault.code) for fault in caught.value.faults}


def test_every_misfit_is_told() -> None:
    heads = named(2, 5, 4)
    heads["blocks.2.attn.k"] = heads.pop("blocks.0.attn.v")
    heads["blocks.1.attn.k"] = np.zeros((2, 5, 3))
    assert faults(ONE, heads, mask=np.ones(4, bool)) == {
        ("blocks.0.attn.v", "missing"),
        ("blocks.2.attn.k", "unknown_key"),
        ("blocks.1.attn.k", "shape_mismatch"),
        ("key_mask", "shape_mismatch"),
    }


def test_a_batch_is_that_of_the_input() -> None:
    assert faults(TWO, named(2, 5, 4)) == {(name, "shape_mismatch") for name in NAMES}
    ids = np.zeros((3, 5), np.int64)
    assert faults(TWO, named(2, 2, 5, 4), ids=ids) == {("position_ids", "shape_mismatch")}
    assert ("position_ids", "shape_mismatch") in faults(ONE, named(2, 5, 4), ids=ids)


def test_a_model_without_attention_has_no_keys_and_values() -> None:
    config = decoders.decoder(small.NONE, None, attention=small.NONE)
    past = past_of(ONE, {}, config_json.from_json(config))
    assert (past.keys, past.values) == ((), ())
