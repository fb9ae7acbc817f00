"""The Python of the pages, run as a reader would: pasted, beside a service that runs."""

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

import running


@pytest.fixture(scope="session")
def pasted() -> Iterator[Callable[[str], subprocess.CompletedProcess[str]]]:
    """Runs a block of Python against a service of its own, in the place of the one it names."""
    with running.service() as started:

        def run(block: str) -> subprocess.CompletedProcess[str]:
            assert "127.0.0.1" not in block.replace("http://127.0.0.1:8000/v1/trace", "")
            block = block.replace("http://127.0.0.1:8000", started.address)
            command = [sys.executable, "-W", "error", "-c", block]
            return subprocess.run(command, capture_output=True, text=True, check=False)

        yield run
