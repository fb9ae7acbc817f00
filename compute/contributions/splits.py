"""How a target is split: by block, sublayer, head, source, neuron or bias, from tables."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import numpy as np

from compute.contributions import heads, neurons
from compute.contributions.embeddings import Embeddings
from compute.contributions.parts import Group, one
from compute.contributions.seen import Seen
from compute.contributions.sublayers import WHOLE, Split, Sublayer, of_block
from compute.contributions.target import Target
from compute.selection import Scene

By = Literal["block", "sublayer", "head", "source", "neuron", "bias"]

_ATTENTION: Mapping[str, Split] = {
    "sublayer": WHOLE,
    "bias": heads.BIASES_APART,
    "head": heads.BY_HEAD,
    "source": heads.BY_SOURCE,
    "neuron": heads.BIASES_APART,
}
_FFN: Mapping[str, Split] = {
    "sublayer": WHOLE,
    "bias": neurons.BIASES_APART,
    "head": neurons.BIASES_APART,
    "source": neurons.BIASES_APART,
    "neuron": neurons.BY_NEURON,
}
_SPLITS = {"attn": _ATTENTION, "cross": _ATTENTION, "ffn": _FFN}


@dataclass(frozen=True, slots=True)
class Division:
    """A target and a way to split it; `lumped`: what is below the first block is one part."""

    target: Target
    by: str
    scene: Scene
    lumped: bool = False

    def needs(self) -> set[str]:
        """The stages that the parts are made of."""
        needed = {name for sub in self.target.sublayers for name in self._split(sub).needs(sub)}
        if self.target.starts is not None:
            needed.add(self.target.starts)
        if self.target.embedded:
            needed |= {self._entering} if self.lumped else self._embeddings.needs()
        return needed

    def groups(self, seen: Seen) -> Iterator[Group]:
        """The parts, in the order they were added."""
        if self.target.embedded and self.lumped:
            yield one(self._entering, seen[self._entering])
        elif self.target.embedded:
            yield from self._embeddings.groups(seen)
        if self.target.starts is not None:
            yield one(self.target.starts, seen[self.target.starts])
        if self.by == "block":
            yield from self._blocks(seen)
        else:
            for sub in self.target.sublayers:
                yield from self._split(sub).groups(sub, seen)

    def count(self) -> int:
        """How many parts there are at each row."""
        lengths = self.scene.lengths_of(self.target.name)
        below = (1 if self.lumped else self._embeddings.count()) if self.target.embedded else 0
        below += self.target.starts is not None
        if self.by != "block":
            subs = self.target.sublayers
            return below + sum(self._split(sub).count(sub, lengths) for sub in subs)
        blocks = [list(found) for _, found in groupby(self.target.sublayers, _block)]
        return below + sum(1 if self._is_whole(subs) else len(subs) for subs in blocks)

    def _is_whole(self, subs: list[Sublayer]) -> bool:
        return len(subs) == self._in_block and self.target.embedded

    def _blocks(self, seen: Seen) -> Iterator[Group]:
        """A whole block's updates as one part, `blocks.0`; of a part of a block each its own."""
        for prefix, found in groupby(self.target.sublayers, _block):
            subs = list(found)
            if self._is_whole(subs):
                whole = np.sum([seen[sub.out] for sub in subs], axis=0)
                yield one(prefix.removesuffix("."), whole)
            else:
                for sub in subs:
                    yield from WHOLE.groups(sub, seen)

    def _split(self, sub: Sublayer) -> Split:
        return WHOLE if self.by == "block" else _SPLITS[sub.name][self.by]

    @property
    def _in_block(self) -> int:
        stack = self.target.stack
        config = self.scene.config.encoder if stack else self.scene.config
        assert config is not None  # noqa: S101 - the target is of it
        return len(of_block(config, 0, stack))

    @property
    def _entering(self) -> str:
        return f"{self.target.stack}blocks.0.resid_pre"

    @property
    def _embeddings(self) -> Embeddings:
        return Embeddings(self.target.stack, self.scene)


def _block(sub: Sublayer) -> str:
    return sub.prefix
