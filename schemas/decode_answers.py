"""What a step of cached decoding answers."""

from typing import Annotated

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from compute.types import DType
from schemas.answers import (
    Entry,
    Flags,
    InputAnswer,
    Matrix,
    ModelAnswer,
    PackedAnswer,
    Rank3,
    Rank4,
    Row,
    Sha256,
    TensorAnswer,
    Whole,
)
from schemas.base import Answered


class TopToken(TypedDict):
    """A token that may come next."""

    token_id: Annotated[int, Field(description="Its id.")]
    token: Annotated[str | None, Field(description="As text, where the tokenizer has one.")]
    logit: Annotated[Entry, Field(description="Its logit; null if not finite.")]
    probability: Annotated[Entry, Field(description="Its softmax over the vocabulary.")]


class StepAnswer(TypedDict):
    """Some rows that ran at once: those that were sent, or one that followed. Of a batch, a list
    in the place of each value of its last row."""

    rows: Annotated[int, Field(description="How many rows ran.")]
    token_id: Annotated[
        int | list[int] | None, Field(description="Of the last of them; null for a tensor.")
    ]
    token: Annotated[
        str | list[str | None] | None, Field(description="As text, where the tokenizer has one.")
    ]
    position: Annotated[int | list[int], Field(description="Position id of the last of them.")]
    top: Annotated[
        list[TopToken] | list[list[TopToken]] | None,
        Field(description="What may follow it, the likeliest first; null without a readout."),
    ]
    logits: Annotated[
        Row | Matrix | None,
        Field(description="After it, one a token; null without a readout or where turned off."),
    ]
    tensors: Annotated[
        dict[str, TensorAnswer],
        Field(description="Stage -> tensor, of these rows; key_position counts the cache too."),
    ]


class CacheAnswer(Answered):
    """All rows so far, to be sent before the next ones. Beside these keys, attn.k and attn.v of
    every block by full name, before qk-norm and rotation."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, PackedAnswer | Rank3 | Rank4] = Field(init=False)

    digest: Sha256 = Field(description="Of the model, as in `model`.")
    dtype: DType = Field(description="The arithmetic.")
    position_ids: Whole = Field(description="(key_position): of the rows in it.")
    key_mask: Flags | None = Field(description="(key_position); null: all may be attended to.")


class DecodeCost(TypedDict):
    """What all steps cost, known before the first ran."""

    parameters: Annotated[int, Field(description="Numbers the model holds.")]
    flops: Annotated[int, Field(description="2 for each multiply-add of a matrix product.")]
    elements: Annotated[int, Field(description="Numbers in `steps` and `cache`.")]
    bytes: Annotated[int, Field(description="Weights, kept stages, temporaries and caches.")]


class DecodeAnswer(TypedDict):
    """The steps, and the cache with their rows in it."""

    model: Annotated[ModelAnswer, Field(description="Which model ran.")]
    input: Annotated[InputAnswer, Field(description="The rows that were sent, as read.")]
    steps: Annotated[
        list[StepAnswer], Field(description="The sent rows, then each token that followed.")
    ]
    absent: Annotated[
        dict[str, str], Field(description="Stages only a wildcard met: why there are none.")
    ]
    exact: Annotated[
        bool,
        Field(description="Whether one run over all rows gives these states, but for rounding."),
    ]
    reason: Annotated[str | None, Field(description="Why it does not; null where it does.")]
    cache: Annotated[
        CacheAnswer | None, Field(description="To be sent with the next rows; null if not asked.")
    ]
    cost: Annotated[DecodeCost, Field(description="What the steps cost.")]
