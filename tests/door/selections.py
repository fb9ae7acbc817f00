"""Selections that name what is unknown or absent, or slice what is not there."""

from collections.abc import Mapping

from door.case import MARK, TOKENS, Case, asked

_NONE = {"kind": "none"}
_CROSSED = {
    "/model/config/cross_attention": True,
    "/input/memory": {"tensor": [[1, 2, 3, 4]] * 3},
}
_ENCODER = {**_CROSSED, "/model/config/encoder": {"attention": {"n_heads": 1}, "n_layers": 2}}
_MIXED = {"/model/config/ffn": {"kind": "moe", "n_experts": 3, "top_k": 2}}
_BATCH = {"/input/tensor": [[[1, 2, 3, 4]]] * 2}
_DEEP = {"/model/config/n_layers": 3}


def _select(name: str, select: object, at: str, code: str, says: str = "",
            before: Mapping[str, object] = {}) -> Case:  # fmt: skip
    """A select with a fault at a place in it; `before` changes the good request."""
    changes = {**before, "/select": select}
    return asked(name, changes, {f"/select{at}": code}, "invalid-selection", says=says)


UNKNOWN = [
    *(
        _select(f"stage called {name!r}", ["X", name], "/1", "unknown_stage", says)
        for name, says in [
            (MARK, "The catalogue of stages lists them all."),
            ("attn.patern", "Near it: attn.pattern"), ("ATTN.PATTERN", "attn.pattern"),
            ("a", "Near it: A."), ("blocks.0.attn.zz", "Near it:"), ("pattern ", "Near it:"),
            ("blocks.1.A", "the blocks are 0 to 0"), ("blocks.-1.A", "the blocks are 0 to 0"),
            ("blocks.00.A", "the blocks are 0 to 0"), ("blocks.x.A", "blocks are"),
            ("blocks.", ""), ("blocks..", ""), ("blocks..A", "the blocks are 0 to 0"),
            ("blocks.99999999999999999999.A", "the blocks are 0 to 0"), ("BLOCKS.0.A", ""),
            ("blocks.0.logits", "belongs to the model"),
            ("blocks.*.logits", "belongs to the model"),
            ("blocks.0.embed", "belongs to the model"), ("encoder", ""), ("encoder.", ""),
            *((f"encoder.{name}", "This model has no encoder.")
              for name in ("blocks.0.embed", "patern", "attn.z", "blocks.0.A", "embed")),
            ("scale", "norm1.scale, norm1_post.scale, norm2.scale"),
            ("hook_scale", "ln1.hook_scale, ln1_post.hook_scale, ln2.hook_scale"), ("W_Q", ""),
            ("0", ""), (" ", ""),
            (".", ""), ("A.", ""), ("hook_normalized_resid_post", "post-norm configs only"),
            ("$.tensors", ""), ("[A]", ""), ("A?", ""), ("(a+)+$", ""), ("\0", ""), ("Α", ""),
            ("Δ", ""), ("blocks.0.attn.pattern.0", ""), ("../A", ""), ("__class__", ""),
        ]
    ),
    *(
        _select(f"encoder's stage called {name!r}", [name], "/0", "unknown_stage", says, _ENCODER)
        for name, says in [("encoder.blocks.0.embed", "belongs to the model"),
                           ("encoder.blocks.2.A", "the blocks are 0 to 1"),
                           ("encoder.attn.patern", "attn.pattern"),
                           ("encoder.encoder.A", ""), ("blocks.1.encoder.A", "")]
    ),
    *(
        _select(f"wildcard {name!r} without a match", [name], "/0", "unknown_stage", says)
        for name, says in [
            ("*.x", ""), ("x*", ""), ("blocks.7.*", "the blocks are 0 to 0"), ("blocks.*.x*", ""),
            (f"*{MARK}*", ""), ("*?*", ""), ("*[a]*", ""), ("*.*.*.*.*.*", ""), ("*a*b*c*d*e*", ""),
            ("*" * 126 + "Xq", ""), ("blocks.x*.A", "the blocks are 0 to 0"),
        ]
    ),
    asked("two unknown stages and a known one", {"/select": [MARK, "A", "zz"]},
          {"/select/0": "unknown_stage", "/select/2": "unknown_stage"}, "invalid-selection"),
]  # fmt: skip

ABSENT = [
    *(
        _select(f"{name} where {why}", [name], "/0", "stage_absent", says, before)
        for name, why, says, before in [
            ("logits", "no vocab is", "vocab", {}), ("embed", "no vocab is", "token", {}),
            ("pos_embed", "no positions are", "position", {}),
            ("final_norm.out", "no final norm is", "final_norm", {}),
            ("ffn.gate", "the ffn is an mlp", "gated", {}),
            ("embed", "a tensor is read", "token", {"": TOKENS, "/input": {"tensor": [[1] * 4]}}),
            ("pos_embed", "positions turn", "position",
             {"/model/config/position": {"kind": "rope"}}),
            ("norm1.out", "no norm is", "norm", {"/model/config/norm": _NONE}),
            ("blocks.*.norm2.scale", "no norm is", "norm", {"/model/config/norm": _NONE}),
            ("ffn_out", "no ffn is", "ffn", {"/model/config/ffn": _NONE}),
            ("blocks.0.ffn.hidden", "no ffn is", "ffn", {"/model/config/ffn": _NONE}),
            ("A", "no attention is", "attention", {"/model/config/attention": _NONE}),
            ("head_out", "no attention is", "attention", {"/model/config/attention": _NONE}),
            ("attn.q_rot", "nothing turns", "rope", {}),
            ("attn.k_rot", "nothing turns", "rope", {}),
            ("cross.pattern", "nothing crosses", "cross_attention = false", {}),
            ("encoder.cross.z", "an encoder reads", "cross_attention = false", _ENCODER),
            ("encoder.logits", "an encoder reads", "no vocab", _ENCODER),
            ("cross.out_raw", "nothing follows", "it is cross_out", _CROSSED),
            ("attn.out_raw", "nothing follows", "it is attn_out", {}),
            ("norm1_post.out", "norms stand before", "norm.placement = pre", {}),
            ("norm1.out", "norms stand behind", "norm.placement = output",
             {"/model/config/norm": {"placement": "output"}}),
            ("norm2.out", "one norm is shared", "norm.shared = true",
             {"/model/config/topology": "parallel", "/model/config/norm": {"shared": True}}),
            ("resid_mid", "parts are parallel", "both read resid_pre",
             {"/model/config/topology": "parallel"}),
            ("attn.sink", "no sinks are", "attention.sinks = false", {}),
            ("attn.q_norm", "queries are not normed", "attention.qk_norm = none", {}),
            ("ffn.router", "the ffn is an mlp", "has no experts", {}),
            ("ffn.shared_out", "no expert is shared", "d_shared", _MIXED),
            ("ffn.up", "experts are", "moe", _MIXED),
            ("type_embed", "no types are", "no token types", {}),
            ("embed_norm.out", "the embedding is not normed", "embed_norm = false", {}),
            ("mlm_head.up", "no mlm head is", "mlm_head = false", {}),
            ("logits", "nothing is read out", "readout = false",
             {"": TOKENS, "/model/config/readout": False}),
        ]
    ),
]  # fmt: skip

SLICES = [
    *(
        _select(f"{name} cut along {axis}", [{"name": name, axis: [0]}], f"/0/{axis}",
                "no_such_axis", says)
        for name, axis, says in [
            ("A", "d_model", "head, position, key_position"), ("A", "kv_head", "its axes are"),
            ("A", "batch", "its axes are"), ("A", "vocabulary", "its axes are"),
            ("Z", "head", "position, d_model"), ("Z", "d_ff", ""), ("K", "head", "kv_head"),
            ("K", "position", "key_position"), ("V", "d_head", "d_value"), ("Q", "d_value", ""),
            ("ffn.hidden", "d_model", "d_ff"), ("norm1.scale", "d_model", "position"),
            ("head_out", "key_position", ""), ("blocks.0.resid_post", "head", ""),
        ]
    ),
    *(
        _select(f"index {index} of {axis}", [{"name": "A", axis: [0, index]}], f"/0/{axis}/1",
                "index_out_of_range", says)
        for axis, index, says in [
            ("head", 2, "head has 2 entries in attn.pattern: 0 to 1"), ("head", -3, "0 to 1"),
            ("position", 2, "position has 2 entries"), ("position", -3, "from the end"),
            ("key_position", 2, "key_position has 2"), ("head", 1 << 31, "0 to 1"),
            ("head", -(1 << 31), "0 to 1"),
        ]
    ),
    *(
        _select(f"{name} cut along {axis}", [{"name": name, axis: [0]}], f"/0/{axis}",
                "no_such_axis", says, before)
        for name, axis, says, before in [
            ("cross.pattern", "key_position", "head, position, source_position", _CROSSED),
            ("cross.k", "position", "kv_head, source_position", _CROSSED),
            ("encoder.A", "source_position", "head, position, key_position", _ENCODER),
            ("ffn.experts", "expert", "position, choice", _MIXED),
            ("ffn.router", "choice", "position, expert", _MIXED),
        ]
    ),
    *(
        _select(f"index {index} of {name}'s {axis}", [{"name": name, axis: [index]}],
                f"/0/{axis}/0", "index_out_of_range", says, before)
        for name, axis, index, says, before in [
            ("cross.pattern", "source_position", 3, "0 to 2", _CROSSED),
            ("cross.pattern", "position", 2, "0 to 1", _CROSSED),
            ("encoder.A", "position", 3, "0 to 2", _ENCODER),
            ("encoder.A", "head", 1, "head has 1", _ENCODER),
            ("ffn.experts", "choice", 2, "0 to 1", _MIXED),
            ("ffn.router", "expert", -4, "0 to 2", _MIXED),
        ]
    ),
    _select("row of a batch that is not there", [{"name": "A", "batch": [2]}], "/0/batch/0",
            "index_out_of_range", "batch has 2 entries", before=_BATCH),
    _select("token out of the vocabulary", [{"name": "logits", "vocabulary": [5]}],
            "/0/vocabulary/0", "index_out_of_range", "0 to 4", before={"": TOKENS}),
    asked("three indices out of range",
          {"/select": [{"name": "A", "head": [5, 0, -7], "position": [9]}]},
          {"/select/0/head/0": "index_out_of_range", "/select/0/head/2": "index_out_of_range",
           "/select/0/position/0": "index_out_of_range"}, "invalid-selection"),
    asked("wildcard with an axis some lack", {"/select": [{"name": "attn.*", "position": [0]}]},
          {"/select/0/position": "no_such_axis"}, "invalid-selection", more=True,
          says="A wildcard met it"),
    _select("source_out without position", ["attn.source_out"], "/0", "position_needed",
            "say which in position"),
    _select("source_out cut along heads alone", [{"name": "source_out", "head": [0]}], "/0",
            "position_needed"),
    _select("source_out at a position that is not there", [{"name": "source_out",
            "position": [2]}], "/0/position/0", "index_out_of_range"),
]  # fmt: skip

TWICE = [
    *(
        _select(f"one stage twice: {name}", list(pair), "/1", "selected_twice",
                "is selected twice", before=before)
        for name, pair, before in [
            ("whole and cut", ("A", {"name": "A", "head": [0]}), {}),
            ("cut in two ways", ({"name": "A", "head": [0]}, {"name": "A", "head": [1]}), {}),
            ("whole and summed up", ("A", {"name": "A", "summary": True}), {}),
            ("by name and by alias", ("attn.pattern", {"name": "hook_pattern", "head": [0]}), {}),
            ("bare and of a block", ("A", {"name": "blocks.2.A", "head": [0]}), _DEEP),
        ]
    ),
    _select("one stage of an encoder twice", ["encoder.A", {"name": "encoder.blocks.1.A",
            "head": [0]}], "/1", "selected_twice", "is selected twice", before=_ENCODER),
    asked("one stage twice: met by a wildcard",
          {**_DEEP, "/select": ["blocks.*.resid_*", {"name": "Z", "position": [0]}]},
          {"/select/1": "selected_twice"}, "invalid-selection", more=True),
]  # fmt: skip
