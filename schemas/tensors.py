"""Tensors of a request: nested lists, base64 with dtype and shape, or bytes of a binary body.

A validator raises one Pydantic error of type `tensor`, whose context carries every fault with
its place inside the tensor; nothing of what was sent is repeated.
"""

from dataclasses import dataclass
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
from schemas import binary, nested, packed
from schemas.binary import Binary
from schemas.nested import BOOLEANS, LARGEST, NUMBERS, WHOLE_NUMBERS, Kind
from schemas.packed import Packed


@dataclass(frozen=True, slots=True)
class Posted:
    """How a tensor may be written: nested lists of a kind, or the same as bytes, of these ranks.

    as_sent: numbers that came as float32 stay float32; else all become float64.
    """

    kind: Kind
    ranks: range
    as_sent: bool = False

    @property
    def packed(self) -> type[Packed]:
        """The object of dtype, shape and data."""
        return packed.FORMS[self.kind]

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """An object is the packed form, anything else the nested one or an entry of a body."""
        schema = WithJsonSchema({"oneOf": _nestings(self.kind, self.ranks)})
        as_lists = Annotated[Any, PlainValidator(self._unpacked), schema, Tag("nested")]
        as_bytes = Annotated[self.packed, AfterValidator(self._packed), Tag("packed")]  # type: ignore[name-defined]
        return handler.generate_schema(Annotated[as_lists | as_bytes, Discriminator(_form)])

    def _unpacked(self, raw: object) -> Array:
        if isinstance(raw, Binary):
            return self._widened(binary.array(raw, self.kind, self.ranks))
        return nested.array(raw, self.kind, self.ranks)

    def _packed(self, raw: Packed) -> Array:
        return self._widened(packed.array(raw, self.kind, self.ranks))

    def _widened(self, values: Array) -> Array:
        return values if self.as_sent else values.astype(self.kind.dtype, copy=False)


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


Rows = Annotated[Array, Posted(NUMBERS, range(2, 4), as_sent=True)]
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
    """The values in a dtype, themselves where they are of it; what it cannot hold is inf, and
    `overflows` says where."""
    with np.errstate(over="ignore"):
        return values.astype(dtype, copy=False)


def overflows(values: Array, place: Place) -> list[Fault]:
    """The first entries that are finite as sent and not in the dtype asked for."""
    detail = f"This number is beyond the range of {values.dtype}."
    return [
        Fault(code="overflow", detail=detail, place=(*place, *index))
        for index in first_entries(~np.isfinite(values))
    ]
