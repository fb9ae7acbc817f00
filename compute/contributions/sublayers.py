"""A sublayer of a block, as something that can be split: its names, its weights, its way out."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from compute import stages
from compute.block_weights import AttentionWeights, BlockWeights, CrossWeights
from compute.config import ModelConfig, block_config
from compute.contributions.linear import Frozen, frozen
from compute.contributions.parts import Group, one
from compute.contributions.seen import Seen
from compute.types import Array

NORMS: Mapping[str, str] = {"attn": "norm1", "cross": "norm_cross", "ffn": "norm2"}
"""The norm before or after each sublayer."""


@dataclass(frozen=True, slots=True)
class Sublayer:
    """attn, cross or ffn of a block (`prefix`: `blocks.0.`), of its own config.

    `added`: what it adds to the stream; else its raw output, before a norm or a multiplier.
    """

    prefix: str
    name: str
    config: ModelConfig
    added: bool = True

    @property
    def part(self) -> str:
        """`blocks.0.attn`: what the ids of its parts begin with."""
        return self.prefix + self.name

    @property
    def raw(self) -> str:
        """The stage of its raw output."""
        return f"{self.part}.out_raw" if self.is_changed else f"{self.part}_out"

    @property
    def out(self) -> str:
        """The stage that its parts add up to."""
        return f"{self.part}_out" if self.added else self.raw

    @property
    def is_changed(self) -> bool:
        """Whether something stands between its raw output and the stream."""
        return self.is_normed or self.config.residual_multiplier != 1.0

    @property
    def is_normed(self) -> bool:
        """Whether a norm does."""
        norm = self.config.norm
        return norm.kind != "none" and norm.placement in ("sandwich", "output")

    @property
    def after(self) -> str:
        """The norm that does."""
        return f"{self.prefix}{NORMS[self.name]}_post"

    def way_count(self) -> int:
        """How many biases the way out has."""
        norm = self.config.norm
        has_bias = norm.kind == "layernorm" and norm.bias
        return int(self.added and self.is_normed and has_bias)

    def way_needs(self) -> set[str]:
        """The stages that the way out needs."""
        return {f"{self.after}.scale"} if self.added and self.is_normed else set()

    def way(self, seen: Seen) -> "Way":
        """The way from its raw output to what is split."""
        norm = self._norm(seen) if self.added and self.is_normed else None
        multiplier = self.config.residual_multiplier if self.added and self.is_changed else 1.0
        return Way(norm, float(np.dtype(seen.weights.dtype).type(multiplier)))

    def _norm(self, seen: Seen) -> Frozen:
        block = self.block(seen)
        w = block.norm2_post if self.name == "ffn" else block.norm1_post
        return frozen(self.after, self.config.norm.kind, seen.stages, w)

    def block(self, seen: Seen) -> BlockWeights:
        """The weights of its block."""
        return seen.stack(self.prefix).blocks[stages.layer_of(self.prefix + "x") or 0]

    def heads(self, seen: Seen) -> AttentionWeights | CrossWeights:
        """The weights of its heads."""
        block = self.block(seen)
        return block.cross if self.name == "cross" else block.attention


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """multiplier · LN'(x), the norm's scale held: linear but for its bias."""

    norm: Frozen | None
    multiplier: float

    def push(self, parts: Array) -> Array:
        """Raw parts as they join the stream: (R, p, d) -> same."""
        if self.norm is None:
            return parts if self.multiplier == 1.0 else self.multiplier * parts
        return self.multiplier * self.norm.push(parts)

    def size(self, size: float) -> float:
        """How large terms of this size may be behind it."""
        if self.norm is None:
            return abs(self.multiplier) * size
        bounded = 2.0 * size / self.norm.scale.min() * np.abs(self.norm.gain).max()
        return float(abs(self.multiplier) * bounded)

    def bias(self, rows: int) -> Iterator[Group]:
        """The bias of its norm, a part of its own."""
        if self.norm is not None and self.norm.bias is not None:
            bias = self.multiplier * self.norm.bias
            yield one(f"{self.norm.name}.bias", np.broadcast_to(bias, (rows, bias.size)))


Needs = Callable[[Sublayer], set[str]]
Groups = Callable[[Sublayer, Seen], Iterator[Group]]
Count = Callable[[Sublayer, Mapping[str, int]], int]
"""How many parts there are, by the lengths of the axes."""


@dataclass(frozen=True, slots=True)
class Split:
    """How a sublayer is split: the stages that takes, its parts, and how many they are."""

    needs: Needs
    groups: Groups
    count: Count


def whole(sub: Sublayer, seen: Seen) -> Iterator[Group]:
    """What the sublayer adds, as one part."""
    yield one(sub.out, seen[sub.out])


WHOLE = Split(lambda sub: {sub.out}, whole, lambda sub, lengths: 1)


def of_block(config: ModelConfig, layer: int, stack: str) -> list[Sublayer]:
    """The sublayers of a block, in order."""
    own = block_config(config, layer)
    has = {
        "attn": own.attention.kind != "none",
        "cross": own.cross_attention,
        "ffn": own.ffn.kind != "none",
    }
    prefix = f"{stack}blocks.{layer}."
    return [Sublayer(prefix, name, own) for name, there in has.items() if there]
