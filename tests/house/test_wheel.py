"""The wheel carries what the service needs, and nothing that made it."""

import subprocess
import sys
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import pytest

from house import checkout

MODEL_FILES = {"README.md", "config.json", "model.safetensors", "split.json", "tokenizer.json"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=checkout.ROOT, check=True, capture_output=True)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def members(wheel: Path) -> set[str]:
    return {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}


def test_wheel_is_for_every_platform(wheel: Path) -> None:
    version = checkout.PROJECT["project"]["version"]
    assert wheel.name == f"glassblock-{version}-py3-none-any.whl"


def test_wheel_holds_the_three_packages_and_no_other_folder(members: set[str]) -> None:
    assert {name.split("/")[0] for name in members} == {"compute", "schemas", "service"}


def test_wheel_holds_every_module_of_the_checkout(members: set[str]) -> None:
    modules = {
        path.relative_to(checkout.ROOT).as_posix()
        for package in ("compute", "schemas", "service")
        for path in (checkout.ROOT / package).rglob("*.py")
    }
    assert modules - members == set()


def test_wheel_holds_the_models_without_their_training(members: set[str]) -> None:
    shipped = {name for name in members if name.startswith("service/_models/")}
    stored = {
        f"service/_{path.relative_to(checkout.ROOT).as_posix()}"
        for path in (checkout.ROOT / "models").glob("*/*")
        if path.name in MODEL_FILES
    }
    assert shipped == stored
    assert {name.split("/")[2] for name in shipped} == {
        path.parent.name for path in (checkout.ROOT / "models").glob("*/config.json")
    }


def test_wheel_installs_the_command(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (listing,) = [name for name in archive.namelist() if fnmatch(name, "*/entry_points.txt")]
    assert "glassblock = service.cli:main" in archive.read(listing).decode()
