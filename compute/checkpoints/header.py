"""The header of a safetensors file, checked whole before anything else of the file is touched.

8 bytes   N, little-endian
N bytes   JSON: {name: {"dtype", "shape", "data_offsets": [begin, end]}, "__metadata__": {…}}
the rest  the tensors, end to end
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from math import prod

from compute.checkpoints.faults import fault, refused, shown
from compute.checkpoints.json_file import parsed_object
from compute.errors import MOST_FAULTS, Fault, ModelError, refuse_if

MOST_HEADER_BYTES = 1 << 24
MOST_TENSORS = 1 << 15
MOST_AXES = 8
LONGEST_NAME = 256

WIDTHS: Mapping[str, int] = {
    **dict.fromkeys(("F64", "I64", "U64"), 8),
    **dict.fromkeys(("F32", "I32", "U32"), 4),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 2),
    **dict.fromkeys(("I8", "U8", "BOOL"), 1),
}
"""dtype -> bytes of one number. Weights are of the floating ones, masks and counters of any."""

_NAME = re.compile(rf"[!-~]{{1,{LONGEST_NAME}}}")
METADATA = "__metadata__"
_ENTRY = {"dtype", "shape", "data_offsets"}
_METADATA_ROOM = 1 << 12  # braces in metadata, which often holds JSON in strings
_NUMBERS_A_TENSOR = MOST_AXES + 5  # commas of one entry


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule that an entry of a header breaks, in words with {tensor} for its name and {file} for
    what holds it, without a full stop. tensor: its name; none where the header as a whole, or a
    name that is none, is at fault."""

    tensor: str | None
    rule: str
    expected: object = None
    got: object = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A tensor of a file: its dtype, shape, and where its bytes begin, from the file's start."""

    dtype: str
    shape: tuple[int, ...]
    begin: int

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """How many bytes it holds."""
        return self.size * WIDTHS[self.dtype]


def header_length(first: bytes, file_bytes: int, name: str, most: int = MOST_HEADER_BYTES) -> int:
    """How long the header is, by the file's first 8 bytes."""
    found = int.from_bytes(first, "little")
    if len(first) < 8 or found > file_bytes - 8:
        raise refused(name, f"{name} is no safetensors file, or was cut short.")
    if found > most:
        raise refused(name, f"The header of {name} is longer than {most} bytes.", most, found)
    return found


def read_entries(content: bytes, file_bytes: int, name: str) -> dict[str, Entry]:
    """Every tensor of a header, in the file's order; a ModelError with all that is wrong.

    content: the header's bytes, without the 8 before it.
    """
    _refuse_too_many(content, name)
    raw = parsed_object(content, name)
    metadata = raw.pop(METADATA, {})
    faults = [] if is_metadata(metadata) else [fault((name, METADATA), "No metadata.")]
    start = 8 + len(content)
    faults += (_told(name, x) for x in islice(broken(raw, file_bytes - start), MOST_FAULTS))
    refuse_if(ModelError, faults)
    return entries(raw, start)


def broken(raw: Mapping[str, object], tensor_bytes: int) -> Iterator[Broken]:
    """What is wrong with a header as JSON, without its metadata, before so many bytes of tensors:
    with its entries one by one, or else with how they lie."""
    fine = True
    for name, value in raw.items():
        for found in _broken(name, value):
            fine = False
            yield found
    if fine:
        yield from _gaps(entries(raw, 0), tensor_bytes)


def entries(raw: Mapping[str, object], start: int) -> dict[str, Entry]:
    """The tensors of a header as JSON of which nothing is broken; start: where their bytes are."""
    return {name: _entry(value, start) for name, value in raw.items()}


def is_metadata(raw: object) -> bool:
    """Whether something is an object of texts."""
    return isinstance(raw, dict) and all(isinstance(value, str) for value in raw.values())


def _told(file: str, found: Broken) -> Fault:
    """A broken rule as a fault of a file, with what came where that is a text."""
    detail = found.rule.format(tensor=found.tensor, file=file)
    got = f"; got {found.got}" if isinstance(found.got, str) else ""
    place = (file,) if found.tensor is None else (file, found.tensor)
    return fault(place, f"{detail}{got}.", found.expected, found.got)


def _refuse_too_many(content: bytes, name: str) -> None:
    """Before the JSON is read, for each tensor costs some hundred bytes then."""
    braces, commas = content.count(b"{"), content.count(b",")
    most_commas = _NUMBERS_A_TENSOR * MOST_TENSORS
    if braces > MOST_TENSORS + _METADATA_ROOM or commas > most_commas:
        raise refused(name, f"{name} has more than {MOST_TENSORS} tensors.", MOST_TENSORS)


def _broken(name: str, raw: object) -> Iterator[Broken]:
    if not _NAME.fullmatch(name):
        rule = f"A tensor's name is 1 to {LONGEST_NAME} printable characters"
        yield Broken(None, rule, got=shown(name))
    elif not isinstance(raw, dict) or set(raw) != _ENTRY:
        yield Broken(name, "{tensor} must have dtype, shape and data_offsets")
    elif not isinstance(raw["dtype"], str) or raw["dtype"] not in WIDTHS:
        there = ", ".join(WIDTHS)
        rule = f"{{tensor}} is of a dtype that is not read; {there} are"
        yield Broken(name, rule, there, shown(raw["dtype"]))
    elif not _whole(raw["shape"], MOST_AXES):
        rule = f"The shape of {{tensor}} is no list of at most {MOST_AXES} lengths"
        yield Broken(name, rule)
    elif not _whole(raw["data_offsets"], 2) or len(raw["data_offsets"]) != 2:
        yield Broken(name, "data_offsets of {tensor} must be two whole numbers")
    else:
        begin, end = raw["data_offsets"]
        needed = prod(raw["shape"]) * WIDTHS[raw["dtype"]]
        if end - begin != needed:
            rule = "{tensor} has bytes that its shape does not"
            yield Broken(name, rule, needed, end - begin)


def _whole(raw: object, most: int) -> bool:
    """Whether something is a list of at most so many whole numbers that a file can have."""
    return (
        isinstance(raw, list)
        and len(raw) <= most
        and all(type(x) is int and 0 <= x < 1 << 62 for x in raw)
    )


def _entry(raw: object, start: int) -> Entry:
    assert isinstance(raw, dict)  # noqa: S101 - `broken` found nothing
    return Entry(raw["dtype"], tuple(raw["shape"]), start + raw["data_offsets"][0])


def _gaps(found: Mapping[str, Entry], tensor_bytes: int) -> Iterator[Broken]:
    """Tensors lie end to end: no byte belongs to two, or to none."""
    at = 0
    for name, entry in sorted(found.items(), key=lambda x: (x[1].begin, x[1].bytes)):
        if entry.begin != at:
            rule = "{tensor} does not begin where the tensor before it ends"
            yield Broken(name, rule, at, entry.begin)
        at = entry.begin + entry.bytes
    if at != tensor_bytes:
        yield Broken(None, "The tensors of {file} do not end where it ends", at, tensor_bytes)
