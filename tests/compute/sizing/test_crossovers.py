"""Cross-overs: at the number it holds, at one less it does not, by the counts themselves."""

import pytest

import sized
from compute.config import ModelConfig
from compute.sizing import parameters
from compute.sizing.crossing import crossovers, linear_step
from compute.sizing.crossing.attention_crossovers import Crossover
from compute.sizing.formats import CacheFormat, Format
from compute.sizing.memory import kv_cache, weight_bytes
from compute.sizing.operations import flops
from compute.sizing.times import roofline
from compute.sizing.times.attention_traffic import Stored
from compute.sizing.times.devices import DEVICES
from compute.sizing.vocabulary import Causal, Conventions, Device, Workload
from schemas.config import ConfigAsked

BF16 = Format(name="bfloat16")
FORM = Stored(weights=BF16, cache=BF16, activation=2)
A100, H100 = (DEVICES[name].device for name in ("a100-80gb-sxm", "h100-sxm"))
NAMES = ("gpt2-small", "llama-3(.1)-8b", "gpt-oss-20b", "gemma-3-27b (text)", "mixtral-8x7b")


def found(config: ModelConfig, batch: int = 1) -> dict[str, Crossover]:
    return {each.id: each for each in crossovers.of(config, batch, FORM, device=A100)}


def shares(config: ModelConfig, n: int, causal: Causal) -> tuple[int, int]:
    """FLOP of attention, and of products with weights in blocks, of a pass over n positions."""
    ledger = flops.forward(config, Workload(tokens=n), Conventions(causal=causal))
    linear = ledger.sum_of(lambda part: {"linear", "blocks"} <= part.views)
    return int(ledger.view("attention")), int(linear)


def test_gpt_2_spends_as_much_on_attention_from_6d_and_12d_positions() -> None:
    both = found(sized.config_of("gpt2-small"))
    assert both["attention_full"].value == 6 * 768
    assert both["attention_exact"].value == 12 * 768 - 1  # n·(n + 1)/2 pairs, not n²/2
    assert both["attention_full"].formula == "ceil(W/(L·h·(k + v)))"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("causal", ["full", "exact"])
def test_attention_overtakes_products_exactly_there(name: str, causal: Causal) -> None:
    config = sized.config_of(name)
    value = found(config)[f"attention_{causal}"].value
    assert value is not None
    attention, linear = shares(config, value, causal)
    assert attention >= linear
    attention, linear = shares(config, value - 1, causal)
    assert attention < linear


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("batch", [1, 7])
def test_the_cache_reaches_the_weights_exactly_there(name: str, batch: int) -> None:
    config = sized.config_of(name)
    weights = weight_bytes.size(config, BF16).total
    for key in ("kv_cache", "kv_cache_windowed"):
        value = found(config, batch)[key].value
        if value is None:
            continue
        sizes = [
            kv_cache.size(config, Workload(batch=batch, tokens=n), CacheFormat(format=BF16))
            for n in (value, value - 1)
        ]
        ledgers = [x.allocation if key == "kv_cache" else x.lower_bound for x in sizes]
        assert ledgers[0].total >= weights > ledgers[1].total


def test_a_step_needs_about_ridge_times_half_the_bytes_of_a_weight() -> None:
    config = sized.config_of("llama-3(.1)-8b")
    for device, about in ((A100, 153.0), (H100, 295.3)):
        (step,) = [
            x for x in crossovers.of(config, 1, FORM, device=device) if x.id == "decode_batch"
        ]
        assert step.ratio is not None
        assert round(step.ratio, 1) == about


@pytest.mark.parametrize("name", NAMES)
def test_a_step_is_bound_by_computing_exactly_from_there(name: str) -> None:
    config = sized.config_of(name)
    value = found(config)["decode_batch"].value
    assert value is not None
    for batch, computes in ((value, True), (value - 1, False)):
        run = Workload(batch=batch, tokens=1, cached=1)
        phase = roofline.of(config, run, FORM, A100, Conventions()).prefill
        linear = [
            x
            for x in phase.operators
            if x.flops.value and not x.id.endswith((".scores", ".mix")) and ".window" not in x.id
        ]
        work = sum(x.count * int(x.flops.value) for x in linear)
        moved = sum(x.bytes for x in linear)
        times = work * A100.bytes_per_second, moved * A100.flops_per_second
        assert (times[0] >= times[1]) is computes


def test_a_tie_counts_as_reached() -> None:
    base = {"d_model": 8, "n_layers": 1, "attention": {"n_heads": 2}, "vocab": 9}
    own = parameters.count(ConfigAsked.model_validate(base).to_compute())
    extras = [{"name": "rest", "parameters": 1600 - own}]  # 16 numbers of cache a position
    config = ConfigAsked.model_validate({**base, "extras": extras}).to_compute()
    assert found(config)["kv_cache"].value == 100


def test_a_step_that_computes_as_long_as_it_reads_is_bound_by_computing() -> None:
    config = sized.config_of("gpt2-small")
    step = linear_step.of(config, 40, FORM)
    device = Device(name="", flops_per_second=step.flops, bytes_per_second=step.bytes)
    both = {each.id: each for each in crossovers.of(config, 1, FORM, device=device)}
    assert both["decode_batch"].value == 40


def test_what_does_not_exist_is_null_with_a_reason() -> None:
    encoder = found(sized.config_of("bert-base-uncased"))
    assert encoder["kv_cache"].value is None
    assert encoder["decode_batch"].value is None
    assert encoder["attention_exact"].value == encoder["attention_full"].value == 4608
    mistral = found(sized.config_of("mistral-7b-v0.1"))
    assert mistral["attention_exact"].value is None
    assert mistral["kv_cache_windowed"].value is None
    assert mistral["kv_cache"].value is not None
    without = {"d_model": 8, "attention": {"kind": "none"}, "vocab": 9}
    silent = found(ConfigAsked.model_validate(without).to_compute())
    assert [silent[x].value for x in ("attention_full", "attention_exact", "kv_cache")] == [
        None
    ] * 3
    for both in (encoder, mistral, silent):
        assert all((each.value is None) == bool(each.reason) for each in both.values())


def test_a_narrow_model_is_never_bound_by_computing() -> None:
    config = ConfigAsked.model_validate(
        {"d_model": 8, "attention": {"n_heads": 2}, "vocab": 9}
    ).to_compute()
    step = found(config)["decode_batch"]
    assert (step.value, step.reason != "") == (None, True)


def test_without_a_device_there_is_no_ridge() -> None:
    listed = crossovers.of(sized.config_of("gpt2-small"), 1, FORM)
    assert [x.reason for x in listed if x.id == "decode_batch"] == ["No device was said."]
