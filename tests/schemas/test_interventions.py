"""Interventions as asked for: what is read, and what is refused before a model is known."""

from typing import Any, get_args

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from compute.errors import InterventionError
from compute.stages import GLOSSARY
from compute.types import AXES
from schemas.interventions import Chosen, InterventionAsked, to_compute
from schemas.trace import TraceRequest

ITEM = TypeAdapter(InterventionAsked)
TRACE = {"model": {"name": "eiffel-toy"}, "input": {"text": "the"}}


def asked(**given: object) -> InterventionAsked:
    return ITEM.validate_python({"stage": "attn.z", "op": "zero"} | given)


def test_intervention_is_read_as_compute_takes_it() -> None:
    other = {"text": "tower"}
    one = asked(op="mean", where={"head": [0, -1]}, over=["batch"], **{"from": other})
    (made,) = to_compute([one], "float32")
    assert (made.stage, made.op, made.where) == ("attn.z", "mean", {"head": (0, -1)})
    assert (made.value, made.over, made.source) == (None, ("batch",), 0)


def test_other_inputs_are_named_by_the_place_of_their_intervention() -> None:
    other = asked(op="patch", **{"from": {"token_ids": [1]}})
    made = to_compute([asked(), other, asked(), other], "float64")
    assert [one.source for one in made] == [None, 1, None, 3]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("value", [2, 0.5, [1.5], [[1, 2]], [[[1.0]]], [[[[1.0], [2.0]]]]])
def test_value_is_a_number_or_numbers_nested_up_to_four_deep(value: object, dtype: str) -> None:
    (made,) = to_compute([asked(op="set", value=value)], dtype)  # type: ignore[arg-type]
    assert np.asarray(made.value).dtype == dtype
    assert np.asarray(made.value).tolist() == np.asarray(value, dtype).tolist()


def test_value_beyond_the_dtype_is_refused_at_its_place() -> None:
    given = [asked(), asked(op="set", value=[[0.0, 1e300], [1.0, -1e300]])]
    with pytest.raises(InterventionError) as refused:
        to_compute(given, "float32")
    assert [fault.place for fault in refused.value.faults] == [
        (1, "value", 0, 1),
        (1, "value", 1, 1),
    ]
    assert to_compute(given, "float64")


REFUSED: dict[str, dict[str, Any]] = {
    "no such key": {"sauce": 1},
    "from by its name in code": {"source": {"text": "the"}},
    "no such op": {"op": "negate"},
    "no such axis": {"where": {"row": [0]}},
    "no indices": {"where": {"head": []}},
    "a fraction as index": {"where": {"head": [0.5]}},
    "true as index": {"where": {"head": [True]}},
    "one index alone": {"where": {"head": 0}},
    "text as value": {"op": "set", "value": "1"},
    "true as value": {"op": "set", "value": True},
    "not a number": {"op": "set", "value": float("nan")},
    "ragged": {"op": "set", "value": [[1], [1, 2]]},
    "nested too deep": {"op": "set", "value": [[[[[1.0]]]]]},
    "over nothing": {"op": "mean", "over": []},
    "over no axis": {"op": "mean", "over": ["rows"]},
    "from nothing": {"op": "patch", "from": {}},
    "from two inputs": {"op": "patch", "from": {"text": "the", "token_ids": [1]}},
    "stage of no name": {"stage": ""},
    "stage of a long name": {"stage": "z" * 129},
}


@pytest.mark.parametrize("name", REFUSED)
def test_malformed_intervention_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        asked(**REFUSED[name])


@pytest.mark.parametrize(("key", "most"), [("interventions", 64), ("measures", 16)])
def test_lists_have_an_end(key: str, most: int) -> None:
    one = {"stage": "z", "op": "zero"} if key == "interventions" else {"logit": 0}
    TypeAdapter(TraceRequest).validate_python(TRACE | {key: [one] * most})
    with pytest.raises(ValidationError):
        TypeAdapter(TraceRequest).validate_python(TRACE | {key: [one] * (most + 1)})


def test_trace_without_the_keys_asks_for_no_change() -> None:
    request = TypeAdapter(TraceRequest).validate_python(TRACE)
    assert (request.interventions, request.measures) == ([], [])
    assert (request.clean, request.path) == (True, "total")


def test_axes_that_may_be_chosen_are_those_of_stages() -> None:
    words = {word for word in GLOSSARY.values() if word != "1"}
    assert set(get_args(Chosen)) == words | {"block"}
    assert words <= set(AXES.values())
