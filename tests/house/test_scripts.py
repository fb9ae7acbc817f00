"""The scripts are short, run from anywhere and say what is wrong."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from house import checkout

EVERY_SCRIPT = pytest.mark.parametrize("script", checkout.SCRIPTS, ids=lambda path: path.name)


@EVERY_SCRIPT
def test_script_can_be_run(script: Path) -> None:
    assert os.access(script, os.X_OK)
    assert script.read_text("utf-8").startswith("#!/bin/sh\n")


@EVERY_SCRIPT
def test_script_fits_on_twenty_lines(script: Path) -> None:
    assert len(script.read_text("utf-8").splitlines()) <= 20


def lines_of(script: str) -> list[str]:
    return checkout.logical_lines(f"scripts/{script}")


@EVERY_SCRIPT
def test_script_stops_at_an_error_and_runs_from_any_folder(script: Path) -> None:
    assert re.search('^set -eu?\ncd "\\$\\(dirname "\\$0"\\)/.."$', script.read_text("utf-8"), re.M)


def test_automation_runs_what_a_person_runs() -> None:
    assert checkout.logical_lines(".ci/run")[2:] == ["scripts/check", "scripts/test"]


@pytest.mark.parametrize("script", ["serve", "test", "check", "fix"])
def test_script_sets_up_by_itself(script: str) -> None:
    assert any(line.startswith("scripts/setup") for line in lines_of(script))


@pytest.mark.parametrize("old_python", ["exit 1", "exit 127"])
def test_set_up_without_a_fitting_python_says_so(tmp_path: Path, old_python: str) -> None:
    for folder in ("scripts", "requirements"):
        shutil.copytree(checkout.ROOT / folder, tmp_path / folder)
    shutil.copy(checkout.ROOT / "pyproject.toml", tmp_path)
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{old_python}\n")
    python.chmod(0o755)
    done = subprocess.run(
        ["scripts/setup"],
        cwd=tmp_path,
        env=os.environ | {"PYTHON": str(python)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "Python 3.11 or newer" in done.stderr
    assert not (tmp_path / ".venv").exists()
