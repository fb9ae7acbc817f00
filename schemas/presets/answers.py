"""The presets as answered."""

from typing import Annotated

from pydantic import Field

from schemas.base import Answered
from schemas.resolved import ConfigAnswer


class PresetLine(Answered):
    """A shape that a request can name."""

    name: Annotated[str, Field(description="What a request calls it.")]
    meaning: Annotated[str, Field(description="What it is, and what it leaves out.")]
    source: Annotated[str, Field(description="Where its numbers are from.")]
    parameters: Annotated[int, Field(description="Numbers it holds.")]
    published: Annotated[
        int | None, Field(description="The count that was published; null: none was found.")
    ]
    runs: Annotated[bool, Field(description="false: it can be sized (POST /v1/sizing), not run.")]
    reason: Annotated[str | None, Field(description="Why it cannot be run; null where it can.")]
    config: Annotated[ConfigAnswer, Field(description="Resolved, nothing optional.")]


class Presets(Answered):
    """The shapes there are."""

    presets: Annotated[list[PresetLine], Field(description="A line each.")]
