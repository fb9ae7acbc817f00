"""Locks on folders, between the threads and the processes that share them."""

import fcntl
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Lock:
    """A lock on a folder, held until it is released or forgotten.

    Raises FileNotFoundError where the folder is gone, BlockingIOError where it is locked and
    `wait` is false.
    """

    def __init__(self, folder: Path, *, shared: bool = False, wait: bool = True) -> None:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        self.release = weakref.finalize(self, os.close, descriptor)
        self.release.atexit = False
        try:
            kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
            fcntl.flock(descriptor, kind if wait else kind | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(descriptor), os.stat(folder)):
                raise FileNotFoundError(folder)
        except OSError:
            self.release()
            raise


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Nobody else is inside for the same folder."""
    lock = Lock(folder)
    try:
        yield
    finally:
        lock.release()
