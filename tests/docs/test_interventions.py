"""docs/interventions.md: every request runs, is answered as shown, and every key stands there."""

import math
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any, get_args

import orjson
import pytest
from starlette.testclient import TestClient

from compute.types import InterventionOp
from schemas.intervention_answers import Changed, EffectAnswer, InterventionAnswer
from schemas.interventions import InterventionAsked
from schemas.measures import MeasureAsked
from schemas.trace import TraceRequest
from service.app import create_app
from service.settings import Settings

ROUNDING = 1e-5  # float32 through two blocks, on kernels that round in another order

PAGE = (Path(__file__).parents[2] / "docs" / "interventions.md").read_text("utf-8")
STEPS = re.findall(r"```sh\n(.*?)^```\n+```json\n(.*?)^```$", PAGE, re.M | re.S)
ADDED = ("interventions", "before", "delta", "effects")


@cache
def answer(curl: str) -> Any:  # noqa: ANN401 - plain JSON
    body = shlex.split(curl)[-1]
    return post(orjson.loads(body))


def post(request: object) -> Any:  # noqa: ANN401 - plain JSON
    response = TestClient(create_app(Settings())).post("/v1/trace", json=request)
    assert response.status_code == 200, response.text
    return orjson.loads(response.content)


def holds(found: object, shown: object) -> bool:
    """Whether an answer has what is shown: the keys of objects, all of a list, numbers rounded."""
    if isinstance(shown, dict) and isinstance(found, dict):
        return all(key in found and holds(found[key], shown[key]) for key in shown)
    if isinstance(shown, list) and isinstance(found, list):
        return len(found) == len(shown) and all(map(holds, found, shown))
    if isinstance(shown, float) and isinstance(found, float):
        return math.isclose(found, shown, rel_tol=ROUNDING, abs_tol=ROUNDING)
    return found == shown


@pytest.mark.parametrize("step", STEPS, ids=range(len(STEPS)))
def test_request_is_answered_as_shown(step: tuple[str, str]) -> None:
    curl, shown = step
    assert holds(answer(curl), orjson.loads(shown))


def test_page_shows_a_head_a_pattern_a_patch_and_a_direct_effect() -> None:
    assert len(STEPS) == 6
    assert len(re.findall(r"^```(sh|json)$", PAGE, re.M)) == 2 * len(STEPS)
    asked = [orjson.loads(shlex.split(curl)[-1])["interventions"][0]["op"] for curl, _ in STEPS]
    assert asked == ["zero", "set", "set", "patch", "mean", "zero"]


def test_no_other_head_of_the_block_does_half_as_much_as_told() -> None:
    request = orjson.loads(shlex.split(STEPS[0][0])[-1])
    own = answer(STEPS[0][0])["effects"][0]["total"]["delta"]
    for head in (0, 1, 3):
        request["interventions"][0]["where"]["head"] = [head]
        other = post(request)["effects"][0]["total"]["delta"]
        assert abs(other) < abs(own) / 2


def test_first_effect_is_mostly_direct_and_the_last_is_not_as_told() -> None:
    (first,), (last,) = (answer(STEPS[at][0])["effects"] for at in (0, -1))
    assert first["direct"]["delta"] / first["total"]["delta"] > 0.9
    assert last["direct"]["delta"] > 0 > last["total"]["delta"]


@pytest.mark.parametrize("key", ["interventions", "clean", "path", "measures"])
def test_key_of_the_request_is_documented(key: str) -> None:
    assert key in TraceRequest.model_fields
    assert f"| `{key}` |" in PAGE


@pytest.mark.parametrize("model", [InterventionAsked, MeasureAsked])
def test_key_of_an_intervention_or_a_measure_is_documented(model: type[Any]) -> None:
    for name, field in model.model_fields.items():
        assert re.search(rf"^\|.*`{field.alias or name}`.*\|", PAGE, re.M), name


def test_operation_is_documented() -> None:
    for op in get_args(InterventionOp):
        assert re.search(rf"^\| `{op}` \|", PAGE, re.M), op


def test_member_of_the_answer_is_documented() -> None:
    for name in ADDED:
        assert re.search(rf"^\| `{name}` \|", PAGE, re.M), name
    for part in (InterventionAnswer, EffectAnswer, Changed):
        for name in part.__annotations__:
            assert f"`{name}`" in PAGE, name


def test_answer_without_interventions_is_that_of_a_plain_trace_as_told() -> None:
    client = TestClient(create_app(Settings()))
    plain = {"model": {"name": "eiffel-toy"}, "input": {"text": "the"}}
    empty = {"interventions": [], "measures": [], "clean": True, "path": "total"}
    one, other = (client.post("/v1/trace", json=x).content for x in (plain, plain | empty))
    assert one == other
    assert not set(ADDED) & orjson.loads(one).keys()
