"""An answer as one safetensors body: its tensors as they are in memory, the rest of it as JSON
under `__metadata__`, in the entry `answer`.

https://huggingface.co/docs/safetensors: eight bytes with the header's length, the header as JSON,
the tensors' bytes in row order, little-endian.
"""

from collections.abc import Mapping

import orjson

from service.forms import apart, tensors, text
from service.forms.form import PLAIN, Form
from service.forms.tensors import Piece

DTYPES = {"float32": "F32", "float64": "F64", "int64": "I64", "bool": "BOOL"}
"""NumPy's name of a dtype -> that of safetensors."""

_ALIGNMENT = 8


def answer(members: Mapping[str, object], form: Form) -> list[Piece]:
    """The body in pieces; arrays that are contiguous are not copied."""
    found = apart.taken(members, form)
    rest = text.dumps(found.answer, PLAIN).decode()
    widest_first = sorted(found.entries, key=lambda name: -found.entries[name].values.itemsize)
    header: dict[str, object] = {"__metadata__": {"answer": rest}}
    pieces: list[Piece] = []
    at = 0
    for name in widest_first:
        values = found.entries[name].values
        end = at + values.nbytes
        header[name] = {
            "dtype": DTYPES[values.dtype.name],
            "shape": values.shape,
            "data_offsets": [at, end],
        }
        pieces.append(tensors.as_bytes(values, finite=name in found.finite))
        at = end
    head = orjson.dumps(header)
    head += b" " * (-len(head) % _ALIGNMENT)
    return [len(head).to_bytes(8, "little") + head, *pieces]
