"""docs/subspaces.md: requests get the answers that are shown, and each key is told."""

import math
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any, get_args

import numpy as np
import orjson
import pytest
from starlette.testclient import TestClient

from schemas import subspaces_answers
from schemas.subspaces import HeadAsked, Measure, SubspacesRequest
from service.app import create_app
from service.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "subspaces.md").read_text("utf-8")
STEPS = re.findall(r"```sh\n(.*?)^```$\n+```json\n(.*?)^```$", PAGE, re.M | re.S)
ADDRESS = "http://127.0.0.1:8000/v1/subspaces"
ROUNDED = 5.1e-5  # four decimals are shown
ANSWERS = [
    made
    for made in vars(subspaces_answers).values()
    if getattr(made, "__module__", "") == subspaces_answers.__name__ and isinstance(made, type)
]


def answer(body: dict[str, Any]) -> Any:  # noqa: ANN401 - plain JSON
    response = TestClient(create_app(Settings())).post("/v1/subspaces", json=body)
    assert response.status_code == 200, response.text
    return response.json()


def posted(curl: str) -> dict[str, Any]:
    command, flag, url, header, content_type, data, body = shlex.split(curl)
    assert (command, flag, url) == ("curl", "-s", ADDRESS)
    assert (header, content_type, data) == ("-H", "Content-Type: application/json", "-d")
    asked: dict[str, Any] = orjson.loads(body)
    return asked


def holds(found: object, shown: object) -> bool:
    """Whether an answer has what is shown: of an object its keys, of a list all, in order."""
    if isinstance(shown, dict) and isinstance(found, dict):
        return all(key in found and holds(found[key], shown[key]) for key in shown)
    if isinstance(shown, list) and isinstance(found, list):
        return len(found) == len(shown) and all(map(holds, found, shown))
    if isinstance(shown, float | int) and isinstance(found, float):
        return math.isclose(found, shown, rel_tol=0, abs_tol=ROUNDED)
    return found == shown


def test_every_block_of_the_page_is_a_request_or_its_answer() -> None:
    assert len(STEPS) == PAGE.count("```sh") == PAGE.count("```json") == 3


@pytest.mark.parametrize(("curl", "shown"), STEPS, ids=["planes", "composition", "token"])
def test_request_is_answered_as_shown(curl: str, shown: str) -> None:
    found, told = answer(posted(curl)), orjson.loads(shown)
    if "composition" in told:  # the first of the largest pairs is shown
        found["composition"]["k"]["largest"] = found["composition"]["k"]["largest"][:1]
    assert holds(found, told), found


@cache
def of_all_heads() -> Any:  # noqa: ANN401 - plain JSON
    return answer({"model": {"name": "induction"}, "ask": ["composition"]})["composition"]["k"]


def test_what_the_page_says_of_all_pairs_holds() -> None:
    told, (first, second) = of_all_heads(), of_all_heads()["largest"][:2]
    assert first["score"] == pytest.approx(0.2705, abs=ROUNDED)
    assert second["reader"] == {"block": 1, "head": 3}
    assert second["score"] == pytest.approx(0.2460, abs=ROUNDED)
    baseline = told["baseline"]
    assert 20 < (first["score"] - baseline["mean"]) / baseline["std"] < 21
    assert "twenty standard deviations above chance" in PAGE


def test_head_of_the_page_copies_as_well_as_it_says() -> None:
    found = answer(posted(STEPS[2][0]))["heads"][0]["token_copying"]["score"]
    assert found == pytest.approx(0.99998, abs=5e-6)
    assert "(0.99998 of at most 1)" in PAGE


def test_unrelated_matrices_score_one_over_root_d_as_the_page_says() -> None:
    assert of_all_heads()["baseline"]["mean"] == pytest.approx(1 / np.sqrt(64), rel=0.01)


@pytest.mark.parametrize("name", [*SubspacesRequest.model_fields, *HeadAsked.model_fields])
def test_request_key_is_documented(name: str) -> None:
    assert f"`{name}`" in PAGE or f'"{name}"' in PAGE


@pytest.mark.parametrize("name", get_args(Measure))
def test_measure_is_documented(name: str) -> None:
    assert f"| `{name}` |" in PAGE


@pytest.mark.parametrize(
    ("answered", "name"),
    [(made.__name__, key) for made in ANSWERS for key in made.__annotations__],
)
def test_answer_key_is_documented(answered: str, name: str) -> None:
    assert re.search(rf"[`.\"]{name}[`\"]", PAGE), f"{answered}.{name}"
