"""The shapes that have a name."""

from functools import lru_cache
from typing import cast

from fastapi import APIRouter, Response

from compute import config_json, tensors
from schemas.presets import PRESETS, Preset, PresetLine, Presets
from schemas.resolved import ConfigAnswer

router = APIRouter(tags=["discovery"])


@router.get("/presets", response_model=Presets)
async def presets() -> Response:
    """Shapes of known models, to run with seeded weights: `{"model": {"preset": "gpt2"}}`."""
    return Response(encoded(), media_type="application/json")


@lru_cache(maxsize=1)
def encoded() -> bytes:
    """The presets as JSON; they are the same for as long as the process lives."""
    return listed().model_dump_json().encode()


def listed() -> Presets:
    """A line for each preset."""
    return Presets(presets=[_line(preset) for preset in PRESETS.values()])


def _line(preset: Preset) -> PresetLine:
    config = preset.config.to_compute()
    return PresetLine(
        name=preset.name,
        meaning=preset.meaning,
        source=preset.source,
        parameters=tensors.parameter_counts(config)["total"],
        config=cast(ConfigAnswer, config_json.as_json(config)),
    )
