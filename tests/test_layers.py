"""Imports point one way, and the house rules that the syntax trees can show.

service → schemas → compute
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = ("compute", "schemas", "service")
MODULES = [path for layer in LAYERS for path in sorted((ROOT / layer).rglob("*.py"))]

COMPUTE_MAY = sys.stdlib_module_names - {"json"} | {"numpy", "compute"}
CHECKPOINTS_MAY = COMPUTE_MAY | {"json", "tokenizers", "gguf"}
VOCABULARY = {
    f"compute.{name}"
    for name in (
        *("config", "config_json", "config_rules", "stages", "types", "errors"),
        *("sizing.vocabulary", "sizing.formats", "sizing.times.devices"),
    )
}
NEVER = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "torch", "scipy"}
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "misc"}


@dataclass(frozen=True)
class Import:
    """A module that a file imports, from a line."""

    file: str
    line: int
    module: str

    @property
    def package(self) -> str:
        return self.module.partition(".")[0]

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.module}"


def layer_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0]


def imports(path: Path) -> Iterator[Import]:
    """Each module that a file names in an import; `from a import b` names a.b where a is ours."""
    file = path.relative_to(ROOT).as_posix()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (Import(file, node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            inside = source in LAYERS
            names = [f"{source}.{name.name}" for name in node.names] if inside else [source]
            yield from (Import(file, node.lineno, name) for name in names)


def imports_of(layer: str) -> Iterator[Import]:
    for path in MODULES:
        if layer_of(path) == layer:
            yield from imports(path)


def is_checkpoint(found: Import) -> bool:
    return found.file.startswith("compute/checkpoints/")


def test_there_are_modules_in_every_layer() -> None:
    assert {layer_of(path) for path in MODULES} == set(LAYERS)


def test_compute_imports_numpy_and_the_standard_library_alone() -> None:
    wrong = [
        str(found)
        for found in imports_of("compute")
        if found.package not in (CHECKPOINTS_MAY if is_checkpoint(found) else COMPUTE_MAY)
    ]
    assert wrong == []


def test_schemas_import_no_service_and_of_compute_its_vocabulary_alone() -> None:
    wrong = [
        str(found)
        for found in imports_of("schemas")
        if found.package == "service"
        or (found.package == "compute" and found.module not in VOCABULARY)
    ]
    assert wrong == []


def test_nothing_reads_what_can_run_code() -> None:
    wrong = [
        str(found) for layer in LAYERS for found in imports_of(layer) if found.package in NEVER
    ]
    assert wrong == []


def test_json_is_read_and_written_by_orjson_alone() -> None:
    wrong = [
        str(found)
        for layer in LAYERS
        for found in imports_of(layer)
        if found.package == "json" and not is_checkpoint(found)
    ]
    assert wrong == []


def test_no_import_is_relative() -> None:
    trees = [(path, ast.parse(path.read_text("utf-8"))) for path in MODULES]
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert wrong == []


@pytest.mark.parametrize("name", ["load", "save", "savez", "fromfile", "memmap"])
def test_no_array_is_read_or_written_by_numpy_itself(name: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute)
        and node.attr == name
        and isinstance(node.value, ast.Name)
        and node.value.id in ("np", "numpy")
    ]
    assert wrong == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    named = [path for path in MODULES if VAGUE & {path.stem, *path.relative_to(ROOT).parts[:-1]}]
    assert named == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [path for path in MODULES if not ast.get_docstring(ast.parse(path.read_text("utf-8")))]
    assert silent == []


def test_nothing_outside_of_the_project_is_read() -> None:
    outside = [path for path in MODULES if "../shared" in path.read_text("utf-8")]
    assert outside == []
