"""A run whose stages are told as they are computed, and let go block by block.

What is told is what `trace.trace` tells, to the bit. Held at any moment is what is kept of one
block, and two sums like the stream for the identities of its whole stack.
"""

from collections import Counter
from collections.abc import Iterator

from compute import stages
from compute.identities import Checks, Identity
from compute.selection import Wanted
from compute.trace import Made, Run, Trace, by_source, evidence_of, kept_of, made_from
from compute.types import Array

_READ_LATER = "logits"
"""What the next token is read off: it stays, and nothing comes after it."""


class Streaming:
    """A run whose stages are told one by one. The run has no patches and keeps nothing beside.

    checked: whether its identities are. trace: what is there of it; when all stages have been
    told, the logits alone, where they were kept.
    """

    def __init__(self, run: Run, *, checked: bool) -> None:
        self._run = run
        self._waiting = by_source(run)
        self._to_come = Counter(map(_prefix, self._waiting))
        self._whole: dict[str, Array] = {}
        self.trace = Trace(run=run, made=(), whole=self._whole)
        self._checks = Checks(evidence_of(self.trace), self._kept()) if checked else None

    def stages(self) -> Iterator[Made]:
        """Each stage asked for, as soon as it can be made. To be gone through once."""
        for name, values in kept_of(self._run, self._waiting.keys()):
            self._take(name, values)
            del values
            yield from self._made_of(name)
            self._let_go(name)

    def identities(self) -> list[Identity] | None:
        """Every identity, when all stages have been told; None where they are not checked."""
        return None if self._checks is None else self._checks.all()

    def _take(self, name: str, values: Array) -> None:
        """A stage that was kept, whole."""
        self._whole[name] = values
        if self._checks is not None:
            self._checks.take(name, values)

    def _made_of(self, name: str) -> Iterator[Made]:
        """What was wanted of a stage, and of others with it, now that it has come."""
        for wanted, sources in self._waiting[name]:
            if all(source in self._whole for source in sources):
                made = made_from(
                    self._run, wanted, tuple(self._whole[source] for source in sources)
                )
                if _is_kept(wanted):
                    self._whole[wanted.name] = made.values
                yield made

    def _let_go(self, name: str) -> None:
        """A stage was told: with the last of its block, check the block and drop all of it."""
        prefix = _prefix(name)
        self._to_come[prefix] -= 1
        if stages.layer_of(name) is None:
            if name != _READ_LATER:
                del self._whole[name]
        elif not self._to_come[prefix]:
            if self._checks is not None:
                self._checks.close(prefix)
            for there in [there for there in self._whole if there.startswith(prefix)]:
                del self._whole[there]

    def _kept(self) -> set[str]:
        """The full names of all that comes whole."""
        derived = {wanted.name for wanted in self._run.selection.wanted if _is_kept(wanted)}
        return derived.union(self._waiting)


def _prefix(name: str) -> str:
    """`encoder.blocks.3.attn.z` -> `encoder.blocks.3.`; empty or the encoder's at model level."""
    return name.removesuffix(stages.local_name(name))


def _is_kept(wanted: Wanted) -> bool:
    """Whether a stage is made of others, and whole."""
    return wanted.stage.derived and not wanted.where
