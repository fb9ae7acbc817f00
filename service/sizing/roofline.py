"""Times on a device as members of an answer."""

from collections.abc import Iterator

from compute.config import ModelConfig
from compute.sizing import architecture
from compute.sizing.formats import CacheFormat
from compute.sizing.memory import kv_cache, weight_bytes
from compute.sizing.times import devices, roofline
from compute.sizing.times.attention_traffic import Stored
from compute.sizing.times.roofline import Experts, Operator, Phase
from compute.sizing.vocabulary import Conventions, Device, Workload
from service.sizing import ledgers, storage

View = dict[str, object]

NOTES = (
    "Every operator reads its weights once each time it runs, its rows, and writes its rows.",
    "Scores and mix read keys and values as the cache has them; attention_kernel materialised "
    "writes and reads the pattern besides, flash does not.",
    "An embedding reads the rows that are looked up; a readout by the same table reads all of it.",
    "A mixture reads min(e, B·n·c) experts, as many as rows may choose; see experts.",
    "Times are lower bounds, so tokens a second, of all sequences together, are at most so many.",
    "Of a causal model's prompt the last position is read out, unless conventions.head says "
    "otherwise.",
)
EXCLUDED = (
    "Operations beside products, and what they move: taken as done on rows that are there.",
    "Starting kernels, synchronising, sampling, communication between devices.",
    "What a cache of the device spares, and tables of positions that scores are biased by.",
)


def view(
    config: ModelConfig,
    workload: Workload,
    form: Stored,
    device: Device,
    conventions: Conventions,
) -> View:
    """The member `roofline`."""
    found = roofline.of(config, workload, form, device, conventions)
    first, then = (None, None) if found.experts is None else found.experts
    decode = None if found.decode is None else _phase(found.decode, workload.batch, then)
    return {
        "device": device_view(device),
        "memory": _memory(config, workload, form, device),
        "prefill": _phase(found.prefill, workload.batch * workload.tokens, first),
        "decode": decode,
        "symbols": list(_symbols(form)),
        "notes": list(NOTES),
        "excluded": list(EXCLUDED),
    }


def _memory(config: ModelConfig, workload: Workload, form: Stored, device: Device) -> View:
    """Whether weights and cache, as allocated, fit into the device at all; null: it is not said."""
    needed = int(weight_bytes.size(config, form.weights, form.kept).total)
    if architecture.caches(config):
        cached = kv_cache.size(config, workload, CacheFormat(format=form.cache))
        needed += int(cached.allocation.total)
    room = device.memory_bytes
    return {
        "needed": ledgers.amount(needed, "bytes"),
        "fits": None if room is None else needed <= room,
    }


def device_view(device: Device) -> View:
    """The device that was meant."""
    return {
        "name": device.name or None,
        "flops_per_second": ledgers.number(device.flops_per_second),
        "bytes_per_second": ledgers.number(device.bytes_per_second),
        "memory_bytes": device.memory_bytes,
        "flops_efficiency": device.flops_efficiency,
        "bytes_efficiency": device.bytes_efficiency,
        "ridge": float(devices.ridge(device)),
        "source": device.source,
    }


def _symbols(form: Stored) -> Iterator[View]:
    """Letters of these formulas alone; in a step n is 1."""
    yield {"letter": "a", "meaning": "bytes of an activation", "value": form.activation}
    yield storage.symbol(form.weights, "w")
    yield storage.symbol(form.cache, "kv")


def _phase(found: Phase, tokens: int, experts: Experts | None) -> View:
    compute, memory = found.compute_seconds, found.memory_seconds
    return {
        "kind": found.kind,
        "flops": ledgers.amount(found.flops, "FLOP"),
        "bytes": ledgers.amount(found.bytes, "bytes"),
        "weights": ledgers.amount(found.moved("weights"), "bytes"),
        "cache": ledgers.amount(found.moved("cache"), "bytes"),
        "activations": ledgers.amount(found.moved("activations"), "bytes"),
        "intensity": _ratio(found.flops, found.bytes),
        "compute_seconds": compute,
        "memory_seconds": memory,
        "per_operator": {
            "seconds": found.per_operator,
            "tokens_per_second": _ratio(tokens, found.per_operator),
            "bound": found.bound,
        },
        "fused": {
            "seconds": found.fused,
            "tokens_per_second": _ratio(tokens, found.fused),
            "bound": roofline.bound(compute, memory),
        },
        "experts": None if experts is None else _experts(experts),
        "operators": [_operator(each, found.per_operator) for each in found.operators],
    }


def _experts(found: Experts) -> View:
    return {"counted": found.most, "least": found.least, "expected": found.expected}


def _operator(found: Operator, seconds: float) -> View:
    flops = int(found.count * found.flops.value)
    moved = found.weights + found.cache + found.activations
    return {
        "id": found.id,
        "count": found.count,
        "flops": ledgers.number(flops),
        "bytes": ledgers.number(found.bytes),
        "weights": ledgers.number(found.count * found.weights.value),
        "cache": ledgers.number(found.count * found.cache.value),
        "activations": ledgers.number(found.count * found.activations.value),
        "intensity": _ratio(flops, found.bytes),
        "compute_seconds": found.compute_seconds,
        "memory_seconds": found.memory_seconds,
        "seconds": found.seconds,
        "share": _ratio(found.seconds, seconds),
        "bound": found.bound,
        "flops_formula": found.flops.formula,
        "bytes_formula": moved.formula,
    }


def _ratio(top: float, bottom: float) -> float:
    return top / bottom if bottom else 0.0
