"""Tensors that are stored a second time, as tied readouts are: they must be the copies they seem.

A tensor that is left out and has the embedding's shape and dtype is one; a readout that differs
from the embedding, in a folder whose config ties them, would be lost in silence.
"""

from collections.abc import Iterator
from itertools import islice

from compute.checkpoints.content import ends
from compute.checkpoints.faults import fault
from compute.checkpoints.fitting import Fitted
from compute.checkpoints.safetensors_file import Reader
from compute.errors import MOST_FAULTS, Fault, ModelError, refuse_if

_EMBEDDING = "embed.W_E"


def check(reader: Reader, fitted: Fitted) -> None:
    """A ModelError for each left-out tensor that looks like the embedding and is another.

    Compared where they begin, where they end and in the midst, 4 KiB each.
    """
    refuse_if(ModelError, list(islice(_others(reader, fitted), MOST_FAULTS)))


def _others(reader: Reader, fitted: Fitted) -> Iterator[Fault]:
    if _EMBEDDING not in fitted.stored:
        return
    embedding = fitted.stored[_EMBEDDING].names[0]
    kind = reader.entries[embedding]
    for name in fitted.left_out:
        entry = reader.entries[name]
        if (entry.shape, entry.dtype) == (kind.shape, kind.dtype) and not _same(
            reader, name, embedding, entry.bytes
        ):
            detail = f"{name} is not read, and differs from {embedding}, to which it is tied."
            yield fault(("model.safetensors", name), detail)


def _same(reader: Reader, one: str, other: str, size: int) -> bool:
    middle = (size // 2, size // 2 + (1 << 12))
    places = (*ends(size), middle)
    return all(reader.bytes_of(one, *at) == reader.bytes_of(other, *at) for at in places)
