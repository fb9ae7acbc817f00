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
from schemas.plan_answers import (
    FormAnswer,
    PlannedBytes,
    PlannedWeights,
    SizeAnswer,
    SizesAnswer,
    TracePlan,
)
from service.app import create_app
from service.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "trace.md").read_text("utf-8")
REQUEST, ANSWER, TWO_STACKS, PACKED, DRY_RUN, PLAN, MASKED = (
    orjson.loads(block) for block in re.findall(r"^```json\n(.*?)^```$", PAGE, re.M | re.S)
)


def test_request_of_the_page_gets_the_answer_of_the_page() -> None:
    assert near(_of(ANSWER, _answer(REQUEST)), ANSWER)


def test_tensors_of_encoder_and_decoder_have_the_shapes_of_the_page() -> None:
    tensors = _answer(TWO_STACKS)["tensors"]
    shapes = {name: tensor["shape"] for name, tensor in tensors.items()}
    patterns = [f"blocks.{layer}.cross.pattern" for layer in (0, 1)]
    expected = {"encoder.blocks.0.resid_post": [3, 32]} | {name: [4, 2, 3] for name in patterns}
    assert shapes == expected
    assert tensors[patterns[0]]["axes"] == ["head", "position", "source_position"]
    text = " ".join(PAGE.split())
    assert "of shape `[4, 2, 3]` with axes head, position and source_position" in text
    assert "`encoder.blocks.0.resid_post`, of shape `[3, 32]`" in text


@pytest.mark.parametrize(
    ("name", "stack"), [("attn.pattern", ""), ("encoder.attn.pattern", "encoder.")]
)
def test_bare_name_means_the_stack_that_the_page_says(name: str, stack: str) -> None:
    assert "means the stage of the decoder's blocks alone" in PAGE
    found = _answer(TWO_STACKS | {"select": [name]})["tensors"]
    layers = range(1 if stack else 2)
    assert list(found) == [f"{stack}blocks.{layer}.attn.pattern" for layer in layers]


def test_resolved_config_of_an_answer_may_be_sent_again_as_told() -> None:
    assert "it may be sent again as a config" in PAGE
    first = _answer(TWO_STACKS)["model"]
    again = _answer(TWO_STACKS | {"model": {"config": first["config"]}})["model"]
    assert again["digest"] == first["digest"]


def test_base64_of_the_page_is_the_row_of_the_page() -> None:
    assert "is the row `[[1.0, 0.5]]`" in PAGE
    assert _answer(PACKED)["tensors"]["blocks.0.resid_pre"]["data"] == [[1.0, 0.5]]


def test_row_of_a_masked_token_is_read_as_told() -> None:
    assert "here of a `[MASK]` at position 2" in PAGE
    (at,) = MASKED["select"][0]["position"]
    assert MASKED["input"]["token_ids"][at] == 103  # [MASK] of BERT's vocabulary
    row = _answer(MASKED)["tensors"]["logits"]
    whole = _answer(MASKED | {"select": ["logits"]})
    assert row["index"] == {"position": [at]}
    assert row["data"] == [whole["tensors"]["logits"]["data"][at]]
    assert whole["next_token"]["position"] == len(MASKED["input"]["token_ids"]) - 1


def test_dry_run_of_the_page_has_the_plan_of_the_page() -> None:
    found = _answer(DRY_RUN)
    assert _of(PLAN, found["plan"]) == PLAN
    assert list(found) == ["model", "plan"]


def test_plan_is_documented() -> None:
    section = PAGE.partition("## dry_run\n")[2].partition("\n## ")[0]
    for part in (TracePlan, PlannedWeights, PlannedBytes, SizesAnswer, SizeAnswer, FormAnswer):
        for name in part.__annotations__:
            assert f"`{name}`" in section, name


def test_encoder_takes_nothing_from_the_preset_as_told() -> None:
    assert "It takes nothing from the config around it, nor from a preset" in PAGE
    config = _answer(TWO_STACKS)["model"]["config"]
    assert (config["norm"]["kind"], config["encoder"]["norm"]["kind"]) == ("rmsnorm", "layernorm")
    assert config["encoder"]["readout"] is False


def test_what_goes_with_a_change_is_listed_as_told() -> None:
    assert "the `tied` of one that loses its `vocab`" in PAGE
    for change, gone in (
        ({"vocab": None}, "tied"),
        ({"norm": {"placement": "post"}}, "final_norm"),
    ):
        model = {"name": "letter-sort", "config": change}
        rows = {"tensor": [[0.5] * 48]}
        assert gone in _answer({"model": model, "input": rows})["model"]["overrides"]


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
