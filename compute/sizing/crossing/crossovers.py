"""Where one cost of a model overtakes another: whole numbers, with the formula they come from.

attention: positions from which a pass spends as much on attention as on products with weights.
kv_cache: positions whose cache takes as many bytes as the weights. decode_batch: sequences from
which a cached step's products are bound by computing rather than by reading weights.
"""

from collections.abc import Callable, Iterator
from functools import cache
from math import ceil

from compute.config import ModelConfig
from compute.errors import QuestionError
from compute.sizing import architecture
from compute.sizing.crossing import attention_crossovers, linear_step
from compute.sizing.crossing.attention_crossovers import Crossover, none
from compute.sizing.fitting import searching
from compute.sizing.formats import CacheFormat
from compute.sizing.ledger import Ledger
from compute.sizing.memory import kv_cache, weight_bytes
from compute.sizing.operations import flops
from compute.sizing.quantity import Quantity, q, told
from compute.sizing.times import devices
from compute.sizing.times.attention_traffic import Stored
from compute.sizing.vocabulary import Device, Workload

MOST = 1 << 40
"""Beyond so many positions and sequences none are looked for."""


def of(
    config: ModelConfig,
    batch: int,
    form: Stored,
    page: int = 0,
    device: Device | None = None,
) -> tuple[Crossover, ...]:
    """All of them, those that do not exist with the reason."""
    cache = CacheFormat(format=form.cache, page=page)
    weights = int(weight_bytes.size(config, form.weights, form.kept).total)
    return (
        attention_crossovers.full(config),
        attention_crossovers.exact(config),
        *_caches(config, batch, cache, weights),
        _decode_batch(config, form, device),
    )


def _caches(
    config: ModelConfig, batch: int, cache: CacheFormat, weights: int
) -> Iterator[Crossover]:
    """The least t with cache(t) >= weights: as allocated, and of what windows leave."""
    windowed = any(window is not None for window, _ in architecture.windows(config))
    yield _cache("kv_cache", config, batch, cache, weights)
    if windowed:
        yield _cache("kv_cache_windowed", config, batch, cache, weights)
    else:
        yield none("kv_cache_windowed", "tokens", "No block has a window.")


def _cache(
    name: str, config: ModelConfig, batch: int, cache: CacheFormat, weights: int
) -> Crossover:
    def held(tokens: int) -> Ledger:
        found = kv_cache.size(config, Workload(batch=batch, tokens=tokens), cache)
        return found.allocation if name == "kv_cache" else found.lower_bound

    try:
        per_token = kv_cache.size(config, Workload(batch=batch), cache).per_token
    except QuestionError as error:
        return none(name, "tokens", str(error))
    if held(MOST).total < weights:
        return none(name, "tokens", "The cache stays smaller: windows end its growth.")
    value = searching.largest(lambda t: int(held(t).total), weights - 1, MOST) + 1
    ratio = q("M_w", weights) / (q("B", batch) * per_token.named("kv"))
    is_ratio = name == "kv_cache" and value == ceil(ratio.value)
    return Crossover(
        id=name,
        unit="tokens",
        value=value,
        formula=f"least T >= {ratio.formula}" if is_ratio else "least T: cache(T) >= M_w",
        substituted=f"{value} >= {ratio.substituted}"
        if is_ratio
        else f"{held(value).total} >= {weights}",
        ratio=float(ratio.value) if is_ratio else None,
    )


def _decode_batch(config: ModelConfig, form: Stored, device: Device | None) -> Crossover:
    """The least B at which FLOP / peak >= bytes / bandwidth in a step's products with weights.

    About ridge·b_w/2, which takes a step to read weights alone and every weight to meet all rows.
    """
    name = "decode_batch"
    if device is None:
        return none(name, "sequences", "No device was said.")
    if not flops.decodes(config):
        return none(name, "sequences", "A model without a causal mask has no cached steps.")
    about = ridge(device) * q("b_w", form.weights.bits / 8) / 2

    @cache
    def lead(batch: int) -> int:
        return _lead(config, max(batch, 1), form, device)

    guess = _straight(lead(1), lead(2))
    straight = config.ffn.kind != "moe" and form.weights.bits % 8 == 0  # each sequence adds alike
    is_found = guess is not None and (straight or _turns(lead, guess))
    if not is_found and lead(MOST) < 0:
        reason = "Its products move more bytes of rows than they compute, however many there are."
        return none(name, "sequences", reason)
    value = guess if is_found else max(1, searching.largest(lead, -1, MOST) + 1)
    step = linear_step.of(config, value or 1, form)
    return Crossover(
        id=name,
        unit="sequences",
        value=value,
        formula=f"least B: F/peak >= bytes/bandwidth; about {about.formula}",
        substituted=f"{step.flops}/{told(devices.flops_rate(device))} >= "
        f"{step.bytes}/{told(devices.bytes_rate(device))}; about {about.substituted}",
        ratio=float(about.value),
    )


def _turns(lead: Callable[[int], int], at: int) -> bool:
    return lead(at) >= 0 and (at == 1 or lead(at - 1) < 0)


def _straight(one: int, two: int) -> int | None:
    """The least B from which on a lead that grows by the same for each sequence is 0 or more."""
    if one >= 0:
        return 1
    return None if two <= one else 1 - one // (two - one)


def ridge(device: Device) -> Quantity:
    """peak/bandwidth, FLOP a byte."""
    return q("peak", devices.flops_rate(device)) / q("bandwidth", devices.bytes_rate(device))


def _lead(config: ModelConfig, batch: int, form: Stored, device: Device) -> int:
    """FLOP · bandwidth less bytes · peak, in whole numbers: below 0 where reading takes longer."""
    peak, rate = devices.flops_rate(device), devices.bytes_rate(device)
    step = linear_step.of(config, batch, form)
    return int((step.flops * rate - step.bytes * peak) * rate.denominator * peak.denominator)
