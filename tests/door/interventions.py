"""Interventions and measures that cannot be made: stages, slices, values, other inputs, rows."""

from functools import partial
from typing import Any

from door import calls
from door.case import MARK, NUMBER, Case

_AT = "/interventions/0"
_PATCH = {**calls.CHANGE, "op": "patch", "from": {"token_ids": [1, 2, 3]}}
_wrong = partial(calls.intervened, problem="invalid-intervention")


def _change(name: str, changes: dict[str, Any], at: str, code: str, says: str = "") -> Case:
    """The intervention with other members, wrong at one of them."""
    placed = {f"{_AT}/{key}": value for key, value in changes.items()}
    return _wrong(f"intervention {name}", placed, {f"{_AT}{at}": code}, says=says)


STAGES = [
    *(
        _change(f"of {stage!r}", {"stage": stage, "where": {}}, "/stage", code, says)
        for stage, code, says in [
            (MARK, "unknown_stage", "No stage is called so."),
            ("attn.zz", "unknown_stage", "attn.z"),
            ("blocks.2.attn.z", "unknown_stage", ""),
            ("blocks.-1.attn.z", "unknown_stage", ""),
            ("z" + "*a" * 40, "unknown_stage", ""),
            ("attn.sink", "read_only", "cannot be changed"),
            ("attn.head_out", "read_only", "change attn.z"),
            ("attn.source_out", "read_only", "cannot be changed"),
            ("attn.dots", "read_only", "cannot be changed"),
            ("logit_lenses", "unknown_stage", "No stage is called so."),
            ("cross.z", "stage_absent", "This model has no cross.z"),
            ("ffn.gate", "stage_absent", "This model has no ffn.gate"),
            ("blocks.1.attn.out_raw", "stage_absent", "This model has no"),
            ("encoder.attn.z", "unknown_stage", ""),
        ]
    ),
    _change("of stages that are all absent", {"stage": "cross.*", "where": {}}, "/stage",
            "stage_absent"),
]  # fmt: skip

SLICES = [
    *(
        _change(f"at {where}", {"stage": stage, "where": where}, f"/where/{at}", code, says)
        for stage, where, at, code, says in [
            ("attn.z", {"vocabulary": [0]}, "vocabulary", "no_such_axis", "its axes are"),
            ("attn.z", {"batch": [0]}, "batch", "no_such_axis", "has no axis batch"),
            ("resid_mid", {"head": [0]}, "head", "no_such_axis", "has no axis head"),
            ("logits", {"block": [0]}, "block", "no_such_axis", "belongs to the model"),
            ("attn.z", {"block": [2]}, "block/0", "index_out_of_range", "0 to 1"),
            ("attn.z", {"block": [-3]}, "block/0", "index_out_of_range", ""),
            ("attn.z", {"block": [1 << 31]}, "block/0", "index_out_of_range", ""),
            ("blocks.0.attn.z", {"block": [1]}, "block", "no_such_block", "blocks 0 alone"),
            ("attn.z", {"head": [2]}, "head/0", "index_out_of_range", "0 to 1"),
            ("attn.z", {"head": [0, -5]}, "head/1", "index_out_of_range", ""),
            ("attn.z", {"position": [3]}, "position/0", "index_out_of_range", "0 to 2"),
            ("attn.z", {"head": [0, 0]}, "head", "index_twice", "twice"),
            ("attn.z", {"head": [1, -1]}, "head", "index_twice", "twice"),
            ("attn.z", {"block": [1, -1]}, "block", "index_twice", "twice"),
        ]
    ),
    _wrong("three slices that are wrong", {
        f"{_AT}/where": {"head": [7], "position": [9], "vocabulary": [0]}}, {
        f"{_AT}/where/head/0": "index_out_of_range",
        f"{_AT}/where/position/0": "index_out_of_range",
        f"{_AT}/where/vocabulary": "no_such_axis"}),
    _wrong("three interventions that are wrong", {
        "/interventions": [{"stage": stage, "op": "zero"} for stage in (MARK, "Z", "attn.sink")]
        + [{"stage": "Z", "op": "scale"}]}, {
        f"/interventions/{at}{key}": code for at, key, code in (
            (0, "/stage", "unknown_stage"), (2, "/stage", "read_only"), (3, "", "value_needed"))}),
]  # fmt: skip

MEMBERS = [
    *(
        _change(f"{op} without value", {"op": op}, "", "value_needed", f"{op} needs value.")
        for op in ("scale", "add", "set")
    ),
    _change("patch without from", {"op": "patch"}, "", "from_needed", "patch needs from."),
    *(
        _change(f"{op} with value", {**more, "op": op, "value": NUMBER}, "/value", "value_unused",
                f"{op} takes no value.")
        for op, more in (("zero", {}), ("mean", {}), ("patch", {"from": {"token_ids": [1, 2, 3]}}))
    ),
    *(
        _change(f"{op} with from", {"op": op, "from": {"token_ids": [1, 2, 3]}, **more}, "/from",
                "from_unused", f"{op} takes no from.")
        for op, more in (("zero", {}), ("scale", {"value": 2}), ("set", {"value": 1}))
    ),
    *(
        _change(f"{op} with over", {"op": op, "over": ["position"], **more}, "/over",
                "over_unused", f"{op} takes no over.")
        for op, more in (("zero", {}), ("add", {"value": 2}))
    ),
    _change("mean over an axis that is not there", {"op": "mean", "over": ["vocabulary"]},
            "/over", "no_such_axis"),
    _change("mean over a batch of none", {"op": "mean", "over": ["batch"]}, "/over",
            "no_such_axis"),
]  # fmt: skip

_SET = {f"{_AT}/op": "set"}
VALUES = [
    *(
        _wrong(f"value {name}", {**_SET, f"{_AT}/value": value}, "shape_mismatch")
        for name, value in [("of a row too long", [NUMBER] * 5), ("of two rows", [[NUMBER]] * 2),
                            ("nested too deep", [[[[NUMBER]]]])]
    ),
    _wrong("value beyond float32", {**_SET, f"{_AT}/value": 1e39}, "overflow"),
    _wrong("row beyond float32", {**_SET, f"{_AT}/value": [[[1, 1e300]]]},
           {f"{_AT}/value/0/0/1": "overflow"}),
    _wrong("bytes beyond float32", {**_SET, f"{_AT}/value": {
        "dtype": "float64", "shape": [1], "data": "oMLr/ktIt1E="}},
        {f"{_AT}/value/data": "overflow"}),
    *(
        calls.intervened(f"value {name}", {**_SET, f"{_AT}/value": value},
                         {f"{_AT}/value{at}": code})
        for name, value, at, code in [
            ("of text", MARK, "", "wrong_type"), ("of true", True, "", "wrong_type"),
            ("of nothing", [], "", "empty"), ("ragged", [[1, 2], [3]], "/1", "ragged"),
            ("of null inside", [[None]], "/0/0", "wrong_type"),
            ("six deep", [[[[[[1]]]]]], "", "rank_mismatch"),
            ("of bytes that are NaN", {"dtype": "float32", "shape": [1], "data": "AADAfw=="},
             "/data", "not_finite"),
            ("of bytes too few", {"dtype": "float32", "shape": [2], "data": "AADAfw=="},
             "/data", "wrong_length"),
            ("of bytes of too many axes", {"dtype": "float32", "shape": [1] * 5,
             "data": "AACAPw=="}, "/shape", "rank_mismatch"),
            ("of bytes of whole numbers", {"dtype": "int64", "shape": [1], "data": "AA=="},
             "/dtype", "literal_error"),
            ("of 2^62 bytes", {"dtype": "float32", "shape": [1 << 31] * 2, "data": "AA=="},
             "/data", "wrong_length"),
        ]
    ),
]  # fmt: skip


def _donor(name: str, source: dict[str, Any], at: str, code: str, problem: str) -> Case:
    changes = {_AT: {**_PATCH, "from": source}}
    faults = {f"{_AT}/from{at}": code}
    return calls.intervened(f"other input {name}", changes, faults, problem)


DONORS = [
    _donor("is shorter", {"token_ids": [1, 2]}, "", "donor_mismatch", "invalid-intervention"),
    _donor("is longer", {"token_ids": [0] * 9}, "", "donor_mismatch", "invalid-intervention"),
    _donor("is a batch", {"token_ids": [[0] * 3] * 2}, "", "donor_mismatch",
           "invalid-intervention"),
    _donor("has other tokens", {"token_ids": [0, 1, 5]}, "/token_ids/2", "out_of_vocabulary",
           "invalid-input"),
    _donor("has rows of another width", {"tensor": [[NUMBER] * 5] * 3}, "/tensor",
           "shape_mismatch", "invalid-input"),
    _donor("is text without a tokenizer", {"text": MARK}, "/text", "no_tokenizer",
           "invalid-input"),
    _donor("has a mask of another length", {"token_ids": [0, 1, 2], "key_mask": [True]},
           "/key_mask", "shape_mismatch", "invalid-input"),
    _donor("has a memory that nothing reads", {"token_ids": [0, 1, 2], "memory": {
        "token_ids": [1]}}, "/memory", "no_cross_attention", "invalid-input"),
    _donor("has numbers beyond float32", {"tensor": [[1, 2, 3, 1e39]]}, "/tensor/0/3",
           "overflow", "invalid-input"),
    _donor("has 4,097 positions", {"token_ids": [0] * 4097}, "/token_ids", "beyond_limit",
           "beyond-limit"),
    _donor("has 65 rows", {"token_ids": [[0]] * 65}, "/token_ids", "beyond_limit",
           "beyond-limit"),
    _donor("has ids that are none", {"token_ids": [0, True, 2]}, "/token_ids/1", "wrong_type",
           "invalid-request"),
    _wrong("mean over a batch of an input without one", {_AT: {
        **_PATCH, "op": "mean", "over": ["batch"]}}, {f"{_AT}/from": "no_batch"}),
]  # fmt: skip

_M = "/measures/0"
_unanswerable = partial(calls.intervened, problem="unanswerable")
_ROW = {"stage": "blocks.1.resid_post", "direction": [NUMBER] * 4}
MEASURES = [
    *(
        _unanswerable(f"measure: {name}", {_M: value}, {f"{_M}{at}": code}, says=says)
        for name, value, at, code, says in [
            ("token 5 of 5", {"logit": 5}, "/logit", "out_of_vocabulary", "0 to 4"),
            ("largest token", {"logit": (1 << 31) - 1}, "/logit", "out_of_vocabulary", ""),
            ("minus a token beyond", {"logit": 1, "minus": 9}, "/minus", "out_of_vocabulary", ""),
            ("text without a tokenizer", {"logit": MARK}, "/logit", "no_tokenizer", ""),
            ("position 3 of 3", {"logit": 1, "position": 3}, "/position", "index_out_of_range", ""),
            ("position -4 of 3", {"logit": 1, "position": -4}, "/position", "index_out_of_range",
             "from the end"),
            ("batch 1 of none", {"logit": 1, "batch": 1}, "/batch", "index_out_of_range", ""),
            ("direction too short", {**_ROW, "direction": [NUMBER]}, "/direction",
             "shape_mismatch", "is 4 numbers"),
            ("direction too long", {**_ROW, "direction": [NUMBER] * 999}, "/direction",
             "shape_mismatch", "is 4 numbers"),
            ("stage that is none", {**_ROW, "stage": MARK}, "/stage", "unknown_stage", ""),
            ("stage of every block", {**_ROW, "stage": "resid_post"}, "/stage", "several_stages",
             "name one, of one block"),
            ("stages of stars", {**_ROW, "stage": "*"}, "/stage", "several_stages", ""),
            ("absent stage", {**_ROW, "stage": "blocks.0.ffn.gate"}, "/stage", "stage_absent", ""),
            ("stage of heads", {**_ROW, "stage": "blocks.0.attn.z"}, "/stage", "no_such_axis", ""),
            ("derived stage", {**_ROW, "stage": "blocks.0.attn.head_out"}, "/stage",
             "no_such_axis", ""),
        ]
    ),
    _unanswerable("measure: position and batch outside", {_M: {
        "logit": 1, "position": 8, "batch": -8}}, {
        f"{_M}/position": "index_out_of_range", f"{_M}/batch": "index_out_of_range"}),
    _unanswerable("measure: logit of what reads nothing out", {"/model/config/readout": False},
                  {_M: "no_readout"}),
    _unanswerable("measure: logit of a model of rows", {
        "/model/config/vocab": None, "/input": {"tensor": [[NUMBER] * 4]}}, {}, more=True),
]  # fmt: skip
_MANY = [{**calls.CHANGE, "where": {}}] * 65
SIZES = [
    calls.intervened("65 interventions", {"/interventions": _MANY}, "too_long", says="At most 64"),
    calls.intervened("17 measures", {"/measures": [{"logit": 1}] * 17}, "too_long",
                     says="At most 16"),
    calls.intervened("9 axes of a mean", {f"{_AT}/over": ["head"] * 9}, "too_long"),
    calls.intervened("no axis of a mean", {f"{_AT}/over": []}, "too_short"),
    _wrong("64 interventions of everything in 64 blocks", {
        "/model/config/n_layers": 64,
        "/interventions": [{"stage": "*", "op": "scale", "value": 1}] * 64}, {}, more=True,
        says="at most 4096 stages"),
    calls.intervened("25 other inputs of 4,096 tokens", {"/interventions": [
        {**_PATCH, "from": {"token_ids": [at // 5, at % 5] * 2048}, "where": {"position": [0]}}
        for at in range(25)], "/model/config/d_model": 256}, {}, "beyond-limit", more=True),
]  # fmt: skip
