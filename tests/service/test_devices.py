"""GET /v1/devices, and a device as a request says it."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError
from starlette.testclient import TestClient

from compute.sizing.times.devices import DEVICES, MemoryUnit
from schemas.sizing.devices import DeviceAsked, Devices, MemoryAmountAsked


def test_devices_are_listed_with_their_ridge(client: TestClient) -> None:
    response = client.get("/v1/devices")
    assert response.status_code == 200
    TypeAdapter(Devices).validate_json(response.content, strict=True)
    listed = {line["name"]: line for line in response.json()["devices"]}
    assert list(listed) == list(DEVICES)
    for line in listed.values():
        ratio = line["flops_per_second"] / line["bytes_per_second"]
        assert line["ridge"] == pytest.approx(ratio, rel=1e-15)
    assert "3072" in listed["h100-sxm"]["note"]


def test_a_device_is_said_by_its_numbers_or_by_name_and_changed() -> None:
    by_numbers = DeviceAsked.model_validate_json(
        '{"flops_per_second": 312e12, "bytes_per_second": 2039000000000}'
    ).to_compute()
    by_name = DeviceAsked(name="a100-80gb-sxm").to_compute()
    assert by_numbers.flops_per_second == by_name.flops_per_second
    assert by_numbers.bytes_per_second == by_name.bytes_per_second
    assert (by_numbers.memory_bytes, by_numbers.name) == (None, "")
    changed = DeviceAsked(name="h100-sxm", bytes_per_second=3072 * 10**9).to_compute()
    assert changed.bytes_per_second == 3072 * 10**9
    assert changed.flops_per_second == DEVICES["h100-sxm"].device.flops_per_second
    assert "changed" in changed.source


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"flops_per_second": 1},
        {"name": "a10-28gb"},
        {"name": "a10", "flops_per_second": 0.5},
        {"name": "a10", "flops_efficiency": 0.0},
        {"name": "a10", "bytes_efficiency": 1.5},
        {"name": "a10", "memory": {"value": 24}},
    ],
)
def test_a_device_that_is_none_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        DeviceAsked.model_validate(asked)


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (24, "GiB", 25_769_803_776),
        (24, "GB", 24_000_000_000),
        (0.1, "GB", 100_000_000),
        (2.5, "bytes", 2),
        (9_007_199_254_740_993, "bytes", 9_007_199_254_740_993),
    ],
)
def test_memory_is_counted_in_the_unit_that_is_said(
    value: float,
    unit: MemoryUnit,
    expected: int,
) -> None:
    assert MemoryAmountAsked(value=value, unit=unit).to_bytes() == expected


def test_memory_has_no_unit_of_its_own() -> None:
    with pytest.raises(ValidationError, match="unit"):
        MemoryAmountAsked.model_validate({"value": 24})
    with pytest.raises(ValidationError):
        MemoryAmountAsked(value=10**10, unit="GiB")
