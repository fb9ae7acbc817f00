"""Requests made from the OpenAPI document, right and wrong ones, against a running service.

FUZZ_EXAMPLES requests an operation for each of FUZZ_SEEDS; scripts/fuzz asks for many. What the
document's bounds and kinds come to is tried of each operation when many are asked for; of the calls
that ask a question of a model, which are thousands of requests each, only then: door/mutated.py
has them besides.
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
MANY = 100
QUESTIONS = (
    "compare|contributions|decode|equivariance|jacobian|rope|subspaces|sweep"  # besides the trace
)
RUNS = {
    "examples,fuzzing": (),
    "coverage": () if int(EXAMPLES) >= MANY else (f"--exclude-path-regex=^/v1/({QUESTIONS})$",),
}
"""Phases of Schemathesis, and which operations they try."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    uploads = str(tmp_path_factory.mktemp("uploads"))
    with running.service(uploads=uploads) as started:
        yield started


@pytest.mark.parametrize("phases", RUNS)
@pytest.mark.parametrize("seed", SEEDS)
def test_every_check_of_schemathesis_passes(
    server: Service, seed: str, phases: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "schemathesis.cli", f"--config-file={HERE}/schemathesis.toml"]
    checks = ["--mode=all", "--checks=all", f"--max-examples={EXAMPLES}", f"--seed={seed}"]
    chosen = [f"--phases={phases}", *RUNS[phases]]
    done = subprocess.run(
        [*command, "run", f"{server.address}/openapi.json", *checks, *chosen, "--no-color"],
        env={**os.environ, "PYTHONPATH": str(HERE.parent), "SCHEMATHESIS_HOOKS": "fuzz.rules"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
