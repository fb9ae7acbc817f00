"""A process in which times can be compared: so many BLAS threads, a malloc that keeps memory."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

_MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": "33554432",
    "MALLOC_TRIM_THRESHOLD_": "1000000000",
    "MALLOC_TOP_PAD_": "268435456",
}
_LEFT_ALONE = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "PYTHONDONTWRITEBYTECODE")
"""The kernels and block sizes that BLAS would choose on this machine, and what Python does."""


def settings(threads: int = 1) -> Mapping[str, str]:
    """What malloc, BLAS and PyTorch read when a process starts.

    OPENBLAS_THREAD_TIMEOUT: threads of BLAS that wait for work sleep soon, rather than spin.
    """
    count = str(threads)
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    return {**dict.fromkeys(names, count), "OPENBLAS_THREAD_TIMEOUT": "4", **_MALLOC}


def environment(threads: int = 1, **more: str) -> dict[str, str]:
    """This process's environment with the settings, for a process that it starts."""
    kept = {name: word for name, word in os.environ.items() if name not in _LEFT_ALONE}
    return {**kept, **settings(threads), **more}


def restart() -> None:
    """Start this process again in the settings, unless it is in them; find the packages."""
    due = environment()
    if any(os.environ.get(name) != word for name, word in settings().items()) or any(
        name in os.environ for name in _LEFT_ALONE
    ):
        os.execve(sys.executable, [sys.executable, *sys.argv], due)
    sys.path.insert(0, str(ROOT))
