"""Every form of an answer decodes to the bits that compute has, by the decoders of the docs and by
the official safetensors library."""

import base64
import importlib.util
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2 as httpx
import numpy as np
import numpy.typing as npt
import pytest
import safetensors.numpy
from starlette.testclient import TestClient

import runs
from compute.types import DType, Selected
from service.app import create_app
from service.settings import Settings

ROOT = Path(__file__).parents[3]
SAFETENSORS, LINES = "application/vnd.safetensors", "application/jsonl"
FORMS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "nested": ("application/json", {}),
    "base64": ("application/json", {"encoding": "base64"}),
    "safetensors": (SAFETENSORS, {}),
    "lines": (LINES, {}),
    "lines of base64": ("application/x-ndjson", {"encoding": "base64"}),
}
SEEDS = range(200)
IN_NODE = range(0, 200, 3)

Array = npt.NDArray[Any]
Request = dict[str, Any]


def _decoder() -> Callable[[bytes, str], dict[str, Array]]:
    spec = importlib.util.spec_from_file_location("decode", ROOT / "examples" / "decode.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Callable[[bytes, str], dict[str, Array]] = module.decode
    return found


decode = _decoder()


def dtype_of(seed: int) -> DType:
    return "float64" if seed % 2 else "float32"


def selection_of(seed: int) -> list[Selected]:
    return runs.random_selection(np.random.default_rng(seed), runs.case_of(seed))


def request_of(seed: int) -> Request:
    """A random model, input and selection; all numbers as base64, so that they are those bits."""
    case, dtype = runs.case_of(seed), dtype_of(seed)
    tensors = {name: packed(x.astype(dtype)) for name, x in case.weights.items()}
    return {
        "model": {"config": case.config, "weights": {"tensors": tensors}},
        "input": _sent(case.inputs, dtype),
        "select": [_asked(one) for one in selection_of(seed)],
        "dtype": dtype,
        "identities": False,
    }


def _sent(inputs: Mapping[str, Any], dtype: DType) -> Request:
    sent = {}
    for name, value in inputs.items():
        if isinstance(value, dict):
            sent[name] = _sent(value, dtype)
        else:
            sent[name] = packed(value.astype(dtype) if value.dtype.kind == "f" else value)
    return sent


def _asked(one: Selected) -> Request:
    where = {axis: list(indices) for axis, indices in one.where.items()}
    return {"name": one.name, "summary": one.summary, **where}


def packed(values: Array) -> Request:
    data = base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()
    return {"dtype": values.dtype.name, "shape": values.shape, "data": data}


def computed(seed: int) -> dict[str, Array]:
    """What compute has for the stages that are shown as data."""
    run = runs.run_of_case(runs.case_of(seed), dtype=dtype_of(seed), select=selection_of(seed))
    summed = {one.name for one in run.selection.wanted if one.summary}
    return {name: x for name, x in runs.states(run).items() if name not in summed}


def post(client: TestClient, request: Request, form: str, **format: object) -> httpx.Response:
    accept, encoding = FORMS[form]
    asked = {**request, "format": {**encoding, **format}}
    response = client.post("/v1/trace", json=asked, headers={"Accept": accept})
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == accept
    return response


def decoded(response: httpx.Response) -> dict[str, Array]:
    return decode(response.content, response.headers["content-type"])


def bits(values: Array) -> tuple[str, tuple[int, ...], str]:
    return values.dtype.name, values.shape, np.ascontiguousarray(values).tobytes().hex()


def all_bits(named: Mapping[str, Array]) -> dict[str, object]:
    return {name: bits(values) for name, values in named.items()}


def stages_of(named: Mapping[str, Array]) -> dict[str, object]:
    """The bits of stages, without the summaries that base64 has by their pointers."""
    return all_bits({name: x for name, x in named.items() if not name.startswith("/")})


@pytest.mark.parametrize("seed", SEEDS)
def test_forms_of_a_random_trace_have_the_bits_of_the_run(client: TestClient, seed: int) -> None:
    request, expected = request_of(seed), all_bits(computed(seed))
    answers = {form: post(client, request, form) for form in FORMS}
    for form, response in answers.items():
        assert stages_of(decoded(response)) == expected, form
    official = safetensors.numpy.load(answers["safetensors"].content)
    assert all_bits(official) == expected


EXTREME = {
    "float32": [-0.0, 1e-45, -1e-45, 7.0385307e-26, -7.0385307e-26, 3.4028235e38, -3.4028235e38],
    "float64": [-0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 5e-200, 1.7976931348623157e308,
                -1.7976931348623157e308],
}  # fmt: skip
"""Of each dtype: zeros, subnormals, largest numbers, and the one float32 whose shortest decimal is
read as another where it is read as float64 first."""


def extreme_request(dtype: str) -> Request:
    """Rows of such numbers, whose products overflow to infinities of both signs and to nan."""
    values = np.array(EXTREME[dtype], dtype)
    rows = np.stack([np.roll(values, shift) for shift in range(3)])
    config = {
        "d_model": 7,
        "attention": {"n_heads": 1, "d_head": 7, "scale": 1.0},
        "ffn": {"kind": "none"},
        "norm": {"kind": "none"},
    }
    return {
        "model": {"config": config, "weights": {"init": "identity"}},
        "input": {"tensor": packed(rows), "key_mask": [True, True, False]},
        "dtype": dtype,
    }


@pytest.mark.parametrize("dtype", EXTREME)
def test_forms_have_every_kind_of_number(client: TestClient, dtype: str) -> None:
    request = extreme_request(dtype)
    answers = {form: decoded(post(client, request, form)) for form in FORMS}
    expected = answers.pop("safetensors")
    for form, found in answers.items():
        assert all_bits(found) == all_bits(expected), form
    rows = expected["blocks.0.resid_pre"]
    assert bits(rows[0]) == bits(np.array(EXTREME[dtype], dtype))
    assert np.signbit(rows[0, 0])
    scores, out = expected["blocks.0.attn.scores"], expected["blocks.0.resid_post"]
    assert {-np.inf, np.inf} <= set(scores.reshape(-1).tolist())
    assert np.isnan(out).any()
    nothing = np.array(np.nan, dtype).tobytes()
    assert {x.tobytes() for x in out[np.isnan(out)]} == {nothing}


@pytest.mark.parametrize("seed", range(40))
def test_summaries_are_the_same_in_every_form(client: TestClient, seed: int) -> None:
    request = {**request_of(seed), "select": [{"name": "*", "summary": True}]}
    nested, packed_, stored, lines = (
        post(client, request, form) for form in ("nested", "base64", "safetensors", "lines")
    )
    expected = summaries(nested.json()["tensors"])
    found = decoded(packed_)
    for name, measures in expected.items():
        dtype = nested.json()["tensors"][name]["dtype"].replace("int64", "float64")
        for measure, numbers in measures.items():
            values = found[f"/tensors/{name}/summary/{measure}"]
            wanted = np.array(numbers, dtype)
            assert bits(values) == bits(wanted)
    header = json.loads(stored.content[8 : 8 + int.from_bytes(stored.content[:8], "little")])
    assert summaries(json.loads(header["__metadata__"]["answer"])["tensors"]) == expected
    head, *told = map(json.loads, lines.content.splitlines())
    own = {line["stage"]: line for line in told if "summary" in line}
    assert summaries(own or head["tensors"]) == expected
    assert len(expected) > 1


def summaries(tensors: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tensor["summary"] for name, tensor in tensors.items()}


def _examples() -> Iterator[tuple[str, Request]]:
    for path, calls in create_app(Settings()).openapi()["paths"].items():
        call = calls.get("post", {})
        if LINES in call.get("responses", {}).get("200", {}).get("content", {}):
            shown = call["requestBody"]["content"]["application/json"]["examples"]
            yield from ((path, example["value"]) for example in shown.values())


@pytest.mark.parametrize(("path", "request_"), list(_examples()))
def test_every_array_of_every_call_is_the_same_in_every_form(
    client: TestClient, path: str, request_: Request
) -> None:
    found = {}
    for form in ("base64", "safetensors", "lines", "lines of base64"):
        accept, format_ = FORMS[form]
        asked = {**request_, "format": format_}
        response = client.post(path, json=asked, headers={"Accept": accept})
        assert response.status_code == 200, response.text
        named = all_bits(decoded(response))
        found[form] = {name: x for name, x in named.items() if "/summary/" not in name}
    expected = found.pop("base64")
    for form, named in found.items():
        assert named == expected, form


needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


@needs_node
def test_node_decodes_the_same_bits(client: TestClient, tmp_path: Path) -> None:
    requests = {f"{seed}": request_of(seed) for seed in IN_NODE}
    requests |= {dtype: extreme_request(dtype) for dtype in EXTREME}
    told, expected = [], []
    for name, request in requests.items():
        for at, form in enumerate(FORMS):
            response = post(client, request, form)
            path = tmp_path / f"{name}-{at}"
            path.write_bytes(response.content)
            told.append({"path": str(path), "media": response.headers["content-type"]})
            expected.append(all_bits(in_numbers(decoded(response))))
    for wanted, found in zip(expected, in_node(told, tmp_path), strict=True):
        assert found == {name: list(_listed(x)) for name, x in wanted.items()}


def in_numbers(named: Mapping[str, Array]) -> dict[str, Array]:
    """Whole numbers as the float64 that JavaScript has."""
    return {name: x.astype(np.float64) if x.dtype.kind == "i" else x for name, x in named.items()}


def _listed(found: object) -> Iterator[object]:
    dtype, shape, numbers = found  # type: ignore[misc]
    yield from (dtype, list(shape), numbers)


def in_node(told: object, folder: Path) -> list[Any]:
    """What Node's decoder makes of each body, all in one process."""
    listed = folder / "told.json"
    listed.write_text(json.dumps(told))
    script = Path(__file__).with_name("decoded.mjs")
    done = subprocess.run(
        ["node", str(script), str(listed)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found
