"""Rotations at positions, of pairs and blocks that are not there; orders that permute nothing."""

from functools import partial

from door import calls
from door.case import MARK, NUMBER, Case

_pair = partial(calls.pair, problem="unanswerable")
_turned = partial(calls.turned, problem="unanswerable")

POSITIONS = [
    calls.pair(f"positions {name}", {"/positions": value}, {f"/positions{at}": code})
    for name, value, at, code in [
        ("of none", [], "", "too_short"), ("of 1,025", [0] * 1025, "", "too_long"),
        ("of a million", [0] * 10**6, "", "too_long"), ("with -1", [0, -1], "/1",
        "greater_than_equal"),
        ("with a half", [0, 0.5], "/1", "int_type"), ("with a text", [0, MARK], "/1", "int_type"),
        ("with null", [None, 1], "/0", "int_type"), ("with a list", [0, [1]], "/1", "int_type"),
        ("with true", [True, 1], "/0", "int_type"),
        ("with 2^31 + 1", [0, (1 << 31) + 1], "/1", "less_than_equal"),
        ("of an object", {"dtype": "int64", "shape": [1], "data": "AAAAAAAAAAA="}, "", "list_type"),
    ]
] + [
    calls.pair("positions with four that are none", {"/positions": [True, None, 1.5, MARK]},
               {f"/positions/{at}": "int_type" for at in range(4)}),
]  # fmt: skip
VECTORS = [
    *(
        calls.pair(f"vectors {name}", {"/vectors": value}, {f"/vectors{at}": code})
        for name, value, at, code in [
            ("of text", MARK, "", "rank_mismatch"), ("of one deep", [1, 0], "", "rank_mismatch"),
            ("three deep", [[[1, 0]]], "", "rank_mismatch"), ("of nothing", [], "", "empty"),
            ("ragged", [[1, 0], [1]], "/1", "ragged"), ("with null", [[1, None], [1, 0]], "/0/1",
            "wrong_type"), ("with a text", [[1, 0], [1, MARK]], "/1/1", "wrong_type"),
            ("of bytes that are NaN", {"dtype": "float32", "shape": [2, 1],
             "data": "AADAfwAAAAA="}, "/data", "not_finite"),
            ("of whole bytes", {"dtype": "int32", "shape": [2, 1], "data": "AADAfwAAwH8="},
             "/dtype", "literal_error"),
        ]
    ),
    _pair("vectors of three coordinates", {"/vectors": [[NUMBER] * 3] * 2}, "shape_mismatch",
          says="2 numbers each"),
    _pair("vectors of one coordinate", {"/vectors": [[NUMBER]] * 2}, "shape_mismatch"),
    calls.spectrum("vectors too short for a head", {"/vectors": [[NUMBER] * 2] * 2},
                   "shape_mismatch", "unanswerable", says="8 numbers each"),
    _turned("vectors too long for a block", {"/vectors": [[NUMBER] * 999] * 2}, "shape_mismatch"),
]  # fmt: skip


def _spectrum(name: str, changes: dict[str, object], wrong: str, code: str = "config_rule") -> Case:
    placed = {f"/spectrum/{key}": value for key, value in changes.items()}
    faults = {f"/spectrum/{wrong}": code}
    return calls.spectrum(f"spectrum of {name}", placed, faults, "config-rule")


_YARN = {"kind": "yarn", "factor": 2, "original_positions": 64}
SPECTRA = [
    _spectrum("an odd head", {"d_head": 7}, "rotary_dim"),
    _spectrum("one coordinate", {"d_head": 1}, "rotary_dim"),
    _spectrum("an odd rotary_dim", {"rotary_dim": 3}, "rotary_dim"),
    _spectrum("more turned than there are", {"rotary_dim": 10}, "rotary_dim"),
    _spectrum("yarn without its positions", {"scaling": {"kind": "yarn", "factor": 2}},
              "scaling/original_positions", "missing"),
    _spectrum("linear without factor", {"scaling": {"kind": "linear"}}, "scaling/factor",
              "missing"),
    _spectrum("no scaling with a factor", {"scaling": {"factor": 2}}, "scaling/factor"),
    _spectrum("linear with yarn's fields", {"scaling": {**_YARN, "kind": "linear"}},
              "scaling/original_positions"),
    _spectrum("betas the wrong way round", {"scaling": {**_YARN, "beta_fast": 1, "beta_slow": 32}},
              "scaling/beta_fast"),
    calls.spectrum("spectrum of a million coordinates, 1,024 times", {
        "/positions": list(range(1024)), "/spectrum/d_head": 1 << 20}, {}, "beyond-limit",
        more=True),
    calls.spectrum("spectrum of a million coordinates", {"/spectrum/d_head": 1 << 20}, {},
                   "beyond-limit", more=True),
]  # fmt: skip
BLOCKS = [
    *(
        _turned(f"block {at} of two", {"/block": at}, "index_out_of_range", says="2 blocks")
        for at in (2, -3, 1 << 31, -(1 << 31))
    ),
    _turned("model that does not turn", {"/model": {"name": "letter-sort"}, "/block": 0},
            {"/model": "nothing_turns"}),
    _turned("model without attention", {"/model": {"config": {"d_model": 4, "attention": {
        "kind": "none"}}}, "/block": 0}, {"/model": "nothing_turns"}),
    _turned("block whose theta is null", {"/model": {"config": {
        "d_model": 4, "attention": {"n_heads": 2}, "position": {"kind": "rope"}, "n_layers": 2,
        "layers": [{"theta": None}, {}]}}, "/block": 0}, {"/model": "nothing_turns"}),
    calls.turned("unknown model that turns", {"/model/name": MARK}, "unknown_model",
                 "unknown-model"),
    calls.turned("model of 8,193 coordinates", {"/model": {"config": {
        "d_model": 8193, "attention": {"n_heads": 1}}}}, {"/model/config/d_model": "beyond_limit"},
        "beyond-limit"),
    calls.turned("model that breaks a rule", {"/model": {"config": {
        "d_model": 5, "attention": {"n_heads": 2}}}}, {"/model/config/attention/n_heads":
        "config_rule"}, "config-rule"),
]  # fmt: skip

_order = partial(calls.permuted, problem="unanswerable", says="each number from 0 to 2 once")
ORDERS = [
    *(
        _order(f"permutation {value} of three rows", {"/permutation": value}, "not_a_permutation")
        for value in ([0], [0, 1], [0, 1, 2, 3], [0, 0, 1], [2, 2, 2], [0, 1, 3], [1, 2, 3],
                      [0, 1, 1 << 53], list(range(100)))
    ),
    _order("permutation of bytes", {"/permutation": {
        "dtype": "int32", "shape": [3], "data": "AAAAAAEAAAABAAAA"}}, "not_a_permutation"),
    *(
        calls.permuted(f"permutation {name}", {"/permutation": value},
                       {f"/permutation{at}": code})
        for name, value, at, code in [
            ("with -1", [0, 1, -1], "/2", "out_of_range"),
            ("with 2^53 + 1", [0, 1, (1 << 53) + 1], "/2", "out_of_range"),
            ("with a half", [0, 1, 0.5], "/2", "wrong_type"),
            ("with 1.0", [0, 1.0, 2], "/1", "wrong_type"),
            ("with true", [0, True, 2], "/1", "wrong_type"),
            ("with a text", [0, MARK, 2], "/1", "wrong_type"),
            ("of text", MARK, "", "rank_mismatch"), ("of nothing", [], "", "empty"),
            ("two deep", [[0, 1, 2]], "", "rank_mismatch"), ("of a number", 1, "", "rank_mismatch"),
            ("of bytes of floats", {"dtype": "float32", "shape": [3], "data": "AAAA"}, "/dtype",
             "literal_error"),
            ("of bytes of -1", {"dtype": "int32", "shape": [1], "data": "/////w=="}, "/data",
             "out_of_range"),
        ]
    ),
]  # fmt: skip
COMPARED = [
    *(
        calls.permuted(f"equivariance of {select}", {"/select": select}, {f"/select/{at}": code},
                       "invalid-selection")
        for select, at, code in [
            ([MARK], 0, "unknown_stage"), (["Z", "attn.zz"], 1, "unknown_stage"),
            (["cross.z"], 0, "stage_absent"), (["blocks.2.attn.z"], 0, "unknown_stage"),
            (["attn.source_out"], 0, "position_needed"),
        ]
    ),
    calls.permuted("equivariance of nothing", {"/select": []}, "too_short"),
    calls.permuted("equivariance of 1,001 stages", {"/select": ["Z"] * 1001}, "too_long"),
    calls.permuted("equivariance of an object", {"/select": [{"name": "Z"}]},
                   {"/select/0": "string_type"}),
    calls.permuted("equivariance of rows of another width", {"/input/tensor": [[NUMBER] * 5]},
                   "shape_mismatch", "invalid-input"),
    calls.permuted("equivariance of a token beyond", {"/input": {"token_ids": [0, 9]}},
                   {"/input/token_ids/1": "out_of_vocabulary"}, "invalid-input"),
    calls.permuted("equivariance of 4,096 positions of 64 heads", {
        "/model/config/d_model": 64, "/model/config/attention/n_heads": 64,
        "/input": {"token_ids": [0] * 4096}, "/permutation": None}, {}, "beyond-limit", more=True),
]  # fmt: skip
