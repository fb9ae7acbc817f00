"""The header of a GGUF file, checked whole before any tensor is touched.

"GGUF"    4 bytes, then the version (u32), the number of tensors (u64) and of keys (u64)
keys      each a string and a value
tensors   each a name, its lengths (last axis first), its type, and where it begins in the data
the data  from the next multiple of general.alignment on
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO

from compute.checkpoints.faults import refused
from compute.checkpoints.gguf.quantized import KINDS, NOT_READ, Kind
from compute.checkpoints.gguf.taking import Taking, Value
from compute.checkpoints.header import MOST_TENSORS, Entry

MOST_KEYS = 1 << 16
MOST_AXES = 4
_VERSIONS = (2, 3)
_LARGEST_ALIGNMENT = 1 << 16


@dataclass(frozen=True, slots=True)
class Packed(Entry):
    """A tensor of a file: its type by name, its shape as torch has it, where its bytes begin."""

    kind: Kind

    @property
    def bytes(self) -> int:
        """How many bytes it holds."""
        return self.size // self.kind.weights * self.kind.bytes


@dataclass(frozen=True, slots=True, eq=False)
class Header:
    """What a file says of itself: keys, tensors, and how many bytes it took to say so."""

    keys: Mapping[str, Value]
    entries: Mapping[str, Packed]
    bytes: int


def read_header(file: BinaryIO, file_bytes: int, name: str) -> Header:
    """The header of a file from its start, or a ModelError with the first thing that is wrong."""
    taking = Taking(file, file_bytes, name)
    n_tensors, n_keys = _counts(taking)
    keys: dict[str, Value] = {}
    for _ in range(n_keys):
        key = taking.name()
        if key in keys:
            raise taking.refused(f"has the key {key} twice.")
        keys[key] = taking.value()
    alignment = _alignment(keys, name)
    listed: dict[str, Packed] = {}
    for _ in range(n_tensors):
        tensor = taking.name()
        if tensor in listed:
            raise taking.refused(f"has the tensor {tensor} twice.")
        listed[tensor] = _entry(taking, tensor, name)
    start = -(-taking.at // alignment) * alignment
    _refuse_places(listed, alignment, file_bytes - start, name)
    return Header(keys, {x: _moved(entry, start) for x, entry in listed.items()}, taking.at)


def _counts(taking: Taking) -> tuple[int, int]:
    if taking.bytes(4) != b"GGUF":
        raise taking.refused("is no GGUF file.")
    version = taking.u32()
    if version not in _VERSIONS:
        raise taking.refused(f"is of version {version}; 2 and 3, little-endian, are read.")
    n_tensors, n_keys = taking.u64(), taking.u64()
    if n_tensors > MOST_TENSORS or n_keys > MOST_KEYS:
        raise taking.refused(f"has more than {MOST_TENSORS} tensors or keys.")
    return n_tensors, n_keys


def _alignment(keys: Mapping[str, Value], name: str) -> int:
    found = keys.get("general.alignment", 32)
    power = type(found) is int and 0 < found <= _LARGEST_ALIGNMENT and not found & (found - 1)
    if not isinstance(found, int) or not power:
        told = f"general.alignment must be a power of 2 up to {_LARGEST_ALIGNMENT}."
        raise refused((name, "general.alignment"), told)
    return found


def _entry(taking: Taking, tensor: str, name: str) -> Packed:
    """A tensor as listed; `begin` counts from where the data begin."""
    place = (name, tensor)
    n_axes = taking.u32()
    if not 1 <= n_axes <= MOST_AXES:
        raise refused(place, f"{tensor} has no 1 to {MOST_AXES} axes.", MOST_AXES, n_axes)
    shape = tuple(reversed([taking.u64() for _ in range(n_axes)]))
    number = taking.u32()
    if number not in KINDS:
        there = ", ".join(kind.name for kind in KINDS.values())
        got = NOT_READ.get(number, f"type {number}")
        raise refused(place, f"{tensor} is of {got}, which is not read: {there}.", there, got)
    kind = KINDS[number]
    if min(shape) < 1 or shape[-1] % kind.weights:
        detail = f"{tensor} of {kind.name} has lengths that are not above 0, or rows that "
        raise refused(place, f"{detail}are not whole blocks of {kind.weights}.", got=list(shape))
    return Packed(kind.name, shape, taking.u64(), kind)


def _refuse_places(
    listed: Mapping[str, Packed], alignment: int, data_bytes: int, name: str
) -> None:
    """No tensor off the alignment, over another, or beyond the file's end."""
    end = 0
    for tensor, entry in sorted(listed.items(), key=lambda x: x[1].begin):
        if entry.begin % alignment or entry.begin < end:
            raise refused((name, tensor), f"{tensor} begins where it cannot.")
        end = entry.begin + entry.bytes
        if end > data_bytes:
            raise refused((name, tensor), f"{tensor} goes beyond the file's end.")


def _moved(entry: Packed, start: int) -> Packed:
    return Packed(entry.dtype, entry.shape, start + entry.begin, entry.kind)
