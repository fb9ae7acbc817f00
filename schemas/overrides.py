"""Changes of a config: what a request says over what a preset or a stored model says."""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any, TypeVar, cast

from pydantic import BaseModel

from compute import config
from compute.config_json import applying_fields, unsaid_fields
from schemas import config_faults
from schemas.config import (
    MOST_LAYERS,
    ConfigAsked,
    EncoderAsked,
    ExtraAsked,
    PatchesAsked,
    StackAsked,
)
from schemas.positions import LayerAsked, PositionAsked, RopeScalingAsked
from schemas.sublayers import (
    AttentionAsked,
    AttentionBiasAsked,
    EncoderAttentionAsked,
    FfnAsked,
    FfnBiasAsked,
    MlaAsked,
    NormAsked,
)

Part = TypeVar("Part", bound=BaseModel)

_ASKED: Mapping[type, type[BaseModel]] = {
    config.ModelConfig: ConfigAsked,
    config.AttentionConfig: AttentionAsked,
    config.AttentionBias: AttentionBiasAsked,
    config.FfnConfig: FfnAsked,
    config.FfnBias: FfnBiasAsked,
    config.NormConfig: NormAsked,
    config.PositionConfig: PositionAsked,
    config.RopeScaling: RopeScalingAsked,
    config.MlaConfig: MlaAsked,
    config.PatchesConfig: PatchesAsked,
    config.ExtraConfig: ExtraAsked,
}
_IN_ENCODERS: Mapping[type[BaseModel], type[BaseModel]] = {
    ConfigAsked: EncoderAsked,
    AttentionAsked: EncoderAttentionAsked,
}
_OF_READOUT = {"tied", "unembed_bias", "mlm_head", "logit_multiplier", "logit_softcap"}


def written(resolved: config.ModelConfig) -> ConfigAsked:
    """A resolved config as one would ask for it, every field said: nothing of it follows others.

    Only what blocks have of their own is said of them, so that the rest follows the config's.
    """
    return cast(ConfigAsked, _written(resolved, encoder=False))


def _written(resolved: object, *, encoder: bool) -> BaseModel:
    asked = _ASKED[type(resolved)]
    form = _IN_ENCODERS.get(asked, asked) if encoder else asked
    names = {*applying_fields(type(resolved), getattr(resolved, "kind", None))}
    names -= {*unsaid_fields(resolved)}
    if getattr(resolved, "vocab", 0) is None:
        names -= {"readout"}  # it follows a vocab that is brought
    values = {name: getattr(resolved, name) for name in form.model_fields if name in names}
    for name, value in values.items():
        if is_dataclass(value):
            values[name] = _written(value, encoder=encoder or name == "encoder")
    if isinstance(resolved, config.ModelConfig):
        alike = config.layer_config(resolved)
        values["layers"] = [_own(layer, alike) for layer in resolved.layers]
        if "extras" in values:
            values["extras"] = [_written(extra, encoder=encoder) for extra in resolved.extras]
    return form.model_construct(_fields_set=set(values), **values)


def _own(layer: config.LayerConfig, alike: config.LayerConfig) -> LayerAsked:
    said = {name: getattr(layer, name) for name in LayerAsked.model_fields}
    own = {name: value for name, value in said.items() if value != getattr(alike, name)}
    if "scaling" in own:
        own["scaling"] = _written(layer.scaling, encoder=False)
    return LayerAsked.model_construct(_fields_set=set(own), **own)


_OF_LAYERS = {"window", "scale", "theta", "scaling"}


def merged(base: Part, changes: Part) -> Part:
    """The base with what the changes say: field by field, parts within parts.

    Another kind of a part keeps of the base what means something for it; with what is taken away
    goes what belongs to it.
    """
    values = _kept(base, changes)
    for name in changes.model_fields_set:
        old, new = values.get(name), getattr(changes, name)
        both = isinstance(old, BaseModel) and isinstance(new, BaseModel)
        values[name] = merged(old, new) if both else new
    return type(base).model_construct(_fields_set=set(values), **values)


def _kept(base: BaseModel, changes: BaseModel) -> dict[str, Any]:
    """The base's own fields that still mean something after the changes."""
    names = set(base.model_fields_set)
    resolved = config_faults.RESOLVED.get(type(base))
    if resolved is not None and "kind" in changes.model_fields_set:
        names &= {*applying_fields(resolved, getattr(changes, "kind", None))}
    names -= _lost(base, changes)
    if getattr(changes, "encoder", None) is not None:
        names -= {"cross_attention"}  # it follows
    values = {name: getattr(base, name) for name in names}
    for part, lost in _lost_inside(changes).items():
        if part in values:
            values[part] = _without(values[part], lost)
    if values.get("layers") and isinstance(changes, StackAsked):
        values["layers"] = list(_layers(values["layers"], changes))
    return values


def _lost(base: BaseModel, changes: BaseModel) -> set[str]:
    """The fields of a stack that go with what the changes take away."""
    if not (isinstance(base, StackAsked) and isinstance(changes, StackAsked)):
        return set()
    said, lost = changes.model_fields_set, set[str]()
    if "vocab" in said and getattr(changes, "vocab", None) is None:
        lost |= {*_OF_READOUT, "final_norm"}
    if not getattr(changes, "readout", True):
        lost |= _OF_READOUT
    if changes.norm.kind == "none":
        lost |= {"embed_norm", "final_norm", "mlm_head"}
    if _ends_in_a_norm(changes) and not _ends_in_a_norm(base) and _final_by_default(base):
        lost |= {"final_norm"}
    return lost


def _ends_in_a_norm(stack: StackAsked) -> bool:
    """Whether the last block's own norm is what the stream leaves it through."""
    return stack.norm.placement == "post"


def _final_by_default(stack: StackAsked) -> bool:
    """Whether a final norm is what the stack would have without saying so."""
    read = isinstance(stack, EncoderAsked) or getattr(stack, "vocab", None) is not None
    return bool(stack.final_norm) and read


def _lost_inside(changes: BaseModel) -> dict[str, set[str]]:
    """The same, of fields inside a part."""
    if isinstance(changes, FfnAsked) and {"kind"} <= changes.model_fields_set:
        return {"bias": {"gate"}} if changes.kind == "mlp" else {}
    if isinstance(changes, StackAsked) and {"topology"} <= changes.model_fields_set:
        return {"norm": {"shared"}} if changes.topology == "sequential" else {}
    return {}


def _without(part: Part, lost: set[str]) -> Part:
    values = {name: getattr(part, name) for name in part.model_fields_set - lost}
    return type(part).model_construct(_fields_set=set(values), **values)


def _layers(base: list[LayerAsked], changes: StackAsked) -> Iterator[LayerAsked]:
    """What blocks had of their own, as far as it goes: for as many blocks as there are now.

    A change reaches every block; one that turns nothing goes on so. Nothing is left where there
    is no attention, or more blocks than can be listed.
    """
    if changes.attention.kind == "none" or changes.n_layers > MOST_LAYERS:
        return
    position = changes.position
    turns = "kind" not in position.model_fields_set or position.kind == "rope"
    said = (changes.attention.model_fields_set | position.model_fields_set) & _OF_LAYERS
    asked = "n_layers" in changes.model_fields_set
    for at in range(changes.n_layers if asked else len(base)):
        layer = base[at] if at < len(base) else LayerAsked()
        gone = said if turns else said | {"theta", "scaling"}
        is_still = turns and "theta" in layer.model_fields_set and layer.theta is None
        yield _without(layer, gone - {"theta"} if is_still else gone)


def changed(base: BaseModel, changes: BaseModel, prefix: str = "") -> Iterator[str]:
    """The fields that become otherwise than the base says, in the config's order, dotted.

    Said to be, or gone with what was: `norm.placement`, and the `final_norm` that goes with it.
    """
    gone = _lost(base, changes) & base.model_fields_set
    for name, field in type(changes).model_fields.items():
        if name not in changes.model_fields_set | gone:
            continue
        old, new = getattr(base, name), getattr(changes, name)
        said = prefix + (field.alias or name)
        if isinstance(old, BaseModel) and isinstance(new, BaseModel):
            yield from changed(old, new, f"{said}.")
        elif old != new:
            yield said
