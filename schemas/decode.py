"""A step of cached decoding as asked for: a model, rows, what stands before them, how far to go."""

import re
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema, model_validator

from compute.errors import Fault, QuestionError, refuse_if
from compute.types import Array, DType, Selected
from schemas.answers import SHA256
from schemas.base import Asked, at_most
from schemas.faulty import refuse
from schemas.form import Formed
from schemas.inputs import InputAsked
from schemas.model import ModelAsked
from schemas.nested import NUMBERS
from schemas.select import SelectItem
from schemas.tensors import Ids, KeyMask, Posted, cast, overflows

_MOST_TENSORS = 2048

Heads = Annotated[npt.NDArray[np.float64], Posted(NUMBERS, range(3, 5))]
"""(g, m, k) or (b, g, m, k) numbers."""


def _digest(text: str) -> str:
    if not re.fullmatch(SHA256, text):
        detail = "sha256: and 64 digits are due here, as the answer that gave the cache has them."
        refuse([Fault(code="wrong_form", detail=detail)])
    return text


Digest = Annotated[
    str, AfterValidator(_digest), WithJsonSchema({"type": "string", "pattern": SHA256})
]
"""The digest of a model."""


class CacheAsked(Asked):
    """What earlier rows left: the `cache` of an answer, as it came. Beside these keys, attn.k and
    attn.v of every block by full name, (kv_head, key_position, d_head or d_value)."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Heads] = Field(init=False)

    digest: Digest = Field(description="Of the model that made it; another model refuses it.")
    dtype: DType = Field(description="The arithmetic it was made in; the request's own.")
    position_ids: Ids = Field(description="(key_position): of the rows in it.")
    key_mask: KeyMask | None = Field(
        default=None, description="(key_position): true = this row may be attended to."
    )

    @model_validator(mode="before")
    @classmethod
    def _few_keys(cls, raw: object) -> object:
        """Tensors stand beside the keys."""
        return at_most(_MOST_TENSORS)(raw)

    def tensors(self, dtype: DType) -> dict[str, Array]:
        """Keys and values by name in a dtype; a QuestionError where one overflows it."""
        typed = {name: cast(values, dtype) for name, values in (self.model_extra or {}).items()}
        faults = [
            fault for name, values in typed.items() for fault in overflows(values, ("cache", name))
        ]
        refuse_if(QuestionError, faults)
        return typed


class DecodeRequest(Formed):
    """POST /v1/decode: run rows after those of a cache, and let the model go on."""

    model: ModelAsked = Field(description="By name, or a config with weights.")
    input: InputAsked = Field(description="The new rows alone: one of tensor, token_ids and text.")
    cache: CacheAsked | None = Field(
        default=None, description="What an earlier answer gave. Default: nothing stands before."
    )
    steps: Annotated[int, Field(ge=0, le=65536)] = Field(
        default=0,
        description="How many tokens to add, each the one of the largest logit, and to run.",
    )
    select: Annotated[list[SelectItem], Field(max_length=1000)] | None = Field(
        default=None,
        description="Stages to see of each step. Default: attn.pattern, attn_out, ffn_out and "
        "resid_post.",
    )
    top: Annotated[int, Field(ge=1, le=100)] = Field(
        default=5, description="How many tokens of the largest logits are told after each step."
    )
    logits: bool = Field(default=True, description="Tell the last row's logits of each step.")
    dtype: DType = Field(default="float32", description="The arithmetic: float32 or float64.")
    cache_as: Literal["base64", "nested", "none"] = Field(
        default="base64", description="How the answer writes the new cache, or that it does not."
    )

    def selected(self) -> list[Selected] | None:
        """The selection as compute takes it; None asks for the default."""
        return None if self.select is None else [item.to_compute() for item in self.select]
