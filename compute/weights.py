"""A model's weights, packed the way the products want them.

Each part is fetched and packed when it is first read, once: W_Q, W_K and W_V side by side for one
product, heads of W_O stacked for another. A run that stops early reads what it needs. Everything
is frozen.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import overload

import numpy as np

from compute import tensors
from compute.block_weights import Bench, BlockWeights, NormWeights, block, norm
from compute.config import ModelConfig
from compute.initial import Source
from compute.types import Array, DType


class Blocks(Sequence[BlockWeights]):
    """The blocks' weights, each fetched when it is first asked for."""

    def __init__(self, count: int, fetch: Callable[[int], BlockWeights]) -> None:
        self._fetched: list[BlockWeights | None] = [None] * count
        self._fetch = fetch

    def __len__(self) -> int:
        return len(self._fetched)

    @overload
    def __getitem__(self, at: int) -> BlockWeights: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[BlockWeights]: ...
    def __getitem__(self, at: int | slice) -> BlockWeights | Sequence[BlockWeights]:
        if isinstance(at, slice):
            return [self[one] for one in range(len(self))[at]]
        layer = range(len(self))[at]
        found = self._fetched[layer]
        if found is None:
            found = self._fetched[layer] = self._fetch(layer)
        return found

    def made(self) -> list[BlockWeights]:
        """Those fetched so far."""
        return [block for block in self._fetched if block is not None]


class StackWeights:
    """A stack: W_pos (n, d), W_type (t, d), W_rel (r, h), the embedding's norm, the blocks, the
    final norm."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.dtype: DType = bench.dtype
        self._counted = (0, 0)

    def parts(self) -> int:
        """How many parts were fetched so far."""
        blocks = vars(self).get("blocks")
        return len(vars(self)) + (0 if blocks is None else len(blocks.made()))

    @cached_property
    def W_pos(self) -> Array:
        """Learned positions (n, d)."""
        return self._bench.take("pos_embed.W_pos")

    @cached_property
    def W_type(self) -> Array:
        """Token types (t, d)."""
        return self._bench.take("type_embed.W_type")

    @cached_property
    def W_rel(self) -> Array:
        """T5's relative bias (r, h)."""
        return self._bench.take("rel_bias.W_rel")

    @cached_property
    def embed_norm(self) -> NormWeights:
        """The norm below the first block."""
        return norm(self._bench, "embed_norm")

    @cached_property
    def blocks(self) -> Blocks:
        """The blocks, each fetched when it is asked for."""
        bench = self._bench
        return Blocks(bench.config.n_layers, lambda layer: block(bench, f"blocks.{layer}."))

    @cached_property
    def final_norm(self) -> NormWeights:
        """The norm after the last block."""
        return norm(self._bench, "final_norm")


class ModelWeights(StackWeights):
    """A stack with W_E (V, d), its encoder's stack if it has one, and its readout: W_mlm (d, p),
    b_mlm (p), mlm_norm, W_U (d, V), b_U (V)."""

    def held_bytes(self) -> int:
        """Bytes of the parts that were fetched so far; counted again where there are more."""
        encoder = vars(self).get("encoder")
        parts = self.parts() + (0 if encoder is None else encoder.parts())
        if self._counted[0] != parts:
            owners = {id(x): x for x in _owners(self)}.values()
            self._counted = (parts, sum(owner.nbytes for owner in owners))
        return self._counted[1]

    @cached_property
    def W_E(self) -> Array:
        """Token embeddings (V, d)."""
        return self._bench.take("embed.W_E")

    @cached_property
    def encoder(self) -> StackWeights | None:
        """The encoder's stack."""
        config = self._bench.config.encoder
        return None if config is None else StackWeights(self._bench.encoder(config))

    @cached_property
    def W_mlm(self) -> Array:
        """The masked-token head's product (d, p)."""
        return self._bench.take("mlm_head.W")

    @cached_property
    def b_mlm(self) -> Array:
        """Its bias (p)."""
        return self._bench.take("mlm_head.b")

    @cached_property
    def mlm_norm(self) -> NormWeights:
        """Its norm."""
        return norm(self._bench, "mlm_norm")

    @cached_property
    def W_U(self) -> Array:
        """The readout (d, V): the embedding transposed where it is tied."""
        return self.W_E.T if self._bench.config.tied else self._bench.take("unembed.W_U")

    @cached_property
    def b_U(self) -> Array | None:
        """The readout's bias (V)."""
        return self._bench.maybe("unembed.b_U")


def _owners(part: object) -> Iterator[Array]:
    """The arrays that a part, as far as it was fetched, keeps in memory."""
    if isinstance(part, np.ndarray):
        yield part if part.base is None else part.base
    elif isinstance(part, Blocks):
        yield from (x for block in part.made() for x in _owners(block))
    elif isinstance(part, StackWeights):
        yield from (x for each in vars(part).values() for x in _owners(each))
    elif is_dataclass(part):
        yield from (x for each in fields(part) for x in _owners(getattr(part, each.name)))


def build(config: ModelConfig, source: Source, dtype: DType) -> ModelWeights:
    """All weights of a config from a source, frozen, of one dtype; fetched as they are read."""
    return ModelWeights(Bench(config, tensors.tensors(config), source, dtype))
