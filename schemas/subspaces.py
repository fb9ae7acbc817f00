"""Subspaces and circuits as asked for: a model, heads, and what to measure of them."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from compute.types import DType
from schemas.base import Asked
from schemas.form import Formed
from schemas.model import ModelAsked
from schemas.tokens import Token

Measure = Literal[
    "rank",
    "singular_values",
    "effective_rank",
    "basis",
    "overlap",
    "angles",
    "reads",
    "ffn",
    "qk",
    "ov",
    "token_copying",
    "composition",
]

_DEFAULT: list[Measure] = ["rank", "effective_rank", "composition"]
_MOST_HEADS = 8192
_MOST_TOKENS = 256

Index = Annotated[int, Field(ge=-(1 << 31), le=(1 << 31) - 1)]


class HeadAsked(Asked):
    """A query head."""

    block: Index = Field(description="Its block; -1 is the last.")
    head: Index = Field(description="Its number in the block; -1 is the last.")


def _every(raw: object) -> object:
    return None if raw == "all" else raw


class _AllOrList:
    """Documents that the word all stands for every head."""

    @staticmethod
    def __get_pydantic_json_schema__(
        schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string", "const": "all"}, handler(schema)]}


HeadsAsked = Annotated[
    Annotated[list[HeadAsked], Field(min_length=1, max_length=_MOST_HEADS)] | None,
    BeforeValidator(_every),
    _AllOrList,
]
"""Every head, or those listed."""


class SubspacesRequest(Formed):
    """POST /v1/subspaces: where heads write, what reads it, how heads compose; weights alone."""

    model: ModelAsked = Field(description="By name, or a config with weights.")
    heads: HeadsAsked = Field(default=None, description='"all" (the default), or some heads.')
    readers: HeadsAsked = Field(
        default=None,
        description="The heads that may read, for reads and composition, and whose blocks' "
        "networks are looked at. Default: those of heads.",
    )
    ask: Annotated[list[Measure], Field(min_length=1, max_length=32)] = Field(
        default=_DEFAULT,
        description="What to measure. Default: rank, effective_rank and composition.",
    )
    tokens: Annotated[list[Token], Field(min_length=1, max_length=_MOST_TOKENS)] | None = Field(
        default=None,
        description="With qk or ov: the rows of these tokens. Each a text of one token, or an id.",
    )
    fold_norm: bool = Field(
        default=False,
        description="Fold the gain (and the centring) of the norm before a read into its matrix.",
    )
    dtype: DType = Field(
        default="float32", description="Of the weights; everything is computed in float64."
    )

    @model_validator(mode="after")
    def _tokens_have_a_use(self) -> Self:
        if self.tokens is not None and not {"qk", "ov"} & set(self.ask):
            rule = "tokens are for qk and ov: ask for one of them."
            raise PydanticCustomError("tokens", "{rule}", {"rule": rule})
        return self
