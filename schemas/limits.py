"""The limits of a service."""

from typing import Annotated

from pydantic import Field

from schemas.base import Answered


class Limit(Answered):
    """One limit: a request beyond it is refused."""

    name: str = Field(description="As in a 413 problem; the setting is GLASSBLOCK_ and this name.")
    value: Annotated[int | float, Field(description="Its value here.")]
    unit: Annotated[str, Field(description="What it counts.")]
    meaning: Annotated[str, Field(description="What it bounds.")]


class Limits(Answered):
    """Every limit of this service."""

    limits: Annotated[list[Limit], Field(description="Each limit.")]
