"""What holds of FLOPs whatever the model, and of the formulas that come with them."""

import re
from dataclasses import replace
from fractions import Fraction

import pytest

import sized
from compute.errors import QuestionError
from compute.sizing.ledger import Ledger
from compute.sizing.operations import approximations, flops, training_flops
from compute.sizing.vocabulary import Conventions, Workload
from random_sizes import config_of, random_asked, random_workload

EXACT, FULL, HALF = (Conventions(causal=c) for c in ("exact", "full", "half"))
EVERYTHING = Conventions(elementwise="counted", bias_adds=True, embedding_lookup="matmul")
DEEPSEEK = "deepseek-v3 (main model, no MTP)"


def test_full_is_twice_half() -> None:
    for seed in range(1, 30, 3):
        config = config_of(random_asked(seed))
        ran = random_workload(seed, config)
        full, half = (flops.forward(config, ran, c).view("attention") for c in (FULL, HALF))
        assert full == 2 * half > 0


@pytest.mark.parametrize("seed", range(12))
def test_flops_grow_with_the_batch_alone(seed: int) -> None:
    config = config_of(random_asked(seed))
    one = replace(random_workload(seed, config), batch=1)
    total = flops.forward(config, one, EVERYTHING).total
    assert flops.forward(config, replace(one, batch=7), EVERYTHING).total == 7 * total


@pytest.mark.parametrize("seed", range(12))
def test_tying_the_readout_changes_no_flops(seed: int) -> None:
    asked = random_asked(seed)
    tied, untied = (config_of({**asked, "tied": is_tied}) for is_tied in (True, False))
    ran = random_workload(seed, tied)
    assert flops.forward(tied, ran, EXACT).total == flops.forward(untied, ran, EXACT).total


def test_fewer_heads_of_keys_leave_scores_and_mix_and_shrink_their_products() -> None:
    asked = random_asked(1)
    asked["attention"] |= {"n_heads": 6}
    found = []
    for groups in (6, 3, 1):
        asked["attention"] |= {"n_kv_heads": groups}
        found.append(flops.forward(config_of(asked), Workload(tokens=9), EXACT))
    assert len({ledger.view("attention") for ledger in found}) == 1
    assert found[0].total > found[1].total > found[2].total


def test_one_expert_that_is_always_chosen_is_a_dense_ffn_and_a_router() -> None:
    asked, n = random_asked(1), 5
    dense = config_of({**asked, "ffn": {"kind": "gated", "d_ff": 13}})
    one = {"kind": "moe", "expert": "gated", "d_ff": 13, "n_experts": 1, "top_k": 1}
    mixed = config_of({**asked, "ffn": one})
    totals = [flops.forward(config, Workload(tokens=n), EXACT).total for config in (dense, mixed)]
    assert totals[1] - totals[0] == 2 * n * dense.d_model * dense.n_layers


@pytest.mark.parametrize("name", ["gpt2-small", "gemma-3-1b", DEEPSEEK])
def test_the_number_of_parts_does_not_grow_with_the_tokens(name: str) -> None:
    config = sized.config_of(name)
    few, many = (len(flops.forward(config, Workload(tokens=n), EXACT).parts) for n in (5, 10**9))
    assert few == many


def evaluated(substituted: str) -> Fraction:
    """A formula with its numbers, by exact arithmetic."""
    exact = re.sub(r"[0-9]+(\.[0-9]+)?", r"Fraction('\g<0>')", substituted)
    powers = re.sub("[⁰¹²³⁴-⁹]+", raised, exact.replace("·", "*"))
    return eval(powers, {"Fraction": Fraction, "min": min, "max": max})


def raised(found: re.Match[str]) -> str:
    return "**" + found[0].translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789"))


def check_formulas(ledger: Ledger) -> None:
    for part in ledger.parts:
        assert evaluated(part.quantity.substituted) == part.value, part.id


@pytest.mark.parametrize("name", sized.truths())
def test_numbers_in_formulas_give_the_values(name: str) -> None:
    config = sized.config_of(name)
    source = 9 if config.cross_attention else 0
    ran = Workload(batch=3, tokens=700, cached=600, source=source, new=40)
    for causal in ("exact", "full", "half"):
        conventions = replace(EVERYTHING, causal=causal, recompute="full", mla="absorbed")
        check_formulas(flops.forward(config, ran, conventions))
        check_formulas(training_flops.train(config, ran, conventions).hardware)
        if flops.decodes(config):
            check_formulas(flops.generation(config, ran, conventions))
    for rule in approximations.of(config, ran, EXACT):
        assert evaluated(rule.value.substituted) == rule.value.value, rule.name


def test_a_model_without_a_causal_mask_generates_nothing() -> None:
    with pytest.raises(QuestionError) as raised_here:
        flops.generation(sized.config_of("bert-base-uncased"), Workload(new=2), EXACT)
    assert [fault.code for fault in raised_here.value.faults] == ["no_generation"]
