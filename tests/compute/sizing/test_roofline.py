"""Roofline: FLOPs are those of flops, bytes are those of a literal count, times are the longer."""

from dataclasses import replace
from math import isclose

import pytest

import sized
from compute.config import ModelConfig
from compute.sizing.formats import CacheFormat, Format
from compute.sizing.memory import kv_cache
from compute.sizing.memory.weight_bytes import Kept
from compute.sizing.operations import flops
from compute.sizing.times import roofline
from compute.sizing.times.attention_traffic import Stored
from compute.sizing.times.devices import DEVICES
from compute.sizing.times.roofline import Operator, Phase
from compute.sizing.vocabulary import Conventions, Device, Workload
from schemas.config import ConfigAsked

BF16 = Format(name="bfloat16")
FORM = Stored(weights=BF16, cache=BF16, activation=2)
A100 = DEVICES["a100-80gb-sxm"].device
EXACT = Conventions()
LLAMA = "llama-3(.1)-8b"
TINY = {
    "d_model": 6,
    "n_layers": 3,
    "attention": {"n_heads": 4, "n_kv_heads": 2, "d_head": 5, "d_value": 7},
    "ffn": {"kind": "gated", "d_ff": 11, "bias": False},
    "norm": {"kind": "rmsnorm"},
    "position": {"kind": "rope", "rotary_dim": 2},
    "vocab": 13,
}
"""Widths that are all different."""


def config_of(**changes: object) -> ModelConfig:
    return ConfigAsked.model_validate({**TINY, **changes}).to_compute()


def operators(phase: Phase) -> dict[str, Operator]:
    return {each.id: each for each in phase.operators}


def workload_of(config: ModelConfig, tokens: int = 7, cached: int = 0) -> Workload:
    return Workload(
        batch=3,
        tokens=197 if config.patches else tokens,
        cached=cached,
        source=5 if config.cross_attention else 0,
    )


def test_a_step_of_llama_3_8b_takes_what_was_computed_by_hand() -> None:
    (truth,) = [
        truth["expected"]
        for truth in sized.extra_truths().values()
        if truth["kind"] == "roofline" and isinstance(truth["expected"], dict)
    ]
    found = roofline.of(sized.config_of(LLAMA), Workload(), FORM, A100, EXACT).prefill
    products = [x for x in found.operators if ".scores" not in x.id and ".mix" not in x.id]
    weights = sum(x.count * int(x.weights.value) for x in products if x.id != "embed.W_E")
    work = sum(x.count * int(x.flops.value) for x in products)
    assert weights == truth["weight_bytes_read"]
    assert work == truth["flops"]
    assert round(weights / A100.bytes_per_second * 1e3, 4) == truth["t_mem_ms"]
    assert round(work / A100.flops_per_second * 1e3, 5) == truth["t_comp_ms"]
    assert found.bound == truth["bound"]
    # rows add a five-thousandth to what the weights take
    assert isclose(found.per_operator, truth["t_mem_ms"] / 1e3, rel_tol=1e-3)


@pytest.mark.parametrize("name", sized.truths())
def test_operators_do_exactly_the_products_of_a_pass(name: str) -> None:
    config = sized.config_of(name)
    workload = workload_of(config)
    head = "last" if flops.decodes(config) else "all"
    expected = flops.forward(config, workload, Conventions(head=head)).total
    assert roofline.of(config, workload, FORM, A100, EXACT).prefill.flops == expected


@pytest.mark.parametrize(
    "name", [x for x in sized.truths() if sized.config_of(x).attention.mask == "causal"]
)
def test_a_step_reads_the_cache_that_is_kept(name: str) -> None:
    config = sized.config_of(name)
    workload = workload_of(config, tokens=2000)
    found = roofline.of(config, workload, FORM, A100, EXACT).decode
    assert found is not None
    after = replace(workload, tokens=workload.tokens + 1)
    kept = kv_cache.size(config, after, CacheFormat(format=BF16)).lower_bound
    assert found.moved("cache") == kept.total


@pytest.mark.parametrize("window", [None, 1, 3, 50])
@pytest.mark.parametrize(("n", "past"), [(1, 0), (1, 9), (4, 0), (4, 9), (5, 2)])
def test_keys_that_are_read_are_those_that_some_query_sees(
    window: int | None, n: int, past: int
) -> None:
    attention = {**TINY["attention"], "window": window}  # type: ignore[dict-item]
    config = config_of(attention=attention)
    run = Workload(batch=2, tokens=n, cached=past)
    found = operators(roofline.of(config, run, FORM, A100, EXACT).prefill)
    seen = {
        key
        for query in range(past, past + n)
        for key in range(query + 1)
        if window is None or query - key < window
    }
    assert found["blocks.attn.scores"].cache.value == 2 * len(seen) * 2 * 5 * 2
    assert found["blocks.attn.mix"].cache.value == 2 * len(seen) * 2 * 7 * 2


def test_rows_of_each_product_are_counted_in_and_out() -> None:
    found = operators(
        roofline.of(config_of(), Workload(batch=3, tokens=4), FORM, A100, EXACT).prefill
    )
    rows = 3 * 4
    widths = {
        "blocks.attn.W_Q": 6 + 4 * 5,
        "blocks.attn.W_K": 6 + 2 * 5,
        "blocks.attn.W_V": 6 + 2 * 7,
        "blocks.attn.W_O": 4 * 7 + 6,
        "blocks.ffn.W_in": 6 + 11,
        "blocks.ffn.W_gate": 6 + 11,
        "blocks.ffn.W_out": 11 + 6,
    }
    for name, width in widths.items():
        assert found[name].activations.value == rows * width * 2, name
        assert found[name].count == 3
    assert found["unembed.W_U"].activations.value == 3 * (6 + 13) * 2  # the last position alone
    assert found["embed.W_E"].weights.value == rows * 6 * 2
    pattern = 3 * 4 * (4 * 5 // 2) * 2
    assert found["blocks.attn.scores"].activations.value == rows * 4 * 5 * 2 + pattern
    assert found["blocks.attn.mix"].activations.value == rows * 4 * 7 * 2 + pattern


def test_an_embedding_reads_the_rows_looked_up_and_no_more_than_there_are() -> None:
    for tokens, rows in ((2, 2), (13, 13), (500, 13)):
        run = Workload(tokens=tokens)
        found = operators(roofline.of(config_of(), run, FORM, A100, EXACT).prefill)
        assert found["embed.W_E"].weights.value == rows * 6 * 2


@pytest.mark.parametrize("rows", [1, 2, 3, 50])
def test_a_mixture_reads_the_experts_that_rows_may_choose(rows: int) -> None:
    ffn = {"kind": "moe", "d_ff": 11, "n_experts": 8, "top_k": 3}
    found = roofline.of(config_of(ffn=ffn), Workload(batch=rows), FORM, A100, EXACT).prefill
    read = operators(found)["blocks.ffn.W_in"].weights.value
    assert read == min(8, 3 * rows) * 6 * 11 * 2
    assert operators(found)["blocks.ffn.W_in"].activations.value == rows * 3 * (6 + 11) * 2
    assert operators(found)["blocks.ffn.W_router"].activations.value == rows * (6 + 8) * 2
    assert found.kind == ("lower_bound" if rows == 1 else "estimate")


def test_experts_expected_are_those_of_all_choices_counted() -> None:
    """Every one of the (3 choose 1)² choices of two rows, each as likely as another."""
    ffn = {"kind": "moe", "d_ff": 11, "n_experts": 3, "top_k": 1}
    found = roofline.of(config_of(ffn=ffn), Workload(batch=2), FORM, A100, EXACT).experts
    assert found is not None
    counted = [len({one, other}) for one in range(3) for other in range(3)]
    assert found[0].expected == pytest.approx(sum(counted) / len(counted), rel=1e-15)


def test_fused_is_never_longer_than_operator_by_operator() -> None:
    for name in ("gpt2-small", LLAMA, "t5-small", "gpt-oss-20b", "bert-base-uncased"):
        config = sized.config_of(name)
        found = roofline.of(config, workload_of(config, tokens=300), FORM, A100, EXACT)
        for phase in (found.prefill, found.decode):
            if phase is not None:
                assert phase.fused <= phase.per_operator * (1 + 1e-12)
                sums = phase.compute_seconds, phase.memory_seconds
                assert phase.fused == max(sums)


def test_half_of_a_peak_takes_twice_the_time() -> None:
    config, run = sized.config_of("gpt2-small"), Workload(tokens=1024)
    slow = replace(A100, flops_efficiency=0.5, bytes_efficiency=0.5)
    whole, half = (roofline.of(config, run, FORM, x, EXACT).prefill for x in (A100, slow))
    assert half.per_operator == pytest.approx(2 * whole.per_operator, rel=1e-12)


def test_an_operator_is_bound_by_its_side_of_the_ridge() -> None:
    device = Device(name="", flops_per_second=30, bytes_per_second=10)
    run = roofline.of(config_of(), Workload(batch=64, tokens=64), FORM, device, EXACT).prefill
    bounds = {each.bound for each in run.operators}
    assert bounds == {"compute", "memory"}
    for each in run.operators:
        intensity = each.count * int(each.flops.value) / each.bytes
        assert each.bound == ("compute" if intensity >= 3 else "memory")


def test_an_encoder_is_not_run_behind_a_cache() -> None:
    found = roofline.of(
        sized.config_of("t5-small"), Workload(tokens=3, source=9), FORM, A100, EXACT
    )
    assert found.decode is not None
    assert any(x.id.startswith("encoder.") for x in found.prefill.operators)
    names = {x.id for x in found.decode.operators}
    assert not {x for x in names if x.startswith("encoder.") or x == "blocks.cross.W_K"}


def test_a_model_without_a_causal_mask_has_no_steps() -> None:
    config = sized.config_of("bert-base-uncased")
    assert roofline.of(config, Workload(tokens=3), FORM, A100, EXACT).decode is None


def test_roles_that_are_kept_are_read_in_their_own_format() -> None:
    form = Stored(
        weights=Format(name="int4"),
        cache=BF16,
        activation=2,
        kept=Kept(roles=frozenset({"embeddings", "norms"}), format=Format(name="float32")),
    )
    found = operators(roofline.of(config_of(), Workload(), form, A100, EXACT).prefill)
    assert found["blocks.norm1.weight"].weights.value == 6 * 4
    assert found["embed.W_E"].weights.value == 6 * 4
    assert found["blocks.ffn.W_in"].weights.value == 6 * 11 // 2
