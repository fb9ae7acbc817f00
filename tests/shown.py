"""The requests that a page shows as curl, and the parts of their answers below them."""

import math
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
from pydantic import TypeAdapter
from starlette.testclient import TestClient

from service.app import create_app
from service.settings import Settings

DOCS = Path(__file__).parents[1] / "docs"
ROUNDING = 1e-9  # float64 through a few blocks, on kernels that round in another order

_ELSEWHERE = {
    *("ModelAnswer", "InputAnswer", "PositionAnswer"),
    *("ModelAsked", "InputAsked", "RopeScalingAsked"),
    *("ConfigAnswer", "ConventionsAsked", "FormAsked"),
}
"""What other pages document."""

_STEP = re.compile(r"```sh\n(.*?)^```$\n+```json\n(.*?)^```$", re.M | re.S)


def page(name: str) -> str:
    """The text of a page of the docs."""
    return (DOCS / name).read_text("utf-8")


def steps(text: str) -> list[tuple[str, Any]]:
    """(curl, the answer as shown) of each request of a page."""
    found = _STEP.findall(text)
    assert len(found) == text.count("```sh") == text.count("```json")
    return [(curl, orjson.loads(shown)) for curl, shown in found]


def answer(curl: str) -> Any:  # noqa: ANN401 - plain JSON
    """The answer that a curl command gets."""
    command, flag, url, header, content_type, data, body = shlex.split(curl)
    assert (command, flag, header, data) == ("curl", "-s", "-H", "-d")
    assert content_type == "Content-Type: application/json"
    path = url.removeprefix("http://127.0.0.1:8000")
    headers = {"content-type": "application/json"}
    response = TestClient(create_app(Settings())).post(path, content=body, headers=headers)
    assert response.status_code == 200, response.text
    return orjson.loads(response.content)


def holds(found: object, told: object, within: float = ROUNDING) -> bool:
    """Whether an answer has what is told: the keys of an object, all of a list of numbers, and
    each told object of a list of objects, in their order."""
    if isinstance(told, dict) and isinstance(found, dict):
        return all(key in found and holds(found[key], told[key], within) for key in told)
    if isinstance(told, list) and isinstance(found, list):
        if told and isinstance(told[0], dict):
            rest = iter(found)
            return all(any(holds(item, wanted, within) for item in rest) for wanted in told)
        pairs = zip(found, told, strict=False)
        return len(found) == len(told) and all(holds(x, y, within) for x, y in pairs)
    if isinstance(told, float) and isinstance(found, float):
        return math.isclose(found, told, rel_tol=ROUNDING, abs_tol=within)
    return found == told


def keys(kind: Any) -> set[str]:  # noqa: ANN401 - a type
    """Every key of an object that a type describes, but for those of models, inputs, configs."""
    schema = TypeAdapter(kind).json_schema()
    named = schema.get("$defs", {})
    packed = {name for name in named if name.startswith("Packed")}
    return set(_keys(schema, named, _ELSEWHERE | packed))


def _keys(node: Any, named: Any, elsewhere: set[str]) -> Iterator[str]:  # noqa: ANN401
    if isinstance(node, list):
        for item in node:
            yield from _keys(item, named, elsewhere)
    if not isinstance(node, dict):
        return
    name = str(node.get("$ref", "")).rpartition("/")[2]
    if name and name not in elsewhere:
        yield from _keys(named[name], named, elsewhere | {name})
    for key, value in node.items():
        if key == "properties":
            yield from value
            yield from _keys(list(value.values()), named, elsewhere)
        elif key != "$defs":
            yield from _keys(value, named, elsewhere)
