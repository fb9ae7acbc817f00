"""Which model a request means: a stored one, a preset's shape, or a config written out."""

from typing import Annotated, Self, cast

from pydantic import (
    AfterValidator,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from compute import config_json
from compute.config import ModelConfig
from compute.errors import ConfigError, Place
from schemas import causes, config_faults, overrides
from schemas.base import Asked, Name, known
from schemas.config import ConfigAsked
from schemas.faulty import refuse
from schemas.presets import PRESETS
from schemas.weights import WeightsAsked

_ONE_OF = (
    "Give exactly one of name, preset and config; a name or a preset may have a config beside it."
)
_NAME_OR_PRESET = f"A name and a preset do not go together. {_ONE_OF}"


_UNKNOWN = "There is no preset of this name; GET /v1/presets describes those there are."

PresetName = Annotated[
    Name,
    AfterValidator(known(PRESETS, "unknown_preset", _UNKNOWN)),
    WithJsonSchema({"type": "string", "enum": list(PRESETS)}),
]


class ModelAsked(Asked):
    """A model: a stored one by name or a preset (with changes of its config), or a config."""

    name: Name | None = Field(default=None, description="A model of GET /v1/models.")
    preset: PresetName | None = Field(default=None, description="A shape of GET /v1/presets.")
    config: ConfigAsked | None = Field(
        default=None,
        description="A model written out; beside a preset or a name, changes of its config.",
    )
    weights: WeightsAsked = Field(
        default=WeightsAsked(), description="Default: seeded with seed 0, or the named model's own."
    )

    @field_validator("config")
    @classmethod
    def _whole_where_it_stands_alone(
        cls, written: ConfigAsked | None, info: ValidationInfo
    ) -> ConfigAsked | None:
        alone = all(info.data.get(key, "") is None for key in ("name", "preset"))
        if written is not None and alone:
            refuse(config_faults.missing(written))
        return written

    @model_validator(mode="after")
    def _one_model(self) -> Self:
        if self.name is not None and self.preset is not None:
            raise PydanticCustomError("exactly_one", "{rule}", {"rule": _NAME_OR_PRESET})
        if self.name is None and self.preset is None and self.config is None:
            raise PydanticCustomError("exactly_one", "{rule}", {"rule": _ONE_OF})
        if self.name is not None and (self.weights.init or self.weights.seed is not None):
            rule = "A named model brings its weights: leave init and seed out."
            raise PydanticCustomError("init_with_name", "{rule}", {"rule": rule})
        return self

    def to_compute(self, stored: ModelConfig | None) -> ModelConfig:
        """The config resolved; `stored`: the named model's, itself where nothing of it changes."""
        if self.config is None and stored is not None:
            return stored
        base = self._base(stored)
        if self.config is None:
            return cast(ConfigAsked, base).to_compute()
        if base is None:
            return self.config.to_compute()
        made = self._changed(base, self.config)
        same = stored is not None and config_json.as_json(made) == config_json.as_json(stored)
        return stored if stored is not None and same else made

    def _changed(self, base: ConfigAsked, changes: ConfigAsked) -> ModelConfig:
        """The base with changes, resolved; a ConfigError's faults stand at what was sent."""
        try:
            return overrides.merged(base, changes).to_compute()
        except ConfigError as error:
            owner = "preset" if self.name is None else "stored model"
            placed = causes.at_changes(error.faults, base, changes, owner)
            raise ConfigError(list(placed)) from None

    def overridden(self, stored: ModelConfig | None) -> list[str]:
        """The fields of a preset's or a stored model's config that the request says otherwise."""
        base = None if self.config is None else self._base(stored)
        if base is None or self.config is None:
            return []
        return list(overrides.changed(base, self.config))

    def place_of(self, field: Place) -> Place:
        """Where in the request a field of the config is said, or else what brings it is named."""
        alone = self.name is None and self.preset is None
        if self.config is not None and (alone or causes.says(self.config, field)):
            return ("model", "config", *field)
        return ("model", "preset" if self.name is None else "name")

    def _base(self, stored: ModelConfig | None) -> ConfigAsked | None:
        if stored is not None:
            return overrides.written(stored)
        return None if self.preset is None else PRESETS[self.preset].config
