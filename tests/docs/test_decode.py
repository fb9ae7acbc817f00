"""docs/decode.md: requests get the answers that are shown, the Python runs, each key is told."""

import math
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from starlette.testclient import TestClient

import running
from schemas.decode import CacheAsked, DecodeRequest
from schemas.decode_answers import CacheAnswer, DecodeAnswer, DecodeCost, StepAnswer, TopToken
from service.app import create_app
from service.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "decode.md").read_text("utf-8")
STEPS = re.findall(r"```sh\n(.*?)^```$\n+```json\n(.*?)^```$", PAGE, re.M | re.S)
PYTHON = re.findall(r"```python\n(.*?)^```$\n+```text\n(.*?)^```$", PAGE, re.M | re.S)
ADDRESS = "http://127.0.0.1:8000"
ROUNDING = 1e-5  # float32 through a few blocks, on kernels that round in another order


def answer(curl: str) -> Any:  # noqa: ANN401 - plain JSON
    command, flag, url, header, content_type, data, body = shlex.split(curl)
    assert (command, flag, url) == ("curl", "-s", f"{ADDRESS}/v1/decode")
    assert (header, content_type, data) == ("-H", "Content-Type: application/json", "-d")
    headers = {"content-type": "application/json"}
    client = TestClient(create_app(Settings()))
    response = client.post("/v1/decode", content=body.encode(), headers=headers)
    assert response.status_code == 200, response.text
    return response.json()


def holds(found: object, shown: object) -> bool:
    """Whether an answer has what is shown: of an object its keys, of a list all, in order."""
    if isinstance(shown, dict) and isinstance(found, dict):
        return all(key in found and holds(found[key], shown[key]) for key in shown)
    if isinstance(shown, list) and isinstance(found, list):
        return len(found) == len(shown) and all(map(holds, found, shown))
    if isinstance(shown, float) and isinstance(found, float):
        return math.isclose(found, shown, rel_tol=ROUNDING, abs_tol=ROUNDING)
    return found == shown


def test_page_shows_requests_and_their_answers() -> None:
    assert len(STEPS) == PAGE.count("```sh") == PAGE.count("```json") == 3
    assert len(PYTHON) == PAGE.count("```python") == PAGE.count("```text") == 1


@pytest.mark.parametrize(("curl", "shown"), STEPS, ids=range(3))
def test_request_is_answered_as_shown(curl: str, shown: str) -> None:
    found = answer(curl)
    assert holds(found, orjson.loads(shown)), found


def test_second_request_sends_back_the_cache_of_the_first() -> None:
    sent = [orjson.loads(shlex.split(curl)[-1]) for curl, _ in STEPS]
    assert sent[1]["cache"] == answer(STEPS[0][0])["cache"]


def test_python_prints_what_stands_below_it() -> None:
    ((code, printed),) = PYTHON
    with running.service() as started:
        block = code.replace(ADDRESS, started.address)
        command = [sys.executable, "-W", "error", "-c", block]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout == printed


def told(keys: object) -> set[str]:
    return {name for name in keys if f"`{name}`" not in PAGE}  # type: ignore[attr-defined]


def test_every_key_is_told() -> None:
    assert told(DecodeRequest.model_fields) == set()
    assert told(CacheAsked.model_fields) == set()
    assert told(CacheAnswer.model_fields) == set()
    for part in (DecodeAnswer, StepAnswer, TopToken, DecodeCost):
        assert told(part.__annotations__) == set(), part


def test_a_table_of_11_positions_is_that_of_letter_sort() -> None:
    request = {
        "model": {"name": "letter-sort"},
        "input": {"text": "CABBAC"},
        "steps": 5,
        "select": [],
    }
    client = TestClient(create_app(Settings()))
    steps = client.post("/v1/decode", json=request).json()["steps"]
    assert "".join(step["top"][0]["token"] for step in steps) == "AABBCC"
    response = client.post("/v1/decode", json={**request, "steps": 6})
    assert response.json()["errors"][0]["expected"] == "at most 5"
