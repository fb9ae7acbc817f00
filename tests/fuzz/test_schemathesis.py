"""Requests made from the OpenAPI document, right and wrong ones, against a running service.

FUZZ_EXAMPLES requests an operation for each of FUZZ_SEEDS; scripts/fuzz asks for many.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import running
from running import Service

HERE = Path(__file__).parent
EXAMPLES = os.environ.get("FUZZ_EXAMPLES", "20")
SEEDS = os.environ.get("FUZZ_SEEDS", "1").split()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    uploads = str(tmp_path_factory.mktemp("uploads"))
    with running.service(uploads=uploads) as started:
        yield started


@pytest.mark.parametrize("seed", SEEDS)
def test_every_check_of_schemathesis_passes(server: Service, seed: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "schemathesis.cli", f"--config-file={HERE}/schemathesis.toml"]
    asked = ["--mode=all", "--checks=all", f"--max-examples={EXAMPLES}", f"--seed={seed}"]
    done = subprocess.run(
        [*command, "run", f"{server.address}/openapi.json", *asked, "--no-color"],
        env={**os.environ, "PYTHONPATH": str(HERE.parent), "SCHEMATHESIS_HOOKS": "fuzz.rules"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
