"""Devices that are sold: peak, bandwidth, memory, each as its maker's datasheet says.

Peaks are of dense products of 16-bit numbers, bfloat16 where the device has it, else float16, with
sums in float32; what a datasheet gives "with sparsity" is halved. Memory is as sold: 80 GB are
80·10^9 bytes, less than the chips hold and about what a driver leaves of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Literal

from compute.sizing.vocabulary import Device

MemoryUnit = Literal["GiB", "GB", "bytes"]

BYTES: Mapping[MemoryUnit, int] = MappingProxyType({"GiB": 1 << 30, "GB": 10**9, "bytes": 1})
"""Bytes of a unit of memory."""

_TERA, _GIGA = 10**12, 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A device that has a name: its title, its memory as sold, and what sources disagree on."""

    title: str
    device: Device
    memory: int
    memory_unit: MemoryUnit
    note: str


def ridge(device: Device) -> Fraction:
    """FLOP for each byte at which a device computes as long as it reads: peak / bandwidth.

    Efficiencies count. Williams, Waterman and Patterson, Roofline, CACM 52(4), 2009.
    """
    return flops_rate(device) / bytes_rate(device)


def flops_rate(device: Device) -> Fraction:
    """FLOP a second: the peak times its efficiency."""
    return device.flops_per_second * Fraction(device.flops_efficiency)


def bytes_rate(device: Device) -> Fraction:
    """Bytes a second: the bandwidth times its efficiency."""
    return device.bytes_per_second * Fraction(device.bytes_efficiency)


def _listed(  # noqa: PLR0917 - a column of a table each
    name: str,
    title: str,
    tera: str,
    giga: str,
    memory: int,
    source: str,
    note: str = "",
    unit: MemoryUnit = "GB",
) -> tuple[str, Listed]:
    device = Device(
        name=name,
        flops_per_second=int(Fraction(tera) * _TERA),
        bytes_per_second=int(Fraction(giga) * _GIGA),
        memory_bytes=memory * BYTES[unit],
        source=source,
    )
    return name, Listed(title=title, device=device, memory=memory, memory_unit=unit, note=note)


_A100 = "NVIDIA A100 datasheet"
_H100 = "NVIDIA H100 datasheet"
_CLOUD = "Google Cloud TPU documentation"
_FLOAT16 = "float16: it has no bfloat16."
_H100_RATES = "Some tables give 3072 GB/s for the same card."
_A10G = "125 TFLOP/s, which some tables give, are the A10's."
_T4 = "float16: it has no bfloat16. The product brief says 320 GB/s, the datasheet 300."
_RTX_3090 = "142 TFLOP/s where sums are float16 too."
_RTX_4090 = "330.3 TFLOP/s where sums are float16 too."
_RTX_5090 = "419 TFLOP/s where sums are float16 too."
_B200 = "One of the eight of a DGX B200, which has 1,440 GB; other sources say 192 GB a GPU."
_V4 = "Its paper (arXiv:2304.01433) says 1200 GB/s; other sources 1228."
_V5E = "Some pages of the documentation say 800 GiB/s."

DEVICES: Mapping[str, Listed] = MappingProxyType(
    dict(
        [
            _listed("a100-40gb-sxm", "NVIDIA A100 40 GB SXM", "312", "1555", 40, _A100),
            _listed("a100-80gb-sxm", "NVIDIA A100 80 GB SXM", "312", "2039", 80, _A100),
            _listed("a100-80gb-pcie", "NVIDIA A100 80 GB PCIe", "312", "1935", 80, _A100),
            _listed("h100-sxm", "NVIDIA H100 SXM", "989.4", "3350", 80, _H100, _H100_RATES),
            _listed("h100-pcie", "NVIDIA H100 PCIe", "756", "2000", 80, _H100),
            _listed("h200-sxm", "NVIDIA H200 SXM", "989.4", "4800", 141, "NVIDIA H200 datasheet"),
            _listed("b200", "NVIDIA B200", "2250", "8000", 180, "NVIDIA DGX B200 datasheet", _B200),
            _listed("a10", "NVIDIA A10", "125", "600", 24, "NVIDIA A10 datasheet"),
            _listed("a10g", "NVIDIA A10G", "70", "600", 24, "NVIDIA A10G datasheet", _A10G),
            _listed("a40", "NVIDIA A40", "149.7", "696", 48, "NVIDIA A40 datasheet"),
            _listed("l4", "NVIDIA L4", "121", "300", 24, "NVIDIA L4 datasheet"),
            _listed("l40s", "NVIDIA L40S", "362.05", "864", 48, "NVIDIA L40S datasheet"),
            _listed("v100-32gb-sxm", "NVIDIA V100 32 GB SXM2", "125", "900", 32,
                    "NVIDIA V100 datasheet", _FLOAT16),
            _listed("t4", "NVIDIA T4", "65", "320", 16, "NVIDIA T4 product brief", _T4),
            _listed("rtx-3090", "NVIDIA GeForce RTX 3090", "71", "936", 24,
                    "NVIDIA Ampere GA102 whitepaper", _RTX_3090),
            _listed("rtx-4090", "NVIDIA GeForce RTX 4090", "165.2", "1008", 24,
                    "NVIDIA Ada whitepaper", _RTX_4090),
            _listed("rtx-5090", "NVIDIA GeForce RTX 5090", "209.5", "1792", 32,
                    "NVIDIA RTX Blackwell whitepaper", _RTX_5090),
            _listed("mi250x", "AMD Instinct MI250X", "383", "3276.8", 128,
                    "AMD Instinct MI250X data sheet", "Two dies, which a program sees as two."),
            _listed("mi300x", "AMD Instinct MI300X", "1307.4", "5300", 192,
                    "AMD Instinct MI300X data sheet", "2,614.9 TFLOP/s are with sparsity."),
            _listed("tpu-v4", "Google TPU v4", "275", "1200", 32, _CLOUD, _V4, "GiB"),
            _listed("tpu-v5e", "Google TPU v5e", "197", "819", 16, _CLOUD, _V5E),
            _listed("tpu-v5p", "Google TPU v5p", "459", "2765", 95, _CLOUD),
        ]
    )
)  # fmt: skip
"""Name -> device."""
