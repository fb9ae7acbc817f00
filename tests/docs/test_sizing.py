"""docs/sizing.md: every request is answered as shown, every key, code and letter is there, what
the command line prints is printed so, and no number stands in the text that no answer has."""

import math
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest
from starlette.testclient import TestClient

import shown
from evaluating import evaluated
from schemas.select import SelectItem
from schemas.sizing.answer import SizingAnswer
from schemas.sizing.flops import ConventionsAsked
from schemas.sizing.request import SizingRequest
from service import cli
from service.app import create_app
from service.settings import Settings

PAGE = shown.page("sizing.md")
STEPS = shown.steps(PAGE)
TEXTS = re.findall(r"```text\n(.*?)```", PAGE, re.S)
PRINTED = [text for text in TEXTS if text.startswith("$ ")]
LINES = [line for text in TEXTS if text not in PRINTED for line in text.splitlines()]
PROSE = re.sub(r"```.*?```|arXiv:[\d.]+|Llama 3\.1", "", PAGE, flags=re.S)
REQUEST, ANSWER = PAGE.partition("## The request")[2].split("## The answer")
UNITS = {"%": 1e2, "ms": 1e3, "TFLOP": 1e-12, "GFLOP": 1e-9}
NUMBER = re.compile(r"(?<![\w.])(\d[\d,]*\.\d+|\d[\d,]{3,})(?:\s(%|ms|TFLOP|GFLOP)(?!\w))?")

GPT2 = {"preset": "gpt2"}
BERT = {"preset": "bert-base"}
DEEP = {"preset": "gpt2", "config": {"n_layers": 1025}}
WIDE = {
    "preset": "gpt2",
    "config": {"d_model": 1 << 20, "n_layers": 1 << 20, "attention": {"n_heads": 16}},
}
REFUSED: Mapping[str, Any] = {
    "no_cache": {"model": BERT, "ask": ["kv_cache"]},
    "sized_only": {"model": {"preset": "deepseek-v3"}, "ask": ["trace"]},
    "missing": {"model": GPT2, "ask": ["roofline"]},
    "beyond_positions": {"model": GPT2, "tokens": 1000, "new_tokens": 25},
    "no_memory": {"model": GPT2, "source_tokens": 4},
    "not_its_patches": {"model": {"preset": "vit-b-16"}, "tokens": 4},
    "no_generation": {"model": BERT, "new_tokens": 4},
    "too_many_parameters": {"model": WIDE},
    "too_many_blocks": {"model": DEEP, "trace": {"select": ["blocks.3.attn.q"]}},
    "macs_alone": {"model": GPT2, "conventions": {"multiply_add": 1, "bias_adds": True}},
}
"""Of each code a request that is refused with it."""


@cache
def client() -> TestClient:
    return TestClient(create_app(Settings()))


def posted(request_: Any) -> Any:  # noqa: ANN401 - plain JSON
    return client().post("/v1/sizing", json=request_).json()


@cache
def answers() -> list[Any]:
    return [shown.answer(curl) for curl, _ in STEPS]


@pytest.mark.parametrize("at", range(len(STEPS)))
def test_request_is_answered_as_shown(at: int) -> None:
    assert shown.holds(answers()[at], STEPS[at][1])


@pytest.mark.parametrize("line", LINES)
def test_both_sides_of_a_line_are_equal(line: str) -> None:
    sides = [evaluated(side.replace(",", "")) for side in line.split(" = ")]
    assert len(sides) > 1
    assert len(set(sides)) == 1


def test_every_result_of_a_line_is_answered_or_told() -> None:
    answered = orjson.dumps(answers()).decode()
    for line in LINES:
        result = line.rpartition(" = ")[2]
        assert re.search(rf"\b{re.escape(result)}\b", answered + PROSE), line


def test_every_number_of_the_text_stands_in_an_answer_or_a_line() -> None:
    found = [float(x) for x in _numbers(answers())]
    found += [float(x) for line in LINES for x in re.findall(r"\d+(?:\.\d+)?", line)]
    found += [float(bits) for bits in _bits().values()]
    for told, unit in NUMBER.findall(PROSE):
        number, digits = float(told.replace(",", "")), len(told.partition(".")[2])
        made = [abs(x) * UNITS.get(unit, 1) for x in found]
        near = [round(x, digits) for x in made] if digits else made
        assert any(math.isclose(x, number, rel_tol=1e-12) for x in near), told


def _numbers(node: Any) -> Iterator[int | float]:  # noqa: ANN401 - plain JSON
    if isinstance(node, int | float):
        yield node
    elif isinstance(node, dict | list):
        for each in node.values() if isinstance(node, dict) else node:
            yield from _numbers(each)


def test_every_key_is_documented() -> None:
    elsewhere = shown.keys(SelectItem) - {"name"}
    asked = (shown.keys(SizingRequest) - elsewhere) | ConventionsAsked.model_fields.keys()
    assert {key for key in asked if f"`{key}`" not in REQUEST} == set()
    assert {key for key in shown.keys(SizingAnswer) if f"`{key}`" not in ANSWER} == set()


def _choices(section: str, key: str) -> list[str]:
    """The words that a key may have."""
    schema = SizingRequest.model_json_schema()["$defs"][section]["properties"][key]
    return next(form["enum"] for form in [schema, *schema.get("anyOf", [])] if "enum" in form)


@cache
def _bits() -> Mapping[str, Fraction]:
    """Bits of a number in each format, as answered."""
    found = {
        name: posted({"model": GPT2, "ask": ["weights"], "dtype": name})["weights"]["bits"]
        for name in _choices("FormatAsked", "dtype")
    }
    return {name: Fraction(bits) for name, bits in found.items()}


def test_presets_of_conventions_are_as_told() -> None:
    for name in _choices("ConventionsAsked", "preset"):
        request_ = {"model": GPT2, "ask": ["flops"], "conventions": {"preset": name}}
        made = posted(request_)["flops"]["conventions"]
        told = [f"`{made[key]}`" for key in ("causal", "head", "embedding_lookup")]
        row = f"| `{name}` | {' | '.join(told)} |".replace("`None` ", "")
        assert row in REQUEST
        others = {key: made[key] for key in made.keys() - {"causal", "head", "embedding_lookup"}}
        plain = posted({"model": GPT2, "ask": ["flops"]})["flops"]["conventions"]
        assert others.items() <= plain.items()


def test_bits_of_formats_are_as_told() -> None:
    rows = re.findall(r"^\| (`[^|]*`) \| ([\d.]+) \|$", REQUEST, re.M)
    told = {name: Fraction(bits) for names, bits in rows for name in re.findall(r"`(\w+)`", names)}
    assert told == _bits()


def test_bytes_of_optimizers_are_as_told() -> None:
    for name in _choices("TrainingAsked", "optimizer"):
        asked = {"model": GPT2, "ask": ["training"], "training": {"optimizer": name}}
        *each, total = posted(asked)["training"]["bytes_per_parameter"].values()
        assert f"| `{name}` | {' + '.join(map(str, each))} = {total} |" in REQUEST


@pytest.mark.parametrize("code", REFUSED)
def test_refusal_has_the_code_that_is_told(code: str) -> None:
    problem = posted(REFUSED[code])
    assert problem["status"] == 422
    assert {fault["code"] for fault in problem["errors"]} == {code}
    assert f"\n| `{code}` |" in ANSWER


def test_no_other_code_is_told() -> None:
    codes = re.findall(r"^\| `(\w+)` \|", ANSWER.partition("| code | when |")[2], re.M)
    assert set(codes[: len(REFUSED)]) == REFUSED.keys()


@pytest.mark.parametrize(
    ("preset", "absent"),
    [("bert-base", {"kv_cache", "roofline"}), ("deepseek-v3", {"trace", "roofline"})],
)
def test_what_does_not_apply_is_absent_where_nothing_is_asked_for(
    preset: str, absent: set[str]
) -> None:
    found = posted({"model": {"preset": preset}})
    assert found["absent"].keys() == absent
    assert all(found[name] is None for name in absent)


@pytest.mark.parametrize(
    "preset",
    ["albert-base-v2", "bert-base", "deepseek-v3", "gpt-oss-20b", "gpt2", "t5-small", "vit-b-16"],
)
def test_every_letter_is_told(preset: str) -> None:
    tables = ANSWER.partition("## Letters")[2]
    quantised = {"dtype": "int4", "grouped": {"group": 32}, "keep": ["norms"]}
    asked = {"weights": quantised, "cache": {"dtype": "q8_0", "page": 16}}
    for request_ in ({}, asked, {"conventions": {"recompute": "full"}}):
        found = posted({"model": {"preset": preset}, **request_})
        sections = [found, *(part for part in found.values() if isinstance(part, dict))]
        letters = {symbol["letter"] for part in sections for symbol in part.get("symbols", [])}
        assert {letter for letter in letters if f"`{letter}`" not in tables} == set()


def test_half_of_the_pairs_is_half_of_a_cached_step_too() -> None:
    def pairs(causal: str) -> Any:  # noqa: ANN401 - plain JSON
        model, said = {"preset": "llama-3.1-8b"}, {"causal": causal}
        found = posted({"model": model, "ask": ["flops"], "conventions": said})
        return found["flops"]["decode"]["views"]["attention"]["total"]["value"]

    assert pairs("full") == pairs("exact") == 2 * pairs("half")


def test_neither_depth_nor_positions_make_an_answer_longer() -> None:
    def size(tokens: int, blocks: int) -> int:
        model = {"preset": "llama-3.1-8b", "config": {"n_layers": blocks}}
        found = posted({"model": model, "tokens": tokens, "device": {"name": "h100-sxm"}})
        return len(list(_numbers(found)))

    assert size(10**12, 1 << 20) < 1.1 * size(256, 8)


@pytest.mark.parametrize("text", PRINTED)
def test_command_prints_what_is_shown(
    text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    command, *told = text.splitlines()
    assert cli.main(command.removeprefix("$ .venv/bin/glassblock ").split()) == 0
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert printed[: len(told)] == told


def test_command_answers_a_file_of_a_request_as_the_service_does(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    request_ = {"model": {"preset": "gemma-3-27b"}, "ask": ["kv_cache"], "tokens": 4096}
    file = tmp_path / "request.json"
    file.write_bytes(orjson.dumps(request_))
    assert cli.main(["size", str(file), "--json"]) == 0
    assert orjson.loads(capfdbinary.readouterr().out) == posted(request_)
