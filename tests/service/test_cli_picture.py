"""The command line draws a trace for who reads it, and prints JSON for what reads it."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from service import cli, commands
from service.problems import KINDS

ROOT = Path(__file__).parents[2]
REQUEST = {
    "model": {"config": {"d_model": 2, "attention": {"n_heads": 1}}},
    "input": {"tensor": [[1, 2], [3, 4]]},
}


@pytest.fixture(autouse=True)
def _log_goes_to_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logging.basicConfig", lambda **_: None)


@pytest.fixture(autouse=True)
def _colours_as_they_are_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


def written(folder: Path, request: object) -> str:
    file = folder / "request.json"
    file.write_text(json.dumps(request), "utf-8")
    return str(file)


def test_trace_prints_a_picture_where_it_is_asked_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert cli.main(["trace", "--picture", written(tmp_path, REQUEST)]) == 0
    printed = capsys.readouterr().out
    assert "Δ_attn" in printed
    assert "\x1b" not in printed
    assert len(next(line for line in printed.splitlines() if line.startswith("block 0"))) == 100


def test_picture_has_colours_in_a_pipe_where_they_are_forced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    request = written(tmp_path, REQUEST)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert cli.main(["trace", "--picture", request]) == 0
    assert "48;5;" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    assert cli.main(["trace", "--picture", request]) == 0
    assert "48;5;" not in capsys.readouterr().out


def test_colours_alone_do_not_make_a_picture_of_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert cli.main(["trace", written(tmp_path, REQUEST)]) == 0
    assert "tensors" in json.loads(capsys.readouterr().out)


def test_characters_that_a_stream_lacks_do_not_stop_the_picture(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "service.cli", "trace", "--picture"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [*command, written(tmp_path, REQUEST)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        check=True,
    )
    assert b"attn.pattern" in done.stdout
    assert done.stdout.isascii()
    assert done.stderr == b""


def test_problem_is_readable_where_a_picture_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = written(tmp_path, {"model": {"name": "nobody"}, "input": {"text": "a"}})
    assert cli.main(["trace", "--picture", request]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    title, fault = printed.err.splitlines()
    assert title == KINDS["unknown-model"].title
    assert fault.startswith(
        "  /model/name: There is no model of this name. Besides those that ship"
    )
    assert "letter-sort" in fault


def test_problem_of_a_large_request_says_what_would_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLASSBLOCK_ANSWER_ELEMENTS", "10")
    assert cli.main(["trace", "--picture", written(tmp_path, REQUEST)]) == 2
    printed = capsys.readouterr().err
    assert "(expected 10, got " in printed
    assert 'This fits: "select": ["' in printed


def test_more_faults_than_are_listed_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLASSBLOCK_FAULTS", "1")
    request = written(tmp_path, {"a": 1, "b\x1b": 2, "c": 3})
    assert cli.main(["trace", "--picture", request]) == 2
    printed = capsys.readouterr().err
    assert re.search(r"And \d+ more faults\.", printed)
    assert "\x1b" not in printed


def test_likeliest_tokens_of_a_named_model_have_their_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = {"model": {"name": "induction"}, "input": {"text": "THECATTHEC"}}
    assert (
        cli.main(["trace", "--picture", written(tmp_path, {**request, "select": ["logits"]})]) == 0
    )
    printed = capsys.readouterr().out.partition("likeliest after position 9 C")[2]
    assert re.findall(r"^  ([A-Z]) +[<>\d.]+%", printed, re.M)[0] == "A"
    assert len(re.findall(r"^  ([A-Z]) +[<>\d.]+%", printed, re.M)) == 5
    assert "  id " not in printed


def test_picture_and_json_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["trace", "--picture", "--json", "-"])
    assert "not allowed with" in capsys.readouterr().err


def on_a_terminal(*words: str, **environment: str) -> tuple[str, int]:
    """What a command prints on a terminal of its own, and its exit status."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "service.cli", *words]
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "90", **environment}
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        printed = b"".join(_read(ours))
        os.close(ours)
    return printed.decode(), process.returncode


def _read(terminal: int) -> Iterator[bytes]:
    """All that comes; a terminal that is closed at the other end ends in an error on Linux."""
    with suppress(OSError):
        while some := os.read(terminal, 1 << 16):
            yield some


def test_terminal_gets_a_picture_and_a_pipe_json(tmp_path: Path) -> None:
    request = written(tmp_path, REQUEST)
    printed, status = on_a_terminal("trace", request)
    assert status == 0
    assert "Δ_attn" in printed
    assert "\x1b[" in printed
    assert '"tensors"' not in printed
    command = [sys.executable, "-m", "service.cli", "trace", request]
    piped = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    assert "tensors" in json.loads(piped)


def test_terminal_gets_json_where_it_is_asked_for(tmp_path: Path) -> None:
    printed, status = on_a_terminal("trace", "--json", written(tmp_path, REQUEST))
    assert status == 0
    assert "tensors" in json.loads(printed)


def test_terminal_without_colour_gets_shades(tmp_path: Path) -> None:
    printed, _ = on_a_terminal("trace", written(tmp_path, REQUEST), NO_COLOR="1")
    assert "█" in printed
    assert "48;5;" not in printed


def test_problem_is_readable_on_a_terminal_and_json_where_asked(tmp_path: Path) -> None:
    request = written(tmp_path, {})
    printed, status = on_a_terminal("trace", request)
    assert status == 2
    assert "/model: model is needed here." in printed
    printed, status = on_a_terminal("trace", "--json", request)
    assert status == 2
    assert json.loads(printed)["type"] == "/problems/invalid-request"


def test_interrupt_ends_a_command_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(asked: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "run", interrupted)
    assert cli.main(["stages"]) == 130


@pytest.mark.parametrize(
    ("words", "says"),
    [("stages", "?"), ("trace - <&-", "standard input is closed")],
)
def test_poor_surroundings_cost_no_traceback(words: str, says: str) -> None:
    done = subprocess.run(
        f"{sys.executable} -m service.cli {words}",
        shell=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert says in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_width_beyond_reason_is_not_drawn() -> None:
    request = '{"model": {"name": "eiffel-toy"}, "input": {"text": "the"}}'
    done = subprocess.run(
        [sys.executable, "-m", "service.cli", "trace", "--picture", "-"],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "10000000"},
        input=request,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert max(map(len, done.stdout.splitlines())) <= 500
