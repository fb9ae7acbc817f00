"""Configs and weights of all kinds over HTTP: valid ones agree with the reference at every stage,
invalid ones are refused with a rule, at its place. FUZZ_CONFIGS says how many."""

import os
from base64 import b64encode
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, find, given, note, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

import agreement
import runs
from compute.types import DType
from fuzz import faults
from fuzz.configs import ROWS, Draw, Drawn, configs, resolved
from oracle import inputs, weights
from oracle.forward import trace as reference
from service.app import create_app
from service.settings import Settings

CONFIGS = int(os.environ.get("FUZZ_CONFIGS", "60"))
FUZZED = settings(
    max_examples=CONFIGS,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
CLIENT = TestClient(create_app(Settings()))
OfConfig = Callable[[Drawn], str | None]
OfWeights = Callable[[Drawn, str], faults.Fault]
Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Request:
    """A request that is right; its resolved config, weights and inputs, exact in its dtype."""

    asked: Drawn
    config: Drawn
    values: Arrays
    read: Arrays
    dtype: DType

    def __repr__(self) -> str:
        """What tells one from another: arrays would fill pages."""
        edits = self.asked["model"]["weights"].get("edits", [])
        shapes = {name: values.shape for name, values in self.read.items()}
        return f"Request({self.config}, edits={edits}, inputs={shapes}, {self.dtype})"


@st.composite
def requests(draw: Draw) -> Request:
    """A request with everything drawn."""
    config = draw(configs())
    whole = resolved(config)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    dtype: DType = draw(st.sampled_from(("float32", "float64")))
    exact = runs.exact_in_float32 if dtype == "float32" else np.asarray
    values = {name: exact(value) for name, value in weights.draw(rng, whole).items()}
    read = drawn_inputs(draw, rng, whole)
    if "tensor" in read:
        read["tensor"] = exact(read["tensor"])
    asked_weights, values = draw(given_weights(values, dtype, whole))
    packed_or_not = draw(st.sampled_from((np.ndarray.tolist, packed)))
    asked = {
        "model": {"config": config, "weights": asked_weights},
        "input": {name: packed_or_not(value) for name, value in read.items()},
        "dtype": dtype,
    }
    return Request(asked, whole, values, read, dtype)


def packed(values: np.ndarray) -> Drawn:
    return {
        "dtype": values.dtype.name,
        "shape": list(values.shape),
        "data": b64encode(values.tobytes()).decode(),
    }


def drawn_inputs(draw: Draw, rng: np.random.Generator, config: Drawn) -> dict[str, np.ndarray]:
    """Rows or tokens, of a batch or not, with masks and position ids or without."""
    n = draw(st.integers(1, 9))
    batch = draw(st.sampled_from(((), (1,), (2,), (3,))))
    found: dict[str, np.ndarray] = {}
    if config["vocab"] is not None and draw(st.booleans()):
        found["token_ids"] = rng.integers(config["vocab"], size=(*batch, n))
    else:
        found["tensor"] = rng.standard_normal((*batch, n, config["d_model"]))
    if draw(st.booleans()):
        found["key_mask"] = inputs.key_mask(rng, draw(st.sampled_from(((), batch))), n)
    if draw(st.booleans()):
        found["attention_mask"] = inputs.attention_mask(rng, batch, n)
    if draw(st.booleans()):
        found["position_ids"] = rng.integers(ROWS, size=(*batch, n))
    return found


@st.composite
def given_weights(draw: Draw, values: dict[str, np.ndarray], dtype: DType, config: Drawn) -> Any:  # noqa: ANN401
    """Weights as a request gives them, and what they are: all given, or some over an init."""
    init = draw(st.sampled_from((None, None, "zeros", "seeded")))
    form = draw(st.sampled_from((np.ndarray.tolist, packed)))
    given = dict(values)
    if init == "zeros":
        kept = draw(st.sets(st.sampled_from(sorted(values))))
        given = {name: values[name] for name in kept}
        gain = 1.0 - config["norm"].get("gain_offset", 0.0)
        values = {name: given.get(name, zeros(name, v, gain)) for name, v in values.items()}
    asked: Drawn = {"tensors": {name: form(value) for name, value in given.items()}}
    if init is not None:
        asked["init"] = init
    if draw(st.booleans()):
        asked["edits"] = [edited(draw, values, dtype) for _ in range(draw(st.integers(1, 3)))]
    return asked, values


def zeros(name: str, like: np.ndarray, gain: float) -> np.ndarray:
    """What init = zeros makes: gains that are 1 with their offset, and zeros."""
    return np.full(like.shape, gain if name.endswith(".weight") else 0.0)


def edited(draw: Draw, values: dict[str, np.ndarray], dtype: DType) -> Drawn:
    """An edit of one tensor's first axis, also made in `values`, in the arithmetic asked for."""
    name = draw(st.sampled_from(sorted(values)))
    op, value = draw(st.sampled_from((("scale", -1), ("scale", 0.3), ("add", 0.7), ("set", 0.125))))
    words = weight_axes(name)
    index = draw(st.integers(-values[name].shape[0], values[name].shape[0] - 1))
    old = values[name].astype(dtype)
    number = np.asarray(value, dtype)
    new = {"scale": old * number, "add": old + number, "set": np.full_like(old, number)}[op]
    changed = old.copy()
    changed[index] = new[index]
    values[name] = changed.astype(np.float64)
    return {"tensor": name, "where": {words: [index]}, "op": op, "value": value}


def weight_axes(name: str) -> str:
    """The word of a tensor's first axis, from the table of docs/weights.md."""
    last = name.rsplit(".", 1)[1]
    first = {"W_E": "vocabulary", "W_pos": "position", "b_U": "vocabulary", "W_out": "d_ff"}
    first |= dict.fromkeys(("W_Q", "W_O", "b_Q"), "head")
    first |= dict.fromkeys(("W_K", "W_V", "b_K", "b_V"), "kv_head")
    first |= dict.fromkeys(("b_in", "b_gate"), "d_ff")
    return first.get(last, "d_model")


def every_stage(config: Drawn, n: int) -> list[Any]:
    if config["attention"]["kind"] == "none":
        return ["*"]
    return ["*", "attn.dots", {"name": "attn.source_out", "position": list(range(n))}]


def as_array(tensor: Drawn) -> np.ndarray:
    """The data of an answer's tensor, its nulls as what they stand for."""
    nulls = tensor.get("nonfinite", "-inf")
    assert nulls == "-inf"
    found = np.array(tensor["data"], object)
    return np.where(found == None, -np.inf, found).astype(np.float64)  # noqa: E711 - elementwise


@FUZZED
@given(requests())
def test_what_is_valid_agrees_with_the_reference(drawn: Request) -> None:
    config, read = drawn.config, drawn.read
    n = read["tensor"].shape[-2] if "tensor" in read else read["token_ids"].shape[-1]
    answer = CLIENT.post("/v1/trace", json=drawn.asked | {"select": every_stage(config, n)})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["model"]["config"] == config
    assert [i["name"] for i in body["identities"] if i["holds"] is False] == []
    exact = reference(config, drawn.values, **read)
    assert body["tensors"].keys() == exact.keys()
    found = {name: as_array(tensor) for name, tensor in body["tensors"].items()}
    apart = disagreements(found, exact, config, drawn.dtype)
    if apart:
        moved = agreement.shaken(config, drawn.values, read, drawn.dtype)
        differences = {name: (largest(found[name], exact[name]), moved[name]) for name in apart}
        apart = {name for name, (by, allowed) in differences.items() if not by <= allowed}
        note(f"difference, and how far rounding moves it: {differences}")
    assert apart == set()


def disagreements(found: Arrays, exact: Arrays, config: Drawn, dtype: DType) -> set[str]:
    """The stages that are further from the reference than roundings explain."""
    allowed, sizes = agreement.tolerance(dtype, exact), agreement.sizes(config, exact)
    errors = {
        name: runs.relative_error(found[name], value, sizes[name]) for name, value in exact.items()
    }
    note(f"allowed {allowed:.1e}; {max(errors.items(), key=lambda error: error[1])}")
    return {name for name, error in errors.items() if not error <= allowed}


def largest(found: np.ndarray, exact: np.ndarray) -> float:
    """The largest difference; inf where the -inf differ."""
    finite = np.isfinite(exact)
    if not np.array_equal(finite, np.isfinite(found)):
        return float("inf")
    return float(np.abs(found[finite] - exact[finite]).max(initial=0.0))


@FUZZED
@given(configs(), st.sampled_from(faults.OF_CONFIGS))
def test_config_that_breaks_a_rule_is_refused_at_its_place(config: Drawn, fault: OfConfig) -> None:
    place = fault(config)
    if place is None:
        return
    answer = CLIENT.post("/v1/trace", json=request_of(config, {}))
    problem = answer.json()
    assert answer.status_code == 422, answer.text
    assert problem["type"] == "/problems/config-rule"
    assert [found["pointer"] for found in problem["errors"]] == [f"/model/config/{place}"]


@FUZZED
@given(configs(), st.sampled_from(faults.OF_WEIGHTS), st.data())
def test_weights_that_do_not_fit_are_refused_at_their_place(
    config: Drawn,
    fault: OfWeights,
    data: st.DataObject,
) -> None:
    shapes = weights.shapes(resolved(config))
    tensors: Drawn = {name: np.ones(shape).tolist() for name, shape in shapes.items()}
    code, place = fault(tensors, data.draw(st.sampled_from(sorted(tensors))))
    answer = CLIENT.post("/v1/trace", json=request_of(config, {"tensors": tensors}))
    problem = answer.json()
    assert answer.status_code == 422, answer.text
    assert problem["type"] == f"/problems/{code}"
    assert [found["pointer"] for found in problem["errors"]] == [f"/model/weights/tensors/{place}"]


def request_of(config: Drawn, asked: Drawn) -> Drawn:
    rows = [[1.0] * config["d_model"]]
    return {"model": {"config": config, "weights": asked}, "input": {"tensor": rows}}


@pytest.mark.parametrize("fault", faults.OF_CONFIGS)
def test_every_fault_can_be_made(fault: OfConfig) -> None:
    chosen = settings(max_examples=2000, derandomize=True, database=None)
    config = find(configs(), lambda config: fault(deepcopy(config)) is not None, settings=chosen)
    assert config["d_model"] >= 1


@pytest.mark.parametrize("wrong", [0.999, -1.0])
def test_comparison_sees_a_weight_that_is_off(wrong: float) -> None:
    config = {"d_model": 3, "attention": {"n_heads": 1}}
    whole = resolved(config)
    values = weights.draw(np.random.default_rng(1), whole)
    read = {"tensor": np.array([[1.0, 2.0, 3.0], [0.5, 0.1, 0.2]])}
    exact = reference(whole, values, **read)
    off = reference(
        whole, {**values, "blocks.0.attn.W_V": wrong * values["blocks.0.attn.W_V"]}, **read
    )
    assert runs.relative_error(off["blocks.0.attn_out"], exact["blocks.0.attn_out"]) > 1e-4
