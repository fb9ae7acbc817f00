"""The other packages, in an environment of their own beside this file: made once, then kept."""

import subprocess
import sys
from hashlib import sha256
from pathlib import Path

from benchmarks import settled

_HERE = settled.ROOT / "benchmarks"
FOLDER, PINNED = _HERE / ".peers", _HERE / "peers.txt"


def peers() -> str:
    """The Python of the environment; it is made where it is not there, or other pins made it."""
    python, stamp = FOLDER / "bin" / "python", FOLDER / "pinned"
    due = sha256(PINNED.read_bytes()).hexdigest()
    if not _is_stamped(stamp, due):
        print(f"Installing the other packages into {FOLDER.name} …", file=sys.stderr)
        _run(sys.executable, "-m", "venv", "--clear", str(FOLDER))
        _run(str(python), "-m", "pip", "install", "--quiet", "-r", str(PINNED))
        stamp.write_text(due)
    return str(python)


def _is_stamped(stamp: Path, due: str) -> bool:
    return stamp.exists() and stamp.read_text() == due


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=sys.stderr)
