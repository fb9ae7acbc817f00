"""Bytes of a model's weights: each kind of tensor in its number format, count times.

All numbers are stored in the one format but for the roles that are kept in another. A tensor is
stored once, however many blocks read it.
"""

from dataclasses import dataclass, field
from typing import Literal

from compute.config import ModelConfig
from compute.sizing.formats import Format, KeptRole
from compute.sizing.holdings import Holding, holdings
from compute.sizing.ledger import Ledger, Part
from compute.sizing.memory.stored import stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Roles whose numbers stay in a format of their own."""

    roles: frozenset[KeptRole] = frozenset()
    format: Format = field(default_factory=lambda: Format(name="float16"))


def size(config: ModelConfig, form: Format, kept: Kept | None = None) -> Ledger:
    """Bytes by kind of tensor: count · ceil(numbers · bits / 8)."""
    parts = [_part(held, form, kept or Kept()) for held in holdings(config) if held.parameters]
    return Ledger(unit="bytes", parts=parts, views=("kept",))


def _part(held: Holding, form: Format, kept: Kept) -> Part:
    stays = _role(held) in kept.roles
    each = stored(held.size, kept.format, "keep") if stays else stored(held.size, form, "w")
    return Part(
        id=held.id,
        each=each,
        count=held.count,
        letter=held.letter,
        views=frozenset({"kept"} if stays else ()),
    )


def _role(held: Holding) -> KeptRole | Literal["other"]:
    """embeddings: tables, a tied one too. readout: the matrix of an untied one. norms: gains and
    biases of norms. biases: of products, and sinks."""
    name = held.id.removeprefix("encoder.")
    if held.role == "table":
        return "embeddings"
    if name == "unembed.W_U":
        return "readout"
    if held.role in ("gain", "bias"):
        return "norms" if "norm" in name else "biases"
    return "other"
