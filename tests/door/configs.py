"""Configs whose fields are well-formed and contradict each other."""

from collections.abc import Mapping
from typing import Any

from door.case import MARK, Case, asked

_NONE = {"kind": "none"}
_FFN, _POSITION = "/model/config/ffn", "/model/config/position"


def _rule(name: str, config: Mapping[str, Any], *wrong: str, says: str = "") -> Case:
    """A config that breaks a rule at each of these fields."""
    attention = config.get("attention", {"n_heads": 2})
    written = {"/model/config": {"d_model": 4, **config, "attention": attention}}
    faults = {f"/model/config/{field.replace('.', '/')}": "config_rule" for field in wrong}
    return asked(name, written, faults, "config-rule", says=says)


def _attention(**given: object) -> dict[str, object]:
    return {"attention": {"n_heads": 2, **given}}


HEADS = [
    _rule("3 heads of a width of 4", _attention(n_heads=3), "attention.n_heads",
          says="d_model = 4 is not divisible by n_heads = 3"),
    _rule("more heads than the width", _attention(n_heads=8), "attention.n_heads"),
    _rule("1,048,576 heads", _attention(n_heads=1 << 20), "attention.n_heads"),
    _rule("odd width of two heads", {"d_model": 5}, "attention.n_heads"),
    _rule("3 heads with 2 key heads", _attention(n_heads=3, n_kv_heads=2, d_head=2),
          "attention.n_kv_heads", says="n_heads = 3 is not a multiple of n_kv_heads = 2"),
    _rule("more key heads than heads", _attention(n_kv_heads=4), "attention.n_kv_heads"),
    _rule("heads and key heads, neither fits", _attention(n_heads=3, n_kv_heads=2),
          "attention.n_heads", "attention.n_kv_heads"),
    _rule("neither attention nor ffn", {"attention": _NONE, "ffn": _NONE}, "ffn.kind",
          says="A block needs attention, an ffn, or both."),
]  # fmt: skip

ROTARY = [
    *(
        _rule(f"rotary_dim {width} of heads of 2", {"position": {"kind": "rope",
              "rotary_dim": width}}, "position.rotary_dim", says="even and between 2 and")
        for width in (1, 3, 4, 1 << 20)
    ),
    _rule("rope in heads of 3", {**_attention(d_head=3), "position": {"kind": "rope"}},
          "position.rotary_dim", says="d_head = 3"),
    _rule("rope in heads of 1", {**_attention(d_head=1), "position": {"kind": "rope"}},
          "position.rotary_dim"),
    _rule("rope without attention", {"attention": _NONE, "position": {"kind": "rope"}},
          "position.kind", says="rope works inside attention, and there is none."),
    _rule("alibi without attention", {"attention": _NONE, "position": {"kind": "alibi"}},
          "position.kind", says="alibi works inside attention, and there is none."),
    _rule("rotary_dim without a d_head", {**_attention(n_heads=3), "position": {"kind": "rope"}},
          "attention.n_heads"),
    _rule("learned positions without their number", {"position": {"kind": "learned"}},
          "position.n_positions", says="need n_positions"),
]  # fmt: skip

OF_ANOTHER_KIND = [
    *(
        _rule(f"{field} where {part}.kind is {kind}", {part: {"kind": kind, field: value}},
              f"{part}.{field}", says=f"{part}.kind = {kind} has no {field}; leave it out.")
        for part, kind, field, value in [
            ("position", "none", "theta", 10), ("position", "none", "n_positions", 4),
            ("position", "none", "alibi_rule", "bloom"),
            ("position", "none", "pairing", "half"), ("position", "sinusoidal", "theta", 10),
            ("position", "sinusoidal", "n_positions", 4), ("position", "rope", "n_positions", 4),
            ("position", "rope", "alibi_rule", "bloom"), ("position", "alibi", "theta", 10),
            ("position", "alibi", "rotary_dim", 2), ("position", "alibi", "pairing", "half"),
            ("position", "alibi", "n_positions", 4), ("position", "none", "rotary_dim", None),
            ("ffn", "none", "d_ff", 3), ("ffn", "none", "activation", "relu"),
            ("ffn", "none", "bias", False),
            ("norm", "none", "eps", 0.1), ("norm", "none", "gain_offset", 1),
            ("attention", "none", "n_heads", 2), ("attention", "none", "d_head", 2),
            ("attention", "none", "mask", "full"), ("attention", "none", "window", 2),
            ("attention", "none", "bias", True), ("attention", "none", "scale", 1),
            ("attention", "none", "n_kv_heads", 1), ("attention", "none", "d_value", 1),
            ("attention", "none", "softcap", 3), ("attention", "none", "qk_norm", "head"),
            ("attention", "none", "sinks", True), ("ffn", "mlp", "n_experts", 4),
            ("ffn", "mlp", "top_k", 2), ("ffn", "gated", "expert", "mlp"),
            ("ffn", "gated", "renormalize", False), ("ffn", "mlp", "router_bias", True),
            ("ffn", "mlp", "d_shared", 2), ("ffn", "mlp", "shared_gate", False),
            ("norm", "none", "bias", True), ("norm", "none", "shared", False),
            ("norm", "rmsnorm", "bias", True), ("position", "alibi", "scaling", {}),
            ("position", "rope", "n_buckets", 8), ("position", "rope", "max_distance", 8),
            ("position", "rope", "bidirectional", True), ("position", "t5_bias", "theta", 10),
        ]
    ),
    _rule("theta and n_positions of learned positions",
          {"position": {"kind": "learned", "n_positions": 4, "theta": 10, "pairing": "half"}},
          "position.pairing", "position.theta"),
    _rule("gate bias of an mlp", {"ffn": {"bias": {"gate": True}}}, "ffn.bias.gate",
          says="An mlp has no gate"),
    _rule("placement of no norm", {"norm": {"kind": "none", "placement": "post"}},
          "norm.placement", says="norm.kind = none has no placement; leave it out."),
]  # fmt: skip

READOUT = [
    _rule("tied without a vocab", {"tied": True}, "tied", says="it needs vocab"),
    _rule("bias of a readout without a vocab", {"unembed_bias": True}, "unembed_bias",
          says="it needs vocab"),
    _rule("final norm where there is no norm", {"norm": _NONE, "final_norm": True}, "final_norm",
          says="final_norm needs a norm kind other than none."),
    _rule("head of a readout without a vocab", {"mlm_head": True}, "mlm_head",
          says="mlm_head belongs to the readout; it needs vocab."),
    *(
        _rule(f"{field} of a model that ends with its stream",
              {"vocab": 5, "readout": False, field: value}, field,
              says=f"{field} belongs to the readout; readout is false.")
        for field, value in [("tied", True), ("unembed_bias", True), ("mlm_head", True),
                             ("logit_multiplier", 2), ("logit_softcap", 4)]
    ),
    _rule("cap of logits without a vocab", {"logit_softcap": 4}, "logit_softcap"),
    _rule("multiplier of logits without a vocab", {"logit_multiplier": 2}, "logit_multiplier"),
    _rule("four rules broken at once",
          {**_attention(n_heads=3), "tied": True, "unembed_bias": True,
           "position": {"kind": "learned"}},
          "attention.n_heads", "position.n_positions", "tied", "unembed_bias"),
]  # fmt: skip

ARRANGED = [
    _rule("queries normed where there is no norm", {**_attention(qk_norm="head"), "norm": _NONE},
          "attention.qk_norm", says="attention.qk_norm needs a norm kind other than none."),
    _rule("embedding normed where there is no norm", {"embed_norm": True, "norm": _NONE},
          "embed_norm"),
    _rule("mlm head where there is no norm", {"vocab": 5, "mlm_head": True, "norm": _NONE},
          "mlm_head"),
    _rule("norm shared by parts in a row", {"norm": {"shared": True}}, "norm.shared",
          says="topology = parallel"),
    *(
        _rule(f"parallel parts with norms placed {placement}",
              {"topology": "parallel", "norm": {"placement": placement}}, "topology",
              says="norm.placement = pre")
        for placement in ("post", "sandwich", "output")
    ),
    _rule("parallel attention alone", {"topology": "parallel", "ffn": _NONE}, "topology"),
    _rule("parallel ffn alone", {"topology": "parallel", "attention": _NONE}, "topology"),
    *(
        _rule(f"cross-attention with norms placed {placement}",
              {"cross_attention": True, "norm": {"placement": placement}}, "cross_attention",
              says="With cross-attention norms are placed pre or post.")
        for placement in ("sandwich", "output")
    ),
    _rule("cross-attention without attention", {"cross_attention": True, "attention": _NONE},
          "cross_attention"),
    _rule("cross-attention without an ffn", {"cross_attention": True, "ffn": _NONE},
          "cross_attention"),
    *(
        _rule(f"{buckets} buckets, both directions {both}",
              {"position": {"kind": "t5_bias", "n_buckets": buckets, "bidirectional": both}},
              "position.n_buckets", says="n_buckets is split")
        for buckets, both in [(1, False), (2, True), (3, True), (5, True)]
    ),
    *(
        _rule(f"distances up to {most} of {buckets} buckets",
              {"position": {"kind": "t5_bias", "n_buckets": buckets, "max_distance": most}},
              "position.max_distance", says="max_distance lies beyond them")
        for buckets, most in [(32, 16), (32, 1), (8, 4)]
    ),
    _rule("buckets without attention", {"attention": _NONE, "position": {"kind": "t5_bias"}},
          "position.kind", says="t5_bias works inside attention, and there is none."),
]  # fmt: skip

EXPERTS = [
    asked("experts without their number", {_FFN: {"kind": "moe"}},
          {f"{_FFN}/n_experts": "missing", f"{_FFN}/top_k": "missing"}, "invalid-request",
          says="n_experts is needed: how many experts there are."),
    asked("number of experts that is null", {_FFN: {"kind": "moe", "n_experts": None, "top_k": 1}},
          {f"{_FFN}/n_experts": "missing"}),
    _rule("more chosen than there are", {"ffn": {"kind": "moe", "n_experts": 2, "top_k": 3}},
          "ffn.top_k"),
    _rule("gate of no shared expert",
          {"ffn": {"kind": "moe", "n_experts": 2, "top_k": 1, "shared_gate": True}},
          "ffn.shared_gate"),
    _rule("gate bias of experts without a gate",
          {"ffn": {"kind": "moe", "n_experts": 2, "top_k": 1, "expert": "mlp",
                   "bias": {"gate": True}}}, "ffn.bias.gate"),
]  # fmt: skip


def _scaled(**scaling: object) -> dict[str, Any]:
    return {"position": {"kind": "rope", "scaling": scaling}}


SCALING = [
    *(
        asked(f"{kind} scaling without what it needs", {_POSITION: _scaled(kind=kind)["position"]},
              {f"{_POSITION}/scaling/{name}": "missing" for name in needed},
              says="factor is needed")
        for kind, needed in [("linear", ["factor"]), ("dynamic", ["factor", "original_positions"]),
                             ("yarn", ["factor", "original_positions"]),
                             ("llama3", ["factor", "original_positions"])]
    ),
    *(
        _rule(f"{field} of {kind} scaling",
              _scaled(kind=kind, **({} if kind == "none" else {"factor": 2}), **{field: 2}),
              f"position.scaling.{field}",
              says=f"position.scaling.kind = {kind} has no {field}; leave it out.")
        for kind, field in [("none", "factor"), ("linear", "original_positions"),
                            ("linear", "beta_fast"), ("linear", "attention_factor")]
    ),
    _rule("fast below slow", _scaled(kind="yarn", factor=2, original_positions=8, beta_fast=1,
          beta_slow=2), "position.scaling.beta_fast"),
    _rule("high below low", _scaled(kind="llama3", factor=2, original_positions=8,
          high_freq_factor=1, low_freq_factor=2), "position.scaling.high_freq_factor"),
    _rule("dynamic scaling of one pair", _scaled(kind="dynamic", factor=2, original_positions=8),
          "position.scaling.kind", says="r / (r - 2)"),
    _rule("scaling of what does not turn", {"position": {"kind": "learned", "n_positions": 4,
          "scaling": {"kind": "linear", "factor": 2}}}, "position.scaling"),
]  # fmt: skip

LAYERS = [
    _rule("fewer layers than blocks", {"n_layers": 2, "layers": [{"window": 2}]}, "layers"),
    _rule("more layers than blocks", {"layers": [{"window": 2}, {}]}, "layers"),
    _rule("theta where nothing turns", {"layers": [{"theta": 10}]}, "layers.0.theta",
          says="position.kind = none has no theta; leave it out."),
    _rule("scaling where nothing turns",
          {"n_layers": 2, "layers": [{}, {"scaling": {"kind": "linear", "factor": 2}}]},
          "layers.1.scaling", says="position.kind = none has no scaling; leave it out."),
    asked("scaling of a block without what it needs",
          {_POSITION: {"kind": "rope"}, "/model/config/layers": [{"scaling": {"kind": "yarn"}}]},
          {f"/model/config/layers/0/scaling/{name}": "missing"
           for name in ("factor", "original_positions")}),
    _rule("fast below slow in a block",
          {"position": {"kind": "rope"}, "layers": [{"scaling": {"kind": "yarn", "factor": 2,
           "original_positions": 8, "beta_fast": 1}}]}, "layers.0.scaling.beta_fast"),
    _rule("layers of no attention", {"attention": _NONE, "layers": [{"scale": 2}]}, "layers"),
    asked("window of 0 in a block", {"/model/config/layers": [{"window": 0}]},
          {"/model/config/layers/0/window": "greater_than_equal"}),
    asked("unknown key of a layer", {"/model/config/layers": [{MARK: 1}]},
          {f"/model/config/layers/0/{MARK}": "extra_forbidden"}),
    asked("layers that are no list", {"/model/config/layers": {"0": {}}}, "list_type"),
    asked("layer that is a number", {"/model/config/layers": [2]},
          {"/model/config/layers/0": "model_type"}),
]  # fmt: skip

_READER = {"attention": {"n_heads": 2}}
_ENCODER = "/model/config/encoder"
ENCODERS = [
    asked("encoder without heads", {_ENCODER: {}}, {f"{_ENCODER}/attention/n_heads": "missing"}),
    _rule("encoder of another width", {"encoder": {**_READER, "d_model": 6}}, "encoder.d_model"),
    _rule("encoder that nothing reads", {"encoder": _READER, "cross_attention": False}, "encoder"),
    _rule("field of another kind in an encoder", {"encoder": {**_READER, "ffn": {"top_k": 1}}},
          "encoder.ffn.top_k", says="encoder.ffn.kind = mlp has no top_k; leave it out."),
    _rule("encoder whose heads do not divide", {"encoder": {"attention": {"n_heads": 3}}},
          "encoder.attention.n_heads"),
    *(
        asked(f"{key} of an encoder", {_ENCODER: {**_READER, key: value}},
              {f"{_ENCODER}/{key}": "extra_forbidden"}, says="There is no such key here.")
        for key, value in [("vocab", 3), ("tied", True), ("unembed_bias", True), ("readout", True),
                           ("mlm_head", True), ("logit_multiplier", 2), ("logit_softcap", 3),
                           ("cross_attention", True), ("encoder", _READER)]
    ),
    _rule("layers of an encoder of another number",
          {"encoder": {**_READER, "layers": [{}, {}]}}, "encoder.layers"),
    _rule("encoder's theta where nothing turns",
          {"encoder": {**_READER, "layers": [{"theta": 10}]}}, "encoder.layers.0.theta",
          says="encoder.position.kind = none has no theta; leave it out."),
    _rule("more experts chosen than an encoder has",
          {"encoder": {**_READER, "ffn": {"kind": "moe", "n_experts": 2, "top_k": 3}}},
          "encoder.ffn.top_k"),
    _rule("faults of both stacks", {"norm": {"shared": True},
          "encoder": {**_READER, "norm": {"shared": True}}}, "norm.shared", "encoder.norm.shared"),
    _rule("cross-attention beside a parallel ffn", {"cross_attention": True,
          "topology": "parallel"}, "cross_attention"),
]  # fmt: skip
