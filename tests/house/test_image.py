"""The trial of the image measures what it says, and leaves a machine alone that cannot do it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from starlette.testclient import TestClient

from house import checkout
from scripts.image_trial import build, engine, options, probes, readme, rows
from service.app import create_app
from service.settings import Settings

(SERVICE,) = yaml.safe_load(checkout.text("docker-compose.yml"))["services"].values()
README = checkout.text("README.md")


def make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def answer(body: str, settings: Settings) -> tuple[int, bytes]:
    client = TestClient(create_app(settings))
    kind = {"content-type": "application/json"}
    response = client.post("/v1/trace", content=body.encode(), headers=kind)
    return response.status_code, response.content


def test_trial_without_its_tools_says_what_is_missing_and_is_no_failure(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scripts.image_trial"],
        cwd=checkout.ROOT,
        env=os.environ | {"PATH": str(tmp_path), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1
    assert {tool for tool in engine.TOOLS if tool in done.stdout} >= {"buildah", "mmdebstrap"}
    assert list(tmp_path.iterdir()) == []


def test_trial_takes_from_compose_what_it_runs_the_image_with() -> None:
    expected = """--init --env GLASSBLOCK_OPEN=true
        --env GLASSBLOCK_UPLOADS=/var/lib/glassblock/uploads --read-only --read-only-tmpfs=false
        --volume uploads:/var/lib/glassblock/uploads
        --tmpfs /tmp:size=64m,mode=1777,noexec,nosuid,nodev --cap-drop ALL
        --security-opt no-new-privileges:true --memory 1536m --memory-swap 1536m
        --pids-limit 128 --cpus 2"""
    assert options.options(SERVICE) == expected.split()
    assert options.writable(SERVICE) == ["/tmp", "/var/lib/glassblock/uploads"]


def test_what_compose_says_beyond_the_trials_words_stops_it() -> None:
    with pytest.raises(ValueError, match="privileged"):
        options.options(SERVICE | {"privileged": True})


def test_what_compose_switches_off_is_not_switched_on() -> None:
    assert options.options({"init": False, "read_only": False}) == []
    assert options.writable({}) == []


def test_base_is_that_of_the_dockerfile() -> None:
    (told,) = [line for line in build.DOCKERFILE.splitlines() if line.startswith("ARG BASE_IMAGE")]
    version, debian = build.release(build.DOCKERFILE)
    assert told.endswith(f"/python:{version}-slim-{debian}")


def test_another_kind_of_base_is_refused() -> None:
    with pytest.raises(engine.Failed, match="BASE_IMAGE"):
        build.release("ARG BASE_IMAGE=docker.io/library/alpine:3")


def test_mirror_is_that_of_debian_itself() -> None:
    targets = "Debian-Security http://a.test/security/\nDebian http://b.test/debian/\n"
    assert build.mirror(targets) == "http://b.test/debian/"
    assert build.mirror("Some Vendor http://c.test/\n http://d.test/\n") is None


def test_image_is_built_from_the_files_that_git_knows(tmp_path: Path) -> None:
    copy = build.copy_tracked(tmp_path / "context")
    found = {path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()}
    assert {"Dockerfile", ".dockerignore", "service/app.py"} <= found
    assert not {name.split("/")[0] for name in found} & {".git", ".venv"}
    assert not [name for name in found if "__pycache__" in name]


def test_installers_and_compilers_are_found_wherever_they_lie(tmp_path: Path) -> None:
    there = {
        "usr/bin/pip3.13",
        "usr/bin/x86_64-linux-gnu-gcc-14",
        "opt/glassblock/bin/uv",
        "usr/share/python-wheels/pip-25.1-py3-none-any.whl",
    }
    for name in there:
        make(tmp_path / name)
    make(tmp_path / "usr/lib/python3.13/ensurepip/__init__.py")
    found = probes.tools_in(tmp_path)
    assert set(found) == {f"/{name}" for name in there} | {"/usr/lib/python3.13/ensurepip"}


def test_a_loader_and_a_folder_of_a_tools_name_are_no_tools(tmp_path: Path) -> None:
    for name in ("usr/bin/ld.so", "usr/bin/pipesz", "usr/share/doc/make/copyright", "etc/pip/x"):
        make(tmp_path / name)
    assert probes.tools_in(tmp_path) == []


def test_trial_sends_what_the_readme_sends_and_finds_its_numbers() -> None:
    status, found = answer(readme.first_request(README), Settings())
    told = readme.told_rows(README)
    assert status == 200
    assert len(told) == 3
    assert readme.distance(readme.last_rows(found), told) <= readme.PRECISION


def test_numbers_that_differ_or_are_missing_are_seen() -> None:
    told = [[0.25, 0.5], [1.0, 2.0]]
    assert readme.distance([[0.25, 0.5], [1.0, 2.5]], told) == 0.5
    assert readme.distance([[0.25, 0.5]], told) == float("inf")
    assert readme.distance([], []) == float("inf")


def test_traces_of_the_trial_stand_just_below_and_above_the_limit_of_memory() -> None:
    limit = Settings().memory_bytes
    problems = [
        json.loads(answer(probes.trace(width), Settings(memory_bytes=1 << 20))[1])
        for width in (probes.NEAR, probes.BEYOND)
    ]
    near, beyond = (problem["limit"]["got"] for problem in problems)
    assert 0.9 * limit < near < limit < beyond < 1.2 * limit


@pytest.mark.parametrize(
    ("row", "ok"),
    [
        (rows.equal("status", 200, 200), True),
        (rows.equal("status", 500, 200), False),
        (rows.at_most("time", 2, 2, "s"), True),
        (rows.at_most("time", 2.01, 2, "s"), False),
        (rows.at_most("distance", float("nan"), 1, ""), False),
        (rows.listed("folders", ["/tmp"], ["/tmp"]), True),
        (rows.listed("folders", [], ["/tmp"]), False),
    ],
)
def test_a_row_says_whether_its_figure_is_within_the_limit(row: rows.Row, ok: bool) -> None:
    assert row.ok is ok
    assert str(row).endswith("  ok" if ok else "  FAILED")


def test_a_long_list_is_told_by_its_beginning() -> None:
    assert "a b c d and 2 more" in str(rows.listed("letters", list("abcdef"), []))


def test_a_command_that_ends_badly_is_told_with_its_last_words() -> None:
    with pytest.raises(engine.Failed, match="no such thing"):
        engine.output(["sh", "-c", "echo no such thing >&2; exit 3"])
