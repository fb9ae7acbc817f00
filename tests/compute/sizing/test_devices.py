"""Devices: numbers as their makers print them, and ridge points as published."""

from fractions import Fraction

import pytest

import sized
from compute.sizing.times import devices
from compute.sizing.times.devices import DEVICES
from compute.sizing.vocabulary import Device

TERA, GIGA = 10**12, 10**9

PRINTED = {
    "a100-80gb-sxm": (312, 2039, 80 * GIGA),
    "h100-sxm": (989.4, 3350, 80 * GIGA),
    "h200-sxm": (989.4, 4800, 141 * GIGA),
    "a10": (125, 600, 24 * GIGA),
    "l4": (121, 300, 24 * GIGA),
    "t4": (65, 320, 16 * GIGA),
    "v100-32gb-sxm": (125, 900, 32 * GIGA),
    "rtx-4090": (165.2, 1008, 24 * GIGA),
    "mi300x": (1307.4, 5300, 192 * GIGA),
    "tpu-v4": (275, 1200, 32 << 30),
    "tpu-v5e": (197, 819, 16 * GIGA),
}
"""TFLOP/s dense, GB/s, bytes: read off datasheets by hand."""


@pytest.mark.parametrize("name", PRINTED)
def test_device_has_the_numbers_of_its_datasheet(name: str) -> None:
    device = DEVICES[name].device
    peak, rate, memory = PRINTED[name]
    assert device.flops_per_second == round(peak * TERA)
    assert device.bytes_per_second == rate * GIGA
    assert device.memory_bytes == memory


@pytest.mark.parametrize(
    ("truth", "name"),
    [
        ("ridge point A100 80GB SXM bf16", "a100-80gb-sxm"),
        ("ridge point H100 SXM bf16 dense", "h100-sxm"),
    ],
)
def test_ridge_point_is_the_published_one(truth: str, name: str) -> None:
    expected = sized.extra_truths()[truth]["expected"]
    assert round(float(devices.ridge(DEVICES[name].device)), 2) == expected


def test_every_device_says_its_name_its_memory_and_its_source() -> None:
    for name, listed in DEVICES.items():
        assert listed.device.name == name
        unit = {"GB": GIGA, "GiB": 1 << 30, "bytes": 1}[listed.memory_unit]
        assert listed.device.memory_bytes == listed.memory * unit
        assert listed.device.source
        assert listed.title


def test_no_peak_is_one_with_sparsity() -> None:
    doubled = {624, 1979, 1513, 250, 242, 724, 733, 140, 330.3, 142, 2614.9, 4500}
    peaks = {listed.device.flops_per_second / TERA for listed in DEVICES.values()}
    assert peaks & doubled == set()


def test_efficiencies_move_the_ridge() -> None:
    device = Device(
        name="x",
        flops_per_second=100,
        bytes_per_second=10,
        flops_efficiency=0.5,
        bytes_efficiency=0.25,
    )
    assert devices.ridge(device) == Fraction(50) / Fraction(5, 2)
