"""A question about subspaces: what may be left out, and what is refused where."""

from typing import Any

import pytest
from pydantic import ValidationError

from schemas.subspaces import SubspacesRequest

MODEL = {"name": "induction"}


def faults_of(body: dict[str, Any]) -> list[tuple[tuple[str | int, ...], str]]:
    with pytest.raises(ValidationError) as caught:
        SubspacesRequest.model_validate(body)
    return [(fault["loc"], fault["type"]) for fault in caught.value.errors()]


def test_everything_but_the_model_may_be_left_out() -> None:
    asked = SubspacesRequest.model_validate({"model": MODEL})
    assert asked.heads is None
    assert asked.ask == ["rank", "effective_rank", "composition"]
    assert asked.tokens is None
    assert not asked.fold_norm


def test_the_word_all_stands_for_every_head() -> None:
    asked = SubspacesRequest.model_validate({"model": MODEL, "heads": "all", "readers": "all"})
    assert asked.heads is None
    assert asked.readers is None


@pytest.mark.parametrize(
    ("wrong", "faults"),
    [
        ({"heads": "some"}, [(("heads",), "list_type")]),
        ({"heads": []}, [(("heads",), "too_short")]),
        ({"heads": [{"block": 0}]}, [(("heads", 0, "head"), "missing")]),
        ({"heads": [{"block": 0, "head": True}]}, [(("heads", 0, "head"), "int_type")]),
        ({"heads": [{"block": 1 << 40, "head": 0}]}, [(("heads", 0, "block"), "less_than_equal")]),
        ({"readers": {"block": 0, "head": 0}}, [(("readers",), "list_type")]),
        ({"ask": []}, [(("ask",), "too_short")]),
        ({"ask": ["ranks", "qk"]}, [(("ask", 0), "literal_error")]),
        ({"ask": "qk"}, [(("ask",), "list_type")]),
        ({"ask": ["qk"], "tokens": []}, [(("tokens",), "too_short")]),
        ({"ask": ["rank"], "tokens": ["A"]}, [((), "tokens")]),
        ({"fold_norm": 1}, [(("fold_norm",), "bool_type")]),
        ({"dtype": "float16"}, [(("dtype",), "literal_error")]),
    ],
    ids=str,
)
def test_each_fault_is_told_once_where_it_is(wrong: dict[str, Any], faults: list[Any]) -> None:
    assert faults_of({"model": MODEL, **wrong}) == faults


def test_schema_says_that_all_is_a_word() -> None:
    schema = SubspacesRequest.model_json_schema()
    assert {"type": "string", "const": "all"} in schema["properties"]["heads"]["anyOf"]
