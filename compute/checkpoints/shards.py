"""The tensors of a folder: one model.safetensors, or the shards that an index lists."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from compute.checkpoints.faults import fault, refused, shown
from compute.checkpoints.header import MOST_HEADER_BYTES, MOST_TENSORS, Entry
from compute.checkpoints.json_file import parsed_object, read_bytes
from compute.checkpoints.safetensors_file import SafetensorsFile
from compute.errors import MOST_FAULTS, Fault, ModelError, refuse_if
from compute.types import Array

WHOLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
MOST_SHARDS = 512

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\.safetensors")
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")


@dataclass(frozen=True, slots=True, eq=False)
class Shards:
    """Tensors by name, each from its file."""

    files: Sequence[SafetensorsFile]
    file_of: Mapping[str, SafetensorsFile]
    entries: Mapping[str, Entry]

    def read(self, name: str) -> Array:
        """A tensor's numbers, of its shape."""
        return self.file_of[name].read(name)

    def check(self, name: str) -> None:
        """Read a tensor and keep nothing."""
        self.file_of[name].check(name)

    def bytes_of(self, name: str, begin: int, end: int) -> bytes:
        """Some of the bytes of a tensor as stored."""
        return self.file_of[name].bytes_of(name, begin, end)


def load(folder: Path) -> Shards:
    """The tensors of a folder by its headers, or a ModelError with what is wrong."""
    if (folder / WHOLE).is_file():
        return _together([SafetensorsFile.load(folder / WHOLE)])
    if (folder / INDEX).is_file():
        return _indexed(folder)
    raise _nothing_to_read(folder)


def _together(files: Sequence[SafetensorsFile]) -> Shards:
    file_of = {name: file for file in files for name in file.entries}
    return Shards(files, file_of, {name: file.entries[name] for name, file in file_of.items()})


def _indexed(folder: Path) -> Shards:
    mapped = _weight_map(folder / INDEX)
    names = sorted(set(mapped.values()))
    refuse_if(ModelError, list(islice(_shard_faults(folder, names), MOST_FAULTS)))
    files: list[SafetensorsFile] = []
    for name in names:
        left = MOST_HEADER_BYTES - sum(len(file.header) for file in files)
        files.append(SafetensorsFile.load(folder / name, left))
        if sum(len(file.entries) for file in files) > MOST_TENSORS:
            raise refused(INDEX, f"{INDEX} lists more than {MOST_TENSORS} tensors.", MOST_TENSORS)
    refuse_if(ModelError, list(islice(_map_faults(mapped, files), MOST_FAULTS)))
    return _together(files)


def _weight_map(path: Path) -> dict[str, str]:
    content = read_bytes(path, MOST_HEADER_BYTES)
    if content.count(b",") > MOST_TENSORS + MOST_SHARDS:  # before each costs some hundred bytes
        raise refused(INDEX, f"{INDEX} lists more than {MOST_TENSORS} tensors.", MOST_TENSORS)
    raw = parsed_object(content, INDEX).get("weight_map")
    if not isinstance(raw, dict) or not raw:
        raise refused((INDEX, "weight_map"), f"{INDEX} has no weight_map.")
    wrong = {shown(x) for x in raw.values() if not (isinstance(x, str) and _PLAIN.fullmatch(x))}
    detail = "is no plain name of a safetensors file in the folder."
    faults = [fault((INDEX, "weight_map"), f"{name} {detail}") for name in sorted(wrong)]
    refuse_if(ModelError, faults[:MOST_FAULTS])
    return raw


def _shard_faults(folder: Path, names: Sequence[str]) -> Iterator[Fault]:
    if len(names) > MOST_SHARDS:
        yield fault(INDEX, f"{INDEX} lists more than {MOST_SHARDS} files.", MOST_SHARDS, len(names))
        return
    for name in names:
        if not (folder / name).is_file():
            yield fault(name, f"{folder.name} has no {name}, which {INDEX} lists.")


def _map_faults(mapped: Mapping[str, str], files: Sequence[SafetensorsFile]) -> Iterator[Fault]:
    """Every tensor is in the file that the index says, and in no other."""
    in_file = {file.path.name: file.entries for file in files}
    for name, where in mapped.items():
        if name not in in_file[where]:
            yield fault((where, shown(name)), f"{shown(name)} is not in {where}, as {INDEX} says.")
    for where, entries in in_file.items():
        for name in entries:
            if mapped.get(name) != where:
                yield fault((where, name), f"{name} is in {where}, and {INDEX} does not say so.")


def _nothing_to_read(folder: Path) -> ModelError:
    found = sorted(path.name for path in folder.iterdir() if path.suffix in _PICKLES)
    if found:
        detail = (
            f"{found[0]} is a pickle, which can run code and is not read; "
            "save the model as safetensors."
        )
        return refused(found[0], detail, WHOLE, found[0])
    return refused(WHOLE, f"{folder.name} has neither {WHOLE} nor {INDEX}.", WHOLE)
