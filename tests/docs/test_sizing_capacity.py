"""docs/sizing-capacity.md: every request runs, every key and every device is there."""

import re
from typing import Any

import pytest

import shown
from schemas.resolved import ConfigAnswer
from schemas.sizing.activations import ActivationsAsked
from schemas.sizing.capacity import CapacityAnswer, CapacityRequest
from schemas.sizing.devices import Devices
from schemas.sizing.kv_cache import CacheFormatAsked
from schemas.sizing.weights import FormatAsked
from service.routes import devices

PAGE = shown.page("sizing-capacity.md")
STEPS = shown.steps(PAGE)
ELSEWHERE = (ConfigAnswer, FormatAsked, CacheFormatAsked, ActivationsAsked)
"""What docs/sizing.md and docs/trace.md document."""


@pytest.mark.parametrize(("curl", "told"), STEPS)
def test_request_is_answered_as_shown(curl: str, told: Any) -> None:  # noqa: ANN401 - plain JSON
    assert shown.holds(shown.answer(curl), told)


@pytest.mark.parametrize("kind", [CapacityRequest, CapacityAnswer, Devices])
def test_every_key_is_documented(kind: type) -> None:
    tables = PAGE.partition("## The request")[2]
    elsewhere = set[str]().union(*(shown.keys(each) for each in ELSEWHERE))
    own = shown.keys(kind) - (elsewhere - {"name"}) - {"devices"}
    assert {key for key in own if f"`{key}`" not in tables} == set()


def test_every_device_is_in_the_table_with_its_numbers() -> None:
    numbers = r"([\d.]+) \| ([\d.,]+) \| (\d+) (GB|GiB) \| ([\d.]+)"
    row = rf"^\| `([\w-]+)` \| {numbers} \| (.*?) \| (.*?) ?\|$"
    told = re.findall(row, PAGE.partition("## Devices")[2], re.M)
    assert told == [
        (
            line.name,
            f"{line.flops_per_second / 1e12:g}",
            f"{line.bytes_per_second / 1e9:,g}",
            str(line.memory),
            line.memory_unit,
            f"{line.ridge:.1f}",
            line.source,
            line.note,
        )
        for line in devices.listed().devices
    ]


def test_numbers_in_the_text_are_those_of_the_answers() -> None:
    first, second = (shown.answer(curl) for curl, _ in STEPS[:2])
    assert round(first["parts"][0]["bytes"]["GiB"], 2) == 14.96
    assert first["left"]["value"] == 122_880
    assert first["parts"][2]["growth"]["value"] - first["left"]["value"] == 8_192
    assert second["parts"][2]["growth"]["value"] == 1_008 * 18_432
