"""docs/counting.md: every request is answered as shown, every line of arithmetic is right, and
no number stands in the text that neither of them has."""

import re
from typing import Any

import orjson
import pytest

import shown
from evaluating import evaluated

PAGE = shown.page("counting.md")
STEPS = shown.steps(PAGE)
LINES = [
    line for block in re.findall(r"```text\n(.*?)```", PAGE, re.S) for line in block.splitlines()
]
PROSE = re.sub(r"```.*?```", "", PAGE, flags=re.S)


@pytest.mark.parametrize(("curl", "told"), STEPS)
def test_request_is_answered_as_shown(curl: str, told: Any) -> None:  # noqa: ANN401 - plain JSON
    assert shown.holds(shown.answer(curl), told)


@pytest.mark.parametrize("line", LINES)
def test_both_sides_of_a_line_are_equal(line: str) -> None:
    sides = [evaluated(side.replace(",", "")) for side in line.split(" = ")]
    assert len(sides) > 1
    assert len(set(sides)) == 1


def test_every_result_of_a_line_is_answered_or_used_further_on() -> None:
    answered = orjson.dumps([shown.answer(curl) for curl, _ in STEPS]).decode()
    for at, line in enumerate(LINES):
        result = line.rpartition(" = ")[2].replace(",", "")
        used = any(result in later for later in LINES[at + 1 :])
        assert used or re.search(rf"\b{result.lstrip('-')}\b", answered), line


def test_every_large_number_of_the_text_stands_in_a_line_or_an_answer() -> None:
    answered = orjson.dumps([shown.answer(curl) for curl, _ in STEPS]).decode()
    known = " ".join(LINES).replace(",", "") + answered
    for number in re.findall(r"\d[\d,]{3,}", PROSE):
        assert re.search(rf"\b{number.replace(',', '')}\b", known), number
