"""Weights as asked for."""

from typing import Annotated, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from compute.errors import WeightsError, refuse_if
from compute.types import Array, DType, Edit, EditOp
from schemas.base import Asked, Indices, Name, at_most
from schemas.tensors import Number, Weight, cast, overflows

AxisWord = Literal[
    "head",
    "kv_head",
    "position",
    "d_model",
    "d_head",
    "d_value",
    "d_ff",
    "expert",
    "d_shared",
    "token_type",
    "bucket",
    "d_mlm_head",
    "vocabulary",
]


class EditAsked(Asked):
    """A change of a slice of one weight tensor; edits are made in their order."""

    tensor: Name = Field(description="The tensor's name, as blocks.0.attn.W_O.")
    where: Annotated[dict[AxisWord, Indices], BeforeValidator(at_most(16))] = Field(
        default={}, description="Axis word -> indices; an axis left out is taken whole."
    )
    op: EditOp = Field(description="scale (multiply), add, set, or zero.")
    value: Number | None = Field(
        default=None, description="One number, or numbers in the slice's shape; none with zero."
    )

    @model_validator(mode="after")
    def _value_fits_op(self) -> Self:
        if (self.value is None) != (self.op == "zero"):
            rule = "scale, add and set need a value; zero takes none."
            raise PydanticCustomError("edit_value", "{rule}", {"rule": rule})
        return self

    def to_compute(self, dtype: DType) -> Edit:
        """The edit as compute takes it, its value in the dtype asked for."""
        where = {str(word): tuple(indices) for word, indices in self.where.items()}
        value = cast(np.zeros(()) if self.value is None else self.value, dtype)
        return Edit(tensor=self.tensor, op=self.op, where=where, value=value)

    def account(self) -> dict[str, object]:
        """The edit as plain JSON, to be hashed."""
        value = None if self.value is None else self.value.tolist()
        return {"tensor": self.tensor, "where": self.where, "op": self.op, "value": value}


class WeightsAsked(Asked):
    """Where the weights come from, and what is changed in them."""

    init: Literal["seeded", "identity", "zeros"] | None = Field(
        default=None,
        description="seeded: bell-shaped numbers from the seed and each tensor's name, the same "
        "everywhere; identity: heads read and write their own coordinates; zeros: all 0, gains 1. "
        "Default for a config: seeded. A named model brings its own.",
    )
    seed: Annotated[int, Field(ge=0, lt=1 << 53)] | None = Field(
        default=None, description="seeded only. Default: 0."
    )
    tensors: Annotated[dict[Name, Weight], BeforeValidator(at_most(4096))] = Field(
        default={}, description="Whole tensors by name, in the place of others."
    )
    edits: list[EditAsked] = Field(
        default=[], max_length=256, description="Changes of slices, after `tensors`."
    )

    @model_validator(mode="after")
    def _seed_needs_seeded(self) -> Self:
        if self.seed is not None and self.init not in (None, "seeded"):
            rule = "seed belongs to init = seeded."
            raise PydanticCustomError("seed_unused", "{rule}", {"rule": rule})
        return self

    def given(self, dtype: DType) -> dict[str, Array]:
        """The whole tensors, in the dtype asked for; a WeightsError where one overflows it."""
        typed = {name: cast(values, dtype) for name, values in self.tensors.items()}
        faults = [
            fault
            for name, values in typed.items()
            for fault in overflows(values, ("tensors", name))
        ]
        refuse_if(WeightsError, faults)
        return typed

    def changes(self, dtype: DType) -> list[Edit]:
        """The edits, in the dtype asked for; a WeightsError where a value overflows it."""
        made = [edit.to_compute(dtype) for edit in self.edits]
        faults = [
            fault
            for at, edit in enumerate(made)
            for fault in overflows(np.asarray(edit.value), ("edits", at, "value"))
        ]
        refuse_if(WeightsError, faults)
        return made
