"""Gives memory back to the system while nobody asks for anything.

glibc keeps what was freed for the next request, up to a threshold; after large ones that is more
than a quiet service should hold.
"""

import ctypes
from collections.abc import Callable

import anyio
from anyio import to_thread

from service.admission import Admission
from service.held import Held

QUIET_SECONDS = 1.0


async def give_back(admission: Admission, held: Held) -> None:
    """For as long as the service runs: after requests, once it is quiet."""
    trim, runs = _trim(), 0
    while trim is not None:
        await anyio.sleep(QUIET_SECONDS)
        if admission.runs > runs and not (admission.inside or held.total):
            runs = admission.runs
            await to_thread.run_sync(trim, 0)


def _trim() -> Callable[[int], int] | None:
    """glibc's malloc_trim; None where another C library is used."""
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None
    return trim
