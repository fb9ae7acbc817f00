"""Opens a model from where it lies: a folder of Hugging Face's or our own form, or a .gguf file."""

from pathlib import Path

from compute.checkpoints import folder
from compute.checkpoints.checkpoint import Checkpoint
from compute.checkpoints.gguf import loading as gguf

_SAYS_WHAT_IT_IS = (folder.CONFIG, ".safetensors", gguf.SUFFIX)

Mark = tuple[str, int, int, int]
"""A file's name, inode, size and time of change."""


def opened(path: Path) -> Checkpoint:
    """The model at a path by its headers, or a ModelError."""
    if path.is_dir() and ((path / folder.CONFIG).is_file() or not any(path.glob("*.gguf"))):
        return folder.load(path)
    return gguf.load(path)


def marks(path: Path) -> tuple[Mark, ...]:
    """By what the files of a model are known again, cheaply; empty where there is no model."""
    files = [path] if path.suffix == gguf.SUFFIX and path.is_file() else _files(path)
    if not any(file.name.endswith(_SAYS_WHAT_IT_IS) for file in files):
        return ()
    return tuple(sorted(_mark(file) for file in files))


def _files(path: Path) -> list[Path]:
    read = (".json", ".safetensors", gguf.SUFFIX, folder.CARD)
    try:
        return [file for file in path.iterdir() if file.name.endswith(read)]
    except OSError:
        return []


def _mark(file: Path) -> Mark:
    try:
        found = file.stat()
    except OSError:
        return (file.name, 0, 0, 0)
    return (file.name, found.st_ino, found.st_size, found.st_mtime_ns)
