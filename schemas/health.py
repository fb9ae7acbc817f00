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
    contributions: str = Field(description="What each part wrote into a state or a logit.")
    subspaces: str = Field(description="What heads can write and read, from the weights.")
    sweep: str = Field(description="A table of one change of a run at a time.")
    compare: str = Field(description="Two runs, stage by stage.")
    decode: str = Field(description="Rows after a cache, and the tokens that follow.")
    jacobian: str = Field(description="Exact derivatives of states and logits.")
    rope: str = Field(description="Rotations, by themselves.")
    equivariance: str = Field(description="What permuting the rows permutes.")
    sizing: str = Field(description="What a model holds, computes and takes.")
    sizing_capacity: str = Field(description="What fits into a memory.")
    sizing_inverse: str = Field(description="Which models hold, take or compute so much.")
    sizing_compare: str = Field(description="Models part by part, and which fields part them.")
    docs: str = Field(description="Each call, with examples to try.")
    openapi: str = Field(description="The same for programs.")
    models: str = Field(description="The models that can be traced by name.")
    presets: str = Field(description="The shapes that have a name.")
    sizing_reconcile: str = Field(description="Why a published count is not the exact one.")
    devices: str = Field(description="Peak, bandwidth and memory of known devices.")
    stages: str = Field(description="Every tensor of a trace.")
    limits: str = Field(description="How large a request may be.")
