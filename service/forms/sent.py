"""A request as one safetensors body: its JSON text under `__metadata__`, in the entry `request`,
and each tensor as an entry, named by the place where it belongs.

A name is a JSON Pointer (RFC 6901): `/input/tensor`, `/model/weights/tensors/blocks.0.attn.W_Q`.
Objects on the way to it are made where they are missing.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import cast

from compute.checkpoints import header
from compute.checkpoints.header import METADATA, Broken, Entry
from compute.errors import MOST_FAULTS, Fault, Place
from schemas.binary import Binary
from service import errors, json_text
from service.forms import form

REQUEST = "request"
"""The entry of `__metadata__` that has the request's JSON."""

TAKEN: Sequence[str] = (form.JSON, form.SAFETENSORS)
"""What a call that reads tensors takes."""

MOST_TENSORS = 8192

_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)+")
_NONE = "The body is no safetensors file, or was cut short."

Object = dict[str, object]


def opened(body: bytes | bytearray, check: Callable[[memoryview], None]) -> object:
    """The request of a body, with a `Binary` in the place of each tensor; nothing is copied.

    check: raises where a text is too long to be read as JSON. Raises MalformedSafetensors,
    InvalidBinary, MalformedJson.
    """
    whole = memoryview(body).toreadonly()
    start = 8 + _header_length(whole)
    check(whole[8:start])
    raw = json_text.load(bytes(whole[8:start]), "The header of the body")
    text = _request(raw)
    check(memoryview(text))
    request = json_text.load(text, f"The JSON under {METADATA}, in {REQUEST},")
    found = _entries(cast(Object, raw), len(whole) - start)
    if isinstance(request, dict):
        _place(found, whole[start:], request)
    return request


def _header_length(whole: memoryview) -> int:
    length = int.from_bytes(whole[:8], "little")
    if len(whole) < 8 or length > len(whole) - 8:
        raise _malformed(_NONE)
    return length


def _request(raw: object) -> bytes:
    """The request's JSON, taken out of the header."""
    if not isinstance(raw, dict):
        raise _malformed("The header of the body is no object.")
    metadata = raw.pop(METADATA, {})
    if not header.is_metadata(metadata):
        raise _malformed(f"{METADATA} is an object of texts.")
    if REQUEST not in metadata:
        raise _malformed(f"The JSON of the request is needed under {METADATA}, in {REQUEST}.")
    return cast(str, metadata[REQUEST]).encode()


def _entries(raw: Object, tensor_bytes: int) -> Mapping[str, Entry]:
    """The tensors of a header without its metadata."""
    if len(raw) > MOST_TENSORS:
        detail = f"A body has at most {MOST_TENSORS} tensors."
        raise errors.InvalidBinary([Fault(code="too_many_keys", detail=detail, got=len(raw))])
    broken = list(islice(map(_told, header.broken(raw, tensor_bytes)), MOST_FAULTS))
    if broken:
        raise errors.MalformedSafetensors(broken)
    named = enumerate(raw, 1)
    _refuse(_misnamed(at, len(raw)) for at, name in named if not _POINTER.fullmatch(name))
    return header.entries(raw, 0)


def _place(found: Mapping[str, Entry], data: memoryview, request: Object) -> None:
    """Put each tensor where its name says; InvalidBinary tells those that have no place there."""
    _refuse(
        fault
        for name, entry in found.items()
        for fault in _put(
            Binary(entry.dtype, entry.shape, data[entry.begin : entry.begin + entry.bytes]),
            name,
            request,
        )
    )


def _put(tensor: Binary, tensor_name: str, request: Object) -> Iterator[Fault]:
    """Put a tensor where its name says; a fault where it cannot stand there."""
    place = _parts(tensor_name)
    here: object = request
    for depth, part in enumerate(place[:-1]):
        if isinstance(here, dict):
            here = here.setdefault(part, {})
        elif isinstance(here, list) and _is_index(part, here):
            here = here[int(part)]
        else:
            yield _no_object(here, place[:depth])
            return
    last = place[-1]
    if not isinstance(here, dict):
        yield _no_object(here, place[:-1])
    elif last in here and not _is_left_of(tensor_name, here[last]):
        detail = "Something stands here already: a tensor is an entry, or in the JSON."
        yield Fault(code="taken", detail=detail, place=tuple(place))
    else:
        here[last] = tensor


def _is_left_of(name: str, value: object) -> bool:
    """Whether a value is what an answer has in the place of the tensor of this name."""
    return isinstance(value, dict) and value.get("entry") == name


def _is_index(part: str, entries: list[object]) -> bool:
    """Whether a part of a pointer is an entry of a list, as RFC 6901 writes it."""
    return re.fullmatch("0|[1-9][0-9]{0,8}", part) is not None and int(part) < len(entries)


def _no_object(here: object, place: Sequence[str]) -> Fault:
    rule = "The name of a tensor leads through what is no object, to where it cannot stand."
    if isinstance(here, list):
        rule = "The name of a tensor leads into this list, to an entry that it does not have."
    return Fault(code="no_place", detail=rule, place=tuple(place))


def _parts(name: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in name.split("/")[1:]]


def _told(broken: Broken) -> Fault:
    """A broken rule of the header as a fault of the request; texts that were sent are left out."""
    detail = broken.rule.format(tensor="this tensor", file="the body")
    pointer = broken.tensor is not None and _POINTER.fullmatch(broken.tensor) is not None
    place: Place = tuple(_parts(cast(str, broken.tensor))) if pointer else ()
    got = None if isinstance(broken.got, str) else broken.got
    detail = f"{detail[:1].upper()}{detail[1:]}."
    return Fault(code="safetensors", detail=detail, place=place, expected=broken.expected, got=got)


def _misnamed(at: int, count: int) -> Fault:
    detail = (
        "A tensor's name is the JSON Pointer of its place in the request, as /input/tensor; "
        f"tensor {at} of {count} has another."
    )
    return Fault(code="no_pointer", detail=detail)


def _refuse(faults: Iterator[Fault]) -> None:
    found = list(islice(faults, MOST_FAULTS))
    if found:
        raise errors.InvalidBinary(found)


def _malformed(detail: str) -> errors.MalformedSafetensors:
    return errors.MalformedSafetensors([Fault(code="safetensors", detail=detail)])
