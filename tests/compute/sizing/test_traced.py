"""Predicted traces against closed forms, and one block for all against each by itself."""

import time
from dataclasses import replace

import numpy as np
import pytest

import runs
import sized
from compute import config_json, cost, selection
from compute.config import LayerConfig, ModelConfig, layer_config
from compute.errors import QuestionError, SelectionError
from compute.selection import Scene
from compute.sizing.tracing import alike, traced
from compute.sizing.tracing.traced import Predicted
from compute.sizing.vocabulary import Workload
from compute.types import DType, Selected

ASKED: dict[str, list[Selected] | None] = {
    "default": None,
    "everything": [Selected(name="*"), Selected(name="attn.dots")],
    "some of each block": [
        Selected(name="attn.pattern", where={"head": (0,), "position": (0, -1)}),
        Selected(name="blocks.*.attn.q_rot"),
        Selected(name="resid_post", summary=True),
    ],
    "a wildcard with digits": [Selected(name="*1*")],
}


def scene(config: ModelConfig, tokens: int = 11, batch: int = 1) -> Scene:
    load = Workload(tokens=tokens, batch=batch, source=7)
    reads = config.vocab is not None
    of_memory = reads and config.encoder is not None
    return traced.scene_of(config, load, tokens=reads, memory_tokens=of_memory)


def of(name: str, tokens: int, dtype: DType = "float64") -> Predicted:
    return traced.predict(scene(sized.config_of(name), tokens), None, dtype)


def block_of(found: Predicted) -> dict[str, int]:
    """Stage -> numbers of one block."""
    own = [part for part in found.elements.parts if part.id.startswith("blocks.")]
    return {part.id.removeprefix("blocks."): int(part.each.value) for part in own}


def test_a_block_of_gpt_2_is_the_published_sum_and_what_it_leaves_out() -> None:
    """T(7d + h k + g(k + v) + h v + 2f) + 2 B h n² = 40,108,032 numbers, 320,864,256 bytes; the
    service also answers each norm before gain and bias, each norm's scale, and head_out."""
    n, d, h, k, f = 1024, 768, 12, 64, 3072
    published = n * (7 * d + 4 * h * k + 2 * f) + 2 * h * n * n
    assert published == 40_108_032
    assert 8 * published == 320_864_256
    block = block_of(of("gpt2-small", n))
    beside = {
        "norm1.normalized": n * d,
        "norm2.normalized": n * d,
        "norm1.scale": n,
        "norm2.scale": n,
        "attn.head_out": n * h * d,
    }
    assert {name: block[name] for name in beside} == beside
    assert sum(block.values()) == published + sum(beside.values())


def test_bytes_of_gpt_2_are_eight_or_four_a_number() -> None:
    wide, narrow = of("gpt2-small", 1024), of("gpt2-small", 1024, "float32")
    assert wide.bytes.total == 8 * int(wide.elements.total)
    assert narrow.bytes.total == 4 * int(narrow.elements.total)


def test_chosen_experts_take_eight_bytes_in_float32_too() -> None:
    found = of("mixtral-8x7b", 5, "float32")
    each = {part.id: int(part.value) for part in found.bytes.parts}
    numbers = {part.id: int(part.value) for part in found.elements.parts}
    assert each["blocks.ffn.experts"] == 8 * numbers["blocks.ffn.experts"]
    assert each["blocks.ffn.router"] == 4 * numbers["blocks.ffn.router"]


def test_formulas_are_written_in_the_stages_axes() -> None:
    config = sized.config_of("t5-small")
    found = traced.predict(scene(config, batch=3), None, "float32")
    told = {part.id: part.quantity.formula for part in found.elements.parts}
    assert told["blocks.attn.pattern"] == "L·B·h·n·n"
    assert told["encoder.blocks.attn.pattern"] == "L_enc·B·h·s·s"
    assert told["blocks.cross.pattern"] == "L·B·h·n·s"
    assert told["logits"] == "B·n·V"
    numbers = {part.id: part.quantity.substituted for part in found.elements.parts}
    assert numbers["blocks.attn.pattern"] == "6 · 3 · 8 · 11 · 11"


def deep(seed: int) -> ModelConfig:
    """A random config of 12 blocks, listed ones in turn."""
    config = config_json.from_json(runs.case_of(seed).config)
    config = _deepened(config, 12)
    encoder = config.encoder
    return config if encoder is None else replace(config, encoder=_deepened(encoder, 9))


def _deepened(config: ModelConfig, count: int) -> ModelConfig:
    given = config.layers
    layers = tuple(given[at % len(given)] for at in range(count)) if given else ()
    return replace(config, n_layers=count, layers=layers)


@pytest.mark.parametrize("name", ASKED)
def test_one_block_for_all_of_its_kind_counts_what_each_by_itself_does(name: str) -> None:
    asked, compared = ASKED[name], 0
    for seed in range(0, 300, 2):
        config = deep(seed)
        where = scene(config, tokens=6)
        try:
            each = selection.resolve(asked, where)
        except SelectionError:
            continue
        found = traced.predict(where, asked, "float32")
        price = cost.estimate(where, each, "float32")
        assert found.elements.total == price.elements, seed
        assert replace(found.cost, by_stage={}) == replace(price, by_stage={}), seed
        assert found.json_at_most >= traced.tensors_at_most(where, each.wanted, "float32"), seed
        compared += 1
    assert compared > 40


def test_blocks_that_turn_and_blocks_that_do_not_are_told_apart() -> None:
    config = sized.config_of("smollm3-3b")
    layers = tuple(
        replace(own, theta=None if at % 4 == 3 else 5e6) for at, own in enumerate(_listed(config))
    )
    found = traced.predict(scene(replace(config, layers=layers)), None, "float32")
    counts = {part.id: part.count for part in found.elements.parts}
    assert counts["blocks.attn.q_rot"] == sum(x.theta is not None for x in layers) == 27
    assert counts["blocks.attn.q"] == config.n_layers == 36
    q_rot = next(part for part in found.elements.parts if part.id == "blocks.attn.q_rot")
    assert q_rot.quantity.formula == "27·h·n·k"


def _listed(config: ModelConfig) -> tuple[LayerConfig, ...]:
    return (layer_config(config),) * config.n_layers


def test_cost_of_a_run_of_turning_blocks_reaches_the_last_of_them() -> None:
    config = sized.config_of("smollm3-3b")
    own = _listed(config)
    layers = tuple(replace(x, theta=5e6 if at < 2 else None) for at, x in enumerate(own))
    where = scene(replace(config, layers=layers))
    asked = [Selected(name="attn.q_rot")]
    exact = cost.flops(where, selection.resolve(asked, where))
    assert traced.predict(where, asked, "float32").cost.flops == exact


def test_the_same_stage_asked_for_in_two_ways_is_two_parts() -> None:
    config = sized.config_of("gpt2-small")
    asked = [
        Selected(name="blocks.0.attn.z", where={"position": (1,)}),
        Selected(name="blocks.1.attn.z"),
        Selected(name="blocks.2.attn.z"),
    ]
    found = traced.predict(scene(config), asked, "float32")
    assert {part.id: part.value for part in found.elements.parts} == {
        "blocks.0.attn.z": 768,
        "blocks.1.attn.z": 2 * 11 * 768,
    }


def test_single_blocks_of_a_deep_stack_are_refused_and_every_block_is_not() -> None:
    config = replace(sized.config_of("gpt2-small"), n_layers=alike.MOST_BLOCKS + 1)
    every = traced.predict(scene(config), [Selected(name="blocks.*.attn.z")], "float32")
    assert every.elements.total == 1025 * 11 * 768
    with pytest.raises(QuestionError) as raised:
        traced.predict(scene(config), [Selected(name="blocks.0.attn.z")], "float32")
    assert raised.value.faults[0].code == "too_many_blocks"


def test_nothing_grows_with_depth_or_length() -> None:
    """A thousand times the blocks and a million times the positions take as long, within 5 times
    and 20 ms: what is gone through is one block."""
    small = sized.config_of("llama-2-70b")
    large = replace(small, n_layers=80_000)

    def seconds(config: ModelConfig, tokens: int) -> float:
        where = scene(config, tokens)
        traced.predict(where, None, "float32")
        taken = []
        for _ in range(5):
            start = time.perf_counter()
            traced.predict(where, None, "float32")
            taken.append(time.perf_counter() - start)
        return float(np.min(taken))

    assert seconds(large, 1 << 30) < 5 * seconds(small, 1024) + 0.02
