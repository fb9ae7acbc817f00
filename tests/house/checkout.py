"""The files of this checkout, as the tests of the house read them."""

import subprocess
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
COMMANDS = [path for path in sorted((ROOT / "scripts").iterdir()) if path.is_file()]
SCRIPTS = [*(path for path in COMMANDS if not path.suffix), ROOT / ".ci" / "run"]


def text(path: str) -> str:
    return (ROOT / path).read_text("utf-8")


def logical_lines(path: str) -> list[str]:
    """Lines joined where they end in a backslash, without comments and empty ones."""
    lines = [line for line in text(path).splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [line.strip() for line in joined.splitlines() if line.strip()]


def requirements(*extras: str) -> list[Requirement]:
    """What pyproject.toml asks for at run time and under the given extras."""
    project = PROJECT["project"]
    asked = [project["dependencies"], *(project["optional-dependencies"][e] for e in extras)]
    return [Requirement(line) for lines in asked for line in lines]


def build_requirements() -> list[Requirement]:
    return [Requirement(line) for line in PROJECT["build-system"]["requires"]]


def text_files() -> dict[str, str]:
    """Path -> text of each file that is or could be committed and is UTF-8."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    found = {}
    for path in filter(None, listed.split("\0")):
        try:
            found[path] = text(path)
        except (UnicodeDecodeError, FileNotFoundError):  # binary, or deleted but not yet committed
            continue
    return found
