"""Opens a model from where it lies: a folder of Hugging Face's or our own form, or a .gguf file."""

import os
from pathlib import Path

from compute.checkpoints import folder
from compute.checkpoints.checkpoint import Checkpoint
from compute.checkpoints.faults import refused
from compute.checkpoints.gguf import loading as gguf

_OPEN = os.R_OK | os.X_OK
_SAYS_WHAT_IT_IS = (folder.CONFIG, ".safetensors", gguf.SUFFIX)
_READ = (".json", ".safetensors", gguf.SUFFIX, folder.CARD)

Mark = tuple[str, int, int, int]
"""A file's name, inode, size and time of change."""


def opened(path: Path) -> Checkpoint:
    """The model at a path by its headers, or a ModelError."""
    try:
        if os.path.isdir(path) and (is_model_folder(path) or not _has(path, gguf.SUFFIX)):
            _refuse_closed(path)
            return folder.load(path)
        return gguf.load(path)
    except PermissionError as error:
        raise refused(path.name, f"The service may not read all of {path.name}.") from error


def _refuse_closed(path: Path) -> None:
    if not os.access(path, _OPEN):
        raise refused(path.name, f"The service may not look into {path.name}.")


def is_model_folder(path: Path) -> bool:
    """Whether a folder is a model by its config.json, which beside .gguf files alone is none."""
    if not os.path.isfile(os.path.join(path, folder.CONFIG)):
        return False
    return _has(path, ".safetensors") or not _has(path, gguf.SUFFIX)


def marks(path: Path) -> tuple[Mark, ...]:
    """By what the files of a model are known again, cheaply; empty where there is no model.

    A folder that may not be looked into is known by itself, so that it can be told of.
    """
    if os.path.isdir(path) and not os.access(path, _OPEN):
        return (_mark(path),)
    if path.suffix == gguf.SUFFIX and os.path.isfile(path):
        return (_mark(path),)
    names = [name for name in _names(path) if name.endswith(_READ)]
    if not any(name.endswith(_SAYS_WHAT_IT_IS) for name in names):
        return ()
    return tuple(sorted(_mark(path, name) for name in names))


def _has(path: Path, suffix: str) -> bool:
    return any(name.endswith(suffix) for name in _names(path))


def _names(path: Path) -> list[str]:
    """What a folder holds; asked for at each request that names a model, so without Path."""
    try:
        return os.listdir(path)
    except OSError:
        return []


def _mark(path: Path, name: str = "") -> Mark:
    """Of a file, or of one in a folder."""
    told = name or path.name
    try:
        found = os.stat(os.path.join(path, name) if name else path)
    except OSError:
        return (told, 0, 0, 0)
    return (told, found.st_ino, found.st_size, found.st_mtime_ns)
