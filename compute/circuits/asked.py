"""What is asked of heads: which of them, against which readers, and which measures."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from compute.circuits.heads import HeadId
from compute.circuits.networks import read_by
from compute.circuits.reading import Reader, readers_of
from compute.config import ModelConfig


@dataclass(frozen=True, kw_only=True, eq=False)
class Question:
    """Heads that write, heads that read, measures by name, how many tokens have their rows."""

    config: ModelConfig
    heads: Sequence[HeadId]
    readers: Sequence[HeadId]
    ask: frozenset[str]
    tokens: int = 0
    fold_norm: bool = False

    @cached_property
    def blocks(self) -> Sequence[int]:
        """The blocks of the readers, whose networks are looked at."""
        return sorted({head.block for head in self.readers})

    @cached_property
    def touched(self) -> Sequence[int]:
        """The blocks whose weights are read."""
        theirs = self.blocks if self.ask & {"reads", "ffn", "composition"} else ()
        return sorted({*(head.block for head in self.heads), *theirs})

    @cached_property
    def columns(self) -> Sequence[Reader]:
        """The matrices of heads that may read."""
        return readers_of(self.config, self.readers)

    @property
    def read_matrices(self) -> Sequence[str]:
        """By which a network reads; none where there is none."""
        return read_by(self.config) if self.config.ffn.kind != "none" else ()
