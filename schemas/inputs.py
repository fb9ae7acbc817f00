"""An input as asked for: a tensor, token ids or text; positions and masks."""

from typing import Annotated, NamedTuple, Self

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from compute.errors import InputError, refuse_if
from compute.types import DType, Inputs
from schemas.base import Asked, exactly_one
from schemas.tensors import Ids, KeyMask, PairMask, Rows, cast, overflows

_LONGEST_TEXT = 1 << 16
READ = ("tensor", "token_ids", "text")
"""Exactly one of these is read."""


class Texts(NamedTuple):
    """The strings of a text input, and whether it was a list (a batch) or one string."""

    strings: tuple[str, ...]
    batched: bool


def _texts(raw: object) -> Texts:
    listed: list[object] = raw if isinstance(raw, list) else [raw]
    strings = [text for text in listed if isinstance(text, str)]
    if not strings or len(strings) < len(listed):
        raise PydanticCustomError("text", "text is a string, or a list of strings.")
    if sum(map(len, strings)) > _LONGEST_TEXT:
        raise PydanticCustomError("text_too_long", "text has at most 65536 characters in all.")
    return Texts(tuple(strings), isinstance(raw, list))


_TEXT = {"type": "string", "maxLength": _LONGEST_TEXT}
TextInput = Annotated[
    Texts,
    PlainValidator(_texts),
    WithJsonSchema({"oneOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}]}),
]


class RowsAsked(Asked):
    """What a stack reads, and what may be attended to. Batches have one more axis in front."""

    tensor: Rows | None = Field(
        default=None,
        description="(position, d_model): stands where token embeddings would; absolute "
        "positions are added to it.",
    )
    token_ids: Ids | None = Field(default=None, description="(position)")
    text: TextInput | None = Field(
        default=None, description="A string, or a list of strings for a batch."
    )
    special_tokens: bool = Field(
        default=False, description="text: add the tokenizer's special tokens."
    )
    position_ids: Ids | None = Field(
        default=None,
        description="(position). Default: 0, 1, 2, … counted from the first key that may be "
        "attended, so that left padding moves nothing.",
    )
    key_mask: KeyMask | None = Field(
        default=None, description="(position): true = this key may be attended to."
    )
    attention_mask: PairMask | None = Field(
        default=None,
        description="(position, key_position): true = may attend. Joined to the others by AND.",
    )
    token_types: Ids | None = Field(
        default=None,
        description="(position): rows of type_embed.W_type, for a config with token_types. "
        "Default: 0.",
    )

    @model_validator(mode="after")
    def _one_input(self) -> Self:
        exactly_one(self, *READ)
        if self.special_tokens and self.text is None:
            rule = "special_tokens belongs to text."
            raise PydanticCustomError("special_tokens", "{rule}", {"rule": rule})
        return self

    def to_compute(self, dtype: DType) -> Inputs:
        """The input but for its text; an InputError where a number overflows the dtype."""
        tensor = None if self.tensor is None else cast(self.tensor, dtype)
        refuse_if(InputError, [] if tensor is None else overflows(tensor, ("tensor",)))
        return Inputs(
            tensor=tensor,
            token_ids=self.token_ids,
            position_ids=self.position_ids,
            key_mask=self.key_mask,
            attention_mask=self.attention_mask,
            token_types=self.token_types,
        )


class MemoryAsked(RowsAsked):
    """What cross-attention reads: the encoder's input, or without an encoder the rows themselves.

    A batch of as many rows as the input's.
    """

    tensor: Rows | None = Field(
        default=None,
        description="(position, d_model): what the encoder reads in the place of token "
        "embeddings; without an encoder, the rows that are attended to.",
    )


class InputAsked(RowsAsked):
    """What the model reads, and what may be attended to. Batches have one more axis in front."""

    memory: MemoryAsked | None = Field(
        default=None,
        description="What cross-attention reads. Needed where the config has cross_attention, and "
        "there alone.",
    )
