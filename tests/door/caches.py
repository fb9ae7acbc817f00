"""Caches that do not fit their model, their rows or themselves, and steps that cannot be made."""

from functools import partial
from typing import Any

from door import calls
from door.case import MARK, NUMBER, Case

_K, _V = "/cache/blocks.0.attn.k", "/cache/blocks.0.attn.v"
_refused = partial(calls.decode, problem="unanswerable")


def _heads(*shape: int) -> object:
    return NUMBER if not shape else [_heads(*shape[1:])] * shape[0]


def _bytes(shape: list[int], data: str, dtype: str = "float32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data": data}


_GOOD_BYTES = "AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8="
FITS = [
    *(
        _refused(f"cached {key} of the shape {list(shape)}",
                 {f"/cache/blocks.0.attn.{key}": _heads(*shape)}, "shape_mismatch",
                 says="has the shape [2, 2, 2]")
        for key in "kv"
        for shape in ((1, 2, 2), (2, 1, 2), (2, 2, 1), (2, 2, 3), (3, 2, 2), (2, 3, 2),
                      (1, 2, 2, 2))
    ),
    _refused("keys and values of other shapes", {_K: _heads(1, 1, 1), _V: _heads(3, 3, 3)},
             {_K: "shape_mismatch", _V: "shape_mismatch"}),
    _refused("three position ids of two rows", {"/cache/position_ids": [0, 1, 2]}, {
        _K: "shape_mismatch", _V: "shape_mismatch", "/cache/key_mask": "shape_mismatch"}),
    _refused("position ids of a batch", {"/cache/position_ids": [[0, 1]]}, "shape_mismatch"),
    _refused("mask of one of two rows", {"/cache/key_mask": [True]}, "shape_mismatch"),
    _refused("mask of a batch", {"/cache/key_mask": [[True, True]]}, "shape_mismatch"),
    _refused("cache of another dtype", {"/cache/dtype": "float64"}, "other_dtype"),
    _refused("request of another dtype", {"/dtype": "float64"}, {"/cache/dtype": "other_dtype"}),
    *(
        _refused(f"cache of another model, {name}", changes, {"/cache/digest": "other_model"},
                 says="made by another model")
        for name, changes in [
            ("its digest", {}), ("its digest of zeros", {"/cache/digest": "sha256:" + "0" * 64}),
            ("its seed", {"/model/weights": {"seed": 3}}),
            ("its keys as bytes", {_K: _bytes([2, 2, 2], _GOOD_BYTES)}),
        ]
    ),
    _refused("cache of one block of two", {"/model/config/n_layers": 2}, {
        "/cache/blocks.1.attn.k": "missing", "/cache/blocks.1.attn.v": "missing"}),
    _refused("cache of a model without attention", {"/model/config": {
        "d_model": 4, "attention": {"kind": "none"}}}, {_K: "unknown_key", _V: "unknown_key"}),
    _refused("keys beyond float32", {_K: [[[1, 1e39], [1, 1]], [[1, 1], [1, 1]]]},
             {f"{_K}/0/0/1": "overflow"}),
    _refused("cache and rows of a batch", {"/input/tensor": [[[1, 2, 3, 4]]] * 2}, {
        _K: "shape_mismatch", _V: "shape_mismatch"}, says="[2, 2, 2, 2]"),
]  # fmt: skip

_invalid = calls.decode
FORMS = [
    *(
        _invalid(f"cached keys {name}", {_K: value}, {f"{_K}{at}": code})
        for name, value, at, code in [
            ("of text", MARK, "", "rank_mismatch"), ("of a number", NUMBER, "", "rank_mismatch"),
            ("of null", None, "", "rank_mismatch"), ("of two axes", [[1]], "", "rank_mismatch"),
            ("of five axes", [[[[[1]]]]], "", "rank_mismatch"), ("of nothing", [], "", "empty"),
            ("of empty lists", [[[]]], "/0/0", "empty"),
            ("ragged", [[[1, 2], [3]]], "/0/1", "ragged"),
            ("with a text", [[[1, MARK]]], "/0/0/1", "wrong_type"),
            ("with null", [[[None]]], "/0/0/0", "wrong_type"),
            ("with true", [[[True]]], "/0/0/0", "wrong_type"),
            ("of bytes too few", _bytes([2, 2, 2], "AACAPw=="), "/data", "wrong_length"),
            ("of bytes too many", _bytes([1, 1, 1], _GOOD_BYTES), "/data", "wrong_length"),
            ("of bytes that are NaN", _bytes([1, 1, 1], "AADAfw=="), "/data", "not_finite"),
            ("of bytes that are infinite", _bytes([1, 1, 1], "AACAfw=="), "/data", "not_finite"),
            ("of bytes of the URL alphabet", _bytes([1, 1, 1], "__-_Pw=="), "/data", "not_base64"),
            ("of bytes with a line break", _bytes([1, 1, 1], "AACA\nw=="), "/data", "not_base64"),
            ("of bytes without padding", _bytes([1, 1, 1], "AACAPw"), "/data", "wrong_length"),
            ("of 2^93 numbers", _bytes([1 << 31] * 3, "AACAPw=="), "/data", "wrong_length"),
            ("of a length of 2^31 + 1", _bytes([1, 1, (1 << 31) + 1], "AACAPw=="), "/shape/2",
             "less_than_equal"),
            ("of a length of 0", _bytes([1, 0, 1], ""), "/shape/1", "greater_than_equal"),
            ("of a length of -1", _bytes([1, -1, 1], ""), "/shape/1", "greater_than_equal"),
            ("of bytes of two axes", _bytes([1, 1], "AACAPw=="), "/shape", "rank_mismatch"),
            ("of bytes of five axes", _bytes([1] * 5, "AACAPw=="), "/shape", "rank_mismatch"),
            ("of bytes of nine axes", _bytes([1] * 9, "AACAPw=="), "/shape", "too_long"),
            ("of float16", _bytes([1, 1, 1], "AAA=", "float16"), "/dtype", "literal_error"),
            ("of int32", _bytes([1, 1, 1], "AACAPw==", "int32"), "/dtype", "literal_error"),
            ("of a shape that is text", {**_bytes([1], "AA=="), "shape": MARK}, "/shape",
             "list_type"),
            ("of bytes that are numbers", {**_bytes([1, 1, 1], "AA=="), "data": [1]}, "/data",
             "string_type"),
            ("of an unknown key", {**_bytes([1, 1, 1], "AACAPw=="), MARK: 1}, f"/{MARK}",
             "extra_forbidden"),
        ]
    ),
    *(
        _invalid(f"cached position ids {name}", {"/cache/position_ids": value},
                 {f"/cache/position_ids{at}": code})
        for name, value, at, code in [
            ("of text", MARK, "", "rank_mismatch"), ("of nothing", [], "", "empty"),
            ("with -1", [0, -1], "/1", "out_of_range"),
            ("with 2^53 + 1", [0, (1 << 53) + 1], "/1", "out_of_range"),
            ("with a half", [0, 0.5], "/1", "wrong_type"),
            ("three deep", [[[0]]], "", "rank_mismatch"), ("of null", None, "", "rank_mismatch"),
            ("of bytes of -1", _bytes([1], "/////w==", "int32"), "/data", "out_of_range"),
        ]
    ),
    *(
        _invalid(f"cached mask {name}", {"/cache/key_mask": value}, {f"/cache/key_mask{at}": code})
        for name, value, at, code in [
            ("of text", MARK, "", "rank_mismatch"), ("of a number", [True, 1], "/1", "wrong_type"),
            ("of nothing", [], "", "empty"),
            ("of bytes of 2", _bytes([1], "Ag==", "bool"), "/data", "out_of_range"),
        ]
    ),
    *(
        _invalid(f"cached digest {value!r}", {"/cache/digest": value},
                 {"/cache/digest": "wrong_form"})
        for value in ("", MARK, "sha256:", "sha256:" + "G" * 64, "sha256:" + "0" * 63,
                      "sha256:" + "0" * 65, "md5:" + "0" * 64, "sha256:" + "0" * 64 + "\n")
    ),
]  # fmt: skip

_ENDLESS: dict[str, Any] = {
    "/model": {"config": {"d_model": 4, "vocab": 5, "attention": {"n_heads": 2}}},
    "/input": {"token_ids": [0]},
}
"""A model whose positions are no table's."""


def _step(name: str, changes: dict[str, Any], at: str, code: str, says: str = "") -> Case:
    return calls.greedy(name, changes, {at: code}, "unanswerable", says=says)


STEPS = [
    _refused("step after rows of numbers", {"/steps": 1}, {"/steps": "no_tokens"}, more=True),
    _step("step of a mask that looks ahead", {"/model/config": {"attention": {"mask": "full"}}},
          "/model", "not_causal"),
    _step("step behind a last row that is masked", {"/input/key_mask": [True, True, False]},
          "/input/key_mask", "masked_last", "pad on the left"),
    _step("step of what reads nothing out", {"/model/config": {"readout": False}}, "/steps",
          "no_readout"),
    _step("step beyond the table of positions", {"/steps": 65536}, "/steps", "out_of_positions",
          "8 are left"),
    *(
        calls.greedy(f"{steps} steps after {rows} rows", {
            **_ENDLESS, "/input": {"token_ids": [0] * rows}, "/steps": steps}, "beyond_limit",
            "beyond-limit", says="positions")
        for steps, rows in ((65536, 1), (4096, 1), (1, 4096), (4000, 97))
    ),
    calls.greedy("stage that is none", {"/select": [MARK]}, {"/select/0": "unknown_stage"},
                 "invalid-selection"),
    calls.greedy("row that later steps lack", {"/select": [{"name": "Z", "position": [2]}]},
                 {"/select/0/position/0": "index_out_of_range"}, "invalid-selection",
                 says="Each step after the first runs one row."),
    calls.greedy("logits of every step of a large vocabulary", {
        "/model": {"config": {"d_model": 4, "vocab": 100_000, "attention": {"n_heads": 1}}},
        "/input": {"token_ids": [0]}, "/steps": 2000}, {}, "beyond-limit", more=True),
    calls.greedy("everything of every step", {
        **_ENDLESS, "/select": ["*"], "/steps": 4000}, {}, "beyond-limit", more=True),
    calls.greedy("text that is no token", {"/input": {"text": MARK}}, {"/input/text":
                 "out_of_vocabulary"}, "invalid-input", more=True),
    calls.decode("cache of 4,096 rows", {
        "/cache/position_ids": list(range(4096)), "/cache/key_mask": None,
        _K: _heads(2, 4096, 2), _V: _heads(2, 4096, 2)}, {"/cache/position_ids": "beyond_limit"},
        "beyond-limit", says="positions"),
    calls.decode("position ids to the end", {"/cache/position_ids": [0, 1 << 53]}, {
        "/cache/position_ids": "out_of_positions"}, "unanswerable", says="end at 2^53"),
]  # fmt: skip
