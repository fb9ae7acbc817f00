"""RoPE's options in a config.json: `rope_parameters`, or `rope_theta` beside `rope_scaling`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from compute.checkpoints.fields import Fields
from compute.config import RopeScaling, ScalingKind, yarn_attention_factor

_KINDS: Mapping[str, ScalingKind] = {
    **{kind: kind for kind in get_args(ScalingKind)},
    "default": "none",
}
NO_SCALING = RopeScaling()


@dataclass(frozen=True, slots=True)
class Rope:
    """What turns queries and keys; `fraction` of each head turns."""

    theta: float
    scaling: RopeScaling
    fraction: float


def rope(
    fields: Fields,
    *,
    layer_type: str = "",
    theta: tuple[str, float] = ("rope_theta", 10000.0),
    fraction: tuple[str, float] = ("partial_rotary_factor", 1.0),
    scaled: bool = True,
) -> Rope:
    """The RoPE of a model, or of its layers of a type.

    `theta`, `fraction`: the key where older files have it, and what left out means. `scaled`:
    `rope_scaling` of older files applies to these layers.
    """
    found = fields.nested("rope_parameters") if fields.has("rope_parameters") else None
    if found is not None and layer_type and found.has(layer_type):
        found = found.nested(layer_type)
    elif found is None:
        found = fields.nested("rope_scaling") if scaled else Fields({})
    base = found.number_or("rope_theta", None)
    part = found.number_or("partial_rotary_factor", None)
    turned = fields.number_or(*fraction) if part is None else part
    if turned > 1.0:
        fields.fault(fraction[0], "must be at most 1.", "at most 1", turned)
    return Rope(
        theta=fields.number_or(*theta) if base is None else base,
        scaling=_scaling(found, fields),
        fraction=min(turned, 1.0),
    )


def _scaling(found: Fields, fields: Fields) -> RopeScaling:
    kind = found.choice("rope_type" if found.has("rope_type") else "type", _KINDS, "default")
    if kind == "none":
        return NO_SCALING
    trained = _trained(found, fields, kind)
    if kind == "yarn":
        return _yarn(found, _factor_of_yarn(found, fields, trained), trained)
    low, high = (1.0, 4.0) if kind != "llama3" else _bounds(found)
    return RopeScaling(
        kind=kind,
        factor=found.number("factor"),
        original_positions=trained,
        low_freq_factor=low,
        high_freq_factor=high,
    )


def _trained(found: Fields, fields: Fields, kind: ScalingKind) -> int:
    """The positions that a model was trained on; linear does without."""
    key = "original_max_position_embeddings"
    if kind == "linear":
        return 0
    if kind == "dynamic":
        return fields.size("max_position_embeddings")
    if fields.has(key):
        return fields.size(key)
    return found.size_or(key, None) or fields.size("max_position_embeddings")


def _factor_of_yarn(found: Fields, fields: Fields, trained: int) -> float:
    """As given, or how many times more positions there are than it was trained on."""
    if found.has("factor"):
        return found.number("factor")
    return fields.size("max_position_embeddings") / trained


def _bounds(found: Fields) -> tuple[float, float]:
    low, high = found.number("low_freq_factor"), found.number("high_freq_factor")
    if high <= low and found.has("low_freq_factor") and found.has("high_freq_factor"):
        found.fault("high_freq_factor", "must be above low_freq_factor.", f"above {low}", high)
    return low, high


def _yarn(found: Fields, factor: float, trained: int) -> RopeScaling:
    found.must_be("truncate", True, default=True)
    stretch = found.number_or("attention_factor", None)
    return RopeScaling(
        kind="yarn",
        factor=factor,
        original_positions=trained,
        beta_fast=found.number_or("beta_fast", 32.0),
        beta_slow=found.number_or("beta_slow", 1.0),
        attention_factor=_length_scale(found, factor) if stretch is None else stretch,
    )


def _length_scale(found: Fields, factor: float) -> float:
    """0.1 m ln(factor) + 1, over the same of `mscale_all_dim` where both are given."""
    above, below = found.number_or("mscale", None), found.number_or("mscale_all_dim", None)
    plain = yarn_attention_factor(factor)
    if above is None or below is None:
        return plain
    return (above * (plain - 1.0) + 1.0) / (below * (plain - 1.0) + 1.0)
