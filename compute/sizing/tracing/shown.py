"""A stage as a trace answers it: its numbers as a formula, its JSON at most and on average."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from compute import cost, stages
from compute.cost import Alike
from compute.selection import Scene, Wanted
from compute.sizing import architecture
from compute.sizing.architecture import Stack
from compute.sizing.quantity import Quantity, number, q
from compute.sizing.tracing import alike, json_bytes
from compute.types import DType


@dataclass(frozen=True, slots=True)
class Shown:
    """A stage of an answer, and how many blocks it stands for."""

    wanted: Wanted
    scene: Scene
    dtype: DType
    counts: Alike = field(default_factory=dict)

    @property
    def lengths(self) -> Mapping[str, int]:
        """Of its axes, by letter."""
        return self.scene.lengths_of(self.wanted.name)

    @property
    def shape(self) -> list[int]:
        """After slicing, before it is summed up."""
        return cost.sliced_shape(self.wanted, self.lengths)

    @property
    def times(self) -> int:
        """How many blocks it is of."""
        return cost.times(self.wanted.name, self.counts)

    @property
    def stack(self) -> Stack:
        """Whose stage it is."""
        own = stages.stack_of(self.wanted.name)
        return next(x for x in architecture.stacks(self.scene.config) if x.prefix == own)

    @property
    def key(self) -> tuple[object, ...]:
        """What is alike in an answer: stack, stage, slices, summary."""
        wanted = self.wanted
        where = tuple(wanted.where.items())
        return stages.stack_of(wanted.name), wanted.stage.name, where, wanted.summary

    def each(self) -> Quantity:
        """Numbers of it: the product of its axes, five a row for a summary."""
        axes = stages.axes_of(self.wanted.stage, "b" in self.lengths)
        kept = axes[:-1] if self.wanted.summary else axes
        last = number(len(json_bytes.SUMMARIES)) if self.wanted.summary else number(1)
        return prod((self._axis(x) for x in kept), start=number(1)) * last

    def _axis(self, letter: str) -> Quantity:
        if letter in self.wanted.where:
            return number(len(self.wanted.where[letter]))
        if letter == "1":
            return number(1)
        length = self.lengths[letter]
        if letter in "nm":
            return q("s" if self.stack.is_encoder else "n", length)
        return q({"b": "B", "p": "d"}.get(letter, letter), length)

    def json_at_most(self) -> int:
        """Bytes of its name and members in all blocks, at most, with a comma."""
        data = json_bytes.data_at_most(self.wanted, self.shape, self.lengths, self.dtype)
        return self.times * (data + self.around())

    def around(self) -> int:
        """Characters of its name and members beside its numbers, at most."""
        batched = "b" in self.lengths
        return json_bytes.around(self.wanted, self.shape, len(self.wanted.name), batched=batched)

    def json(self) -> int:
        """The same on average."""
        if self.wanted.summary:
            shape, count = self.shape[:-1], len(json_bytes.SUMMARIES)
            text = json_bytes.between(shape) + round(self._mean() * prod(shape))
            return self.times * (count * text + self.around())
        own = json_bytes.between(self.shape) + self.around()
        return self.times * own + round(self._numbers())

    def _mean(self, seen: float = 1.0) -> float:
        config = stages.config_of(self.wanted.name, self.scene.config)
        return json_bytes.mean_of(self.wanted, config, self.lengths, self.dtype, seen)

    def _numbers(self) -> float:
        """Characters of all its numbers: of what is masked a zero or a null."""
        name, size = self.wanted.stage.name, prod(self.shape)
        masked = json_bytes.MASKED.get(name)
        if masked is None:
            seen = self.lengths["s"] if name == "cross.pattern" else 1.0
            return self.times * size * self._mean(seen)
        total = 0.0
        for window, count in alike.windows(self.wanted.name, self.scene, self.counts):
            share, seen = self._share(window)
            total += count * size * (share * self._mean(seen) + (1 - share) * masked)
        return total

    def _share(self, window: int | None) -> tuple[float, float]:
        """(the share of pairs that may meet, how many keys a query may attend to)."""
        block = stages.config_of(self.wanted.name, self.scene.config)
        causal, rows, where = block.attention.mask == "causal", self.lengths["n"], self.wanted.where
        queries, keys = where.get("n"), where.get("m")
        all_seen = json_bytes.visible(rows, window, causal=causal)
        each = all_seen / max(rows, 1)
        if queries is None and keys is None:
            return each / max(rows, 1), each
        return self._share_of(queries, keys, window, causal=causal), each

    def _share_of(
        self,
        queries: Sequence[int] | None,
        keys: Sequence[int] | None,
        window: int | None,
        *,
        causal: bool,
    ) -> float:
        rows = range(min(self.lengths["n"], 1 << 16))
        chosen, met = (rows if x is None else x for x in (queries, keys))
        seen = json_bytes.visible_of(chosen, met, window, causal=causal)
        return seen / (len(chosen) * len(met))
