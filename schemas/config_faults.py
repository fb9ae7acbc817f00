"""What is wrong with a config as asked for, before it is resolved: fields that are needed and not
there, and fields that the kind of their part does not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel

from compute import config
from compute.config_json import applying_fields
from compute.errors import Fault, Place
from schemas.positions import LayerAsked, PositionAsked, RopeScalingAsked
from schemas.sublayers import AttentionAsked, EncoderAttentionAsked, FfnAsked, NormAsked

if TYPE_CHECKING:
    from schemas.config import ConfigAsked, StackAsked

Part = AttentionAsked | FfnAsked | NormAsked | PositionAsked | RopeScalingAsked

RESOLVED: Mapping[type[BaseModel], type] = {
    AttentionAsked: config.AttentionConfig,
    EncoderAttentionAsked: config.AttentionConfig,
    FfnAsked: config.FfnConfig,
    NormAsked: config.NormConfig,
    PositionAsked: config.PositionConfig,
    RopeScalingAsked: config.RopeScaling,
}
"""A part with a kind, as asked for -> as resolved."""

_TRAINED_ON = "original_positions is needed: how many positions the model was trained on."
_STRETCHED = "factor is needed: how many times longer."
_STRETCHED_FROM = {"factor": _STRETCHED, "original_positions": _TRAINED_ON}
_NEEDED: Mapping[tuple[type, str], Mapping[str, str]] = {
    (config.AttentionConfig, "softmax"): {
        "n_heads": "n_heads is needed: how many heads attention has.",
    },
    (config.FfnConfig, "moe"): {
        "n_experts": "n_experts is needed: how many experts there are.",
        "top_k": "top_k is needed: how many experts a token goes to.",
    },
    (config.RopeScaling, "linear"): {"factor": _STRETCHED},
    (config.RopeScaling, "dynamic"): _STRETCHED_FROM,
    (config.RopeScaling, "yarn"): _STRETCHED_FROM,
    (config.RopeScaling, "llama3"): _STRETCHED_FROM,
}
"""(part, kind) -> the fields that are needed, and what for."""


def missing(asked: ConfigAsked) -> Iterator[Fault]:
    """A fault for each field that is needed and not there."""
    if asked.d_model is None:
        detail = "d_model is needed: the width of the stream."
        yield Fault(code="missing", detail=detail, place=("d_model",))
    for place, part in _all_parts(asked):
        for name, detail in _NEEDED.get((RESOLVED[type(part)], part.kind), {}).items():
            if getattr(part, name) is None:
                yield Fault(code="missing", detail=detail, place=(*place, name))
    for place, sized, needed in _sized_parts(asked):
        for name in needed:
            if getattr(sized, name) is None:
                detail = f"{name} is needed here."
                yield Fault(code="missing", detail=detail, place=(*place, name))


def _sized_parts(asked: ConfigAsked) -> Iterator[tuple[Place, BaseModel, Sequence[str]]]:
    """Each part that is sized and not run, where it is, and the fields it needs."""
    for above, stack in _stacks(asked):
        if stack.attention.mla is not None:
            needed = ("kv_lora_rank", "d_nope", "d_rope")
            yield (*above, "attention", "mla"), stack.attention.mla, needed
    if asked.patches is not None:
        yield ("patches",), asked.patches, ("image_size", "patch_size")


def of_another_kind(asked: ConfigAsked) -> Iterator[Fault]:
    """A fault for each field that its part's kind does not have."""
    for place, part in _all_parts(asked):
        applying = applying_fields(RESOLVED[type(part)], part.kind)
        for name in sorted(part.model_fields_set - set(applying)):
            yield _unused(place, part.kind, (*place, name))
    for above, stack in _stacks(asked):
        for at, layer in enumerate(stack.layers):
            yield from _layer_faults(stack, layer, above, ("layers", at))


def _unused(part: Place, kind: str, place: Place) -> Fault:
    said = ".".join(map(str, part))
    detail = f"{said}.kind = {kind} has no {place[-1]}; leave it out."
    return Fault(code="config_rule", detail=detail, place=place)


def _layer_faults(stack: StackAsked, layer: LayerAsked, above: Place, at: Place) -> Iterator[Fault]:
    """What turns belongs to RoPE; that a block turns nothing may be said of any."""
    if stack.position.kind == "rope":
        return
    turning = layer.scaling is not None and layer.scaling.kind != "none"
    for name, said in {"theta": layer.theta is not None, "scaling": turning}.items():
        if said:
            yield _unused((*above, "position"), stack.position.kind, (*above, *at, name))


def _stacks(asked: ConfigAsked) -> Iterator[tuple[Place, StackAsked]]:
    yield (), asked
    if asked.encoder is not None:
        yield ("encoder",), asked.encoder


def _all_parts(asked: ConfigAsked) -> Iterator[tuple[Place, Part]]:
    """Each part that has a kind, and where it is."""
    for above, stack in _stacks(asked):
        for name in ("attention", "ffn", "norm", "position"):
            yield (*above, name), getattr(stack, name)
        if stack.position.kind == "rope":
            yield (*above, "position", "scaling"), stack.position.scaling
            for at, layer in enumerate(stack.layers):
                if layer.scaling is not None:
                    yield (*above, "layers", at, "scaling"), layer.scaling
