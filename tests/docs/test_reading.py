"""The picture of docs/reading.md is what its command prints."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from service import cli
from service.picture import fitting, heatmaps, matrices, page

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reading.md").read_text("utf-8")


def block(language: str) -> str:
    """The one block of the page in a language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)
    return str(found)


def test_command_of_the_page_prints_its_picture() -> None:
    command = block("sh").replace(
        ".venv/bin/glassblock", f"{shlex.quote(sys.executable)} -m service.cli"
    )
    environment = {**os.environ, "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}
    environment.pop("FORCE_COLOR", None)
    printed = subprocess.run(
        ["/bin/sh", "-c", command], cwd=ROOT, env=environment, capture_output=True, check=True
    ).stdout.decode("utf-8")
    assert [line.rstrip() for line in printed.splitlines()] == block("text").splitlines()


def test_commands_of_the_page_are_those_of_a_checkout() -> None:
    around = PAGE.replace(block("text"), "")
    assert re.findall(r"(?<!\.venv/bin/)\bglassblock \w+", around) == []
    listed = re.search(r"`\.venv/bin/glassblock (\w+)`, `(\w+)` and `(\w+)` list", around)
    assert listed is not None
    assert all(cli.parser().parse_args([name, "--json"]).json for name in listed.groups())


def test_switches_of_the_command_are_on_the_page() -> None:
    asked = cli.parser().parse_args(["trace", "-"])
    for name in vars(asked).keys() - {"command", "file"}:
        assert f"`--{name}`" in PAGE


def test_bounds_of_the_page_are_those_of_the_picture() -> None:
    text = " ".join(PAGE.split())
    assert f"beyond {heatmaps.MOST_SHADED} positions of a map" in text
    assert f"{fitting.MOST_HEADS} heads, {page.MOST_BATCH_ROWS} rows of a batch" in text
    assert f"at most {matrices.MOST_ROWS} rows and {matrices.MOST_COLUMNS} columns" in text
    assert f"numbers up to {heatmaps.MOST_NUMBERED} positions" in text
