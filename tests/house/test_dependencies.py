"""Lock files and docs/dependencies.md follow pyproject.toml."""

import re

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from house import checkout

RUNTIME, DEV, BUILD = "requirements/runtime.txt", "requirements/dev.txt", "requirements/build.txt"


def pins(lock: str) -> dict[str, str]:
    """Name -> version of each entry of a lock file."""
    entries = [line.split(" --hash=")[0] for line in checkout.logical_lines(lock)]
    parsed = [Requirement(entry.strip()) for entry in entries]
    return {canonicalize_name(entry.name): str(entry.specifier)[2:] for entry in parsed}


def outside(asked: list[Requirement], pinned: dict[str, str]) -> list[str]:
    """The requirements that the pinned versions do not meet."""
    return [str(r) for r in asked if not r.specifier.contains(pinned.get(r.name, "0"))]


@pytest.mark.parametrize("lock", [RUNTIME, DEV, BUILD])
def test_every_locked_entry_has_one_version_and_a_hash(lock: str) -> None:
    entry = re.compile(r"[\w.-]+==[\w.]+( ; [^#]+?)?(\s+--hash=sha256:[0-9a-f]{64})+")
    assert [line for line in checkout.logical_lines(lock) if not entry.fullmatch(line)] == []


@pytest.mark.parametrize("lock", [RUNTIME, DEV, BUILD])
def test_no_lock_file_names_an_address(lock: str) -> None:
    lines = checkout.text(lock).splitlines()
    assert [line for line in lines if "://" in line or " @ " in line or line[:1] == "-"] == []


def test_no_lock_file_is_left_out_of_these_tests() -> None:
    names = {path.relative_to(checkout.ROOT).as_posix() for path in checkout.LOCKS}
    assert names == {RUNTIME, DEV, BUILD}


def test_locked_versions_are_within_the_ranges_asked_for() -> None:
    assert outside(checkout.requirements(), pins(RUNTIME)) == []
    assert outside(checkout.requirements("dev"), pins(DEV)) == []
    assert outside(checkout.build_requirements(), pins(BUILD)) == []


def test_tests_run_on_the_very_versions_that_users_get() -> None:
    assert pins(RUNTIME).items() <= pins(DEV).items()


def test_packages_that_only_compare_or_check_reach_no_user() -> None:
    kept_out = {"torch", "transformer-lens", "transformers", "pytest", "mypy", "ruff", "hypothesis"}
    assert kept_out & pins(RUNTIME).keys() == set()


def test_every_dependency_is_explained_and_nothing_else_is() -> None:
    asked = checkout.requirements("dev", "reference") + checkout.build_requirements()
    explained = re.findall(r"^- \*\*([\w.-]+)\*\*", checkout.text("docs/dependencies.md"), re.M)
    assert sorted(explained) == sorted(requirement.name for requirement in asked)
