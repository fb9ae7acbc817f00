"""FLOPs against published numbers, against lists of every product, and against each other."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import sized
from compute.config import ModelConfig
from compute.sizing.ledger import Ledger
from compute.sizing.operations import flops
from compute.sizing.vocabulary import Conventions, Head, Workload
from schemas.config import ConfigAsked

EXACT, FULL, HALF = (Conventions(causal=c) for c in ("exact", "full", "half"))
EVERYTHING = Conventions(elementwise="counted", bias_adds=True, embedding_lookup="matmul")
MACS = Conventions(causal="full", multiply_add=1)
COUNTED = [name for name, truth in sized.truths().items() if "flops" in truth]
WINDOWED = [name for name in COUNTED if "note" in sized.truths()[name]["flops"]]
DEEPSEEK = "deepseek-v3 (main model, no MTP)"


def without_windows(config: ModelConfig) -> ModelConfig:
    return replace(config, layers=(), attention=replace(config.attention, window=None))


def config_of(asked: dict[str, Any]) -> ModelConfig:
    return ConfigAsked.model_validate(asked).to_compute()


def expected(name: str) -> object:
    return sized.extra_truths()[name]["expected"]


def forward(name: str, conventions: Conventions = EXACT, **workload: int) -> Ledger:
    return flops.forward(sized.config_of(name), Workload(**workload), conventions)


def test_eighty_six_architectures_are_compared_nine_of_them_with_windows() -> None:
    assert (len(COUNTED), len(WINDOWED)) == (86, 9)


@pytest.mark.parametrize("name", COUNTED)
def test_a_pass_and_a_cached_step_are_the_reference_numbers(name: str) -> None:
    truth, config = sized.truths()[name]["flops"], sized.config_of(name)
    if name in WINDOWED:
        config = without_windows(config)
    found = {
        "forward_n512_full": flops.forward(config, Workload(tokens=512), FULL),
        "forward_n512_causal_exact": flops.forward(config, Workload(tokens=512), EXACT),
        "decode_1_token_1024_visible_keys": flops.decode(config, Workload(tokens=1023), EXACT),
    }
    assert {which: ledger.total for which, ledger in found.items()} == {
        which: truth[which] for which in found
    }


@pytest.mark.parametrize("name", WINDOWED)
@pytest.mark.parametrize(("n", "past"), [(512, 0), (1, 1023), (1, 8191), (3000, 5000)])
def test_windows_leave_the_pairs_that_a_loop_over_blocks_and_queries_counts(
    name: str, n: int, past: int
) -> None:
    config = sized.config_of(name)
    assert config.layers
    pairs = sum(
        past + i if layer.window is None else min(past + i, layer.window)
        for layer in config.layers
        for i in range(1, n + 1)
    )
    attention, workload = config.attention, Workload(tokens=n, cached=past)
    width = attention.d_head + attention.d_value
    found = flops.forward(config, workload, EXACT)
    assert found.view("attention") == 2 * attention.n_heads * width * pairs
    whole = flops.forward(without_windows(config), workload, EXACT)
    assert found.total - found.view("attention") == whole.total - whole.view("attention")


def test_full_takes_no_notice_of_windows() -> None:
    config = sized.config_of("gpt-oss-20b")
    found = flops.forward(config, Workload(tokens=512), FULL)
    assert found.total == sized.truths()["gpt-oss-20b"]["flops"]["forward_n512_full"]


def test_gpt2_is_the_published_count_whole_and_part_by_part() -> None:
    found = forward("gpt2-small", FULL, tokens=1024)
    assert found.total == expected(
        "gpt2-small forward, B=1,n=1024, full n^2, head on all positions"
    )
    assert found.view("head") == expected("gpt2-small lm_head")
    each = {part.id.removeprefix("blocks."): part.each.value for part in found.parts}
    qkv = each["attn.W_Q"] + each["attn.W_K"] + each["attn.W_V"]
    assert qkv == expected("gpt2-small per layer qkv")
    assert each["attn.scores"] == expected("gpt2-small per layer scores")
    assert each["attn.mix"] == expected("gpt2-small per layer values")
    assert each["attn.W_O"] == expected("gpt2-small per layer out")
    assert each["ffn.W_in"] + each["ffn.W_out"] == expected("gpt2-small mlp per layer")


@pytest.mark.parametrize(
    ("name", "conventions", "workload"),
    [
        ("prefill n=8192 exact causal n(n+1)/2", EXACT, Workload(tokens=8192)),
        ("prefill n=8192 full n^2", FULL, Workload(tokens=8192)),
        ("prefill, head on last position only", Conventions(head="last"), Workload(tokens=8192)),
        ("decode with 8192 cached (8193 visible keys)", EXACT, Workload(cached=8192)),
    ],
)
def test_latent_attention_is_the_published_count(
    name: str, conventions: Conventions, workload: Workload
) -> None:
    found = flops.forward(sized.config_of(DEEPSEEK), workload, conventions)
    assert found.total == expected(f"deepseek-v3 {name}")


@pytest.mark.parametrize(
    ("truth", "name", "n", "head", "published"),
    [
        ("llama-7b forward MACs (1,128)", "llama-1/2-7b", 128, "all", 850.0),
        ("pythia-12b forward MACs (1,128) without head", "pythia-12b", 128, "none", 1455.59),
        ("vit-b/16 @224 1000cls MACs", "vit-b/16 @224 1000cls", 197, "all", 17.56),
        ("vit-h/14 @224 1000cls MACs", "vit-h/14 @224 1000cls", 257, "all", 167.29),
    ],
)
def test_macs_are_the_published_ones_to_the_decimals_in_print(
    truth: str, name: str, n: int, head: Head, published: float
) -> None:
    found = forward(name, replace(MACS, head=head), tokens=n)
    assert found.unit == "MAC"
    billions = Fraction(found.total) / 10**9
    assert float(billions) == sized.extra_truths()[truth]["computed_here"]
    assert abs(billions - Fraction(str(published))) < Fraction(1, 100)
    assert expected(truth) == published


def test_bloom_as_published_is_ours_without_attention_times_values() -> None:
    truth = sized.extra_truths()["bloom-1b7 forward MACs as PUBLISHED"]
    found = forward("bloom-1b7", replace(MACS, head="none"), tokens=128)
    without = found.sum_of(lambda part: part.id != "blocks.attn.mix")
    assert without / 10**9 == truth["computed_here"]
    assert round(without / 10**9, 2) == truth["expected"] == 155.42
    assert round(found.total / 10**9, 2) == 156.23


def test_one_attention_is_the_published_count() -> None:
    asked = {"d_model": 768, "n_layers": 1, "attention": {"n_heads": 12, "d_head": 64}}
    found = flops.forward(config_of(asked), Workload(tokens=64), FULL)
    assert found.view("attention") == expected("one SDPA (B=1,h=12,n=64,d=64)")
