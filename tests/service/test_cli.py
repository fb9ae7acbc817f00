"""The command line answers as the service does."""

import http.client
import io
import json
import logging
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from compute import stages
from multipart_bodies import MULTIPART, body, model_files
from schemas.presets import PRESETS
from service import cli
from service.app import create_app
from service.settings import Settings

ROOT = Path(__file__).parents[2]
REQUEST = {
    "model": {"config": {"d_model": 2, "attention": {"n_heads": 1}}},
    "input": {"tensor": [[1, 2], [3, 4]]},
}
PATIENCE = 20


@pytest.fixture(autouse=True)
def _log_goes_to_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logging.basicConfig", lambda **_: None)


def written(folder: Path, request: object) -> str:
    file = folder / "request.json"
    file.write_text(json.dumps(request), "utf-8")
    return str(file)


def test_trace_prints_what_the_service_answers(
    client: TestClient, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert cli.main(["trace", written(tmp_path, REQUEST)]) == 0
    answered = client.post("/v1/trace", json=REQUEST).content
    assert capsysbinary.readouterr().out == answered + b"\n"


def test_trace_reads_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    typed = io.TextIOWrapper(io.BytesIO(json.dumps(REQUEST).encode()))
    monkeypatch.setattr(sys, "stdin", typed)
    assert cli.main(["trace", "-"]) == 0
    assert b'"tensors"' in capsysbinary.readouterr().out


@pytest.mark.parametrize(
    ("request_", "code"),
    [({}, "invalid-request"), ({**REQUEST, "model": {"name": "nobody"}}, "unknown-model")],
)
def test_problem_of_a_trace_goes_to_standard_error(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], request_: object, code: str
) -> None:
    assert cli.main(["trace", written(tmp_path, request_)]) == 2
    printed = capsysbinary.readouterr()
    assert printed.out == b""
    assert json.loads(printed.err)["type"] == f"/problems/{code}"


def test_file_beyond_the_limit_is_refused(
    tmp_path: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GLASSBLOCK_BODY_BYTES", "10")
    assert cli.main(["trace", written(tmp_path, REQUEST)]) == 2
    assert json.loads(capsysbinary.readouterr().err)["type"] == "/problems/body-too-large"


def test_folder_in_place_of_a_request_is_told_what_is_due(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["trace", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"glassblock: {tmp_path}: this is a folder. A file is due that holds a")
    assert "GLASSBLOCK_MODELS" in said


def test_file_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["trace", str(tmp_path / "nothing.json")]) == 2
    expected = f"glassblock: {tmp_path / 'nothing.json'}: No such file or directory\n"
    assert capsys.readouterr().err == expected


def test_stages_are_listed_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["stages"]) == 0
    lines = capsys.readouterr().out.splitlines()
    *table, space, axes = lines
    assert len(table) == 1 + len(stages.STAGES)
    assert (space, axes[:14]) == ("", "axes: b batch,")
    assert any(line.startswith("blocks.{l}.attn.pattern") for line in lines)


def test_stages_are_printed_as_the_service_answers_them(
    client: TestClient, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["stages", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == client.get("/v1/stages").json()


def test_models_are_listed_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["models"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1:] == [
        ["eiffel-toy", "1", "2", "3", "22"],
        ["induction", "2", "64", "26", "77,568"],
        ["letter-sort", "3", "48", "3", "85,584"],
    ]


def test_models_are_printed_as_the_service_answers_them(
    client: TestClient, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["models", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == client.get("/v1/models").json()


def test_presets_are_listed_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["presets"]) == 0
    heads, *lines = capsys.readouterr().out.splitlines()
    words = ["preset", "blocks", "d_model", "heads", "vocab", "parameters", "runs", "meaning"]
    assert heads.split() == words
    table = {line.split()[0]: line for line in lines}
    assert list(table) == list(PRESETS)
    small = table["smollm2-135m"].split(maxsplit=7)
    assert small[1:7] == ["30", "576", "9", "49152", "134,515,008", "yes"]
    assert table["deepseek-v3"].split()[6] == "no"
    for name, line in table.items():
        assert line.endswith(PRESETS[name].meaning.partition(". ")[0].removesuffix("."))
    assert max(map(len, lines)) <= 150


def test_presets_are_printed_as_the_service_answers_them(
    client: TestClient, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["presets", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == client.get("/v1/presets").json()


LARGER_THAN_A_PIPE = {
    "model": {"config": {"d_model": 2, "n_layers": 64, "attention": {"n_heads": 1}}},
    "input": {"tensor": [[at, 1] for at in range(32)]},
    "select": ["A"],
}
"""A request whose answer no pipe holds, as JSON or as a picture."""


def piped(*words: str, errors_too: bool = False, read: int = 10) -> tuple[bytes, str, int]:
    """What is read of a command's output, its standard error and status, its reader then gone."""
    ours, theirs = os.pipe()
    errors = theirs if errors_too else subprocess.PIPE
    command = [sys.executable, "-m", "service.cli", *words]
    # Unbuffered, Python does not notice that only a part of a text was taken.
    env = os.environ | {"PYTHONUNBUFFERED": ""}
    with subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=theirs, stderr=errors, text=True
    ) as process:
        os.close(theirs)
        some = os.read(ours, read) if read else b""
        os.close(ours)
        said = process.communicate()[1] or ""
    return some, said, process.returncode


@pytest.mark.parametrize("form", ["--json", "--picture"])
def test_reader_that_stops_reading_ends_a_trace_quietly(tmp_path: Path, form: str) -> None:
    request = written(tmp_path, LARGER_THAN_A_PIPE)
    some, said, status = piped("trace", form, request)
    assert (len(some), said, status) == (10, "", 141)


@pytest.mark.parametrize(
    "command", [("stages",), ("presets", "--json"), ("trace", "--picture", "request.json")]
)
def test_output_without_a_reader_is_dropped_quietly(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    request = written(tmp_path, REQUEST)
    words = [request if word == "request.json" else word for word in command]
    assert piped(*words, read=0) == (b"", "", 141)


@pytest.mark.parametrize("form", ["--json", "--picture"])
@pytest.mark.parametrize("file", ["request.json", "nothing.json"])
def test_problem_without_a_reader_is_dropped_quietly(tmp_path: Path, form: str, file: str) -> None:
    written(tmp_path, {})
    words = ("trace", form, str(tmp_path / file))
    assert piped(*words, errors_too=True, read=0) == (b"", "", 141)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_output_that_cannot_be_written_is_told() -> None:
    command = [sys.executable, "-m", "service.cli", "presets"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("glassblock: ")


def test_standard_output_that_is_closed_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert cli.main(["presets"]) == 2
    assert capsys.readouterr().err == "glassblock: standard output is closed\n"


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("PORT", "many", "a whole number from 0 to 65535"),
        ("PORT", "70000", "a whole number from 0 to 65535"),
        ("SLOTS", "1.5", "a whole number from 1 on"),
        ("DEADLINE_SECONDS", "inf", "a number above 0"),
        ("OPEN", "perhaps", "true or false"),
        ("MODELS", "[x", "a JSON list, where it begins as one"),
        ("CORS_ORIGINS", "[1]", "a JSON list, where it begins as one"),
        ("LOG_LEVEL", "loud", "one of debug, info, warning, error"),
        (
            "HELD_BYTES",
            "5",
            "at least body_bytes and binary_body_bytes, or the largest body would never fit",
        ),
    ],
)
def test_setting_that_cannot_be_read_is_named_with_what_it_may_be(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: str,
    rule: str,
) -> None:
    monkeypatch.setenv(f"GLASSBLOCK_{name}", value)
    assert cli.main(["models"]) == 2
    assert capsys.readouterr().err == f"glassblock: GLASSBLOCK_{name} must be {rule}.\n"


@pytest.mark.parametrize("command", ["models", "stages", "presets"])
def test_setting_there_is_not_is_warned_of_by_every_command(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("GLASSBLOCK_MODEL", "x")
    monkeypatch.setenv("GLASSBLOCK_QZ", "x")
    with caplog.at_level(logging.WARNING, "glassblock"):
        assert cli.main([command]) == 0
    assert [record.message for record in caplog.records if "_TEST_" not in record.message] == [
        "GLASSBLOCK_MODEL is no setting; it does nothing. Nearest: GLASSBLOCK_MODELS.",
        "GLASSBLOCK_QZ is no setting; it does nothing.",
    ]


def _uploaded(capsys: pytest.CaptureFixture[str]) -> set[str]:
    assert cli.main(["models", "--json"]) == 0
    lines = json.loads(capsys.readouterr().out)["models"]
    return {line["name"] for line in lines if line["origin"] == "uploaded"}


def test_uploads_of_a_checkout_are_there_for_every_command_unless_they_are_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.storage.roots.checkout", lambda: tmp_path)
    for folder in (".uploads", "other"):
        client = TestClient(create_app(Settings(uploads=tmp_path / folder)))
        sent = {"content": body(model_files()), "headers": MULTIPART}
        assert client.put(f"/v1/models/of-{folder.strip('.')}", **sent).status_code == 201
    monkeypatch.delenv("GLASSBLOCK_UPLOADS")
    assert _uploaded(capsys) == {"of-uploads"}
    monkeypatch.setenv("GLASSBLOCK_UPLOADS", str(tmp_path / "other"))
    assert _uploaded(capsys) == {"of-other"}
    monkeypatch.setenv("GLASSBLOCK_UPLOADS", "")
    assert _uploaded(capsys) == set()
    monkeypatch.delenv("GLASSBLOCK_UPLOADS")
    monkeypatch.setattr("service.storage.roots.checkout", lambda: None)
    assert _uploaded(capsys) == set()


def test_service_does_not_start_where_others_reach_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["serve", "--host", "0.0.0.0"]) == 2
    assert "GLASSBLOCK_OPEN=true" in capsys.readouterr().err


def test_blas_has_one_thread_unless_the_environment_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    cli.main(["models"])
    assert (os.environ["OPENBLAS_NUM_THREADS"], os.environ["OMP_NUM_THREADS"]) == ("1", "2")


def test_numpy_is_imported_after_the_environment_is_set() -> None:
    imported = "import sys; import service.cli; sys.exit('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", imported], cwd=ROOT, check=False)
    assert done.returncode == 0


@contextmanager
def started(*words: str, **settings: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "service.cli", "serve", *words]
    environment = os.environ | settings
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def port_of(process: subprocess.Popen[str]) -> int:
    """The port in uvicorn's line that it runs."""
    assert process.stderr is not None
    for line in process.stderr:
        if "running on" in line:
            return int(line.partition("127.0.0.1:")[2].split()[0])
    raise AssertionError("the service did not start")


def get(port: int, path: str) -> object:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
        f"http://127.0.0.1:{port}{path}", timeout=PATIENCE
    ) as response:
        assert "server" not in response.headers
        return json.load(response)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_service_answers_and_stops_at_a_signal_in_less_than_two_seconds(
    sent: signal.Signals,
) -> None:
    with started("--port", "0", GLASSBLOCK_PROT="1") as process:
        port = port_of(process)
        assert get(port, "/healthz") == {"status": "ok"}
        begun = time.monotonic()
        process.send_signal(sent)
        assert process.wait(PATIENCE) == {signal.SIGTERM: 0, signal.SIGINT: 130}[sent]
        assert time.monotonic() - begun < 2
        rest = process.stderr.read() if process.stderr else ""
    assert "GET /healthz 200" in rest
    assert "Traceback" not in rest


LONG = {
    "model": {
        "config": {"d_model": 512, "n_layers": 64, "attention": {"n_heads": 8}},
        "weights": {"init": "zeros"},
    },
    "input": {"tensor": [[1] * 512] * 1000},
    "select": ["blocks.63.resid_post"],
}
"""Takes far longer than a stopping service waits."""


def test_long_run_gets_the_problem_of_a_stopping_service_and_does_not_hold_it_up() -> None:
    beyond = {"GLASSBLOCK_WORK_FLOPS": str(10**14), "GLASSBLOCK_MEMORY_BYTES": str(1 << 40)}
    with started("--port", "0", **beyond) as process:
        address = ("127.0.0.1", port_of(process))
        with closing(http.client.HTTPConnection(*address, timeout=PATIENCE)) as connection:
            headers = {"Content-Type": "application/json"}
            connection.request("POST", "/v1/trace", json.dumps(LONG), headers)
            time.sleep(1)
            begun = time.monotonic()
            process.send_signal(signal.SIGTERM)
            response = connection.getresponse()
            problem = json.load(response)
        assert process.wait(PATIENCE) == 0
        assert 4 < time.monotonic() - begun < 6.5
        rest = process.stderr.read() if process.stderr else ""
    assert (response.status, problem["type"]) == (503, "/problems/draining")
    assert response.headers["content-type"] == "application/problem+json"
    assert int(response.headers["retry-after"]) >= 1
    assert "POST /v1/trace 503" in rest
    assert "Traceback" not in rest
