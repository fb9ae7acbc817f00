"""Devices as asked for, by name or by their numbers, and as listed."""

from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from compute.sizing.times.devices import BYTES, DEVICES, MemoryUnit
from compute.sizing.vocabulary import Device
from schemas.base import Answered, Asked, Name, known

_FASTEST = 10**18
_MOST_BYTES = 10**18


def _whole(raw: object) -> object:
    """312e12 is a whole number too, though JSON writes it as a fraction might be written."""
    is_whole = type(raw) is float and raw.is_integer()
    return int(raw) if is_whole and isinstance(raw, float) else raw


_UNKNOWN = "There is no device of this name; GET /v1/devices lists those there are."

Rate = Annotated[
    int,
    BeforeValidator(_whole),
    Field(ge=1, le=_FASTEST),
    WithJsonSchema({"type": "number", "minimum": 1, "maximum": _FASTEST}),
]
"""A whole number; 312e12 may stand for 312000000000000."""

Efficiency = Annotated[float, Field(gt=0.0, le=1.0)]

DeviceName = Annotated[
    Name,
    AfterValidator(known(DEVICES, "unknown_device", _UNKNOWN)),
    WithJsonSchema({"type": "string", "enum": list(DEVICES)}),
]


AmountOfBytes = Annotated[
    int | float,
    Field(ge=0, le=_MOST_BYTES),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": _MOST_BYTES}),
]


class MemoryAmountAsked(Asked):
    """An amount of memory, its unit said."""

    value: AmountOfBytes = Field(description="How many of them.")
    unit: MemoryUnit = Field(description="GiB, 2^30 bytes; GB, 10^9 bytes; bytes.")

    @model_validator(mode="after")
    def _not_too_many(self) -> Self:
        if self.to_bytes() > _MOST_BYTES:
            rule = "An amount of memory is at most 10^18 bytes."
            raise PydanticCustomError("too_much_memory", "{rule}", {"rule": rule})
        return self

    def to_bytes(self) -> int:
        """Whole bytes, a fraction of one dropped; a decimal is meant as it is written."""
        return int(Fraction(repr(self.value)) * BYTES[self.unit])


class DeviceAsked(Asked):
    """What a model runs on: by its numbers, or a device of GET /v1/devices, or one changed."""

    name: DeviceName | None = Field(
        default=None, description="A device of GET /v1/devices; other keys change its numbers."
    )
    flops_per_second: Rate | None = Field(
        default=None, description="Peak, of dense products. Needed without a name."
    )
    bytes_per_second: Rate | None = Field(
        default=None, description="Bandwidth of its memory. Needed without a name."
    )
    memory: MemoryAmountAsked | None = Field(default=None, description="How much of it there is.")
    flops_efficiency: Efficiency = Field(
        default=1.0, description="What share of the peak is reached. 1: a time is a lower bound."
    )
    bytes_efficiency: Efficiency = Field(
        default=1.0, description="What share of the bandwidth is reached."
    )

    @model_validator(mode="after")
    def _whole_without_a_name(self) -> Self:
        missing = self.flops_per_second is None or self.bytes_per_second is None
        if self.name is None and missing:
            rule = "Give a name, or flops_per_second and bytes_per_second."
            raise PydanticCustomError("no_device", "{rule}", {"rule": rule})
        return self

    def to_compute(self) -> Device:
        """The device, with the numbers that are said in the place of the listed ones."""
        said = {
            "flops_per_second": self.flops_per_second,
            "bytes_per_second": self.bytes_per_second,
            "memory_bytes": None if self.memory is None else self.memory.to_bytes(),
        }
        given = {key: value for key, value in said.items() if value is not None}
        own = Device(name="", flops_per_second=1, bytes_per_second=1, source="the request")
        base = own if self.name is None else DEVICES[self.name].device
        changed = replace(base, **given)  # type: ignore[arg-type]
        return replace(
            changed,
            flops_efficiency=self.flops_efficiency,
            bytes_efficiency=self.bytes_efficiency,
            source=f"{base.source}, changed by the request" if given and self.name else base.source,
        )


class DeviceAnswer(TypedDict):
    """The device that was meant."""

    name: Annotated[str | None, Field(description="As asked; null: by its numbers.")]
    flops_per_second: Annotated[int | float, Field(description="Peak of dense products.")]
    bytes_per_second: Annotated[int | float, Field(description="Bandwidth of its memory.")]
    memory_bytes: Annotated[int | None, Field(description="Of it there is; null: not said.")]
    flops_efficiency: Annotated[float, Field(description="The share of the peak.")]
    bytes_efficiency: Annotated[float, Field(description="The share of the bandwidth.")]
    ridge: Annotated[float, Field(description="FLOP a byte: peak / bandwidth, efficiencies in.")]
    source: Annotated[str, Field(description="Where its numbers are from.")]


class DeviceLine(Answered):
    """A device that a request can name."""

    name: Annotated[str, Field(description="What a request calls it.")]
    title: Annotated[str, Field(description="What its maker calls it.")]
    flops_per_second: Annotated[
        int, Field(description="Peak of dense products of 16-bit numbers: bfloat16, or float16.")
    ]
    bytes_per_second: Annotated[int, Field(description="Bandwidth of its memory.")]
    memory: Annotated[int, Field(description="Its memory as sold.")]
    memory_unit: Annotated[MemoryUnit, Field(description="What that is counted in.")]
    memory_bytes: Annotated[int, Field(description="The same in bytes.")]
    ridge: Annotated[float, Field(description="FLOP a byte: peak / bandwidth.")]
    source: Annotated[str, Field(description="Where its numbers are from.")]
    note: Annotated[str, Field(description="What sources disagree on; empty: nothing known.")]


class Devices(Answered):
    """The devices there are."""

    devices: Annotated[list[DeviceLine], Field(description="A line each.")]
