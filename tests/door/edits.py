"""Edits of what is not there, by indices that are not there, with values that do not fit."""

from collections.abc import Mapping
from typing import Any

from door.case import GONE, MARK, TOKENS, Case, asked

_AT = "/model/weights/edits/0"
_O, _IN = "blocks.0.attn.W_O", "blocks.0.ffn.b_in"


def _edit(name: str, edit: dict[str, Any], at: str, code: str, says: str = "", *,
          before: Mapping[str, object] = {}, problem: str = "shape-mismatch") -> Case:  # fmt: skip
    whole = {"tensor": _O, "op": "scale", "value": 2, **edit}
    kept = {key: value for key, value in whole.items() if value is not GONE}
    changes = {**before, "/model/weights": {"edits": [kept]}}
    return asked(name, changes, {f"{_AT}{at}": code}, problem, says=says)


_EVERYTHING = {
    "/model/config/token_types": 2,
    "/model/config/attention/sinks": True,
    "/model/config/ffn": {"kind": "moe", "n_experts": 3, "top_k": 1, "d_shared": 5},
    "/model/config/encoder": {"attention": {"n_heads": 1}, "position": {"kind": "t5_bias"}},
    "/input/memory": {"tensor": [[1, 2, 3, 4]]},
}
"""Makes the good request one whose model has tensors of most kinds."""

TENSORS = [
    *(
        _edit(f"edit of {name!r}", {"tensor": name}, "/tensor", "unknown_tensor", says)
        for name, says in [
            (MARK, "This config has no such tensor."), ("blocks.0.attn.W_o", "blocks.0.attn.W_O"),
            ("W_O", "no such tensor"), ("blocks.1.attn.W_O", "The blocks are 0 to 0."),
            ("blocks.*.attn.W_O", "The blocks are 0 to 0."), ("*", "no such tensor"),
            ("blocks.0.attn.b_O", "attention.bias"), ("embed.W_E", "vocab is given"),
            ("blocks.0.ffn.W_gate", "ffn.kind is gated"), ("A", "no such tensor"),
            ("blocks.0.attn.pattern", "no such tensor"), (" ", "no such tensor"),
        ]
    ),
    *(
        _edit(f"edit of {name!r}", {"tensor": name}, "/tensor", "unknown_tensor", says)
        for name, says in [
            ("encoder.blocks.0.attn.W_O", "no such tensor"),
            ("blocks.0.cross.W_O", "cross_attention is true"),
            ("blocks.0.ffn.W_router", "ffn.kind is moe"),
            ("blocks.0.attn.sinks", "attention.sinks is true"),
            ("type_embed.W_type", "token_types is given"), ("mlm_head.W", "mlm_head is true"),
            ("rel_bias.W_rel", "position.kind is t5_bias"),
            ("embed_norm.weight", "embed_norm is true"),
            ("blocks.0.norm1_post.weight", "norm.placement is sandwich or output"),
        ]
    ),
    _edit("encoder's embedding, which is the model's", {"tensor": "encoder.embed.W_E"}, "/tensor",
          "unknown_tensor", "", before={**_EVERYTHING, "/model/config/vocab": 5}),
    _edit("edit of an ffn that is off", {"tensor": _IN}, "/tensor", "unknown_tensor", "",
          before={"/model/config/ffn": {"kind": "none"}}),
    _edit("edit of attention that is off", {}, "/tensor", "unknown_tensor", "",
          before={"/model/config/attention": {"kind": "none"}}),
]  # fmt: skip

AXES = [
    *(
        _edit(f"edit of {tensor} along {axis}", {"tensor": tensor, "where": {axis: [0]}},
              f"/where/{axis}", "no_such_axis", says)
        for tensor, axis, says in [
            (_O, "d_head", "head, d_value, d_model"), (_O, "kv_head", "has the axes"),
            (_O, "position", ""), (_O, "d_ff", ""), (_IN, "d_model", "d_ff"),
            ("blocks.0.attn.W_K", "head", "kv_head, d_model, d_head"),
            ("blocks.0.norm1.weight", "head", "d_model"),
        ]
    ),
    *(
        _edit(f"edit of {tensor} along {axis}", {"tensor": tensor, "where": {axis: [0]}},
              f"/where/{axis}", "no_such_axis", says, before=_EVERYTHING)
        for tensor, axis, says in [
            ("blocks.0.ffn.W_in", "head", "expert, d_model, d_ff"),
            ("blocks.0.ffn.W_router", "d_ff", "d_model, expert"),
            ("blocks.0.ffn.W_shared_in", "expert", "d_model, d_shared"),
            ("blocks.0.attn.sinks", "d_head", "head"),
            ("blocks.0.cross.W_K", "head", "kv_head, d_model, d_head"),
            ("type_embed.W_type", "vocabulary", "token_type, d_model"),
            ("encoder.rel_bias.W_rel", "position", "bucket, head"),
        ]
    ),
    *(
        _edit(f"index {index} of {tensor}'s {axis}", {"tensor": tensor, "where": {axis: [index]}},
              f"/where/{axis}/0", "index_out_of_range", says, before=_EVERYTHING)
        for tensor, axis, index, says in [
            ("blocks.0.ffn.W_out", "expert", 3, "0 to 2"),
            ("blocks.0.ffn.W_shared_out", "d_shared", 5, "0 to 4"),
            ("type_embed.W_type", "token_type", 2, "0 to 1"),
            ("encoder.rel_bias.W_rel", "bucket", -33, "0 to 31"),
            ("encoder.blocks.0.attn.W_O", "head", 1, "0 to 0"),
        ]
    ),
    *(
        _edit(f"edit along {axis!r}", {"where": {axis: [0]}}, f"/where/{axis}", "literal_error",
              "", problem="invalid-request")
        for axis in (MARK, "heads", "Head", "", "0", "batch", "key_position", "n", "h", "d_model ")
    ),
    *(
        _edit(f"index {index} of {axis}", {"where": {axis: [0, index]}}, f"/where/{axis}/1",
              "index_out_of_range", says)
        for axis, index, says in [
            ("head", 2, "head has 2 entries in blocks.0.attn.W_O: 0 to 1"), ("head", -3, "0 to 1"),
            ("d_model", 4, "0 to 3"), ("d_model", -5, "0 to 3"), ("d_value", 2, "0 to 1"),
            ("head", 1 << 31, "0 to 1"), ("d_model", -(1 << 31), "0 to 3"),
        ]
    ),
    *(
        _edit(f"indices {indices} of head", {"where": {"head": indices}}, "/where/head",
              "index_twice", "stands here twice")
        for indices in ([0, 0], [1, -1], [0, 1, 0], [-2, 0], [0] * 8192)
    ),
    _edit("token that is not in the vocabulary", {"tensor": "embed.W_E",
          "where": {"vocabulary": [5]}}, "/where/vocabulary/0", "index_out_of_range", "0 to 4",
          before={"": TOKENS}),
    asked("two axes and an index at fault", {"/model/weights": {"edits": [{"tensor": _O,
          "where": {"head": [2], "d_ff": [0], "d_model": [1, 1]}, "op": "zero"}]}},
          {f"{_AT}/where/head/0": "index_out_of_range", f"{_AT}/where/d_ff": "no_such_axis",
           f"{_AT}/where/d_model": "index_twice"}, "shape-mismatch"),
]  # fmt: skip

VALUES = [
    *(
        _edit(f"{op} without a value", {"op": op, "value": GONE}, "", "edit_value",
              "scale, add and set need a value; zero takes none.", problem="invalid-request")
        for op in ("scale", "add", "set")
    ),
    _edit("scale by null", {"value": None}, "", "edit_value", "", problem="invalid-request"),
    _edit("zero with a value", {"op": "zero"}, "", "edit_value", "", problem="invalid-request"),
    _edit("zero with zero", {"op": "zero", "value": 0}, "", "edit_value", "",
          problem="invalid-request"),
    *(
        _edit(f"value of shape {shape}", {"where": {"head": [1]}, "value": value}, "/value",
              "shape_mismatch", "[1, 2, 4]")
        for shape, value in [("[1]", [1]), ("[4]", [1] * 4), ("[2, 4]", [[1] * 4] * 2),
                             ("[2, 2, 4]", [[[1] * 4] * 2] * 2), ("[1, 4, 2]", [[[1] * 2] * 4]),
                             ("[1, 1, 1]", [[[1]]])]
    ),
    _edit("value of a whole bias", {"tensor": _IN, "value": [1] * 4}, "/value", "shape_mismatch",
          "[16]"),
    asked("second edit at fault", {"/model/weights": {"edits": [
        {"tensor": _O, "op": "zero"}, {"tensor": _O, "op": "set", "value": [1]}]}},
        {"/model/weights/edits/1/value": "shape_mismatch"}, "shape-mismatch"),
    asked("tensor and edit at fault", {"/model/weights": {
        "tensors": {_IN: [1]}, "edits": [{"tensor": MARK, "op": "zero"}]}},
        {f"/model/weights/tensors/{_IN}": "shape_mismatch", f"{_AT}/tensor": "unknown_tensor"},
        "shape-mismatch"),
]  # fmt: skip
