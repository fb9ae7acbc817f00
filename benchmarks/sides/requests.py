"""The requests of the bars about the service, as bodies and headers."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from benchmarks.sides import kept
from benchmarks.sides.rows import rows

SAFETENSORS, LINES = "application/vnd.safetensors", "application/jsonl"
SHOWN = ("blocks.0.attn.pattern", "blocks.0.attn.head_out")
"""(12, 128, 128) and (12, 128, 768)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A POST to /v1/trace."""

    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def sent(self) -> dict[str, str]:
        """All headers: JSON goes both ways unless the request says otherwise."""
        json = "application/json"
        length = str(len(self.body))
        return {"content-type": json, "accept": json, "content-length": length, **self.headers}


def small() -> Asked:
    """The small model on posted rows, the 14 stages."""
    return _asked("small", tensor(*_SMALL), kept.names(1))


_SMALL = (kept.SMALL_POSITIONS, kept.SMALL.d)


def wide(accept: str) -> Asked:
    """The large block on 128 tokens: every head's pattern and contribution."""
    asked = _asked("large", {"token_ids": [at % 64 for at in range(128)]}, SHOWN)
    return Asked(asked.body, {"accept": accept})


def tensor(positions: int, width: int) -> dict[str, object]:
    """An input of seeded rows as nested lists."""
    return {"tensor": rows(positions, width)}


def packed(positions: int, width: int) -> dict[str, object]:
    """The same as base64."""
    values = rows(positions, width)
    data = base64.b64encode(values.tobytes()).decode()
    return {"tensor": {"dtype": "float32", "shape": list(values.shape), "data": data}}


def million_out() -> Asked:
    """An answer of 1,050,624 elements."""
    tokens = {"token_ids": [at % 64 for at in range(342)]}
    return _asked("large", tokens, ["blocks.0.ffn.hidden"])


def million_in() -> Asked:
    """1,049,088 numbers as nested lists, one row of them in the answer."""
    return _asked("large", tensor(1366, 768), _FIRST_ROW)


_FIRST_ROW: list[object] = [{"name": "blocks.0.resid_pre", "position": [0]}]


def million_in_binary() -> Asked:
    """The same as a safetensors body."""
    values = rows(1366, 768)
    head = orjson.dumps(
        {
            "__metadata__": {"request": _head("large", {}, _FIRST_ROW).decode()},
            "/input/tensor": {
                "dtype": "F32",
                "shape": values.shape,
                "data_offsets": [0, values.nbytes],
            },
        }
    )
    head += b" " * (-len(head) % 8)
    body = len(head).to_bytes(8, "little") + head + values.tobytes()
    return Asked(body, {"content-type": SAFETENSORS})


def streamed(layers: int, positions: int) -> Asked:
    """A stream of lines of every listed stage of a deep model."""
    tokens = {"token_ids": [at % 64 for at in range(positions)]}
    return Asked(_asked("deep", tokens, kept.names(layers)).body, {"accept": LINES})


def first(layers: int) -> Asked:
    """One position of the deep model, its last state: all weights are read."""
    return _asked("deep", {"token_ids": [0]}, [f"blocks.{layers - 1}.resid_post"])


def _asked(model: str, given: Mapping[str, object], select: object) -> Asked:
    return Asked(_head(model, given, select))


def _head(model: str, given: Mapping[str, object], select: object) -> bytes:
    request = {"model": {"name": model}, "input": given, "select": select, "identities": False}
    return orjson.dumps(request, option=orjson.OPT_SERIALIZE_NUMPY)
