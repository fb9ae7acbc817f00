"""Sweeps and comparisons that have no answer, and faults of the inputs and runs inside them."""

from functools import partial

from door import calls
from door.case import LETTERS, MARK, NUMBER

_sweep = partial(calls.sweep, problem="unanswerable")
_ablation = partial(calls.ablation, problem="unanswerable")

STAGES = [
    *(
        _sweep(f"sweep of {stage!r}", {"/stage": stage}, code, says=says)
        for stage, code, says in [
            (MARK, "unknown_stage", "No stage is called so."),
            ("attn.zz", "unknown_stage", "attn.z"),
            ("blocks.2.attn.z", "unknown_stage", ""),
            ("encoder.attn.z", "unknown_stage", ""),
            ("attn.*", "several_stages", "this name means several"),
            ("*", "several_stages", ""),
            ("head_out", "derived_stage", "Sweep one of"),
            ("attn.head_out", "derived_stage", "nothing goes on from it"),
            ("attn.source_out", "derived_stage", ""),
            ("attn.sink", "stage_absent", "This model has no attn.sink"),
            ("cross.z", "stage_absent", "This model has no cross.z"),
            ("ffn.gate", "stage_absent", "This model has no ffn.gate"),
        ]
    ),
    _sweep("sweep of a stage that nothing reads", {"/model/config/attention/sinks": True,
           "/stage": "attn.sink", "/over": ["head"]}, {"/stage": "read_only"}),
]  # fmt: skip
GRIDS = [
    *(
        _sweep(f"sweep over {over}, {where}", {"/over": over, "/where": where},
               {at: code}, says=says)
        for over, where, at, code, says in [
            (["batch"], {}, "/over/0", "no_such_axis", "goes over block, head, position"),
            (["head", "key_position"], {}, "/over/1", "no_such_axis", ""),
            (["head"], {"vocabulary": [0]}, "/where/vocabulary", "no_such_axis", ""),
            (["block"], {"block": [2]}, "/where/block/0", "index_out_of_range", "0 to 1"),
            (["block"], {"block": [0, -3]}, "/where/block/1", "index_out_of_range", ""),
            (["head"], {"head": [0, 2]}, "/where/head/1", "index_out_of_range", ""),
            (["head"], {"position": [3]}, "/where/position/0", "index_out_of_range", "0 to 2"),
            (["head"], {"d_value": [1 << 31]}, "/where/d_value/0", "index_out_of_range", ""),
        ]
    ),
    _sweep("sweep over three axes that are not there",
           {"/over": ["batch", "vocabulary"], "/where": {"choice": [0]}},
           {"/over/0": "no_such_axis", "/over/1": "no_such_axis", "/where/choice": "no_such_axis"}),
    _sweep("sweep over blocks of a stage of the model", {"/stage": "logits", "/over": ["block"]},
           {"/over/0": "no_such_axis"}),
    _sweep("sweep of a block that the stage does not name",
           {"/stage": "blocks.0.attn.z", "/where": {"block": [1]}}, {"/where/block/0":
           "wrong_block"}, says="stage names another block."),
    _sweep("slice with an entry twice", {"/over": ["head"], "/where": {"position": [0, 0]}},
           {"/where/position": "index_twice"}, says="twice"),
    calls.sweep("sweep over four axes", {"/over": ["block", "head", "position", "d_value"]},
                "too_long"),
    calls.sweep("sweep over nothing", {"/over": []}, "too_short"),
    calls.sweep("mean over nine axes", {"/mean_over": ["head"] * 9}, "too_long"),
]  # fmt: skip
CHANGES = [
    *(
        _ablation(f"sweep: {op} without value", {"/value": None, "/op": op}, {"": "value_needed"})
        for op in ("scale", "add", "set")
    ),
    *(
        _ablation(f"sweep: {op} with value", {"/op": op}, {"/value": "value_unused"})
        for op in ("zero", "mean")
    ),
    _ablation("sweep: add with mean_over", {"/mean_over": ["position"]}, "over_unused"),
    _ablation("sweep: mean over an axis that is not there", {
        "/op": "mean", "/value": None, "/mean_over": ["head"]}, "no_such_axis"),
    *(
        _ablation(f"sweep: value {name}", {"/value": value}, {f"/value{at}": code})
        for name, value, at, code in [
            ("of a row too long", [NUMBER] * 5, "", "shape_mismatch"),
            ("of two rows", [[NUMBER] * 4] * 2, "", "shape_mismatch"),
            ("beyond float32", 1e39, "", "overflow"),
            ("of a row beyond float32", [[1, 2, 3, -1e300]], "/0/3", "overflow"),
        ]
    ),
    _sweep("patch with value", {"/value": NUMBER}, "value_unused"),
    _sweep("patch with mean_over", {"/mean_over": ["head"]}, "over_unused"),
    *(
        calls.ablation(f"sweep: value {name}", {"/value": value}, {f"/value{at}": code})
        for name, value, at, code in [
            ("of text", MARK, "", "wrong_type"), ("of nothing", [], "", "empty"),
            ("six deep", [[[[[[1]]]]]], "", "rank_mismatch"),
            ("ragged", [[1], [1, 2]], "/1", "ragged"),
            ("of bytes that are NaN", {"dtype": "float32", "shape": [1], "data": "AADAfw=="},
             "/data", "not_finite"),
            ("of bytes of the URL alphabet", {"dtype": "float32", "shape": [1],
             "data": "__-_Pw=="}, "/data", "not_base64"),
        ]
    ),
]  # fmt: skip
INPUTS = [
    *(
        calls.sweep(f"{side} {name}", {f"/{side}": value}, {f"/{side}{at}": code}, problem)
        for side in ("clean", "corrupted")
        for name, value, at, code, problem in [
            ("has a token beyond", {"token_ids": [0, 1, 5]}, "/token_ids/2", "out_of_vocabulary",
             "invalid-input"),
            ("is text without a tokenizer", {"text": MARK}, "/text", "no_tokenizer",
             "invalid-input"),
            ("has rows of another width", {"tensor": [[NUMBER] * 3] * 3}, "/tensor",
             "shape_mismatch", "invalid-input"),
            ("has numbers beyond float32", {"tensor": [[1, 2, 3, 1e39]]}, "/tensor/0/3",
             "overflow", "invalid-input"),
            ("has types", {"token_ids": [0, 1, 2], "token_types": [0, 0, 0]}, "/token_types",
             "no_token_types", "invalid-input"),
            ("has a memory", {"token_ids": [0], "memory": {"token_ids": [1]}}, "/memory",
             "no_cross_attention", "invalid-input"),
            ("has 4,097 tokens", {"token_ids": [0] * 4097}, "/token_ids", "beyond_limit",
             "beyond-limit"),
            ("has 65 rows", {"token_ids": [[0]] * 65}, "/token_ids", "beyond_limit",
             "beyond-limit"),
            ("has ids of text", {"token_ids": ["A"]}, "/token_ids/0", "wrong_type",
             "invalid-request"),
        ]
    ),
    *(
        _sweep(f"corrupted {name}", {"/corrupted": value}, "shape_mismatch", says="the same shape")
        for name, value in [
            ("is shorter", {"token_ids": [0, 1]}), ("is longer", {"token_ids": [0] * 4}),
            ("is a batch", {"token_ids": [[0, 1, 2]]}),
            ("is rows, and clean tokens", {"tensor": [[NUMBER] * 4] * 3}),
        ]
    ),
    *(
        _sweep(f"sweep's measure {name}", {"/measure": value}, {f"/measure{at}": code})
        for name, value, at, code in [
            ("of a token beyond", {"logit": 5}, "/logit", "out_of_vocabulary"),
            ("of a text", {"logit": MARK}, "/logit", "no_tokenizer"),
            ("of a position outside", {"logit": 1, "position": 3}, "/position",
             "index_out_of_range"),
            ("of several stages", {"stage": "resid_post", "direction": [1]}, "/stage",
             "several_stages"),
            ("along a short direction", {"stage": "blocks.0.resid_post", "direction": [1]},
             "/direction", "shape_mismatch"),
        ]
    ),
    _sweep("measure of two tokens", {"/model": LETTERS["model"], "/clean": {"text": "CAB"},
           "/corrupted": {"text": "CBB"}, "/measure": {"logit": "AB"}},
           {"/measure/logit": "not_one_token"}, says="not one token"),
    _sweep("measure of a token that is none", {"/model": LETTERS["model"],
           "/clean": {"text": "CAB"}, "/corrupted": {"text": "CBB"}, "/measure":
           {"logit": "A", "minus": MARK}}, {"/measure/minus": "not_one_token"}),
]  # fmt: skip
SIZES = [
    calls.sweep(f"sweep of {name}", {**changes, "/measure": {"logit": 1}}, {}, "beyond-limit",
                more=True)
    for name, changes in [
        ("millions of cells", {
            "/model/config/d_model": 512, "/model/config/attention/n_heads": 64,
            "/clean/token_ids": [0] * 2048, "/corrupted/token_ids": [1] * 2048,
            "/over": ["block", "head", "position"]}),
        ("a grid of every score", {
            "/clean/token_ids": [0] * 1024, "/corrupted/token_ids": [1] * 1024,
            "/stage": "attn.scores", "/over": ["head", "position", "key_position"]}),
        ("8,192 heads again", {
            "/over": ["head", "block", "position"], "/where": {"head": [0, 1] * 4096,
            "block": [0, 1] * 4096, "position": [0] * 8192}}),
    ]
]  # fmt: skip


_ONE = "blocks.0.attn.z"
COMPARED = [
    calls.compare(f"{side}: {name}", {f"/{side}{key}": value}, {f"/{side}{at}": code}, problem)
    for side in ("a", "b")
    for name, key, value, at, code, problem in [
        ("unknown model", "/model", {"name": MARK}, "/model/name", "unknown_model",
         "unknown-model"),
        ("config that breaks a rule", "/model", {"config": {"d_model": 5, "attention": {
            "n_heads": 2}}}, "/model/config/attention/n_heads", "config_rule", "config-rule"),
        ("wide model", "/model", {"config": {"d_model": 8193, "attention": {"n_heads": 1}}},
         "/model/config/d_model", "beyond_limit", "beyond-limit"),
        ("unknown tensor", "/model/weights", {"tensors": {"X": [NUMBER]}},
         "/model/weights/tensors/X", "unknown_tensor", "shape-mismatch"),
        ("edit that does not fit", "/model/weights", {"edits": [{
            "tensor": "blocks.0.attn.W_O", "where": {"head": [99]}, "op": "zero"}]},
         "/model/weights/edits/0/where/head/0", "index_out_of_range", "shape-mismatch"),
        ("token beyond", "/input", {"token_ids": [9999]}, "/input/token_ids/0",
         "out_of_vocabulary", "invalid-input"),
        ("rows of another width", "/input", {"tensor": [[NUMBER]]}, "/input/tensor",
         "shape_mismatch", "invalid-input"),
        ("4,097 positions", "/input", {"token_ids": [0] * 4097}, "/input/token_ids",
         "beyond_limit", "beyond-limit"),
        ("unknown stage", "/select", ["Z", MARK], "/select/1", "unknown_stage",
         "invalid-selection"),
        ("absent stage", "/select", ["cross.z"], "/select/0", "stage_absent",
         "invalid-selection"),
        ("index outside", "/select", [{"name": "Z", "position": [9]}], "/select/0/position/0",
         "index_out_of_range", "invalid-selection"),
        ("unknown stage changed", "/interventions", [{"stage": MARK, "op": "zero"}],
         "/interventions/0/stage", "unknown_stage", "invalid-intervention"),
        ("value needed", "/interventions", [{"stage": _ONE, "op": "add"}], "/interventions/0",
         "value_needed", "invalid-intervention"),
        ("other input beyond", "/interventions", [{"stage": _ONE, "op": "patch", "from": {
            "token_ids": [0, 9999, 0]}}], "/interventions/0/from/token_ids/1",
         "out_of_vocabulary", "invalid-input"),
        ("no list of interventions", "/interventions", {}, "/interventions", "list_type",
         "invalid-request"),
        ("wrong entry of a measure", "/measures", [{"logit": True}], "/measures/0/logit",
         "wrong_type", "invalid-request"),
    ]
] + [
    calls.compare("faults in a and in b", {"/a/dtype": MARK, "/b/clean": MARK},
                  {"/a/dtype": "literal_error", "/b/clean": "bool_type"}),
]  # fmt: skip
