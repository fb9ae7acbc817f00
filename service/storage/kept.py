"""What is kept of models between requests: opened checkpoints and weights, up to a budget."""

import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock

from compute import weights
from compute.checkpoints.checkpoint import Checkpoint
from compute.types import DType
from compute.weights import ModelWeights

Stamp = tuple[object, ...]
"""By what a model is known to be the one that it was."""

FRESH_SECONDS = 0.02
"""For how long a model is what it was, without another look at the disk: under many small requests
those looks would be a good part of the work."""

_OPENED = "opened"
_Key = tuple[str, str]


@dataclass(slots=True)
class _Item:
    stamp: Stamp
    value: Checkpoint | ModelWeights
    bytes: int
    seen: float = 0.0


class Kept:
    """By a model's name its checkpoint, and by name and dtype its weights.

    Together they have at most `most` bytes after each request: what was not used for longest goes
    first, and what alone is larger is not kept at all. Who holds something that went keeps it.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._items: OrderedDict[_Key, _Item] = OrderedDict()
        self._lock = Lock()

    @property
    def bytes(self) -> int:
        """How many bytes are kept, as far as they were counted."""
        with self._lock:
            return self._total()

    def fresh(self, name: str) -> Checkpoint | None:
        """The checkpoint of a name, if it was found on disk less than FRESH_SECONDS ago."""
        with self._lock:
            item = self._items.get((name, _OPENED))
            if item is None or time.monotonic() - item.seen > FRESH_SECONDS:
                return None
            self._items.move_to_end((name, _OPENED))
            assert isinstance(item.value, Checkpoint)  # noqa: S101 - by its key
            return item.value

    def checkpoint(self, name: str, stamp: Stamp) -> Checkpoint | None:
        """The checkpoint of a name, if one of this stamp is kept; one of another goes."""
        with self._lock:
            item = self._items.get((name, _OPENED))
            if item is not None and item.stamp == stamp and isinstance(item.value, Checkpoint):
                self._items.move_to_end((name, _OPENED))
                item.seen = time.monotonic()
                return item.value
            self._forget(name)
            return None

    def keep(self, name: str, stamp: Stamp, checkpoint: Checkpoint, size: int) -> None:
        """Keep a checkpoint that takes about so many bytes."""
        with self._lock:
            self._items[name, _OPENED] = _Item(stamp, checkpoint, size, time.monotonic())
            self._shrink()

    def weights(self, checkpoint: Checkpoint, dtype: DType) -> ModelWeights:
        """A checkpoint's weights, kept where it is; they count once they are settled."""
        key = (checkpoint.name, dtype)
        with self._lock:
            opened = self._items.get((checkpoint.name, _OPENED))
            found = self._items.get(key)
            if opened is None or opened.value is not checkpoint:
                return _packed(checkpoint, dtype)
            if found is None or found.stamp != opened.stamp:
                found = self._items[key] = _Item(opened.stamp, _packed(checkpoint, dtype), 0)
            self._items.move_to_end(key)
            assert isinstance(found.value, ModelWeights)  # noqa: S101 - by its key
            return found.value

    def make_room(self, needed: int, most: int, name: str, dtype: DType) -> None:
        """Let go until what is kept leaves `needed` of `most` bytes.

        A model's own checkpoint and weights of this dtype stay: they are among the needed.
        """
        own = ((name, _OPENED), (name, dtype))
        with self._lock:
            others = (key for key in list(self._items) if key not in own)
            self._let_go(others, most - needed + sum(map(self._bytes_of, own)))

    def settle(self, name: str, dtype: DType) -> None:
        """Count a model's weights as far as they were fetched; let go what is too much."""
        with self._lock:
            item = self._items.get((name, dtype))
            if item is not None and isinstance(item.value, ModelWeights):
                item.bytes = item.value.held_bytes()
            self._shrink()

    def forget(self, name: str) -> None:
        """Let a model go."""
        with self._lock:
            self._forget(name)

    def stamps(self) -> dict[str, Stamp]:
        """Name -> stamp of what is kept."""
        with self._lock:
            return {name: item.stamp for (name, _), item in self._items.items()}

    def _shrink(self) -> None:
        for key in [key for key, item in self._items.items() if item.bytes > self._most]:
            del self._items[key]
        self._let_go(iter(list(self._items)), self._most)

    def _let_go(self, keys: Iterator[_Key], most: int) -> None:
        while self._total() > most and (key := next(keys, None)) is not None:
            del self._items[key]

    def _total(self) -> int:
        return sum(item.bytes for item in self._items.values())

    def _bytes_of(self, key: _Key) -> int:
        return self._items[key].bytes if key in self._items else 0

    def _forget(self, name: str) -> None:
        for key in [key for key in self._items if key[0] == name]:
            del self._items[key]


def _packed(checkpoint: Checkpoint, dtype: DType) -> ModelWeights:
    return weights.build(checkpoint.config, checkpoint.source(), dtype)
