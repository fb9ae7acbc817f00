"""The memory of a process as Linux counts it: now, and at its peak since it was forgotten."""

import ctypes
import re
from pathlib import Path


def now(process: int | str = "self") -> int:
    """Resident bytes."""
    return _line(process, "VmRSS")


def peak(process: int | str = "self") -> int:
    """The most resident bytes since `forget_peak`."""
    return _line(process, "VmHWM")


def forget_peak(process: int | str = "self") -> None:
    """Let the peak begin again."""
    Path(f"/proc/{process}/clear_refs").write_text("5")


def give_back() -> None:
    """Return what was freed to the system, so that it is not taken for free the next time."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _line(process: int | str, key: str) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    found = re.search(rf"^{key}:\s+(\d+) kB$", status, re.M)
    assert found is not None
    return 1024 * int(found[1])
