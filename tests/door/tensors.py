"""Nested lists of numbers: their form, their entries, their shapes, their names."""

from collections.abc import Mapping
from functools import partial
from typing import Unpack

from door.case import CONFIG, EDIT, MARK, NUMBER, TOKENS, Case, More, Raw, asked

_N = NUMBER
_ROWS = [[_N, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]
_Q, _K, _IN = ("blocks.0.attn.W_Q", "blocks.0.attn.W_K", "blocks.0.ffn.b_in")
_TENSORS = "/model/weights/tensors"
_VALUE = "/model/weights/edits/0/value"
_SET = {"/model/weights": {"edits": [{**EDIT, "op": "set", "value": 1}]}}


def _input(
    name: str, tensor: object, at: str, code: str, says: str = "", **more: Unpack[More]
) -> Case:
    faults = {f"/input/tensor{at}": code}
    return asked(f"input tensor {name}", {"/input/tensor": tensor}, faults, says=says, **more)


def _weight(
    name: str, tensor: object, at: str, code: str, says: str = "", **more: Unpack[More]
) -> Case:
    faults = {f"{_TENSORS}/{_Q}{at}": code}
    return asked(f"weight {name}", {f"{_TENSORS}/{_Q}": tensor}, faults, says=says, **more)


def _value(
    name: str, value: object, at: str, code: str, says: str = "", **more: Unpack[More]
) -> Case:
    changes = {**_SET, _VALUE: value}
    return asked(f"value {name}", changes, {f"{_VALUE}{at}": code}, says=says, **more)


_CUBE = [[[_N, 2], [3, 4]], [[5, 6], [7, 8]]]
_RANKS = "nested 2 or 3 deep"
FORMS = [
    _input("is empty", [], "", "empty"),
    _input("has one empty row", [[]], "/0", "empty", "empty"),
    _input("has empty rows", [[], []], "/0", "empty", "empty", more=True),
    _input("has a batch of nothing", [[[]]], "/0/0", "empty", "empty"),
    _input("has an empty row in the middle", [_ROWS[0], [], _ROWS[2]], "/1", "empty"),
    _input("has a short first row", [[1], *_ROWS[1:]], "/1", "ragged", more=True),
    _input("has a short row", [_ROWS[0], [5, 6], _ROWS[2]], "/1", "ragged", "4 entries"),
    _input("has a long last row", [*_ROWS[:2], [9, 10, 11, 12, 13]], "/2", "ragged", "4 entries"),
    _input("has a number for a row", [_ROWS[0], 5], "/1", "wrong_type", "A list is due"),
    _input("has null for a row", [_ROWS[0], None], "/1", "wrong_type", "A list is due"),
    _input("has text for a row", [_ROWS[0], MARK], "/1", "wrong_type", "A list is due"),
    _input("has an object for a row", [_ROWS[0], {MARK: 1}], "/1", "wrong_type", "A list is due"),
    _input("begins with a number", [5, _ROWS[0]], "/0", "wrong_type", "A list is due"),
    _input("has a list for a number", [[1, 2, 3, [4]], _ROWS[1]], "/0/3", "wrong_type"),
    _input("has a list for the first number", [[[1], 2, 3, 4]], "/0/1", "wrong_type", more=True),
    _input("has batches of unequal rows", [_ROWS[:2], _ROWS[:1]], "/1", "ragged"),
    _input("has a short row in a batch", [_ROWS, [*_ROWS[:2], [9]]], "/1/2", "ragged"),
    _input("has rows and batches mixed", [_ROWS, _ROWS[0]], "/1", "ragged", more=True),
    _input("is a number", 5, "", "rank_mismatch", _RANKS),
    _input("is a row", [1, 2, 3, 4], "", "rank_mismatch", _RANKS),
    _input("is four deep", [[[[1, 2, 3, 4]]]], "", "rank_mismatch", _RANKS),
    _input("is five deep", [[[[[1, 2, 3, 4]]]]], "", "rank_mismatch", _RANKS),
    _input("is true", True, "", "rank_mismatch"),
    _input("is text", MARK, "", "rank_mismatch"),
    _input("is text that reads as numbers", "[[1, 2, 3, 4]]", "", "rank_mismatch"),
    _input("is a row of text", [MARK], "", "rank_mismatch"),
    _weight("is a number", 5, "", "rank_mismatch", "nested 1 or 2 or 3 deep"),
    _weight("is four deep", [[[[1]]]], "", "rank_mismatch"),
    _weight("is null", None, "", "rank_mismatch"),
    _weight("is true", True, "", "rank_mismatch"),
    _weight("is text", MARK, "", "rank_mismatch"),
    _weight("is empty", [], "", "empty"),
    _weight("is empty two deep", [[]], "/0", "empty"),
    _weight("is empty three deep", [[[], []]], "/0/0", "empty", more=True),
    _weight("has unequal heads", [[[1], [2]], [[1]]], "/1", "ragged"),
    _weight("has an unequal row", [[[1], [2]], [[1], [2, 3]]], "/1/1", "ragged"),
    _weight("has a number among lists", [[[1]], 1], "/1", "wrong_type"),
    _weight("has text in the first place", [MARK, 1], "/0", "wrong_type"),
    _weight("has true in the last place", [1, 2, True], "/2", "wrong_type"),
    _weight("has null in the middle", [*_CUBE[:1], [[5, None], [7, 8]]], "/1/0/1", "wrong_type"),
    _value("is true", True, "", "wrong_type", "A number is due here."),
    _value("is text", MARK, "", "wrong_type", "A number is due here."),
    _value("is four deep", [[[[1]]]], "", "rank_mismatch"),
    _value("is empty", [], "", "empty"),
    _value("has an empty list", [[1], []], "/1", "empty"),
    _value("has unequal lists", [[1, 2], [1]], "/1", "ragged"),
    _value("has text inside", [1, MARK], "/1", "wrong_type"),
    _value("has null inside", [[1, None]], "/0/1", "wrong_type"),
]  # fmt: skip


def _entries(
    name: str, wrong: object, code: str = "wrong_type", says: str = "", **more: Unpack[More]
) -> list[Case]:
    """A wrong entry in the first, a middle and the last place of a tensor of three rows."""
    cases = []
    for row, column in ((0, 0), (1, 2), (2, 3)):
        rows: list[list[object]] = [list(given) for given in _ROWS]
        rows[row][column] = wrong
        place = f"/{row}/{column}"
        cases.append(_input(f"has {name} at {place}", rows, place, code, says, **more))
    return cases


ENTRIES = [
    *_entries("true", True, says="A number is due here."),
    *_entries("false", False),
    *_entries("null", None),
    *_entries("text", MARK),
    *_entries("a number in quotes", "1.5"),
    *_entries("NaN in quotes", "NaN"),
    *_entries("an object", {MARK: 1}),
    *_entries(
        "a number of 400 digits", Raw("1" + "0" * 400), "not_finite", says="too large for float64"
    ),
    *_entries("1e400", Raw("1e400"), "not_finite", says="too large for float64"),
    *_entries("-1e400", Raw("-1e400"), "not_finite"),
]
_TWO = [[True, 2, 3, None], [5, 6, 7, 8], [9, "10", 11, {}]]
ENTRIES.append(
    asked("input tensor has four wrong entries", {"/input/tensor": _TWO},
          {f"/input/tensor/{at}": "wrong_type" for at in ("0/0", "0/3", "2/1", "2/3")})
)  # fmt: skip

_overflow = partial(asked, faults="overflow", says="beyond the range of float32")
OVERFLOWS = [
    *(
        _overflow(f"input has {value} at {place}", {f"/input/tensor{place}": value},
                  problem="invalid-input")
        for value, place in [(1e39, "/0/0"), (-1e39, "/0/3"), (3.5e38, "/1/1"), (1e308, "/1/3"),
                             (10**39, "/0/2"), (10**100, "/0/1"), (-(10**300), "/1/0")]
    ),
    *(
        _overflow(f"weight has {value}", {f"{_TENSORS}/{_IN}": [*[_N] * 15, value]},
                  faults={f"{_TENSORS}/{_IN}/15": "overflow"}, problem="shape-mismatch")
        for value in (1e39, -3.5e38, 10**50)
    ),
    _overflow("value of an edit is 1e39", {**_SET, _VALUE: 1e39}, problem="shape-mismatch"),
    _overflow("value of an edit has -1e39", {**_SET, _VALUE: [[[1, 2, 3, 4], [5, 6, -1e39, 8]]]},
              faults={f"{_VALUE}/0/1/2": "overflow"}, problem="shape-mismatch"),
    asked("1e309 in float64", {"/dtype": "float64", "/input/tensor/1/3": Raw("1e309")},
          "not_finite"),
    asked("10^310 in float64", {"/dtype": "float64", "/input/tensor/1/3": 10**310}, "not_finite"),
    asked("10^310 in a weight", {"/dtype": "float64", f"{_TENSORS}/{_IN}": [10**310]},
          {f"{_TENSORS}/{_IN}/0": "not_finite"}),
    asked("10^310 in an edit", {**_SET, _VALUE: 10**310}, "not_finite"),
]  # fmt: skip

_fit = partial(asked, problem="invalid-input", faults="shape_mismatch")
WIDTHS = [
    _fit("rows too short for d_model", {"/input/tensor": [[1, 2, 3]]}, says="d_model = 4"),
    _fit("rows too long for d_model", {"/input/tensor": [[1, 2, 3, 4, 5]]}, says="d_model = 4"),
    _fit("batch of rows too short", {"/input/tensor": [[[1, 2]], [[3, 4]]]}, says="d_model = 4"),
    _fit("rows transposed", {"/input/tensor": [[1, 2], [3, 4], [5, 6], [7, 8]]}),
    _fit("one number for a model of two", {"/model/config": {"d_model": 2, "attention": {
        "n_heads": 1}}, "/input/tensor": [[1]]}),
    _fit("tensor for a shipped model", {"/model": {"name": "letter-sort"},
                                        "/input/tensor": [[1, 2]]}, says="d_model = 48"),
]  # fmt: skip


def _cube(*shape: int) -> object:
    """Ones in a shape."""
    return 1 if not shape else [_cube(*shape[1:])] * shape[0]


def _misfit(name: str, tensors: Mapping[str, object], code: str, says: str = "",
            changes: Mapping[str, object] = {}) -> Case:  # fmt: skip
    faults = {f"{_TENSORS}/{tensor.replace('/', '~1')}": code for tensor in tensors}
    all_changes = {**changes, "/model/weights": {"tensors": tensors}}
    return asked(name, all_changes, faults, "shape-mismatch", says=says)


_NEXT = "blocks.1.attn.W_Q"
NAMES = [
    *(
        _misfit(f"W_Q of shape {list(shape)}", {_Q: _cube(*shape)}, "shape_mismatch",
                "(head, d_model, d_head)")
        for shape in ((4, 4), (1, 4, 2), (2, 2, 4), (2, 4, 1), (4, 2, 2), (16,), (1,), (3, 4, 2))
    ),
    _misfit("W_O laid out as W_Q", {"blocks.0.attn.W_O": _cube(2, 4, 2)}, "shape_mismatch"),
    _misfit("matrix of the ffn transposed", {"blocks.0.ffn.W_in": _cube(16, 4)}, "shape_mismatch"),
    _misfit("bias as a row of a matrix", {_IN: _cube(1, 16)}, "shape_mismatch", "(d_ff)"),
    _misfit("gain of two", {"blocks.0.norm1.weight": [1, 2]}, "shape_mismatch", "(d_model)"),
    _misfit("keys of more heads than there are", {_K: _cube(2, 4, 2)}, "shape_mismatch", "kv_head",
            {"/model/config/attention/n_kv_heads": 1}),
    _misfit("embedding transposed", {"embed.W_E": _cube(4, 5)}, "shape_mismatch", "vocabulary",
            {"": TOKENS}),
    _misfit("unknown tensor", {MARK: [1]}, "unknown_tensor", "This config has no such tensor."),
    *(
        _misfit(f"tensor called {name!r}", {name: _cube(2, 4, 2)}, "unknown_tensor", says)
        for name, says in [
            ("blocks.0.attn.W_q", "blocks.0.attn.W_Q"),
            ("blocks.0.attn.WQ", "blocks.0.attn.W_Q"),
            ("blocks.0.atn.W_Q", "blocks.0.attn.W_Q"),
            ("attn.W_Q", "blocks.0.attn.W_Q"),
            ("W_Q", "blocks.0.attn.W_Q"),
            ("blocks.W_Q", "blocks.0.attn.W_Q"),
            ("blocks.0.attn.W_Q ", "blocks.0.attn.W_Q"),
            ("blocks.*.attn.W_Q", "The blocks are 0 to 0."),
            ("blocks.00.attn.W_Q", "The blocks are 0 to 0."),
            ("blocks.-1.attn.W_Q", "The blocks are 0 to 0."),
            (_NEXT, "The blocks are 0 to 0."),
            ("blocks.1000000.attn.W_Q", "The blocks are 0 to 0."),
            ("transformer.h.0.attn.c_attn.weight", "no such tensor"),
            ("blocks.0.attn.W_QKV", "blocks.0.attn.W_Q"),
            ("Q", "no such tensor"),
            ("A", "no such tensor"),
            ("../../etc/passwd", "no such tensor"),
            ("blocks.0.attn.b_Q", "attention.bias (or its q) is true"),
            ("blocks.0.attn.b_O", "attention.bias (or its o) is true"),
            ("blocks.0.ffn.W_gate", "ffn.kind is gated"),
            ("blocks.0.ffn.b_gate", "the ffn has a gate"),
            ("embed.W_E", "vocab is given"),
            ("pos_embed.W_pos", "position.kind is learned"),
            ("unembed.W_U", "tied is false"),
            ("unembed.b_U", "unembed_bias is true"),
            ("final_norm.weight", "no such tensor"),
        ]
    ),
    _misfit("norm's weight where there is no norm", {"blocks.0.norm1.weight": [1] * 4},
            "unknown_tensor", "norm.kind", {"/model/config/norm": {"kind": "none"}}),
    _misfit("norm's bias of an rmsnorm", {"blocks.0.norm1.bias": [1] * 4}, "unknown_tensor",
            "layernorm", {"/model/config/norm": {"kind": "rmsnorm"}}),
    _misfit("ffn's matrix where there is no ffn", {"blocks.0.ffn.W_in": [[1]]}, "unknown_tensor",
            "ffn.kind", {"/model/config/ffn": {"kind": "none"}}),
    _misfit("attention's matrix where there is none", {_Q: [[[1]]]}, "unknown_tensor",
            "attention.kind", {"/model/config/attention": {"kind": "none"}}),
    _misfit("readout of a tied model", {"unembed.W_U": [[1]]}, "unknown_tensor", "tied is false",
            {"": {**TOKENS, "model": {"config": {**CONFIG, "vocab": 5, "tied": True}}}}),
    _misfit("tensor of another block of a shipped model", {"blocks.3.attn.W_Q": [1]},
            "unknown_tensor", "The blocks are 0 to 2.",
            {"/model": {"name": "letter-sort"}, "/input/tensor": [[1] * 48]}),
    _misfit("bias a shipped model lacks", {"blocks.0.attn.b_Q": [[1, 1]]}, "unknown_tensor",
            "attention.bias",
            {"/model": {"name": "eiffel-toy"}, "/input/tensor": [[1, 2]]}),
    asked("tensor without a name", {f"{_TENSORS}/": [1]}, "string_too_short"),
    asked("tensor of a name of 129 letters", {f"{_TENSORS}/{'x' * 129}": [1]},
          {_TENSORS: "string_too_long"}),
    asked("tensor of a very long name", {f"{_TENSORS}/{MARK * 1000}": [1]},
          {_TENSORS: "string_too_long"}),
    asked("four tensors that do not fit",
          {f"{_TENSORS}/{name}": [1] for name in (_Q, _K, "x~1y~0z", _NEXT)},
          {f"{_TENSORS}/{_Q}": "shape_mismatch", f"{_TENSORS}/{_K}": "shape_mismatch",
           f"{_TENSORS}/x~1y~0z": "unknown_tensor", f"{_TENSORS}/{_NEXT}": "unknown_tensor"},
          "shape-mismatch"),
]  # fmt: skip
