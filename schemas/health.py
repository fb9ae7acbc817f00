"""What the service says about itself."""

from typing import Literal

from pydantic import Field

from schemas.base import Answered


class Health(Answered):
    """The service answers requests."""

    status: Literal["ok"]


class Readiness(Answered):
    """The service takes work."""

    status: Literal["ready"]


class Welcome(Answered):
    """Where to go from here."""

    name: Literal["glassblock"]
    version: str
    trace: str = Field(description="POST a model and an input here.")
    docs: str = Field(description="Each call, with examples to try.")
    openapi: str = Field(description="The same for programs.")
    models: str = Field(description="The models that can be traced by name.")
    stages: str = Field(description="Every tensor of a trace.")
    limits: str = Field(description="How large a request may be.")
