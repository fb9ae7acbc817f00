"""Tensors as base64: dtype, shape and data that are wrong, disagree, or hold what may not be."""

import base64
import struct
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from door.case import EDIT, GONE, LETTERS, MARK, TOKENS, Case, Raw, asked

_CODES = {"float32": "f", "float64": "d", "int32": "i", "int64": "q", "bool": "B"}
_TENSOR, _IDS, _PLACES = "/input/tensor", "/input/token_ids", "/input/position_ids"
_KEYS, _PAIRS = "/input/key_mask", "/input/attention_mask"
_W = "/model/weights/tensors/blocks.0.attn.W_Q"
_VALUE = "/model/weights/edits/0/value"
_SET = {"/model/weights": {"edits": [{**EDIT, "op": "set", "value": 1}]}}
_NAN, _INF = float("nan"), float("inf")


def packed(dtype: str, shape: object, values: Sequence[float]) -> dict[str, Any]:
    """A tensor as a request has it."""
    raw = struct.pack(f"<{len(values)}{_CODES[dtype]}", *values)
    return {"dtype": dtype, "shape": shape, "data": base64.b64encode(raw).decode()}


_GOOD = packed("float32", [2, 4], range(8))
_TEXT = _GOOD["data"]
_THREE = packed("int64", [3], [0, 1, 2])


def _form(name: str, changes: Mapping[str, object], at: str, code: str, says: str = "") -> Case:
    """The good tensor with other members."""
    wrong = {key: value for key, value in {**_GOOD, **changes}.items() if value is not GONE}
    return asked(name, {_TENSOR: wrong}, {f"{_TENSOR}{at}": code}, says=says)


FORMS = [
    *(_form(f"no {key}", {key: GONE}, f"/{key}", "missing") for key in _GOOD),
    asked("empty object for a tensor", {_TENSOR: {}},
          {f"{_TENSOR}/{key}": "missing" for key in _GOOD}),
    asked("other keys alone", {_TENSOR: {MARK: 1}}, {f"{_TENSOR}/{MARK}": "extra_forbidden",
          **{f"{_TENSOR}/{key}": "missing" for key in _GOOD}}),
    *(_form(f"unknown key {key}", {key: 1}, f"/{key}", "extra_forbidden", says)
      for key, says in [("order", "The keys here: dtype"), ("dtyp", "Near it: dtype"),
                        ("Data", "Near it: data"),
                        ("data_b64", "Near it: data"), (MARK, "dtype, shape, data")]),
    *(_form(f"dtype {dtype!r}", {"dtype": dtype}, "/dtype", "literal_error", "'float32'")
      for dtype in ("float16", "bfloat16", "F32", "f4", "<f4", "int32", "int64", "bool", "Float32",
                    "object", "", MARK, 32, None, True, ["float32"], {})),
    *(_form(f"shape {shape!r}", {"shape": shape}, "/shape", "list_type", "A list is due here.")
      for shape in (8, "2, 4", None, True, {"0": 2}, MARK)),
    *(_form(f"{shown} in the shape", {"shape": [2, wrong]}, "/shape/1", code, says)
      for shown, wrong, code, says in [
          ("0", 0, "greater_than_equal", "at least 1"),
          ("-4", -4, "greater_than_equal", "at least 1"),
          ("true", True, "int_type", "whole number"),
          ("4.0", 4.0, "int_type", "whole number"), ("'4'", "4", "int_type", "whole number"),
          ("null", None, "int_type", "whole number"), ("[4]", [4], "int_type", "whole number"),
          ("2^31 + 1", (1 << 31) + 1, "less_than_equal", "at most"),
          ("2^63", 1 << 63, "less_than_equal", "at most"),
          ("10^30", 10**30, "less_than_equal", "at most"),
          ("1e3", Raw("1e3"), "int_type", "whole number")]),
    *(_form(f"data {shown}", {"data": data}, "/data", "string_type", "A string is due here.")
      for shown, data in [("null", None), ("a number", 5), ("true", True), ("a list", [[1, 2]]),
                          ("an object", {}), ("bytes as numbers", [0, 0, 128, 63])]),
]  # fmt: skip

_rank = partial(_form, at="/shape", code="rank_mismatch", says="2 or 3")
LENGTHS = [
    asked("shape of no axes", {_TENSOR: {**_GOOD, "shape": []}},
          {f"{_TENSOR}/shape": "rank_mismatch", f"{_TENSOR}/data": "wrong_length"}),
    _rank("one axis", {"shape": [8]}),
    _rank("four axes", {"shape": [1, 1, 2, 4]}),
    _form("nine axes", {"shape": [1] * 8 + [8]}, "/shape", "too_long", "At most 8"),
    _form("half a million axes", {"shape": [1] * 500_000}, "/shape", "too_long", "At most 8"),
    *(_form(f"shape {shape} of 8 numbers", {"shape": shape}, "/data", "wrong_length", says)
      for shape, says in [
          ([2, 3], "24 bytes, 32 characters"), ([3, 4], "48 bytes, 64 characters"), ([1, 4], ""),
          ([2, 2, 4], ""), ([4096, 8192], "134217728 bytes"), ([1 << 31, 1 << 31], ""),
          ([1 << 31, 1 << 31, 1 << 31], "")]),
    _form("float64 of half as many bytes", {"dtype": "float64"}, "/data", "wrong_length", "64 "),
    _form("no data", {"data": ""}, "/data", "wrong_length", "32 bytes, 44 characters"),
    _form("data a character short", {"data": _TEXT[:-1]}, "/data", "wrong_length"),
    _form("data without padding", {"data": _TEXT.rstrip("=")}, "/data", "wrong_length"),
    _form("data a number short", {"data": base64.b64encode(bytes(28)).decode()}, "/data",
          "wrong_length"),
    _form("data a byte long", {"data": base64.b64encode(bytes(34)).decode()}, "/data",
          "wrong_length"),
    _form("hexadecimal data", {"data": bytes(32).hex()}, "/data", "wrong_length"),
    _form("marked as an address", {"data": f"data:;base64,{_TEXT}"}, "/data", "wrong_length"),
    _form("numbers as text", {"data": "1,2,3,4,5,6,7,8"}, "/data", "wrong_length"),
]  # fmt: skip

ALPHABET = [
    _form(f"data with {shown}", {"data": data}, "/data", "not_base64", "not base64")
    for shown, data in [
        ("a hyphen", "-" + _TEXT[1:]), ("an underscore", "_" + _TEXT[1:]),
        ("a space", " " + _TEXT[1:]), ("a newline in the middle", f"{_TEXT[:20]}\n{_TEXT[21:]}"),
        ("a NUL", "\0" + _TEXT[1:]), ("padding first", "=" + _TEXT[1:]),
        ("padding in the middle", f"{_TEXT[:20]}={_TEXT[21:]}"),
        ("padding twice", f"{_TEXT[:-2]}=="), ("all padding", "=" * len(_TEXT)),
        ("a letter beyond ASCII", "é" + _TEXT[1:]), ("a wide letter", "Ａ" + _TEXT[1:]),
        ("a dot", "." + _TEXT[1:]), ("percent signs", "%" + _TEXT[1:]),
        ("a marker", (MARK + "!" + _TEXT)[: len(_TEXT)]),
    ]
]  # fmt: skip


def _numbers(dtype: str, at: int, wrong: float) -> dict[str, Any]:
    return packed(dtype, [2, 4], [wrong if i == at else 0.25 for i in range(8)])


ENTRIES = [
    *(
        asked(f"{wrong} in {dtype} at {entry}", {_TENSOR: _numbers(dtype, at, wrong)},
              {f"{_TENSOR}/data": "not_finite"}, says=f"Entry {entry}: numbers are finite.")
        for wrong in (_NAN, _INF, -_INF)
        for dtype, at, entry in [("float32", 0, [0, 0]), ("float64", 5, [1, 1]),
                                 ("float32", 7, [1, 3])]
    ),
    asked("NaN in two entries", {_TENSOR: packed("float32", [2, 4], [_NAN, *range(6), _NAN])},
          {f"{_TENSOR}/data": "not_finite"}, more=True),
    *(
        asked(f"{wrong} in float64 at {entry}", {_TENSOR: _numbers("float64", at, wrong)},
              {f"{_TENSOR}/data": "overflow"}, "invalid-input",
              says=f"Entry {entry}: This number is beyond the range of float32.")
        for wrong, at, entry in [(1e39, 0, [0, 0]), (-3.5e38, 6, [1, 2]), (1e308, 7, [1, 3])]
    ),
    asked("overflow in a weight", {_W: packed("float64", [2, 4, 2], [1e39] + [0] * 15)},
          {f"{_W}/data": "overflow"}, "shape-mismatch", says="Entry [0, 0, 0]"),
    asked("overflow in an edit", {**_SET, _VALUE: packed("float64", [1, 2, 4], [0] * 7 + [1e39])},
          {f"{_VALUE}/data": "overflow"}, "shape-mismatch", says="Entry [0, 1, 3]"),
    asked("NaN in a weight", {_W: packed("float32", [16], [_NAN] + [0] * 15)},
          {f"{_W}/data": "not_finite"}, says="Entry [0]"),
    asked("infinity in an edit", {**_SET, _VALUE: packed("float32", [1], [_INF])},
          {f"{_VALUE}/data": "not_finite"}),
]  # fmt: skip

SHAPES = [
    asked("rows too short for d_model", {_TENSOR: packed("float32", [2, 3], range(6))},
          "shape_mismatch", "invalid-input", says="d_model = 4"),
    asked("weight of another shape", {_W: packed("float32", [4, 4], range(16))},
          "shape_mismatch", "shape-mismatch", says="(head, d_model, d_head)"),
    asked("weight of four axes", {_W: packed("float32", [1, 1, 4, 4], range(16))},
          {f"{_W}/shape": "rank_mismatch"}),
    asked("unknown weight", {"/model/weights/tensors": {MARK: _GOOD}},
          {f"/model/weights/tensors/{MARK}": "unknown_tensor"}, "shape-mismatch"),
    asked("value of another shape", {**_SET, _VALUE: packed("float32", [2], [1, 2])},
          "shape_mismatch", "shape-mismatch", says="[1, 2, 4]"),
    asked("value of four axes", {**_SET, _VALUE: packed("float32", [1, 1, 1, 1], [1])},
          {f"{_VALUE}/shape": "rank_mismatch"}),
    asked("packed tensors in a list", {_TENSOR: [_GOOD]}, "rank_mismatch"),
    asked("packed rows in a list", {_TENSOR: [_GOOD, [1, 2, 3, 4]]}, more=True,
          faults={f"{_TENSOR}/0": "wrong_type"}),
    asked("packed row among rows", {_TENSOR: [[1, 2, 3, 4], _GOOD]},
          {f"{_TENSOR}/1": "wrong_type"}),
    asked("packed number among numbers", {f"{_TENSOR}/1/2": _GOOD}, "wrong_type"),
    asked("packed shape and data", {_TENSOR: {**_GOOD, "shape": _GOOD}},
          {f"{_TENSOR}/shape": "list_type"}),
    asked("packed and text", {"/input/tensor": _GOOD, "/input/text": MARK},
          {"/input": "exactly_one"}),
    asked("more positions than may be", {_TENSOR: packed("float32", [4097, 4], [0] * 16388)},
          {_TENSOR: "beyond_limit"}, "beyond-limit", says="positions"),
    asked("more inputs than may be", {_TENSOR: packed("float32", [65, 1, 4], [0] * 260)},
          {_TENSOR: "beyond_limit"}, "beyond-limit", says="batch"),
]  # fmt: skip

_ids = partial(asked, base=TOKENS)
IDS = [
    *(_ids(f"ids of {dtype}", {_IDS: packed(dtype, [3], [0, 1, 2])}, {f"{_IDS}/dtype":
           "literal_error"}, says="'int32'") for dtype in ("float32", "float64", "bool")),
    *(_ids(f"{dtype} id of {wrong}", {_IDS: packed(dtype, [3], [0, wrong, 2])},
           {f"{_IDS}/data": "out_of_range"}, says="Entry [1]: numbers are 0 to 2^53 here.")
      for dtype, wrong in [("int32", -1), ("int64", -1), ("int32", -(1 << 31)),
                           ("int64", (1 << 53) + 1), ("int64", (1 << 63) - 1),
                           ("int64", -(1 << 63))]),
    *(_ids(f"{dtype} id of {wrong} of a vocabulary of 5", {_IDS: packed(dtype, [3], [0, 1, wrong])},
           {f"{_IDS}/data": "out_of_vocabulary"}, "invalid-input", says="Entry [2]")
      for dtype, wrong in [("int32", 5), ("int64", 1 << 53)]),
    _ids("id of a batch out of the vocabulary", {_IDS: packed("int32", [2, 2], [0, 1, 9, 2])},
         {f"{_IDS}/data": "out_of_vocabulary"}, "invalid-input", says="Entry [1, 0]"),
    _ids("ids of three axes", {_IDS: {**_THREE, "shape": [1, 1, 3]}},
         {f"{_IDS}/shape": "rank_mismatch"}),
    _ids("ids for another number of bytes", {_IDS: {**_THREE, "dtype": "int32"}},
         {f"{_IDS}/data": "wrong_length"}, says="12 bytes, 16 characters"),
    _ids("position ids of floats", {_PLACES: packed("float32", [3], [0, 1, 2])},
         {f"{_PLACES}/dtype": "literal_error"}),
    _ids("position id below zero", {_PLACES: packed("int32", [3], [0, -1, 2])},
         {f"{_PLACES}/data": "out_of_range"}, says="Entry [1]"),
    _ids("position ids of another length", {_PLACES: packed("int32", [2], [0, 1])},
         "shape_mismatch", "invalid-input", says="[3]"),
    asked("position id beyond the table", {_PLACES: packed("int64", [3], [0, 11, 2])},
          {f"{_PLACES}/data": "out_of_positions"}, "invalid-input", base=LETTERS, says="Entry [1]"),
]  # fmt: skip

MASKS = [
    *(asked(f"key mask of {dtype}", {_KEYS: packed(dtype, [2], [0, 1])},
            {f"{_KEYS}/dtype": "literal_error"}, says="'bool'")
      for dtype in ("float32", "int32", "int64")),
    asked("byte 2 in a mask", {_KEYS: packed("bool", [2], [1, 2])}, {f"{_KEYS}/data":
          "out_of_range"}, says="Entry [1]: a byte of a boolean is 0 or 1."),
    asked("byte 255 in a mask", {_PAIRS: packed("bool", [2, 2], [1, 1, 255, 1])},
          {f"{_PAIRS}/data": "out_of_range"}, says="Entry [1, 0]"),
    asked("key mask of bits", {_KEYS: packed("bool", [16], [1, 0])}, {f"{_KEYS}/data":
          "wrong_length"}, says="16 bytes"),
    asked("key mask of three axes", {_KEYS: packed("bool", [1, 1, 2], [1, 1])},
          {f"{_KEYS}/shape": "rank_mismatch"}),
    asked("key mask of another length", {_KEYS: packed("bool", [3], [1] * 3)}, "shape_mismatch",
          "invalid-input", says="[2]"),
    asked("attention mask of one axis", {_PAIRS: packed("bool", [4], [1] * 4)},
          {f"{_PAIRS}/shape": "rank_mismatch"}),
    asked("attention mask of another length", {_PAIRS: packed("bool", [3, 3], [1] * 9)},
          "shape_mismatch", "invalid-input", says="[2, 2]"),
]  # fmt: skip
