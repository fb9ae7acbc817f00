"""The stream that enters the first block, split into what was added below it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from compute import stages
from compute.contributions.linear import Frozen, frozen
from compute.contributions.parts import Group, one
from compute.contributions.seen import Seen
from compute.selection import Scene
from compute.types import Array, Inputs

_ADDED = ("embed", "pos_embed", "type_embed")


@dataclass(frozen=True, slots=True)
class Embeddings:
    """X^(0) of a stack: its embeddings (or the posted rows), through the norm below the blocks."""

    stack: str
    scene: Scene

    def needs(self) -> set[str]:
        """The stages that takes."""
        norm = {f"{self.stack}embed_norm.scale"} if self._is_normed else set()
        return set(self._added()) | norm

    def groups(self, seen: Seen) -> Iterator[Group]:
        """`embed` or `input`, `pos_embed`, `type_embed`, and `embed_norm.bias`."""
        norm = self._norm(seen) if self._is_normed else None
        if not self._has_tokens:
            yield self._one("input", _posted(self._inputs(seen), seen), norm)
        for name in self._added():
            yield self._one(name.removeprefix(self.stack), seen[name], norm)
        if norm is not None and norm.bias is not None:
            rows = (len(seen.rows.positions), norm.bias.size)
            yield one(f"{norm.name}.bias", np.broadcast_to(norm.bias, rows))

    def count(self) -> int:
        """How many parts."""
        config = stages.config_of(self.stack + "embed", self.scene.config)
        has_bias = config.norm.kind == "layernorm" and config.norm.bias
        return len(self._added()) + (not self._has_tokens) + (self._is_normed and has_bias)

    def _one(self, name: str, values: Array, norm: Frozen | None) -> Group:
        own = values if norm is None else norm.push(values[:, None])[:, 0]
        return replace(one(self.stack + name, own), size=partial(_size, values, norm))

    def _norm(self, seen: Seen) -> Frozen:
        config = stages.config_of(self.stack + "embed", self.scene.config)
        w = seen.stack(self.stack).embed_norm
        return frozen(f"{self.stack}embed_norm", config.norm.kind, seen.stages, w)

    def _added(self) -> list[str]:
        names = (self.stack + name for name in _ADDED)
        return [name for name in names if self.scene.absence(name) is None]

    def _inputs(self, seen: Seen) -> Inputs:
        memory = seen.inputs.memory if self.stack else seen.inputs
        assert memory is not None  # noqa: S101 - the encoder read it
        return memory

    @property
    def _is_normed(self) -> bool:
        return self.scene.absence(f"{self.stack}embed_norm.scale") is None

    @property
    def _has_tokens(self) -> bool:
        return self.scene.absence(f"{self.stack}embed") is None


def _size(values: Array, norm: Frozen | None) -> float:
    """How large what a norm centres may be behind it."""
    if norm is None:
        return 0.0
    scale = float((np.abs(norm.gain) / norm.scale).max())
    return 2.0 * scale * float(np.abs(values).max(initial=0.0))


def _posted(inputs: Inputs, seen: Seen) -> Array:
    """The posted rows as the run read them: rounded to its dtype, in float64."""
    assert inputs.tensor is not None  # noqa: S101 - there are no token ids
    rows, batch = seen.rows, seen.rows.batch
    at = inputs.tensor[rows.positions] if batch is None else inputs.tensor[batch, rows.positions]
    return at.astype(seen.weights.dtype).astype(np.float64)
