"""What a table was measured on: processor, cores, packages, the kernel that BLAS chose, malloc.

    python -m benchmarks.machine '{}'

Prints JSON, of the packages of the Python that runs it.
"""

import ctypes
import json
import os
import platform
import re
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import numpy as np

from benchmarks import settled

_PACKAGES = (
    "glassblock",
    "numpy",
    "orjson",
    "pydantic",
    "fastapi",
    "uvicorn",
    "torch",
    "transformer-lens",
    "transformers",
    "nnsight",
)
_CONFIG = ("scipy_openblas_get_config64_", "scipy_openblas_get_config", "openblas_get_config")
_KERNEL = ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename", "openblas_get_corename")


def facts() -> dict[str, object]:
    """Everything that a ratio may depend on."""
    blas = _blas()
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "blas": _said(blas, _CONFIG) or "not found",
        "blas_kernel": _said(blas, _KERNEL) or "not found",
        "packages": _versions(),
        "settings": dict(settled.settings()),
    }


def _processor() -> str:
    try:
        told = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or "unknown"
    found = re.search(r"^model name\s*: (.+)$", told, re.M)
    flags = re.search(r"^flags\s*: (.+)$", told, re.M)
    wide = "AVX-512" if flags and "avx512f" in flags[1].split() else "no AVX-512"
    return f"{found[1] if found else platform.processor()} ({wide})"


def _blas() -> ctypes.CDLL | None:
    """The OpenBLAS that NumPy's first product loaded."""
    np.ones((2, 2)) @ np.ones((2, 2))
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:
        return None
    found = re.search(r"(/\S*openblas\S*\.so\S*)", maps)
    return None if found is None else ctypes.CDLL(found[1])


def _said(library: ctypes.CDLL | None, names: tuple[str, ...]) -> str | None:
    for name in names:
        function = getattr(library, name, None)
        if function is not None:
            function.restype = ctypes.c_char_p
            return str(function().decode())
    return None


def _versions() -> Mapping[str, str]:
    return {name: version for name in _PACKAGES if (version := _version(name)) is not None}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    print(json.dumps(facts()))
