"""Configs and weights of all kinds over HTTP: valid ones agree with the reference at every stage,
invalid ones are refused with a rule, at its place. FUZZ_CONFIGS says how many."""

import os
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, event, find, given, note, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

import runs
from compute.types import DType
from fuzz import comparing, faults_around, faults_of_blocks, misfits
from fuzz.breaking import OfConfig
from fuzz.comparing import Arrays
from fuzz.configs import configs
from fuzz.inputs import Given, drawn_inputs
from fuzz.parts import Draw, Drawn
from fuzz.resolving import resolved
from fuzz.weights import given_weights, packed
from oracle import weights
from oracle.forward import trace as reference
from service.app import create_app
from service.settings import Settings

CONFIGS = int(os.environ.get("FUZZ_CONFIGS", "60"))
FUZZED = settings(
    max_examples=CONFIGS,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
FOUND = settings(max_examples=4000, derandomize=True, database=None)
CLIENT = TestClient(create_app(Settings()))
FAULTS = (*faults_of_blocks.ALL, *faults_around.ALL)
OfWeights = Callable[[Drawn, str], misfits.Fault]
OfInput = Callable[[Drawn, Drawn], misfits.Fault | None]
MISSING = {"mixture_of_no_experts", "stretched_by_nothing", "stretched_from_nowhere"}
MISSING |= {"layer_stretched_by_nothing"}
"""Faults of what is needed and not there: the request itself is at fault."""


@dataclass(frozen=True)
class Request:
    """A request that is right; its resolved config, weights and inputs, exact in its dtype."""

    asked: Drawn
    config: Drawn
    values: Arrays
    read: Given
    dtype: DType

    def __repr__(self) -> str:
        """What tells one from another: arrays would fill pages."""
        edits = self.asked["model"]["weights"].get("edits", [])
        return f"Request({self.config}, edits={edits}, inputs={_shapes(self.read)}, {self.dtype})"


def _shapes(read: Given) -> dict[str, Any]:
    return {k: _shapes(v) if isinstance(v, dict) else v.shape for k, v in read.items()}


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
    for rows in filter(None, (read, read.get("memory"))):
        if "tensor" in rows:
            rows["tensor"] = exact(rows["tensor"])
    asked_weights, values = draw(given_weights(values, dtype, whole))
    form = draw(st.sampled_from((np.ndarray.tolist, packed)))
    asked = {
        "model": {"config": config, "weights": asked_weights},
        "input": written(read, form),
        "dtype": dtype,
    }
    return Request(asked, whole, values, read, dtype)


def written(read: Given, form: Callable[[np.ndarray], object]) -> Drawn:
    """An input as a request has it."""
    return {k: written(v, form) if isinstance(v, dict) else form(v) for k, v in read.items()}


def every_stage(config: Drawn, read: Given) -> list[Any]:
    """All stages, derived ones too, of both stacks."""
    asked: list[Any] = ["*"]
    stacks = [("", config, read), ("encoder.", config["encoder"], read.get("memory"))]
    for stack, own, rows in stacks:
        if own is not None and own["attention"]["kind"] != "none":
            where = {"position": list(range(runs.shape_of(rows)[-1]))}
            asked += [f"{stack}attn.dots", {"name": f"{stack}attn.source_out", **where}]
    return asked


@FUZZED
@given(requests())
def test_what_is_valid_agrees_with_the_reference(drawn: Request) -> None:
    config, read = drawn.config, drawn.read
    answer = CLIENT.post("/v1/trace", json=drawn.asked | {"select": every_stage(config, read)})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["model"]["config"] == config
    assert [i["name"] for i in body["identities"] if i["holds"] is False] == []
    exact = reference(config, drawn.values, **read)
    assert body["tensors"].keys() == exact.keys()
    found = {name: comparing.as_array(tensor) for name, tensor in body["tensors"].items()}
    compared = comparing.compare(found, exact, config, drawn.values, read, drawn.dtype)
    event("compared whole" if compared.tie is None else "compared up to a near tie of a router")
    note(compared.told)
    assert compared.apart == set()


@FUZZED
@given(configs(), st.sampled_from(FAULTS))
def test_config_that_breaks_a_rule_is_refused_at_its_place(config: Drawn, fault: OfConfig) -> None:
    place = fault(config)
    assume(place is not None)
    answer = CLIENT.post("/v1/trace", json=request_of(config, {}))
    problem = answer.json()
    assert answer.status_code == 422, answer.text
    kind = "invalid-request" if fault.__name__ in MISSING else "config-rule"
    assert problem["type"] == f"/problems/{kind}"
    assert [found["pointer"] for found in problem["errors"]] == [f"/model/config/{place}"]


@FUZZED
@given(configs(), st.sampled_from(misfits.OF_WEIGHTS), st.data())
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


@FUZZED
@given(configs(), st.sampled_from(misfits.OF_INPUTS))
def test_input_that_does_not_fit_is_refused_at_its_place(config: Drawn, fault: OfInput) -> None:
    asked = request_of(config, {})
    misfit = fault(resolved(config), asked["input"])
    assume(misfit is not None)
    assert misfit is not None
    code, place = misfit
    answer = CLIENT.post("/v1/trace", json=asked)
    problem = answer.json()
    assert answer.status_code == 422, answer.text
    assert problem["type"] == f"/problems/{code}"
    assert [found["pointer"] for found in problem["errors"]] == [f"/input/{place}"]


def request_of(config: Drawn, asked: Drawn) -> Drawn:
    """A position that reads a row, and a memory of another where one is read."""
    rows = {"tensor": [[1.0] * config["d_model"]]}
    reads = config.get("cross_attention", config.get("encoder") is not None)
    read = {**rows, "memory": rows} if reads else rows
    return {"model": {"config": config, "weights": asked}, "input": deepcopy(read)}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_can_be_made(fault: OfConfig) -> None:
    config = find(configs(), lambda config: fault(deepcopy(config)) is not None, settings=FOUND)
    assert config["d_model"] >= 1


@pytest.mark.parametrize("fault", misfits.OF_INPUTS)
def test_every_misfit_can_be_made(fault: OfInput) -> None:
    def can(config: Drawn) -> bool:
        return fault(resolved(config), request_of(config, {})["input"]) is not None

    assert find(configs(), can, settings=FOUND)["d_model"] >= 1


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


def test_comparison_goes_no_further_than_a_choice_that_a_rounding_may_turn() -> None:
    ffn = {"kind": "moe", "n_experts": 2, "top_k": 1}
    whole = resolved({"d_model": 3, "attention": {"n_heads": 1}, "ffn": ffn, "n_layers": 2})
    values = weights.draw(np.random.default_rng(1), whole)
    read = {"tensor": np.array([[1.0, 2.0, 3.0]])}
    router = "blocks.1.ffn.W_router"
    values[router][:, 1] = values[router][:, 0]  # the first expert wins by no margin at all

    def apart(stage: str) -> set[str]:
        exact = reference(whole, values, **read)
        found = {name: -x if name == stage else x for name, x in exact.items()}
        return comparing.compare(found, exact, whole, values, read, "float32").apart

    assert apart("blocks.0.ffn_out") == {"blocks.0.ffn_out"}
    assert apart("blocks.1.ffn.router") == {"blocks.1.ffn.router"}
    assert apart("blocks.1.ffn_out") == set()
    values[router][:, 1] *= 0.9
    assert apart("blocks.1.ffn_out") == {"blocks.1.ffn_out"}
