"""A stage as asked for: its name alone, or with slices or a summary."""

from functools import lru_cache
from typing import Annotated

from pydantic import (
    Field,
    GetJsonSchemaHandler,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from compute.types import Selected
from schemas.base import LONGEST_NAME, Asked, Indices, Name


class SelectedAsked(Asked):
    """A stage to see: whole, or the indices of some of its axes."""

    name: Name = Field(
        description="A stage's name or alias, with * for any part; a bare one means every block."
    )
    batch: Indices | None = Field(default=None, description="Rows of the batch.")
    position: Indices | None = Field(default=None, description="Rows; -1 is the last.")
    key_position: Indices | None = Field(default=None, description="Source rows.")
    head: Indices | None = Field(default=None, description="Query heads.")
    kv_head: Indices | None = Field(default=None, description="Key/value heads.")
    d_head: Indices | None = Field(default=None, description="Coordinates of queries and keys.")
    d_value: Indices | None = Field(default=None, description="Coordinates of values.")
    d_model: Indices | None = Field(default=None, description="Coordinates of the stream.")
    d_ff: Indices | None = Field(default=None, description="Neurons.")
    vocabulary: Indices | None = Field(default=None, description="Tokens of the vocabulary.")
    expert: Indices | None = Field(default=None, description="Experts of a mixture.")
    choice: Indices | None = Field(default=None, description="Experts a token chose, best first.")
    source_position: Indices | None = Field(default=None, description="Rows of the memory.")
    d_mlm_head: Indices | None = Field(
        default=None, description="Coordinates of the layer below the readout."
    )
    summary: bool = Field(
        default=False,
        description="norm, rms, mean, min and max of each row in the place of its numbers.",
    )

    @property
    def is_a_name(self) -> bool:
        """The stage is asked for whole."""
        return len(self.model_fields_set) == 1

    def to_compute(self) -> Selected:
        """The selection as compute takes it."""
        if self.is_a_name:
            return Selected(name=self.name)
        given = self.model_dump(exclude={"name", "summary"}, exclude_none=True)
        where = {word: tuple(indices) for word, indices in given.items()}
        return Selected(name=self.name, where=where, summary=self.summary)


def _named(raw: object, handler: ValidatorFunctionWrapHandler) -> object:
    if not isinstance(raw, str):
        return handler(raw)
    return _by_name(raw) if 1 <= len(raw) <= LONGEST_NAME else handler({"name": raw})


@lru_cache(maxsize=1024)
def _by_name(name: str) -> SelectedAsked:
    """Names come again and again; what they are read as does not change."""
    return SelectedAsked(name=name)


class _NameOrObject:
    """Documents that a stage may be written as its name alone."""

    @staticmethod
    def __get_pydantic_json_schema__(
        schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        name = {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME}
        return {"anyOf": [name, handler(schema)]}


SelectItem = Annotated[SelectedAsked, WrapValidator(_named), _NameOrObject]
