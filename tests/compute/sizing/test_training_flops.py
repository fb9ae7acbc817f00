"""Training against published numbers, and rules of thumb against published errors."""

from dataclasses import replace
from fractions import Fraction

import pytest

import sized
from compute.config import ModelConfig
from compute.sizing.operations import approximations, flops, training_flops
from compute.sizing.vocabulary import PRESETS, Conventions, Workload
from schemas.config import ConfigAsked

LLAMA, FULL = "llama-1/2-7b", Conventions(causal="full")
AGAIN = ("none", "selective", "full")


def expected(name: str) -> float:
    return float(sized.extra_truths()[name]["expected"])


def gpt2_without_biases() -> ModelConfig:
    """GPT-2 as nanoGPT counts N: no biases, and no table of positions in N."""
    asked = {
        "d_model": 768,
        "n_layers": 12,
        "vocab": 50257,
        "tied": True,
        "attention": {"n_heads": 12},
        "ffn": {"kind": "mlp", "bias": False},
        "norm": {"kind": "layernorm", "bias": False},
    }
    return ConfigAsked.model_validate(asked).to_compute()


@pytest.mark.parametrize(
    ("truth", "n", "causal"),
    [
        ("llama2-7b train attention full", 8192, "full"),
        ("llama2-7b train attention halved (n^2/2)", 8192, "half"),
        ("llama2-7b train attention full n=129024", 129024, "full"),
    ],
)
def test_attention_in_training_is_the_published_count(truth: str, n: int, causal: str) -> None:
    conventions = Conventions(causal=causal)  # type: ignore[arg-type]
    config, ran = sized.config_of(LLAMA), Workload(batch=4, tokens=n)
    forward = flops.forward(config, ran, conventions).view("attention")
    assert round(3 * forward / 10**12, 2) == expected(truth)


def test_weights_in_training_are_the_published_count() -> None:
    config, ran = sized.config_of(LLAMA), Workload(batch=4, tokens=8192)
    whole = training_flops.train(config, ran, FULL).model.total
    attention = 3 * flops.forward(config, ran, FULL).view("attention")
    assert round((whole - attention) / 10**12, 2) == expected("llama2-7b train weights B=4 n=8192")


def test_gpt2_in_training_is_the_published_count() -> None:
    ran = Workload(tokens=1024)
    found = training_flops.train(sized.config_of("gpt2-small"), ran, FULL)
    assert found.model.total == found.hardware.total == 874944921600


def test_palms_rule_is_the_published_number_and_so_is_its_error() -> None:
    rules = approximations.of(gpt2_without_biases(), Workload(tokens=1024), FULL)
    palm = next(rule for rule in rules if rule.name == "palm")
    assert palm.value.value == expected("PaLM rule (6N+12LHQT)T, nanoGPT bias=False")
    assert round(100 * palm.relative_error, 3) == 0.013


def test_the_rule_by_width_is_exact_for_the_articles_block() -> None:
    config = replace(gpt2_without_biases(), readout=False, tied=False)
    rules = approximations.of(config, Workload(batch=3, tokens=100), FULL)
    rule = next(rule for rule in rules if rule.name == "24BLnd²(1+n/6d)")
    assert rule.relative_error == 0.0


def test_rules_by_parameters_count_them_twice_and_six_times() -> None:
    truth, config = sized.truths()["gpt2-small"], sized.config_of("gpt2-small")
    ran = Workload(batch=2, tokens=10)
    found = {rule.name: rule for rule in approximations.of(config, ran, Conventions())}
    counts = {"": truth["params_total"], "_non_embedding": truth["params_non_embedding"]}
    for suffix, held in counts.items():
        assert found[f"2N{suffix}"].value.value == 2 * held * 20
        assert found[f"6N{suffix}"].value.value == 6 * held * 20
    exact = flops.forward(config, ran, Conventions()).total
    error = Fraction(2 * counts[""] * 20) / Fraction(exact) - 1
    assert found["2N"].relative_error == float(error)


def test_active_parameters_are_a_rule_where_there_are_experts() -> None:
    config = sized.config_of("deepseek-v3 (main model, no MTP)")
    found = {rule.name: rule for rule in approximations.of(config, Workload(), Conventions())}
    assert found["2N_active"].value.value == 2 * 37552297472


def test_errors_of_rules_do_not_depend_on_how_multiplying_and_adding_is_counted() -> None:
    config, ran = sized.config_of("gpt2-small"), Workload(tokens=10)
    flop, mac = (approximations.of(config, ran, Conventions(multiply_add=m)) for m in (2, 1))
    assert flop == mac


@pytest.mark.parametrize("name", ["gpt2-small", "t5-small", "gemma-3-1b", "deepseek-v2-lite"])
def test_what_is_computed_again_adds_to_the_hardwares_flops_alone(name: str) -> None:
    config = sized.config_of(name)
    ran = Workload(batch=2, tokens=800, source=30 * config.cross_attention)
    forward = flops.forward(config, ran, Conventions())
    found = [training_flops.train(config, ran, Conventions(recompute=r)) for r in AGAIN]
    assert [each.model.total for each in found] == [3 * forward.total] * 3
    done_again = [each.hardware.total - each.model.total for each in found]
    blocks = forward.sum_of(lambda part: "blocks." in part.id)
    core = forward.sum_of(lambda part: ".scores" in part.id or ".mix" in part.id)
    assert done_again == [0, core, blocks]
    assert 0 < core < blocks < forward.total


def test_a_flash_kernel_computes_scores_again() -> None:
    config, ran = sized.config_of("gemma-3-1b"), Workload(tokens=800)
    found = training_flops.train(config, ran, Conventions(attention_kernel="flash"))
    scores = flops.forward(config, ran, Conventions()).view("attention")
    assert config.attention.d_head == config.attention.d_value
    assert found.model.total == training_flops.train(config, ran, Conventions()).model.total
    assert 2 * (found.hardware.total - found.model.total) == scores


def test_selective_recomputation_includes_the_softmax_where_that_is_counted() -> None:
    config, ran = sized.config_of("gpt2-small"), Workload(tokens=8)
    counted = Conventions(recompute="selective", elementwise="counted")
    found = training_flops.train(config, ran, counted)
    pairs, heads = 36, 12 * 12
    assert found.hardware.total - found.model.total == heads * pairs * (2 * 2 * 64 + 5)


def test_training_caches_nothing() -> None:
    config = sized.config_of("gpt2-small")
    cold, warm = (Workload(tokens=16, cached=cached) for cached in (0, 100))
    found = [training_flops.train(config, ran, Conventions()).model.total for ran in (cold, warm)]
    assert found[0] == found[1]


def test_a_budget_of_tokens_is_as_many_steps_of_it_exactly() -> None:
    config, ran = sized.config_of("gpt2-small"), Workload(batch=2, tokens=32)
    found = training_flops.train(config, ran, Conventions(recompute="full"))
    assert found.over(64 * 10**9) == (
        found.model.total * 10**9,
        found.hardware.total * 10**9,
    )
    odd = found.over(65)[0]
    assert odd == Fraction(65, 64) * found.model.total


def test_kaplan_is_two_parameters_and_two_widths_of_context_a_token() -> None:
    """C = 2 N + 2·n_layer·n_ctx·d_attn a token, N = 2·d·n_layer·(2·d_attn + d_ff)."""
    n, width, blocks = 1024, 768, 12
    held = 2 * width * blocks * (2 * width + 4 * width)
    found = flops.forward(gpt2_without_biases(), Workload(tokens=n), PRESETS["kaplan"])
    assert found.total == n * (2 * held + 2 * blocks * n * width)


def test_chinchilla_is_appendix_f_without_its_softmax() -> None:
    n, d, blocks, rows = 1024, 768, 12, 50257
    attention = 2 * 3 * n * d * d + 2 * n * n * d + 2 * n * n * d + 2 * n * d * d
    dense = 2 * n * (d * 4 * d + d * 4 * d)
    whole = 2 * n * rows * d + blocks * (attention + dense) + 2 * n * d * rows
    found = flops.forward(gpt2_without_biases(), Workload(tokens=n), PRESETS["chinchilla"])
    assert found.total == whole


def test_every_set_of_conventions_prices_the_same_pass() -> None:
    config, ran = gpt2_without_biases(), Workload(tokens=1024)
    found = {each.preset: each for each in approximations.side_by_side(config, ran)}
    head, attention = 2 * 1024 * 768 * 50257, 12 * 4 * 1024 * 1024 * 768
    assert list(found) == ["exact", "kaplan", "chinchilla", "palm", "megatron"]
    assert found["palm"].forward == 291648307200
    assert found["megatron"].forward == 291648307200 - attention // 2
    assert found["kaplan"].forward == found["megatron"].forward - head
    assert found["chinchilla"].forward == found["palm"].forward + head
    assert all(each.train == 3 * each.forward for each in found.values())


@pytest.mark.parametrize("factor", [0, 1, 3])
def test_the_backward_pass_is_so_many_times_the_forward_one(factor: int) -> None:
    config, ran = sized.config_of("gpt2-small"), Workload(tokens=1024)
    conventions = replace(FULL, backward_factor=factor)
    found = training_flops.train(config, ran, conventions)
    assert found.model.total == (1 + factor) * 291648307200
