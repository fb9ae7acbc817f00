"""The inverse against truths found by brute force, and against a grid gone through one by one."""

import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest

import sized
from compute import config_rules
from compute.config import ModelConfig
from compute.errors import QuestionError
from compute.sizing import parameters
from compute.sizing.formats import Format, NumberFormat
from compute.sizing.inverting import inverse, inverse_rule
from compute.sizing.inverting.inverse import Goal, Measured
from compute.sizing.inverting.inverse_style import Rule

WIDE = 1 << 20

STYLES = (
    "gpt3-xl",
    "llama-1/2-7b",
    "llama-3.2-1b",
    "qwen3-0.6b",
    "mixtral-8x7b",
    "deepseek-v3 (main model, no MTP)",
    "gemma-3-4b (text)",
    "t5-small",
    "albert-base-v2 (1 shared layer x12)",
    "bert-base-uncased",
    "electra-small",
    "vit-b/16 @224 1000cls",
    "gpt-oss-20b",
    "bloom-1b7",
)


def goal(value: int, measured: Measured = "parameters", dtype: NumberFormat = "float16") -> Goal:
    return Goal(measured=measured, value=value, format=Format(name=dtype))


def rule(**said: object) -> Rule:
    default = {"multiple_of": 128, "least": 1, "most": WIDE, "aspect": (48, 128)}
    return Rule(**{**default, **said})  # type: ignore[arg-type]


def told(name: str) -> list[tuple[int, int, int]]:
    (truth,) = [t for t in sized.extra_truths().values() if t["name"].startswith(name)]
    return [(x["n_layers"], x["d_model"], x["params"]) for x in truth["expected"]]


def found(base: ModelConfig, wanted: Goal, sizes: Rule) -> list[tuple[int, int, int]]:
    best = inverse.find(base, wanted, sizes, 5).best
    return [(hit.config.n_layers, hit.config.d_model, hit.value) for hit in best]


def test_gpt2_style_gives_the_five_best_to_the_unit_and_in_order() -> None:
    base = sized.config_of("gpt3-xl")
    assert found(base, goal(1_300_000_000), rule()) == told("GPT-2 style")


def test_llama_style_gives_the_five_best_to_the_unit_and_in_order() -> None:
    base = sized.config_of("llama-1/2-7b")
    sizes = rule(aspect=(64, 128), d_head=128, ff_ratio=Fraction(8, 3), round_to=256)
    assert found(base, goal(7_000_000_000), sizes) == told("Llama style")


def _one_by_one(base: ModelConfig, sizes: Rule, wanted: Goal) -> Iterator[tuple[int, int, int]]:
    """(d, blocks, value) of every size of a grid: each made and counted by itself."""
    style = inverse_rule.of(base, sizes)
    for d in range(sizes.least, sizes.most + 1):
        if d % style.unit:
            continue
        for blocks in range(1, sizes.most + 1):
            in_aspect = sizes.aspect[0] * blocks <= d <= sizes.aspect[1] * blocks
            is_whole = blocks % style.step == 0 and blocks >= style.first_block
            if in_aspect and is_whole and d != base.d_embed:
                yield d, blocks, wanted.exact(style.config(d, blocks))


@pytest.mark.parametrize("measured", ["parameters", "flops_per_token", "weight_bytes"])
@pytest.mark.parametrize("name", STYLES)
def test_best_are_those_of_a_grid_gone_through_one_by_one(name: str, measured: Measured) -> None:
    base = sized.config_of(name)
    dtype: NumberFormat = "q4_k"
    probe = goal(1, measured, dtype)
    unit = inverse_rule.of(base, rule(multiple_of=1)).unit
    sizes = rule(multiple_of=1, least=unit, most=4 * unit, aspect=(max(1, unit // 9), 4 * unit))
    grid = list(_one_by_one(base, sizes, probe))
    assert grid
    values = sorted(value for _, _, value in grid)
    for target in (values[0], values[len(values) // 3] + 7, values[-1] + 1, 1):
        nearest = sorted(grid, key=lambda size: (abs(size[2] - target), size[0], size[1]))
        got = inverse.find(base, replace(probe, value=target), sizes, 3)
        sized_ = [(x.config.d_model, x.config.n_layers, x.value) for x in got.best]
        assert sized_ == nearest[:3]
        below = [value for value in values if value <= target]
        above = [value for value in values if value >= target]
        assert (got.below.value if got.below else None) == (below[-1] if below else None)
        assert (got.above.value if got.above else None) == (above[0] if above else None)
        assert got.smallest is not None
        assert got.largest is not None
        assert (got.smallest.value, got.largest.value) == (values[0], values[-1])


@pytest.mark.parametrize("name", sized.truths())
def test_inverse_of_a_models_parameters_contains_the_model(name: str) -> None:
    base = sized.config_of(name)
    d, blocks = base.d_model, base.n_layers
    aspect = (d // blocks, -(-d // blocks))
    wanted = goal(sized.truths()[name]["params_total"])
    got = inverse.find(base, wanted, rule(multiple_of=1, least=d // 2, aspect=aspect), 5)
    assert base in [hit.config for hit in got.best]
    assert got.best[0].value == wanted.value == parameters.count(got.best[0].config)


@pytest.mark.parametrize("name", ["llama-1/2-7b", "gemma-3-4b (text)", "mixtral-8x7b"])
def test_what_is_found_keeps_every_rule_of_a_config(name: str) -> None:
    base = sized.config_of(name)
    got = inverse.find(base, goal(3 * 10**9), rule(aspect=(16, 256)), 20)
    assert len(got.best) == 20
    assert all(config_rules.check(hit.config) is hit.config for hit in got.best)


def test_cache_of_a_position_is_a_target() -> None:
    base = sized.config_of("llama-1/2-7b")
    sizes = rule(d_head=128, kv_ratio=4)
    got = inverse.find(base, goal(131072, "kv_bytes_per_token"), sizes, 3)
    for hit in got.best:
        attention = hit.config.attention
        assert attention.n_heads == 4 * attention.n_kv_heads == hit.config.d_model // 128
        assert hit.value == hit.config.n_layers * attention.n_kv_heads * 2 * 128 * 2
    assert got.best[0].value == 131072


def test_a_model_that_caches_nothing_is_refused() -> None:
    with pytest.raises(QuestionError, match="nothing"):
        inverse.find(sized.config_of("bert-base-uncased"), goal(9, "kv_bytes_per_token"), rule(), 1)


def test_nothing_is_found_where_no_width_is_allowed_and_the_next_ones_are_told() -> None:
    base = sized.config_of("llama-1/2-7b")
    got = inverse.find(base, goal(10**9), rule(least=129, most=255, aspect=(1, WIDE)), 5)
    assert (list(got.best), got.below, got.above, got.around) == ([], None, None, (128, 256))


def test_too_many_widths_are_refused() -> None:
    base = sized.config_of("llama-1/2-7b")
    with pytest.raises(QuestionError, match="multiple_of"):
        inverse.find(base, goal(10**9), rule(multiple_of=1, d_head=2, aspect=(1, WIDE)), 5)


@pytest.mark.parametrize("exponent", range(6, 13))
@pytest.mark.parametrize("name", ["gpt3-xl", "llama-1/2-7b", "deepseek-v3 (main model, no MTP)"])
def test_a_second_is_enough(name: str, exponent: int) -> None:
    base = sized.config_of(name)
    inverse.find(base, goal(10**5), rule(), 1)
    begun = time.perf_counter()
    inverse.find(base, goal(10**exponent), rule(aspect=(1, 4096)), 20)
    assert time.perf_counter() - begun < 1.0
