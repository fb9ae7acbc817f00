"""The devices that have a name."""

from functools import lru_cache

from fastapi import Response

from compute.sizing.times import devices as listed_devices
from compute.sizing.times.devices import Listed
from schemas.sizing.devices import DeviceLine, Devices
from service.routes import routing

router = routing.router("discovery")


@router.get("/devices", response_model=Devices)
async def devices() -> Response:
    """Peak, bandwidth, memory and ridge point of known devices, with where each is from."""
    return Response(encoded(), media_type="application/json")


@lru_cache(maxsize=1)
def encoded() -> bytes:
    """The devices as JSON; they are the same for as long as the process lives."""
    return listed().model_dump_json().encode()


def listed() -> Devices:
    """A line for each device."""
    found = listed_devices.DEVICES.items()
    return Devices(devices=[_line(name, each) for name, each in found])


def _line(name: str, each: Listed) -> DeviceLine:
    device = each.device
    return DeviceLine(
        name=name,
        title=each.title,
        flops_per_second=device.flops_per_second,
        bytes_per_second=device.bytes_per_second,
        memory=each.memory,
        memory_unit=each.memory_unit,
        memory_bytes=device.memory_bytes or 0,
        ridge=float(listed_devices.ridge(device)),
        source=device.source,
        note=each.note,
    )
