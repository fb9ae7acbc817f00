"""An input against its model: every misfit, with its place."""

import numpy as np
import pytest

from cases import small
from compute import config_json, inputs
from compute.errors import MOST_FAULTS, InputError
from compute.types import Inputs

WORDS = config_json.from_json(
    small.model(5, attention=small.attention(2, 3)) | {"vocab": 17, "tied": True}
)
ROWS = config_json.from_json(small.model(5, attention=small.attention(2, 3)))
TABLE = config_json.from_json(
    small.model(5, ffn=small.mlp(7), position={"kind": "learned", "n_positions": 7})
)
TENSOR = np.zeros((3, 5))


def faults(config: small.Config, **given: np.ndarray) -> list[tuple[object, ...]]:
    """(code, place, expected, got) of every misfit."""
    with pytest.raises(InputError) as refused:
        inputs.check(Inputs(**given), config)
    return [(f.code, f.place, f.expected, f.got) for f in refused.value.faults]


def bools(*shape: int) -> np.ndarray:
    return np.ones(shape, bool)


def ints(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.int64)


@pytest.mark.parametrize(
    "given",
    [
        {"tensor": TENSOR},
        {"tensor": TENSOR, "key_mask": bools(3), "attention_mask": bools(3, 3)},
        {"tensor": TENSOR[None], "key_mask": bools(3), "attention_mask": bools(3, 3)},
        {"tensor": np.zeros((2, 3, 5)), "key_mask": bools(2, 3), "position_ids": ints(3)},
        {"tensor": np.zeros((2, 3, 5)), "attention_mask": bools(2, 3, 3)},
    ],
    ids=lambda given: " ".join(f"{name}{value.shape}" for name, value in given.items()),
)
def test_what_fits_is_given_back(given: dict[str, np.ndarray]) -> None:
    read = Inputs(**given)
    assert inputs.check(read, ROWS) is read


def test_rows_of_another_width_are_refused() -> None:
    expected = ("shape_mismatch", ("tensor",), [2, 3, 5], [2, 3, 4])
    assert faults(ROWS, tensor=np.zeros((2, 3, 4))) == [expected]


def test_a_model_without_a_vocabulary_reads_no_tokens() -> None:
    assert faults(ROWS, token_ids=ints(3)) == [("no_vocab", ("token_ids",), None, None)]


def test_token_ids_outside_the_vocabulary_are_refused_each_at_its_place() -> None:
    ids = np.array([[0, 16, 17], [-1, 5, 99]])
    assert faults(WORDS, token_ids=ids) == [
        ("out_of_vocabulary", ("token_ids", 0, 2), None, 17),
        ("out_of_vocabulary", ("token_ids", 1, 0), None, -1),
        ("out_of_vocabulary", ("token_ids", 1, 2), None, 99),
    ]


def test_no_more_ids_are_listed_than_anybody_reads() -> None:
    assert len(faults(WORDS, token_ids=np.full(MOST_FAULTS + 1, 17))) == MOST_FAULTS


def test_masks_and_positions_of_other_lengths_are_refused_all_at_once() -> None:
    found = faults(
        ROWS,
        tensor=np.zeros((2, 3, 5)),
        position_ids=ints(4),
        key_mask=bools(3, 3),
        attention_mask=bools(2, 3, 4),
    )
    assert found == [
        ("shape_mismatch", ("position_ids",), [2, 3], [4]),
        ("shape_mismatch", ("key_mask",), [2, 3], [3, 3]),
        ("shape_mismatch", ("attention_mask",), [2, 3, 3], [2, 3, 4]),
    ]


def test_a_single_input_takes_no_batch_of_masks() -> None:
    assert faults(ROWS, tensor=TENSOR, key_mask=bools(1, 3)) == [
        ("shape_mismatch", ("key_mask",), [3], [1, 3])
    ]


def test_positions_beyond_the_learned_table_are_refused() -> None:
    found = faults(TABLE, tensor=TENSOR, position_ids=np.array([6, 7, 0]))
    assert found == [("out_of_positions", ("position_ids", 1), None, 7)]
    (code, place, expected, got), *_ = faults(TABLE, tensor=np.zeros((8, 5)))
    assert (code, place, expected, got) == (
        "out_of_positions",
        ("tensor",),
        "at most 7 positions",
        8,
    )


def test_an_input_longer_than_the_table_fits_where_its_padding_takes_no_positions() -> None:
    padded = Inputs(tensor=np.zeros((9, 5)), key_mask=np.arange(9) >= 2)
    assert inputs.check(padded, TABLE) is padded


def test_a_negative_position_is_refused_where_positions_are_looked_up() -> None:
    found = faults(TABLE, tensor=TENSOR, position_ids=np.array([0, -1, 2]))
    assert found == [("out_of_positions", ("position_ids", 1), None, -1)]
