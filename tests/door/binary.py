"""Requests in safetensors: headers that lie, names that are no places, tensors of another kind."""

import json
import struct
from collections.abc import Mapping
from functools import partial
from typing import Any, Unpack

from binary_bodies import SAFETENSORS, Entry, by_hand, framed
from door.case import EDIT, GOOD, MARK, NUMBER, TOKENS, Case, More, changed

_TENSOR, _IDS, _KEYS = "/input/tensor", "/input/token_ids", "/input/key_mask"
_W = "/model/weights/tensors/blocks.0.attn.W_Q"
_REST: dict[str, Any] = {"model": GOOD["model"]}
_NAN, _INF = float("nan"), float("inf")
_ROWS: Entry = ("F32", [2, 4], struct.pack("<8f", NUMBER, *range(7)))
_TWO = struct.pack("<2f", 1, 2)
_WHOLE = by_hand(_REST, {_TENSOR: _ROWS})


def _case(
    name: str,
    body: bytes,
    problem: str = "invalid-request",
    says: str = "",
    **more: Unpack[More],
) -> Case:
    return Case(
        name=name, problem=problem, says=says, body=lambda: body, headers=SAFETENSORS, **more
    )


def _bad(name: str, body: bytes, says: str = "", pointer: str = "") -> Case:
    return _case(name, body, "malformed-safetensors", says, faults=((pointer, "safetensors"),))


def _header(name: str, entry: object, says: str = "", pointer: str = _TENSOR) -> Case:
    """The good tensor under another description."""
    return _bad(name, by_hand(_REST, {_TENSOR: _ROWS}, **{_TENSOR: entry}), says, pointer)


def _described(**changes: object) -> dict[str, object]:
    return {"dtype": "F32", "shape": [2, 4], "data_offsets": [0, 32], **changes}


FRAMES = [
    *(_bad(f"{length} bytes", _WHOLE[:length], "cut short") for length in (0, 1, 7, 8, 9, 40)),
    _bad("tensors cut short", _WHOLE[:-1], "do not end where it ends"),
    _bad("bytes more than tensors", _WHOLE + b"z", "do not end where it ends"),
    _bad("header of 2^64 bytes", b"\xff" * 8 + _WHOLE[8:], "cut short"),
    *(_bad(f"header of {shown}", framed(text), "no object") for shown, text in
      [("a list", b"[]"), ("a number", b"1"), ("a text", b'"%b"' % MARK.encode()),
       ("null", b"null")]),
    *(_bad(f"metadata of {shown}", framed(json.dumps({"__metadata__": value}).encode()), says)
      for shown, value, says in [
          ("nothing", {}, "is needed"), ("another name", {MARK: "{}"}, "is needed"),
          ("null", None, "object of texts"), ("a text", MARK, "object of texts"),
          ("a list", [MARK], "object of texts"),
          ("an object", {"request": {}}, "object of texts")]),
    _bad("no metadata", framed(b"{}"), "is needed"),
    *(_case(f"header of {shown}", framed(text), "malformed-json", says)
      for shown, text, says in [
          ("no bytes", b"", "is empty"), ("no JSON", b'{"%b' % MARK.encode(), "is not JSON"),
          ("another encoding", b'{"\xff": 1}', "not UTF-8"),
          ("a name twice", b'{"%b": 1, "%b": 2}' % (MARK.encode(), MARK.encode()), "twice"),
          ("100,000 brackets", b"[" * 100_000, "nested too deep"), ("NaN", b'{"a": NaN}', "NaN")]),
    *(_case(f"request of {shown}", framed(json.dumps({"__metadata__": {"request": text}}).encode()),
            "malformed-json", says) for shown, text, says in [
          ("no text", "", "is empty"), ("no JSON", MARK, "in request, is not JSON"),
          ("a key twice", '{"a": 1, "a": 2}', "twice"), ("NaN", '{"a": NaN}', "NaN"),
          ("100,000 brackets", "[" * 100_000, "nested too deep")]),
    *(_case(f"request that is {text}", framed(json.dumps({"__metadata__": {"request": text}})
            .encode()), faults=(("", "model_type"),), more=True) for text in ("[]", "1", "null")),
]  # fmt: skip

HEADERS = [
    *(_header(f"entry of {shown}", entry, "must have dtype, shape and data_offsets")
      for shown, entry in [("null", []), ("a number", 5), ("a text", MARK), ("nothing", {}),
                           ("a key more", _described(order=1)),
                           ("other keys", {MARK: 1, "shape": [2, 4], "dtype": "F32"})]),
    *(_header(f"dtype {dtype!r}", _described(dtype=dtype), "of a dtype that is not read")
      for dtype in ("F8_E4M3", "float32", "f32", "", MARK, 32, None, ["F32"])),
    *(_header(f"shape {shape!r}", _described(shape=shape), "no list of at most 8 lengths")
      for shape in (8, None, "2, 4", [2, -4], [2, 4.0], [2, True], [2, "4"], [[2, 4]], [1] * 9,
                    [1 << 62, 0])),
    *(_header(f"shape {shape} of 8 numbers", _described(shape=shape), "bytes that its shape does")
      for shape in ([2, 3], [2, 5], [0, 4], [], [1 << 60] * 8)),
    *(_header(f"data_offsets {offsets!r}", _described(data_offsets=offsets), "two whole numbers")
      for offsets in (32, None, [], [0], [0, 16, 32], [0, 32.0], [True, 32], [-32, 0],
                      ["0", "32"])),
    _header("data_offsets backwards", _described(data_offsets=[32, 0]), "bytes that its shape"),
    *(_case(name, by_hand(_REST, {_TENSOR: _ROWS, _W: _ROWS}, **{
            _W: _described(data_offsets=[begin, begin + 32])}), "malformed-safetensors",
            "does not begin where", faults=((_W, "safetensors"), ("", "safetensors")))
      for name, begin in [("tensors that overlap", 16), ("bytes between tensors", 48),
                          ("tensors in one place", 0), ("data_offsets beyond the end", 1 << 61)]),
]  # fmt: skip


def _placed(
    name: str, at: str, pointer: str, code: str, says: str = "", rest: Mapping[str, Any] = GOOD
) -> Case:
    """A tensor more under a name."""
    return _case(name, by_hand(rest, {at: _ROWS}), says=says, faults=((pointer, code),))


_EDITED = changed(GOOD, {"/model/weights": {"edits": [{**EDIT, "op": "set"}]}})
_edited = partial(_placed, rest=_EDITED)  # type: ignore[arg-type] - an object
PLACES = [
    *(_placed(f"name {name!r}", name, "", "no_pointer", "JSON Pointer")
      for name in ("x", MARK, "input/tensor", "#/input/tensor", "/input/te~nsor", "/a~2", "/~",
                   "answer")),
    *(_bad(f"name {shown}", by_hand(GOOD, {name: _ROWS}), "printable")
      for shown, name in [("of nothing", ""), ("with a space", "/a b"), ("beyond ASCII", "/é"),
                          ("of 257 characters", "/" + "x" * 256)]),
    *(_placed(f"taken place {at}", at, at, "taken", "already")
      for at in (_TENSOR, "/model", "/input", "/model/config/d_model")),
    *(_placed(f"place {at}", at, pointer, "no_place", says) for at, pointer, says in [
          ("/model/config/d_model/x", "/model/config/d_model", "no object"),
          ("/input/tensor/0", "/input/tensor", "into this list"),
          ("/input/tensor/0/1", "/input/tensor/0", "into this list"),
          ("/input/tensor/-", "/input/tensor", "into this list"),
          ("/input/tensor/7/1", "/input/tensor", "into this list")]),
    *(_edited(f"place of an edit: {at}", f"/model/weights/edits{at}", f"/model/weights/edits{to}",
              "no_place") for at, to in [("/1/value", ""), ("/-/value", ""), ("/00/value", ""),
                                         ("/0", ""), ("/0/op/x", "/0/op")]),
    _case("a tensor inside another", by_hand(_REST, {"/input/tensor": _ROWS,
          "/input/tensor/x": _ROWS}), says="no object", faults=((_TENSOR, "no_place"),)),
    *(_case(f"tensor at {at}", by_hand(changed(GOOD, {}), {at: _ROWS}), faults=((at, code),),
            more=True) for at, code in [
          (f"/{MARK}", "extra_forbidden"), (f"/input/{MARK}", "extra_forbidden"),
          ("/select", "list_type"), ("/dtype", "literal_error"), ("/format", "model_type"),
          ("/identities", "bool_type"), ("/model/weights", "model_type"),
          ("/path", "literal_error"),
          ("/interventions", "list_type"), ("/model/config/ffn", "model_type"),
          ("/model/config/n_layers", "int_type"), ("/input/text", "text"),
          ("/model/config/residual_multiplier", "float_type")]),
    _case("tensors of no weight", by_hand(GOOD, {f"/model/weights/tensors/{MARK}": _ROWS}),
          "shape-mismatch", faults=((f"/model/weights/tensors/{MARK}", "unknown_tensor"),)),
]  # fmt: skip


def _tensor(
    name: str, at: str, entry: Entry, code: str, says: str = "", problem: str = "invalid-request"
) -> Case:
    base = TOKENS if at in (_IDS, "/input/position_ids") else GOOD
    rest = changed(base, {})
    if at != _KEYS and isinstance(rest, dict) and at.startswith("/input"):
        rest["input"].pop(at.rpartition("/")[2], None)
    return _case(name, by_hand(rest, {at: entry}), problem, says, faults=((at, code),))


def _wrong(at: int, wrong: float, code: str = "f") -> bytes:
    return struct.pack(f"<8{code}", *(wrong if i == at else 0.25 for i in range(8)))


TENSORS = [
    *(_tensor(f"numbers of {dtype}", _TENSOR, (dtype, [2, 4], bytes(8 * width)), "wrong_dtype",
              "F32 or F64 or F16 or BF16") for dtype, width in
      [("I64", 8), ("U64", 8), ("I32", 4), ("U32", 4), ("I16", 2), ("U16", 2), ("I8", 1), ("U8", 1),
       ("BOOL", 1)]),
    *(_tensor(f"ids of {dtype}", _IDS, (dtype, [2], bytes(2 * width)), "wrong_dtype", "I64")
      for dtype, width in [("F64", 8), ("F32", 4), ("F16", 2), ("BF16", 2), ("U64", 8), ("U32", 4),
                           ("I16", 2), ("U16", 2), ("I8", 1), ("BOOL", 1)]),
    *(_tensor(f"key mask of {dtype}", _KEYS, (dtype, [2], bytes(2 * width)), "wrong_dtype", "BOOL")
      for dtype, width in [("F32", 4), ("I64", 8), ("U8", 1)]),
    *(_tensor(f"{wrong} in {dtype} at {entry}", _TENSOR, (dtype, [2, 4], _wrong(at, wrong, code)),
              "not_finite", f"Entry {entry}: numbers are finite.")
      for wrong in (_NAN, _INF, -_INF) for dtype, code, at, entry in
      [("F32", "f", 0, [0, 0]), ("F64", "d", 5, [1, 1]), ("F16", "e", 7, [1, 3])]),
    *(_tensor(f"{bits:#x} in BF16", _TENSOR, ("BF16", [2, 4], struct.pack("<8H", *[0] * 7, bits)),
              "not_finite", "Entry [1, 3]") for bits in (0x7F80, 0xFF80, 0x7FC0, 0xFFFF)),
    *(_tensor(f"{wrong} in F64", _TENSOR, ("F64", [2, 4], _wrong(6, wrong, "d")), "overflow",
              "Entry [1, 2]", "invalid-input") for wrong in (1e39, -3.5e38, 1e308)),
    *(_tensor(f"{len(shape)} axes", _TENSOR, ("F32", shape, bytes(32)), "rank_mismatch", "2 or 3")
      for shape in ([8], [1, 1, 2, 4], [1, 1, 1, 2, 4])),
    _tensor("one number", _TENSOR, ("F32", [], bytes(4)), "rank_mismatch", "2 or 3"),
    *(_tensor(f"shape {shape}", _TENSOR, ("F32", shape, b""), "empty", "at least one entry")
      for shape in ([0, 4], [2, 0], [0, 0], [1, 0, 1 << 60])),
    _tensor("rows too short for d_model", _TENSOR, ("F32", [1, 2], _TWO), "shape_mismatch",
            "d_model = 4", "invalid-input"),
    _tensor("weight of another shape", _W, ("F32", [2], _TWO), "shape_mismatch", "(head, d_model",
            "shape-mismatch"),
    _tensor("NaN in a weight", _W, ("F32", [2], struct.pack("<2f", 1, _NAN)), "not_finite",
            "Entry [1]"),
    _tensor("overflow in a weight", _W, ("F64", [2, 4, 2], struct.pack("<16d", 1e39, *range(15))),
            "overflow", "Entry [0, 0, 0]", "shape-mismatch"),
    *(_tensor(f"{dtype} id of {wrong}", _IDS, (dtype, [3], struct.pack(f"<3{code}", 0, wrong, 2)),
              "out_of_range", "Entry [1]: numbers are 0 to 2^53 here.") for dtype, code, wrong in
      [("I32", "i", -1), ("I64", "q", -1), ("I64", "q", (1 << 53) + 1), ("I64", "q", -(1 << 63))]),
    *(_tensor(f"{dtype} id beyond the vocabulary", _IDS, (dtype, [3], struct.pack(f"<3{code}", 0, 1,
              9)), "out_of_vocabulary", "Entry [2]", "invalid-input")
      for dtype, code in [("I32", "i"), ("I64", "q"), ("U8", "B")]),
    _tensor("ids of three axes", _IDS, ("I64", [1, 1, 1], bytes(8)), "rank_mismatch", "1 or 2"),
    *(_tensor(f"byte {byte} in a mask", _KEYS, ("BOOL", [2], bytes([1, byte])), "out_of_range",
              "a byte of a boolean is 0 or 1") for byte in (2, 128, 255)),
    _tensor("key mask of another length", _KEYS, ("BOOL", [3], b"\1\1\1"), "shape_mismatch", "[2]",
            "invalid-input"),
    _tensor("more positions than may be", _TENSOR, ("F32", [4097, 4], bytes(4097 * 16)),
            "beyond_limit", "positions", "beyond-limit"),
]  # fmt: skip


def as_json(body: bytes) -> object:
    """The request of a body as JSON, null for each tensor: what pointers point into."""
    length = int.from_bytes(body[:8], "little")
    header = json.loads(body[8 : 8 + length])
    request: object = json.loads(header.pop("__metadata__")["request"])
    for name in header:
        try:
            request = changed(request, {name: None})  # type: ignore[arg-type] - an object
        except (AttributeError, IndexError, TypeError, ValueError):
            continue  # no place: it stands nowhere
    return request
