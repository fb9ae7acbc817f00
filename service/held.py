"""How many bytes the process holds outside the slots: bodies, and answers on their way.

A body counts from before it is read until its work is done, an answer while it is sent. Streams
are counted by themselves: what each may hold, for as long as it is open.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from service import errors

_RETRY_AFTER = 2


class Held:
    """The count, and the refusal of what does not fit below `most`."""

    def __init__(self, most: float) -> None:
        self._most = most
        self.total = 0
        """Bytes held now."""

    def refuse_if_full(self, more: int = 0) -> None:
        """Raise Busy where `more` bytes do not fit beside those that are held."""
        if self.total + more > self._most:
            raise errors.Busy(_RETRY_AFTER)

    @contextmanager
    def count(self, size: int) -> Iterator["Share"]:
        """Count bytes within the block, fitting or not."""
        share = Share(self)
        share.resize(size)
        try:
            yield share
        finally:
            share.resize(0)


class Share:
    """What one body or answer counts."""

    def __init__(self, held: Held) -> None:
        self._held = held
        self._size = 0

    def resize(self, size: int) -> None:
        """Count so many bytes from now on."""
        self._held.total += size - self._size
        self._size = size
