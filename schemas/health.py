"""What the service says about itself."""

from typing import Annotated, Literal

from pydantic import Field

from schemas.base import Answered


class Health(Answered):
    """The service answers requests."""

    status: Annotated[Literal["ok"], Field(description="Always ok: it answers.")]


class Readiness(Answered):
    """The service takes work."""

    status: Annotated[Literal["ready"], Field(description="Always ready; else it is a 503.")]


class Welcome(Answered):
    """Where to go from here."""

    name: Annotated[Literal["glassblock"], Field(description="The product.")]
    version: Annotated[str, Field(description="Of the service.")]
    trace: str = Field(description="POST a model and an input here.")
    docs: str = Field(description="Each call, with examples to try.")
    openapi: str = Field(description="The same for programs.")
    models: str = Field(description="The models that can be traced by name.")
    presets: str = Field(description="The shapes that have a name.")
    stages: str = Field(description="Every tensor of a trace.")
    limits: str = Field(description="How large a request may be.")
