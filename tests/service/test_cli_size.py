"""`glassblock size`: the tables a person reads are the numbers of POST /v1/sizing."""

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from service import cli

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logging.basicConfig", lambda **_: None)
    monkeypatch.setenv("COLUMNS", "140")


def run(capsys: Captured, *words: str) -> str:
    assert cli.main(["size", *words]) == 0
    return capsys.readouterr().out


def ask(client: TestClient, **body: Any) -> dict[str, Any]:  # noqa: ANN401 - plain JSON
    answer: dict[str, Any] = client.post("/v1/sizing", json=body).json()
    return answer


def test_json_is_the_answer_of_the_service(client: TestClient, capsys: Captured) -> None:
    found = run(capsys, "gpt2", "--context", "512", "--batch", "2", "--dtype", "bf16", "--json")
    body = {"model": {"preset": "gpt2"}, "tokens": 512, "batch": 2, "dtype": "bfloat16"}
    assert found.encode() == client.post("/v1/sizing", json=body).content


def test_context_beyond_a_learned_table_sizes_a_longer_one_and_says_so(
    client: TestClient, capsys: Captured
) -> None:
    table = run(capsys, "gpt2", "--context", "4096", "--dtype", "bf16")
    model = {"preset": "gpt2", "config": {"position": {"n_positions": 4096}}}
    answer = ask(client, model=model, tokens=4096, dtype="bfloat16")
    assert "a table of 4,096 rows" in table
    assert f"{answer['parameters']['total']['value']:,}" in table
    assert answer["parameters"]["total"]["value"] == 124439808 + 3072 * 768


def test_table_has_every_total_and_its_largest_parts(client: TestClient, capsys: Captured) -> None:
    table = run(capsys, "llama-3.1-8b", "--context", "2048", "--device", "h100-sxm")
    model, device = {"preset": "llama-3.1-8b"}, {"name": "h100-sxm"}
    answer = ask(client, model=model, tokens=2048, device=device)
    totals = (
        answer["parameters"],
        answer["flops"]["forward"],
        answer["flops"]["decode"],
        answer["kv_cache"]["allocation"],
        answer["weights"],
        answer["activations"]["inference"],
        answer["activations"]["training"],
        answer["trace"]["elements"],
    )
    for told in totals:
        assert f"{told['total']['value']:,}" in table
    for part in answer["parameters"]["parts"]:
        row = f"{part['formula']} = {part['substituted']}"
        assert (row in table) == (part["share"] >= 0.0005), part["id"]
    for found in answer["crossovers"].values():
        assert found["value"] is None or f"{found['value']:,} {found['unit']}" in table
    for field in answer["sensitivity"]["fields"]:
        assert field["field"] in table
    seconds = answer["roofline"]["decode"]["per_operator"]["seconds"]
    assert f"{1000 * seconds:,.3f} ms" in table


def test_what_does_not_apply_is_said(capsys: Captured) -> None:
    table = run(capsys, "vit-b-16")
    assert "KV cache" not in table
    assert "kv_cache: " in table
    assert "trace: " in table


def test_no_number_is_cut_off_on_a_narrow_screen(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    wide = run(capsys, "deepseek-v3")
    monkeypatch.setenv("COLUMNS", "60")
    narrow = run(capsys, "deepseek-v3")
    assert max(map(len, narrow.splitlines())) <= 60
    assert "671,026,419,200" in wide
    assert "671,026,419,200" in narrow


def test_request_in_a_file_is_answered(
    client: TestClient, tmp_path: Path, capsys: Captured
) -> None:
    body = {"model": {"preset": "gpt2-tiny"}, "ask": ["parameters"]}
    file = tmp_path / "request.json"
    file.write_text(json.dumps(body), "utf-8")
    assert run(capsys, str(file), "--json").encode() == client.post("/v1/sizing", json=body).content
    table = run(capsys, str(file))
    assert "parameters  29,568" in table
    assert "FLOPs" not in table


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["gpt-2"], "Nearest: gpt2"),
        (["nobody"], "There is no model of this name"),
        (["gpt2", "--dtype", "float3"], "/dtype"),
        (["gpt2", "--device", "h100"], "/device/name"),
        (["gpt2", "--context", "0"], "/tokens"),
        (["gpt2", "--context", "-5"], "/tokens"),
        (["llama-3.1-8b", "--context", str(10**30)], "/tokens"),
        (["gpt2", "--batch", "0"], "/batch"),
    ],
)
def test_refusal_is_told_on_standard_error(capsys: Captured, words: list[str], told: str) -> None:
    assert cli.main(["size", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert told in captured.err


def test_devices_are_listed(client: TestClient, capsys: Captured) -> None:
    assert cli.main(["devices"]) == 0
    table = capsys.readouterr().out
    for line in client.get("/v1/devices").json()["devices"]:
        assert line["name"] in table
    assert cli.main(["devices", "--json"]) == 0
    assert capsys.readouterr().out.encode() == client.get("/v1/devices").content + b"\n"
