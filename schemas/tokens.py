"""A token of a model's vocabulary, as its text or its id."""

from typing import Annotated

from pydantic import PlainValidator, WithJsonSchema

from compute.errors import Fault
from schemas.faulty import refuse

_LONGEST = 128
_LARGEST = 1 << 31


def _token(raw: object) -> int | str:
    if type(raw) is int:
        if 0 <= raw < _LARGEST:
            return raw
        refuse(
            [Fault(code="out_of_range", detail="A token id is a whole number from 0 to 2^31 - 1.")]
        )
    if isinstance(raw, str):
        if 1 <= len(raw) <= _LONGEST:
            return raw
        detail = f"The text of a token has from 1 to {_LONGEST} characters."
        refuse([Fault(code="wrong_length", detail=detail, got=len(raw))])
    detail = "A token is due here: its text, or its id as a whole number."
    refuse([Fault(code="wrong_type", detail=detail)])
    raise AssertionError("a token that is none has a fault")


_SCHEMA = {
    "anyOf": [
        {"type": "string", "minLength": 1, "maxLength": _LONGEST},
        {"type": "integer", "minimum": 0, "maximum": _LARGEST - 1},
    ]
}
Token = Annotated[int | str, PlainValidator(_token), WithJsonSchema(_SCHEMA)]
"""The text of exactly one token of a model with a tokenizer, or a token's id."""
