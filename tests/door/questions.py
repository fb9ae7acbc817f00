"""Contributions, subspaces and derivatives that have no answer."""

from functools import partial

from door import calls
from door.case import GONE, MARK, NUMBER

_split = partial(calls.split, problem="unanswerable")
_along = partial(calls.along, problem="unanswerable")
_POST = {"/model/config/norm": {"placement": "post"}}
_BARE = {"/model": {"config": {"d_model": 4, "attention": {"n_heads": 2}}},
         "/input": {"tensor": [[NUMBER, 1, 2, 3]]}}  # fmt: skip

SUMS = [
    *(
        _along(f"contributions to {of!r}", {"/of": of}, code, says=says)
        for of, code, says in [
            (MARK, "unknown_stage", "No stage is called so."),
            ("blocks.2.resid_post", "unknown_stage", ""),
            ("resid_post", "several_stages", "name one, of one block"),
            ("*", "several_stages", ""), ("blocks.1.*", "several_stages", ""),
            ("blocks.1.attn.pattern", "not_a_sum", "ask for a state or an update"),
            ("blocks.1.attn.z", "not_a_sum", ""), ("embed", "not_a_sum", ""),
            ("blocks.0.cross_out", "stage_absent", ""),
            ("blocks.0.attn_sum", "stage_absent", ""),
        ]
    ),
    _along("contributions to a state of a post-norm stack", _POST, {"/of": "sum_does_not_hold"},
           says="do not add up"),
    _along("contributions to logits along nothing", {"/of": "logits", "/direction": None},
           "direction_needed"),
]  # fmt: skip
ROWS = [
    *(
        _split(f"contributions at {positions}", {"/positions": positions},
               {f"/positions/{at}": "index_out_of_range"})
        for positions, at in (([3], 0), ([-4], 0), ([0, 1, 1 << 31], 2), ([0, -(1 << 31)], 1))
    ),
    _split("contributions of a row of no batch", {"/batch": [0]}, "no_batch"),
    _split("contributions of a row outside", {"/input/text": ["CAB", "BAC"], "/batch": [0, 2]},
           {"/batch/1": "index_out_of_range"}),
]  # fmt: skip
DIRECTIONS = [
    *(
        _split(f"direction: {key} = {token!r}", {f"/direction/{key}": token}, code)
        for key in ("token", "minus")
        for token, code in [(MARK, "not_one_token"), ("AB", "not_one_token"),
                            (" ", "not_one_token"), (4, "out_of_vocabulary"),
                            ((1 << 31) - 1, "out_of_vocabulary")]
    ),
    _along("direction of a text without a tokenizer", {"/direction": {"token": MARK}},
           {"/direction/token": "no_tokenizer"}),
    _along("direction of a token without a vocabulary", {**_BARE, "/of": None, "/direction": {
        "token": 1}}, {"/direction/token": "no_vocab"}),
    _along("direction of a token that is not read out", {
        "/model/config/readout": False, "/direction": {"token": 1}},
        {"/direction/token": "stage_absent"}),
    _along("direction of a token behind an activation", {
        "/model/config/mlm_head": True, "/direction": {"token": 1}},
        {"/direction/token": "not_linear"}),
    *(
        _along(f"direction of {len(vector)} numbers", {"/direction/vector": vector}, "wrong_length",
               says="d_model = 4")
        for vector in ([NUMBER], [NUMBER] * 3, [NUMBER] * 5, [NUMBER] * 10_000)
    ),
    *(
        calls.along(f"direction {name}", {"/direction/vector": value},
                    {f"/direction/vector{at}": code})
        for name, value, at, code in [
            ("of text", MARK, "", "rank_mismatch"), ("of a number", NUMBER, "", "rank_mismatch"),
            ("of nothing", [], "", "empty"), ("two deep", [[1, 2, 3, 4]], "", "rank_mismatch"),
            ("with null", [1, None, 3, 4], "/1", "wrong_type"),
            ("with true", [1, 2, 3, True], "/3", "wrong_type"),
            ("of bytes that are NaN", {"dtype": "float32", "shape": [1], "data": "AADAfw=="},
             "/data", "not_finite"),
            ("of bytes too few", {"dtype": "float64", "shape": [4], "data": "AADAfw=="}, "/data",
             "wrong_length"),
        ]
    ),
    _along("lens along a vector before the norm", {"/norm_scale": "recomputed"},
           {"/direction/vector": "not_read_out"}),
    _split("lens by heads", {"/norm_scale": "recomputed"}, {"/by": "not_linear"}),
    _along("lens of an update", {"/norm_scale": "recomputed", "/of": "blocks.0.attn_out",
           "/direction": {"token": 1}}, {"/of": "not_a_state"}, more=True),
]  # fmt: skip

_circuits = partial(calls.circuits, problem="unanswerable")
HEADS = [
    *(
        _circuits(f"{key} of {head}", {f"/{key}": [head]}, {
            f"/{key}/0/{name}": "index_out_of_range" for name in wrong})
        for key in ("heads", "readers")
        for head, wrong in [
            ({"block": 2, "head": 0}, ["block"]), ({"block": -3, "head": 0}, ["block"]),
            ({"block": 0, "head": 2}, ["head"]), ({"block": 9, "head": -9}, ["block", "head"]),
            ({"block": (1 << 31) - 1, "head": 0}, ["block"]),
        ]
    ),
    _circuits("head twice", {"/heads": [{"block": 0, "head": 1}, {"block": -2, "head": -1}]},
              {"/heads/1": "repeated"}),
    _circuits("reader twice", {"/readers": [{"block": 0, "head": 1}] * 2},
              {"/readers/1": "repeated"}),
    *(
        calls.circuits(f"{key}: {value!r}"[:40], {f"/{key}": value}, code, says=says)
        for key in ("heads", "readers")
        for value, code, says in [
            ("All", "list_type", ""), ("", "list_type", ""), ([], "too_short", ""),
            ([{"block": 0, "head": 0}] * 8193, "too_long", "At most 8192"),
        ]
    ),
    calls.circuits("257 tokens", {"/tokens": [0] * 257}, "too_long", says="At most 256"),
    calls.circuits("no token", {"/tokens": []}, "too_short"),
    calls.circuits("asks of nothing", {"/ask": []}, "too_short"),
    calls.circuits("33 asks", {"/ask": ["qk"] * 33}, "too_long"),
    _circuits("heads of no attention", {"/model": {"config": {
        "d_model": 4, "attention": {"kind": "none"}}}}, {"/model": "no_heads"}),
    _circuits("networks that are not there", {"/model/config/ffn": {"kind": "none"},
              "/ask": ["ffn", "qk"]}, {"/ask/0": "no_ffn"}),
    _circuits("copying of what reads nothing out", {"/model/config/readout": False,
              "/ask": ["qk", "token_copying"]}, {"/ask/1": "no_readout"}),
    _circuits("tokens of no vocabulary", {"/model/config/vocab": None}, {"/tokens": "no_vocab"}),
    _circuits("ov of what reads nothing out", {"/model/config/readout": False, "/ask": ["ov"]},
              {"/tokens": "no_readout"}),
    _circuits("four tokens that are none", {"/tokens": [5, 0, MARK, 99]}, {
        "/tokens/0": "out_of_vocabulary", "/tokens/2": "no_tokenizer",
        "/tokens/3": "out_of_vocabulary"}),
    calls.circuits("every pair of 8,192 heads", {
        "/model": {"config": {"d_model": 128, "n_layers": 64, "attention": {
            "n_heads": 128, "d_head": 1}}},
        "/heads": "all", "/readers": "all", "/tokens": None,
        "/ask": ["overlap", "angles", "composition"]}, {}, "beyond-limit", more=True),
    calls.circuits("bases of wide heads", {
        "/model": {"config": {"d_model": 8192, "n_layers": 8, "attention": {"n_heads": 8}}},
        "/heads": "all", "/readers": "all", "/tokens": None, "/ask": ["basis"]}, {},
        "beyond-limit", more=True),
]  # fmt: skip

_derived = partial(calls.derived, problem="unanswerable")
_slope = partial(calls.gradients, problem="unanswerable")
DERIVATIVES = [
    *(
        _derived(f"derivative: {key} is {name!r}", {f"/{key}": name}, code, says=says)
        for key in ("of", "by")
        for name, code, says in [
            (MARK, "unknown_stage", ""), ("resid_post", "several_stages", "name one, of one block"),
            ("*", "several_stages", ""), ("blocks.2.resid_pre", "unknown_stage", ""),
            ("blocks.0.ffn.gate", "stage_absent", ""),
            ("blocks.0.attn.pattern", "no_such_axis", "the axes position and one more"),
            ("blocks.0.attn.head_out", "no_such_axis", ""),
        ]
    ),
    _derived("derivative by what comes later", {"/of": "blocks.0.resid_pre", "/by":
             "blocks.1.resid_post"}, "computed_later", says="exchange of and by"),
    _derived("derivative of two stages that are none", {"/of": MARK, "/by": MARK}, {
        "/of": "unknown_stage", "/by": "unknown_stage"}),
    *(
        _derived(f"derivative: {key} = {at}", {f"/{key}": at}, "index_out_of_range")
        for key in ("position", "source", "batch") for at in (3, -4, 1 << 31)
    ),
    *(
        _derived(f"derivative: position = {at} and no source", {"/source": GONE, "/position": at},
                 "index_out_of_range")
        for at in (3, -4)
    ),
    *(
        _slope(f"gradients of a measure {name}", {"/measure": value}, {f"/measure{at}": code})
        for name, value, at, code in [
            ("of a token without a vocabulary", {"logit": 9}, "/logit", "out_of_vocabulary"),
            ("of a position outside", {"logit": 1, "position": 9}, "/position",
             "index_out_of_range"),
            ("along a short direction", {"stage": "blocks.0.resid_post", "direction": [NUMBER]},
             "/direction", "shape_mismatch"),
        ]
    ),
    *(
        calls.gradients(f"gradients of {select}", {"/gradients": select},
                        {f"/gradients/{at}": code}, problem)
        for select, at, code, problem in [
            ([MARK], "0", "unknown_stage", "invalid-selection"),
            (["Z", "cross.z"], "1", "stage_absent", "invalid-selection"),
            ([{"name": "Z", "position": [9]}], "0/position/0", "index_out_of_range",
             "invalid-selection"),
            (["attn.source_out"], "0", "position_needed", "invalid-selection"),
            (["attn.head_out"], "0", "no_gradient", "unanswerable"),
            (["final_norm.out"], "0", "no_gradient", "unanswerable"),
            ([{"name": "Z", "batch": [0]}], "0/batch", "no_such_axis", "invalid-selection"),
        ]
    ),
    calls.gradients("no gradients", {"/gradients": []}, "too_short"),
    calls.gradients("1,001 gradients", {"/gradients": ["Z"] * 1001}, "too_long"),
    calls.gradients("a thousand gradients of stars", {"/gradients": ["*a" * 60] * 1000}, {},
                    "invalid-selection", more=True),
    calls.derived("seven parts", {"/ask": ["norms"] * 7}, "too_long"),
    calls.derived("no parts", {"/ask": []}, "too_short"),
    calls.derived("matrix of 8,192 by 8,192", {
        "/model/config": {"d_model": 8192, "attention": {"n_heads": 64}, "vocab": 5},
        "/of": "blocks.0.resid_post", "/ask": ["matrix"]}, {}, "beyond-limit", more=True),
]  # fmt: skip
