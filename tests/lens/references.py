"""What TransformerLens found, and how near ours comes. Needs neither torch nor TransformerLens."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import safe_open
from starlette.testclient import TestClient

from lens.questions import VALUES, Case
from service.app import create_app
from service.settings import Settings

Array = npt.NDArray[Any]

ALLOWED = 1e-10
"""Both sides compute in float64: hundreds of roundings of 1.1e-16 leave room."""

TOLD = 1e-5
"""What a mistake must be off by at least, so that no promise of 1e-5 would let it pass."""


@cache
def _stored() -> tuple[Mapping[str, Array], Mapping[str, list[str]]]:
    with safe_open(VALUES, "numpy") as file:
        values = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
        return values, json.loads(file.metadata()["labels"])


def value(case: Case, name: str) -> Array:
    """A kept value of a case."""
    return _stored()[0][f"{case.model}/{name}"]


def parts(case: Case, name: str) -> list[str]:
    """The parts that a kept stack has, in our names."""
    return [_part(label, case) for label in _stored()[1][f"{case.model}/{name}"]]


def _part(label: str, case: Case) -> str:
    """ "1_mlp_out" -> "blocks.1.ffn_out", "L0H2" -> "blocks.0.head.2"."""
    if label in ("embed", "pos_embed", "remainder"):
        return label
    if label == "final_post":
        return f"blocks.{last_block(case)}.resid_post"
    if label[0] == "L":
        layer, head = label[1:].split("H")
        return f"blocks.{layer}.head.{head}"
    layer, _, kind = label.partition("_")
    return f"blocks.{layer}.{_KINDS[kind]}"


_KINDS = {"attn_out": "attn_out", "mlp_out": "ffn_out", "pre": "resid_pre", "mid": "resid_mid"}


def last_block(case: Case) -> int:
    """The number of the last block."""
    return len(value(case, "resid_post")) - 1


def apart(ours: object, theirs: Array) -> float:
    """Largest difference over the largest of theirs; infinite where a value is no number."""
    found = np.asarray(ours, np.float64)
    assert found.shape == theirs.shape, (found.shape, theirs.shape)
    off = float(np.abs(found - theirs).max() / np.abs(theirs).max())
    return off if np.isfinite(off) else float("inf")


@cache
def _client() -> TestClient:
    return TestClient(create_app(Settings()))


def post(call: str, case: Case, **asked: object) -> Any:  # noqa: ANN401 - plain JSON
    """What the service answers about a case's model, in float64."""
    body = {"model": {"name": case.model}, "dtype": "float64", **asked}
    response = _client().post(f"/v1/{call}", json=body)
    assert response.status_code == 200, response.text
    return response.json()


def stages(case: Case, *names: str) -> dict[str, Array]:
    """Stages of the clean run, by full name."""
    asked = {"input": {"text": case.clean}, "select": list(names), "identities": False}
    tensors = post("trace", case, **asked)["tensors"]
    return {name: np.array(tensor["data"]) for name, tensor in tensors.items()}
