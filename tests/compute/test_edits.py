"""Brought tensors and edits of slices: what they change, and every misfit at once."""

import numpy as np
import pytest

from cases import small
from compute import config_json, edits, initial, tensors
from compute.errors import WeightsError
from compute.types import Array, Edit

HEADS = small.attention(5, 3, d_value=2, bias=small.biases(*"qkvo"))
CONFIG = config_json.from_json(small.model(11, attention=HEADS, norm=small.norm("layernorm")))
LISTED = tensors.tensors(CONFIG)
W_O = "blocks.0.attn.W_O"
BASE = initial.seeded(0, "float64", 0.0)(LISTED[W_O])
"""(head 5, d_value 2, d_model 11)."""


def changed(*made: Edit, **given: Array) -> Array:
    source = initial.seeded(0, "float64", 0.0)
    return edits.changed(source, {W_O: given["W_O"]} if given else {}, made)(LISTED[W_O])


def edit(op: str, value: object = 0.0, **where: tuple[int, ...]) -> Edit:
    return Edit(tensor=W_O, op=op, where=where, value=value)


def test_nothing_asked_changes_nothing() -> None:
    assert changed().tobytes() == BASE.tobytes()


def test_scale_multiplies_the_slice_and_nothing_else() -> None:
    got, expected = changed(edit("scale", -1.0, d_model=(0,))), BASE.copy()
    expected[:, :, 0] *= -1
    assert got.tolist() == expected.tolist()


def test_add_adds_to_the_slice() -> None:
    got, expected = changed(edit("add", 0.5, head=(1, 3), d_value=(1,))), BASE.copy()
    expected[1, 1] += 0.5
    expected[3, 1] += 0.5
    assert got.tolist() == expected.tolist()


def test_set_puts_one_number_everywhere_in_the_slice() -> None:
    got, expected = changed(edit("set", 7.0, head=(2,))), BASE.copy()
    expected[2] = 7.0
    assert got.tolist() == expected.tolist()


def test_set_puts_an_array_of_the_slices_shape_in_the_order_of_its_indices() -> None:
    value = np.arange(2 * 1 * 11, dtype=np.float64).reshape(2, 1, 11)
    got, expected = changed(edit("set", value, head=(4, 0), d_value=(1,))), BASE.copy()
    expected[4, 1], expected[0, 1] = value[0, 0], value[1, 0]
    assert got.tolist() == expected.tolist()


def test_zero_zeroes_whatever_its_value_says() -> None:
    got, expected = changed(edit("zero", head=(0,), d_model=(3, 5))), BASE.copy()
    expected[0, :, 3] = expected[0, :, 5] = 0.0
    assert got.tolist() == expected.tolist()
    assert not changed(edit("zero")).any()


def test_negative_indices_count_from_the_end() -> None:
    got, expected = changed(edit("zero", head=(-1, -5), d_model=(-11,))), BASE.copy()
    expected[4, :, 0] = expected[0, :, 0] = 0.0
    assert got.tolist() == expected.tolist()


def test_edits_are_made_one_after_the_other() -> None:
    made = changed(edit("set", 2.0), edit("scale", 3.0, head=(0,)), edit("add", 1.0))
    assert made[0].tolist() == [[7.0] * 11] * 2
    assert made[1:].tolist() == [[[3.0] * 11] * 2] * 4


def test_a_brought_tensor_is_what_is_edited_and_stays_its_owners() -> None:
    mine = np.ones((5, 2, 11))
    made = changed(edit("scale", 2.0, head=(0,)), W_O=mine)
    assert made[0].tolist() == [[2.0] * 11] * 2
    assert made[1:].tolist() == [[[1.0] * 11] * 2] * 4
    assert mine.tolist() == [[[1.0] * 11] * 2] * 5


def test_other_tensors_are_left_alone() -> None:
    source = initial.seeded(0, "float64", 0.0)
    fetch = edits.changed(source, {}, [edit("zero")])
    for name, tensor in LISTED.items():
        assert (fetch(tensor).tobytes() == source(tensor).tobytes()) == (name != W_O)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_edited_tensor_keeps_its_dtype(dtype: str) -> None:
    source = initial.seeded(0, dtype, 0.0)
    made = [edit("scale", 3.0), edit("add", np.ones((5, 2, 11))), edit("set", 1.0, head=(0,))]
    assert edits.changed(source, {}, made)(LISTED[W_O]).dtype == np.dtype(dtype)


# Misfits.


def faults(given: dict[str, Array], *made: Edit) -> list[tuple[object, ...]]:
    """(code, place, expected, got) of every misfit; those of unknown names are guesses."""
    with pytest.raises(WeightsError) as refused:
        edits.check(CONFIG, given, made)
    return [
        (f.code, f.place, None if f.code == "unknown_tensor" else f.expected, f.got)
        for f in refused.value.faults
    ]


def test_what_fits_is_not_refused() -> None:
    edits.check(CONFIG, {W_O: BASE}, [edit("add", np.zeros((1, 2, 11)), head=(-1,)), edit("zero")])


def test_all_misfits_are_reported_at_once_with_their_places() -> None:
    given = {
        "blocks.0.attn.W_Z": np.zeros(3),
        "blocks.0.attn.W_Q": np.zeros((11, 15)),
        "blocks.0.norm1.weight": np.zeros(11),
        "blocks.0.attn.b_O": np.zeros((11, 1)),
    }
    bad = [
        Edit(tensor="blocks.1.attn.W_O", op="zero"),
        edit("set", np.zeros((5, 2)), d_model=(0, 1)),
        edit("scale", 2.0, head=(0, 5, -6), kv_head=(0,)),
    ]
    assert faults(given, *bad) == [
        ("unknown_tensor", ("tensors", "blocks.0.attn.W_Z"), None, None),
        ("shape_mismatch", ("tensors", "blocks.0.attn.W_Q"), [5, 11, 3], [11, 15]),
        ("shape_mismatch", ("tensors", "blocks.0.attn.b_O"), [11], [11, 1]),
        ("unknown_tensor", ("edits", 0, "tensor"), None, None),
        ("shape_mismatch", ("edits", 1, "value"), [5, 2, 2], [5, 2]),
        ("index_out_of_range", ("edits", 2, "where", "head", 1), "from -5 to 4", 5),
        ("index_out_of_range", ("edits", 2, "where", "head", 2), "from -5 to 4", -6),
        ("no_such_axis", ("edits", 2, "where", "kv_head"), None, None),
    ]


def test_a_value_that_would_only_fit_by_broadcasting_is_refused() -> None:
    for shape in ((11,), (1, 1, 11), (5, 2, 1), (1,)):
        assert faults({}, edit("set", np.zeros(shape)))[0][0] == "shape_mismatch"


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("blocks.0.attn.W_o", r"blocks\.0\.attn\.W_O"),
        ("blocks.0.norm1.wieght", r"blocks\.0\.norm1\.weight"),
        ("blocks.1.attn.W_Q", r"The blocks are 0 to 0\."),
    ],
)
def test_an_unknown_tensor_is_answered_with_names_near_it(name: str, near: str) -> None:
    with pytest.raises(WeightsError, match=near):
        edits.check(CONFIG, {name: BASE}, [])
