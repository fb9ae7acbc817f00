"""Contributions as asked for: which sum, split how, at which positions, read along what."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from compute.types import DType
from schemas.base import Asked, Indices, Name, exactly_one
from schemas.form import Formed
from schemas.inputs import InputAsked
from schemas.measures import Vector
from schemas.model import ModelAsked
from schemas.tokens import Token

Split = Literal["block", "sublayer", "head", "source", "neuron", "bias"]
NormScale = Literal["frozen", "recomputed"]

_MOST_PARTS = 1 << 20


class DirectionAsked(Asked):
    """What parts are read along: a token's logit, less another's, or a vector."""

    token: Token | None = Field(default=None, description="The token whose logit it is.")
    minus: Token | None = Field(
        default=None, description="The token whose logit is taken off; with token alone."
    )
    vector: Vector | None = Field(
        default=None, description="In the place of token: d_model numbers, of the stream."
    )
    after_norm: bool = Field(
        default=False,
        description="true: the vector is of the final norm's output, as a column of W_U is.",
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        exactly_one(self, "token", "vector")
        if self.minus is not None and self.token is None:
            _refuse("minus takes a token's logit off that of another: give token.")
        if self.after_norm and self.vector is None:
            _refuse("A token is always read behind the final norm; after_norm goes with vector.")
        return self


class ContributionsRequest(Formed):
    """POST /v1/contributions: what wrote a state, part by part, and what each gives a logit."""

    model: ModelAsked = Field(description="By name, or a config with weights.")
    input: InputAsked = Field(description="One of tensor, token_ids and text; masks.")
    of: Name | None = Field(
        default=None,
        description="One state, update or post-norm sum of one block, by name or alias; or logits. "
        "Default: what the readout reads, the last resid_post.",
    )
    positions: Indices = Field(default=[-1], description="Receiving positions; -1 is the last.")
    batch: Indices | None = Field(default=None, description="Rows of the batch. Default: all.")
    by: Split = Field(default="sublayer", description="What is a part of its own.")
    direction: DirectionAsked | None = Field(
        default=None, description="What each part is read along. Default: nothing."
    )
    norm_scale: NormScale = Field(
        default="frozen",
        description="frozen: the final norm divides by the run's own scale, so parts add up to the "
        "logit; recomputed: each state along the stream has its own, the logit lens.",
    )
    top_k: Annotated[int, Field(ge=1, le=_MOST_PARTS)] | None = Field(
        default=None,
        description="Show so many parts, the largest first, and the rest as one. Default: all.",
    )
    vectors: bool = Field(default=False, description="Show each part's vector.")
    dtype: DType = Field(default="float32", description="The arithmetic: float32 or float64.")


def _refuse(rule: str) -> None:
    raise PydanticCustomError("direction", "{rule}", {"rule": rule})
