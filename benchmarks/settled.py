"""A process in which times can be compared: one BLAS thread, and a malloc that keeps its memory."""

import os
import sys

SETTINGS = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": "33554432",
    "MALLOC_TRIM_THRESHOLD_": "1000000000",
    "MALLOC_TOP_PAD_": "268435456",
}
"""Read by malloc and BLAS when a process starts, so a benchmark starts itself again in them."""


def restart() -> None:
    """Start this process again in the settings, unless it is in them; find the packages."""
    os.environ.pop("OPENBLAS_CORETYPE", None)  # the kernels this machine would choose
    if any(os.environ.get(name) != value for name, value in SETTINGS.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **SETTINGS})
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
