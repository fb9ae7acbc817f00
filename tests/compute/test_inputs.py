"""An input against its model: every misfit, with its place."""

import numpy as np
import pytest

from cases import small
from compute import config_json, inputs
from compute.config import ModelConfig
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


def faults(config: ModelConfig, **given: object) -> list[tuple[object, ...]]:
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


# Token types.

TYPED = config_json.from_json(
    small.model(5, attention=small.attention(2, 3)) | {"token_types": 2, "vocab": 17}
)


@pytest.mark.parametrize("types", [ints(3), np.array([0, 1, 1]), np.array([[0, 1, 1], [1, 0, 0]])])
def test_token_types_fit_a_model_that_has_them(types: np.ndarray) -> None:
    rows = np.zeros((*types.shape, 5))
    read = Inputs(tensor=rows, token_types=types)
    assert inputs.check(read, TYPED) is read


def test_a_model_without_token_types_reads_none() -> None:
    expected = ("no_token_types", ("token_types",), None, None)
    assert faults(ROWS, tensor=TENSOR, token_types=ints(3)) == [expected]


def test_token_types_outside_the_table_are_refused_each_at_its_place() -> None:
    types = np.array([[0, 2, 1], [-1, 1, 1]])
    assert faults(TYPED, tensor=np.zeros((2, 3, 5)), token_types=types) == [
        ("out_of_token_types", ("token_types", 0, 1), None, 2),
        ("out_of_token_types", ("token_types", 1, 0), None, -1),
    ]


def test_token_types_of_another_length_are_refused() -> None:
    expected = ("shape_mismatch", ("token_types",), [3], [4])
    assert faults(TYPED, tensor=TENSOR, token_types=ints(4)) == [expected]


# A memory.

BLOCK = small.model(5, attention=small.attention(2, 3), ffn=small.mlp(7))
CROSSING = config_json.from_json(BLOCK | {"cross_attention": True, "vocab": 17})
LEARNED = {"kind": "learned", "n_positions": 4}
ENCODER = small.model(5, ffn=small.mlp(7), position=LEARNED) | {"token_types": 2}
ENCODED = config_json.from_json(BLOCK | {"cross_attention": True, "vocab": 17, "encoder": ENCODER})
OWN_ROWS = config_json.from_json(BLOCK | {"cross_attention": True, "encoder": ENCODER})


@pytest.mark.parametrize(
    ("config", "memory"),
    [
        (CROSSING, Inputs(tensor=np.zeros((9, 5)))),
        (CROSSING, Inputs(tensor=np.zeros((9, 5)), key_mask=bools(9))),
        (ENCODED, Inputs(tensor=np.zeros((4, 5)), attention_mask=bools(4, 4))),
        (ENCODED, Inputs(token_ids=ints(4), token_types=ints(4), key_mask=bools(4))),
        (ENCODED, Inputs(token_ids=ints(9), position_ids=ints(9))),
        (OWN_ROWS, Inputs(tensor=np.zeros((3, 5)), token_types=ints(3))),
    ],
)
def test_a_memory_that_fits_is_given_back(config: ModelConfig, memory: Inputs) -> None:
    read = Inputs(tensor=TENSOR, memory=memory)
    assert inputs.check(read, config) is read


def test_cross_attention_needs_a_memory() -> None:
    for config in (CROSSING, ENCODED):
        assert faults(config, tensor=TENSOR) == [("missing", ("memory",), None, None)]


def test_a_model_that_does_not_cross_reads_no_memory() -> None:
    memory = Inputs(tensor=np.zeros((9, 4)))  # its width is not looked at
    expected = ("no_cross_attention", ("memory",), None, None)
    assert faults(ROWS, tensor=TENSOR, memory=memory) == [expected]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("position_ids", ints(9)),
        ("attention_mask", bools(9, 9)),
        ("token_types", ints(9)),
    ],
)
def test_without_an_encoder_a_memory_is_rows_and_their_mask(name: str, value: np.ndarray) -> None:
    memory = Inputs(tensor=np.zeros((9, 5)), **{name: value})
    expected = ("no_encoder", ("memory", name), None, None)
    assert faults(CROSSING, tensor=TENSOR, memory=memory) == [expected]


def test_without_an_encoder_a_memory_is_no_tokens() -> None:
    expected = ("no_encoder", ("memory", "token_ids"), None, None)
    assert faults(CROSSING, tensor=TENSOR, memory=Inputs(token_ids=ints(9))) == [expected]


def test_rows_of_a_memory_have_the_streams_width() -> None:
    for config in (CROSSING, ENCODED):
        found = faults(config, tensor=TENSOR, memory=Inputs(tensor=np.zeros((3, 4))))
        assert found == [("shape_mismatch", ("memory", "tensor"), [3, 5], [3, 4])]


def test_masks_of_a_memory_have_its_own_length() -> None:
    memory = Inputs(tensor=np.zeros((4, 5)), key_mask=bools(3))
    for config in (CROSSING, ENCODED):
        found = faults(config, tensor=TENSOR, memory=memory)
        assert found == [("shape_mismatch", ("memory", "key_mask"), [4], [3])]


def test_an_encoders_tokens_are_of_the_shared_vocabulary() -> None:
    memory = Inputs(token_ids=np.array([0, 16, 17]), token_types=np.array([0, 2, 1]))
    assert faults(ENCODED, tensor=TENSOR, memory=memory) == [
        ("out_of_vocabulary", ("memory", "token_ids", 2), None, 17),
        ("out_of_token_types", ("memory", "token_types", 1), None, 2),
    ]
    without = Inputs(token_ids=ints(3))
    expected = ("no_vocab", ("memory", "token_ids"), None, None)
    assert faults(OWN_ROWS, tensor=TENSOR, memory=without) == [expected]


def test_an_encoder_has_positions_of_its_own() -> None:
    memory = Inputs(tensor=np.zeros((5, 5)))
    expected = ("out_of_positions", ("memory", "tensor"), "at most 4 positions", 5)
    assert faults(ENCODED, tensor=TENSOR, memory=memory) == [expected]


@pytest.mark.parametrize(
    ("batch", "other", "expected", "got"),
    [((2,), (3,), 2, 3), ((2,), (), 2, "no batch"), ((), (2,), "no batch", 2)],
)
def test_input_and_memory_are_batches_of_the_same_length(
    batch: tuple[int, ...], other: tuple[int, ...], expected: object, got: object
) -> None:
    memory = Inputs(tensor=np.zeros((*other, 3, 5)))
    found = faults(CROSSING, tensor=np.zeros((*batch, 3, 5)), memory=memory)
    assert found == [("shape_mismatch", ("memory",), expected, got)]


def test_faults_of_an_input_and_its_memory_are_reported_at_once() -> None:
    memory = Inputs(tensor=np.zeros((3, 4)))
    found = faults(CROSSING, tensor=np.zeros((3, 6)), memory=memory)
    assert [place for _, place, _, _ in found] == [("tensor",), ("memory", "tensor")]
