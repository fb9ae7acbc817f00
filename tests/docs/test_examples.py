"""The examples of docs/trace.md: the request gets the answer that is shown."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from starlette.testclient import TestClient

from near import near
from service.app import create_app
from service.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "trace.md").read_text("utf-8")
REQUEST, ANSWER, PACKED = (
    orjson.loads(block) for block in re.findall(r"^```json\n(.*?)^```$", PAGE, re.M | re.S)
)


def test_request_of_the_page_gets_the_answer_of_the_page() -> None:
    assert near(_of(ANSWER, _answer(REQUEST)), ANSWER)


def test_base64_of_the_page_is_the_row_of_the_page() -> None:
    assert "is the row `[[1.0, 0.5]]`" in PAGE
    assert _answer(PACKED)["tensors"]["blocks.0.resid_pre"]["data"] == [[1.0, 0.5]]


(PYTHON,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
PACKS = PYTHON.partition("\nprint")[0]


def test_python_of_the_page_prints_the_base64_of_the_page(
    pasted: Callable[[str], subprocess.CompletedProcess[str]],
) -> None:
    done = pasted(PYTHON)
    assert done.stderr == ""
    assert json.loads(done.stdout) == PACKED["input"]["tensor"]


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", ">f8", "<i4", ">i8", "<f2"])
@pytest.mark.parametrize("layout", ["C", "F", "strided"])
def test_python_of_the_page_packs_any_array(dtype: str, layout: str) -> None:
    values = np.arange(24).reshape(4, 6).astype(dtype)
    values = values[::2, ::-3] if layout == "strided" else np.asarray(values, order=layout)
    assert _packed_and_read(values, PACKS) == values.tolist()


@pytest.mark.parametrize("kind", ["<f8", "<i4", "<i8", "?"])
def test_dtypes_the_page_offers_are_those_it_lists(kind: str) -> None:
    assert f'"{kind}"' in PACKS
    assert f"`{np.dtype(kind).name}`" in PAGE


def test_python_of_the_page_packs_masks_and_ids_as_told() -> None:
    key_mask = _packed(np.array([True, True, False]), PACKS.replace('"<f4"', '"?"'))
    token_ids = _packed(np.array([0, 1, 2], ">i8"), PACKS.replace('"<f4"', '"<i4"'))
    found = _answer({"model": {"name": "eiffel-toy"}, "select": ["X"],
                     "input": {"token_ids": token_ids, "key_mask": key_mask}})  # fmt: skip
    assert found["input"]["token_ids"] == [0, 1, 2]
    assert found["input"]["key_mask"] == [True, True, False]


@pytest.mark.parametrize(("name", "stage"), [("z", "attn.z"), ("Z", "resid_post")])
def test_capitals_matter_as_told(name: str, stage: str) -> None:
    assert re.search(rf'`"{name}"` is\s+`{stage}`', PAGE)
    assert list(_answer(REQUEST | {"select": [name]})["tensors"]) == [f"blocks.0.{stage}"]


def _packed(values: object, source: str) -> object:
    """What the `packed` of a page makes of an array, as JSON has it."""
    names: dict[str, Any] = {}
    exec(source, names)
    return json.loads(json.dumps(names["packed"](values)))


def _packed_and_read(values: object, source: str) -> object:
    """An array, packed as the page has it, as the service reads it."""
    config = {"d_model": np.shape(values)[1], "attention": {"n_heads": 1}}
    request = {"model": {"config": config}, "input": {"tensor": _packed(values, source)},
               "select": ["X"]}  # fmt: skip
    return _answer(request)["tensors"]["blocks.0.resid_pre"]["data"]


def _answer(request: object) -> Any:  # noqa: ANN401 - plain JSON
    return TestClient(create_app(Settings())).post("/v1/trace", json=request).json()


def _of(shown: Any, found: Any) -> Any:  # noqa: ANN401 - plain JSON
    """What was found, less the keys that are not shown."""
    if not isinstance(shown, dict):
        return found
    return {key: _of(value, found.get(key)) for key, value in shown.items()}
