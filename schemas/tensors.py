"""Tensors of a request: nested lists, or base64 with dtype and shape.

A validator raises one Pydantic error of type `tensor`, whose context carries every fault with
its place inside the tensor; nothing of what was sent is repeated.
"""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import (
    AfterValidator,
    Discriminator,
    GetCoreSchemaHandler,
    PlainValidator,
    Tag,
    WithJsonSchema,
)
from pydantic_core import CoreSchema

from compute.errors import Fault, Place, first_entries
from compute.types import Array, DType
from schemas import nested, packed
from schemas.nested import BOOLEANS, LARGEST, NUMBERS, WHOLE_NUMBERS, Kind


@dataclass(frozen=True, slots=True)
class Posted:
    """How a tensor may be written: nested lists of a kind, or the same packed, of these ranks."""

    kind: Kind
    ranks: range

    @property
    def packed(self) -> type[packed.Packed]:
        """The object of dtype, shape and data."""
        return packed.FORMS[self.kind]

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """An object is the packed form, anything else the nested one."""
        lists = partial(nested.array, kind=self.kind, ranks=self.ranks)
        bytes_ = partial(packed.array, kind=self.kind, ranks=self.ranks)
        schema = WithJsonSchema({"oneOf": _nestings(self.kind, self.ranks)})
        as_lists = Annotated[Any, PlainValidator(lists), schema, Tag("nested")]
        as_bytes = Annotated[self.packed, AfterValidator(bytes_), Tag("packed")]  # type: ignore[name-defined]
        return handler.generate_schema(Annotated[as_lists | as_bytes, Discriminator(_form)])


def _form(raw: object) -> str:
    return "packed" if isinstance(raw, dict) else "nested"


_ITEMS: dict[Kind, dict[str, Any]] = {
    NUMBERS: {"type": "number"},
    WHOLE_NUMBERS: {"type": "integer", "minimum": 0, "maximum": LARGEST},
    BOOLEANS: {"type": "boolean"},
}


def _nestings(kind: Kind, ranks: range) -> list[dict[str, Any]]:
    found = []
    for rank in ranks:
        schema = _ITEMS[kind]
        for _ in range(rank):
            schema = {"type": "array", "items": schema, "minItems": 1}
        found.append(schema)
    return found


Rows = Annotated[npt.NDArray[np.float64], Posted(NUMBERS, range(2, 4))]
"""(n, d) or (b, n, d) numbers."""

Weight = Annotated[npt.NDArray[np.float64], Posted(NUMBERS, range(1, 4))]
"""Numbers nested one to three deep."""

Number = Annotated[npt.NDArray[np.float64], Posted(NUMBERS, range(4))]
"""One number, or numbers nested up to three deep."""

Ids = Annotated[npt.NDArray[np.int64], Posted(WHOLE_NUMBERS, range(1, 3))]
"""(n) or (b, n) whole numbers."""

KeyMask = Annotated[npt.NDArray[np.bool_], Posted(BOOLEANS, range(1, 3))]
"""(n) or (b, n) booleans."""

PairMask = Annotated[npt.NDArray[np.bool_], Posted(BOOLEANS, range(2, 4))]
"""(n, m) or (b, n, m) booleans."""


def cast(values: Array, dtype: DType) -> Array:
    """The values in a dtype; what it cannot hold is inf, and `overflows` says where."""
    with np.errstate(over="ignore"):
        return values.astype(dtype)


def overflows(values: Array, place: Place) -> list[Fault]:
    """The first entries that are finite as sent and not in the dtype asked for."""
    detail = f"This number is beyond the range of {values.dtype}."
    return [
        Fault(code="overflow", detail=detail, place=(*place, *index))
        for index in first_entries(~np.isfinite(values))
    ]
