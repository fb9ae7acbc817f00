"""Configs whose fields are well-formed and contradict each other."""

from collections.abc import Mapping
from typing import Any

from door.case import Case, asked

_NONE = {"kind": "none"}


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
    _rule("four rules broken at once",
          {**_attention(n_heads=3), "tied": True, "unembed_bias": True,
           "position": {"kind": "learned"}},
          "attention.n_heads", "position.n_positions", "tied", "unembed_bias"),
]  # fmt: skip
