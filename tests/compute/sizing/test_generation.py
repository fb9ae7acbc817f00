"""Generation in closed form against a pass for each token, one by one."""

from dataclasses import replace
from typing import Literal

import pytest

import sized
from compute.sizing.operations import flops
from compute.sizing.vocabulary import Causal, Conventions, Workload

NAMES = (
    "gpt2-small",
    "gemma-3-1b",
    "gpt-oss-20b",
    "t5-small",
    "deepseek-v2-lite",
    "deepseek-v3 (main model, no MTP)",
)
EVERYTHING = Conventions(elementwise="counted", bias_adds=True, embedding_lookup="matmul")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("causal", ["exact", "full", "half"])
@pytest.mark.parametrize("head", [None, "all", "last", "none"])
def test_generation_is_its_passes_one_by_one(
    name: str, causal: Causal, head: Literal["all", "last", "none"] | None
) -> None:
    config = sized.config_of(name)
    conventions = replace(EVERYTHING, causal=causal, head=head)
    asked = Workload(batch=2, tokens=500, source=7 * config.cross_attention, new=30)
    prompt = flops.forward(config, asked, replace(conventions, head=head or "last")).total
    steps = [
        flops.forward(config, replace(asked, tokens=1, cached=500 + j), conventions).total
        for j in range(29)
    ]
    found = flops.generation(config, asked, conventions)
    assert found.view("prefill") == prompt
    assert found.view("decode") == sum(steps)
    assert found.total == prompt + sum(steps)


def test_the_first_new_token_comes_from_the_prompts_pass() -> None:
    config, asked = sized.config_of("gpt2-small"), Workload(tokens=50, new=1)
    found = flops.generation(config, asked, Conventions())
    assert found.view("decode") == 0
    assert found.total == flops.forward(config, asked, Conventions(head="last")).total


def test_of_a_prompt_that_is_partly_cached_the_rest_is_run() -> None:
    config, asked = sized.config_of("gpt2-small"), Workload(tokens=20, cached=30, new=3)
    steps = (Workload(tokens=1, cached=50), Workload(tokens=1, cached=51))
    passes = [flops.forward(config, step, Conventions()).total for step in steps]
    last = flops.forward(config, asked, Conventions(head="last")).total
    assert flops.generation(config, asked, Conventions()).total == last + sum(passes)


@pytest.mark.parametrize("name", ["gpt2-small", "gemma-3-1b", "deepseek-v2-lite"])
def test_cached_steps_from_nothing_are_one_pass_over_all_positions(name: str) -> None:
    config, n = sized.config_of(name), 600
    steps = (Workload(tokens=1, cached=i) for i in range(n))
    together = sum(flops.forward(config, step, Conventions()).total for step in steps)
    assert together == flops.forward(config, Workload(tokens=n), Conventions(head="all")).total


def test_a_step_is_a_pass_of_one_position_behind_all_others() -> None:
    config = sized.config_of("gemma-3-1b")
    found = flops.decode(config, Workload(batch=4, tokens=700, cached=9), Conventions())
    attention, windows = config.attention, [layer.window for layer in config.layers]
    seen = sum(min(710, window or 710) for window in windows)
    width = attention.d_head + attention.d_value
    assert found.view("attention") == 4 * 2 * attention.n_heads * width * seen


def test_a_trillion_new_tokens_are_as_many_parts_as_ten() -> None:
    config = sized.config_of("llama-2-70b")
    parts = [
        len(flops.generation(config, Workload(tokens=4, new=new), Conventions()).parts)
        for new in (10, 10**12)
    ]
    assert parts[0] == parts[1]
