"""How near an answer is to the reference, and where a choice of experts makes them part."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import agreement
import runs
from compute.types import DType
from fuzz.parts import Drawn

Arrays = Mapping[str, np.ndarray]


def as_array(tensor: Drawn) -> np.ndarray:
    """The data of an answer's tensor, its nulls as what they stand for."""
    nulls = tensor.get("nonfinite", "-inf")
    assert nulls == "-inf"
    found = np.array(tensor["data"], object)
    return np.where(found == None, -np.inf, found).astype(np.float64)  # noqa: E711 - elementwise


@dataclass(frozen=True, slots=True)
class Compared:
    """Which stages are further from the reference than roundings explain, up to the first choice
    of experts that a rounding may turn; what there is to say of it."""

    apart: set[str]
    tie: str | None
    told: str


def compare(
    found: Arrays, exact: Arrays, config: Drawn, values: Arrays, read: Any, dtype: DType  # noqa: ANN401
) -> Compared:  # fmt: skip
    """Every stage of an answer beside its reference."""
    allowed, sizes = agreement.tolerance(dtype, exact), agreement.sizes(config, exact)
    errors = {
        name: runs.relative_error(found[name], value, sizes[name]) for name, value in exact.items()
    }
    with np.errstate(invalid="ignore"):  # logits that are all zero are no near tie
        ties = agreement.ties(exact, allowed)
    far = {name for name in before(ties, exact) if not errors[name] <= allowed}
    told = f"allowed {allowed:.1e}; {max(errors.items(), key=lambda error: error[1])}"
    if far:
        moved = agreement.shaken(config, values, read, dtype)
        ties += [name for name in exact if is_tie(name, exact, moved)]
        differences = {name: (largest(found[name], exact[name]), moved[name]) for name in far}
        told += f"; difference, and how far rounding moves it: {differences}"
        far = {name for name, (by, may) in differences.items() if not by <= may}
    compared = before(ties, exact)
    return Compared(far & {*compared}, next(iter(ties), None), told)


def before(ties: list[str], exact: Arrays) -> list[str]:
    """The stages up to the logits of the first choice that a rounding may turn."""
    names = list(exact)
    at = min((names.index(tie) for tie in ties), default=len(names))
    return names[: at + 1]


def is_tie(name: str, exact: Arrays, moved: Mapping[str, float]) -> bool:
    """Whether it is a router, and rounding moves two logits of a choice past one another."""
    if not name.endswith("ffn.router"):
        return False
    logits, chosen = exact[name], exact[name.replace("router", "experts")].shape[-1]
    in_order = -np.sort(-logits, axis=-1)[..., : chosen + 1]
    return float(-np.diff(in_order).max(initial=-np.inf)) <= 2 * moved[name]


def largest(found: np.ndarray, exact: np.ndarray) -> float:
    """The largest difference; inf where the -inf differ."""
    finite = np.isfinite(exact)
    if not np.array_equal(finite, np.isfinite(found)):
        return float("inf")
    return float(np.abs(found[finite] - exact[finite]).max(initial=0.0))
