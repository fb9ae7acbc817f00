"""Which model a request means: a stored one, a preset's shape, or a config written out."""

from typing import Annotated, Self

from pydantic import (
    AfterValidator,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from compute.errors import Fault
from schemas import overrides
from schemas.base import Asked, Name
from schemas.config import ConfigAsked
from schemas.faulty import refuse
from schemas.presets import PRESETS
from schemas.weights import WeightsAsked

_ONE_OF = "Give exactly one of name, preset and config; a preset may have a config beside it."
_NAME_ALONE = f"A name stands alone. {_ONE_OF}"


def _preset(name: str) -> str:
    if name not in PRESETS:
        detail = "There is no preset of this name; GET /v1/presets describes those there are."
        refuse([Fault(code="unknown_preset", detail=detail, expected=list(PRESETS))])
    return name


PresetName = Annotated[
    Name, AfterValidator(_preset), WithJsonSchema({"type": "string", "enum": list(PRESETS)})
]


class ModelAsked(Asked):
    """A model: a stored one by name, a preset (with changes of its config), or a config."""

    name: Name | None = Field(default=None, description="A model of GET /v1/models.")
    preset: PresetName | None = Field(default=None, description="A shape of GET /v1/presets.")
    config: ConfigAsked | None = Field(
        default=None, description="A model written out; beside a preset, changes of its config."
    )
    weights: WeightsAsked = Field(
        default=WeightsAsked(), description="Default: seeded with seed 0, or the named model's own."
    )

    @field_validator("config")
    @classmethod
    def _whole_without_preset(
        cls, written: ConfigAsked | None, info: ValidationInfo
    ) -> ConfigAsked | None:
        if written is not None and info.data.get("preset", "") is None:
            refuse(written.missing())
        return written

    @model_validator(mode="after")
    def _one_model(self) -> Self:
        if self.name is not None and (self.preset is not None or self.config is not None):
            raise PydanticCustomError("exactly_one", "{rule}", {"rule": _NAME_ALONE})
        if self.name is None and self.preset is None and self.config is None:
            raise PydanticCustomError("exactly_one", "{rule}", {"rule": _ONE_OF})
        if self.name is not None and (self.weights.init or self.weights.seed is not None):
            rule = "A named model brings its weights: leave init and seed out."
            raise PydanticCustomError("init_with_name", "{rule}", {"rule": rule})
        return self

    def whole_config(self) -> ConfigAsked | None:
        """The config as written, or the preset's with its changes; None for a named model."""
        if self.preset is None:
            return self.config
        base = PRESETS[self.preset].config
        return base if self.config is None else overrides.merged(base, self.config)

    def overridden(self) -> list[str]:
        """The fields of a preset's config that the request changes."""
        if self.preset is None or self.config is None:
            return []
        return list(overrides.changed(PRESETS[self.preset].config, self.config))
