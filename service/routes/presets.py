"""The shapes that have a name."""

from functools import lru_cache
from typing import cast

from fastapi import Response

from compute import config_json, config_rules
from compute.config import ModelConfig
from compute.errors import ConfigError
from compute.sizing import parameters
from schemas.presets import PRESETS, Preset, PresetLine, Presets
from schemas.resolved import ConfigAnswer
from service.routes import routing

router = routing.router("discovery")


@router.get("/presets", response_model=Presets)
async def presets() -> Response:
    """Shapes of known models, to size, or to run with seeded weights:
    `{"model": {"preset": "gpt2"}}`."""
    return Response(encoded(), media_type="application/json")


@lru_cache(maxsize=1)
def encoded() -> bytes:
    """The presets as JSON; they are the same for as long as the process lives."""
    return listed().model_dump_json().encode()


@lru_cache(maxsize=1)
def listed() -> Presets:
    """A line for each preset."""
    return Presets(presets=[_line(preset) for preset in PRESETS.values()])


def _line(preset: Preset) -> PresetLine:
    config = preset.config.to_compute()
    reason = _why_not_run(config)
    return PresetLine(
        name=preset.name,
        meaning=preset.meaning,
        source=preset.source,
        parameters=parameters.count(config),
        published=preset.published,
        runs=reason is None,
        reason=reason,
        config=cast(ConfigAnswer, config_json.as_json(config)),
    )


def _why_not_run(config: ModelConfig) -> str | None:
    """What of a config is sized and not run; None where all of it runs."""
    try:
        config_rules.check_run(config)
    except ConfigError as error:
        return " ".join(fault.detail for fault in error.faults)
    return None
