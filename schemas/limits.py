"""The limits of a service."""

from pydantic import Field

from schemas.base import Answered


class Limit(Answered):
    """One limit: a request beyond it is refused."""

    name: str = Field(description="As in a 413 problem; the setting is GLASSBLOCK_ and this name.")
    value: int | float
    unit: str
    meaning: str


class Limits(Answered):
    """Every limit of this service."""

    limits: list[Limit]
