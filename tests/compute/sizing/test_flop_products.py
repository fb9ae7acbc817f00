"""FLOPs against lists of every product of a model, one by one."""

from collections.abc import Iterator
from typing import Any

import pytest

import sized
from compute.sizing.operations import flops
from compute.sizing.vocabulary import Conventions, Workload
from random_sizes import config_of, random_asked, random_workload

EXACT = Conventions()
EVERYTHING = Conventions(elementwise="counted", bias_adds=True, embedding_lookup="matmul")

# Every product of a model, one by one: (rows, numbers in, numbers out).


def listed(asked: dict[str, Any], n: int, past: int, s: int) -> Iterator[tuple[int, int, int]]:
    d = asked["d_model"]
    for layer in range(asked["n_layers"]):
        window = asked["layers"][layer]["window"] if "layers" in asked else None
        yield from projections(asked, n, n)
        for i in range(n):
            seen = past + i + 1 if window is None else min(past + i + 1, window)
            yield from core(asked, 1, seen)
        if asked.get("cross_attention"):
            yield from projections(asked, n, 0 if past else s)
            yield from core(asked, n, s)
        yield from ffn_products(asked["ffn"], d, n)
    if "encoder" in asked and not past:
        for _ in range(asked["encoder"]["n_layers"]):
            yield from projections(asked["encoder"], s, s)
            yield from core(asked["encoder"], s, s)
            yield from ffn_products(asked["encoder"]["ffn"], d, s)
    yield n, d, asked["vocab"]


def projections(asked: dict[str, Any], rows: int, keys: int) -> Iterator[tuple[int, int, int]]:
    made, d = asked["attention"], asked["d_model"]
    heads, groups = made["n_heads"], made["n_kv_heads"]
    yield rows, d, heads * made["d_head"]
    yield keys, d, groups * made["d_head"]
    yield keys, d, groups * made["d_value"]
    yield rows, heads * made["d_value"], d


def core(asked: dict[str, Any], rows: int, keys: int) -> Iterator[tuple[int, int, int]]:
    for _ in range(asked["attention"]["n_heads"]):
        yield rows, asked["attention"]["d_head"], keys
        yield rows, keys, asked["attention"]["d_value"]


def ffn_products(ffn: dict[str, Any], d: int, rows: int) -> Iterator[tuple[int, int, int]]:
    gated = "gated" in (ffn["kind"], ffn.get("expert"))
    widths = [ffn["d_ff"]]
    if ffn["kind"] == "moe":
        yield rows, d, ffn["n_experts"]
        widths = [ffn["d_ff"]] * ffn["top_k"] + [ffn["d_shared"]] * (ffn["d_shared"] > 0)
        if ffn.get("shared_gate"):
            yield rows, d, 1
    for width in widths:
        yield from [(rows, d, width)] * (2 if gated else 1)
        yield rows, width, d


@pytest.mark.parametrize("seed", range(60))
def test_a_pass_is_the_sum_of_its_products_listed_one_by_one(seed: int) -> None:
    asked = random_asked(seed)
    config = config_of(asked)
    ran = random_workload(seed, config)
    shapes = listed(asked, ran.tokens, ran.cached, ran.source)
    products = sum(2 * rows * into * out for rows, into, out in shapes)
    assert flops.forward(config, ran, EXACT).total == ran.batch * products


def test_absorbed_latent_attention_is_its_products_listed_one_by_one() -> None:
    config, n, past = sized.config_of("deepseek-v2-lite"), 3, 40
    mla, h, v = config.attention.mla, config.attention.n_heads, config.attention.d_value
    assert mla is not None
    r, pairs = mla.kv_lora_rank, sum(past + i for i in range(1, n + 1))
    per_head = n * mla.d_nope * r + pairs * (r + mla.d_rope) + pairs * r + n * r * v
    found = flops.forward(config, Workload(tokens=n, cached=past), Conventions(mla="absorbed"))
    names = ("scores", "mix", "W_UK", "W_UV")
    core = found.sum_of(lambda part: part.id.removeprefix("blocks.attn.") in names)
    assert core == 2 * config.n_layers * h * per_head
    expanded = flops.forward(config, Workload(tokens=n, cached=past), EXACT)
    assert found.total - core == expanded.sum_of(
        lambda part: part.id.removeprefix("blocks.attn.") not in names
    )


def test_more_windows_than_are_told_one_by_one_are_one_part_of_the_same_pairs() -> None:
    windows = [*range(1, 21), None]
    asked = random_asked(2) | {"n_layers": 21, "layers": [{"window": w} for w in windows]}
    config = config_of(asked)
    found = flops.forward(config, Workload(tokens=30, source=4), EXACT)
    scores = [part for part in found.parts if part.id.startswith("blocks.attn.scores")]
    pairs = sum(min(i, w or i) for w in windows for i in range(1, 31))
    heads = config.attention.n_heads * config.attention.d_head
    assert [(part.id, part.value) for part in scores] == [("blocks.attn.scores", 2 * heads * pairs)]


def test_behind_cached_positions_the_memory_is_not_made_again() -> None:
    ran = Workload(tokens=3, cached=5, source=7)
    found = flops.forward(sized.config_of("t5-small"), ran, EVERYTHING)
    made = [part.id for part in found.parts]
    again = ("blocks.cross.W_K", "blocks.cross.W_V")
    assert found.view("encoder") == 0
    assert "blocks.cross.scores" in made
    assert not [name for name in made if name in again or name.startswith("encoder.")]


def test_what_goes_number_by_number_is_counted_by_the_list() -> None:
    asked = {
        "d_model": 6,
        "n_layers": 2,
        "vocab": 11,
        "tied": True,
        "attention": {"n_heads": 2, "n_kv_heads": 1, "d_head": 3, "bias": True},
        "ffn": {"kind": "gated", "d_ff": 10, "bias": True},
        "norm": {"kind": "layernorm"},
    }
    n, pairs, config = 4, 10, config_of(asked)
    assert config.final_norm
    norms, hidden, added = 2 * 2 * 7 * n * 6 + 7 * n * 6, 2 * n * 10, 2 * 2 * n * 6
    found = flops.forward(config, Workload(tokens=n), EVERYTHING)
    softmax = 2 * 5 * 2 * pairs
    assert found.view("elementwise") == softmax + norms + 4 * hidden + hidden + added
    assert found.view("bias_adds") == 2 * n * (6 + 3 + 3 + 6 + 10 + 10 + 6)
    assert found.view("embedding") == 2 * n * 11 * 6


def test_numbers_of_a_mixture_with_norms_of_heads_are_counted_by_the_list() -> None:
    asked = {
        "d_model": 6,
        "n_layers": 3,
        "vocab": 11,
        "attention": {
            "n_heads": 4,
            "n_kv_heads": 2,
            "d_head": 5,
            "qk_norm": "head",
            "sinks": True,
        },
        "ffn": {"kind": "moe", "d_ff": 7, "n_experts": 8, "top_k": 3, "d_shared": 2},
        "norm": {"kind": "rmsnorm"},
    }
    n, hidden = 4, 3 * 7 + 2
    norms = 4 * (2 * 6 + 4 * 5 + 2 * 5)
    block = 5 * 4 * 10 + n * (norms + 5 * hidden + 2 * 6)
    found = flops.forward(config_of(asked), Workload(tokens=n), EVERYTHING)
    assert found.view("elementwise") == 3 * block + 4 * n * 6
    assert found.view("bias_adds") == 0  # sinks are added to nothing


def test_a_norm_without_numbers_is_a_norm() -> None:
    asked = random_asked(1) | {"norm": {"kind": "layernorm"}}
    bare = {**asked, "norm": {"kind": "layernorm", "gain": False}}
    totals = [
        flops.forward(config_of(each), Workload(tokens=5), EVERYTHING).view("elementwise")
        for each in (asked, bare)
    ]
    assert totals[0] == totals[1] > 0


def test_numbers_of_a_decoder_with_a_memory_are_counted_by_the_list() -> None:
    asked = {
        "d_model": 6,
        "n_layers": 2,
        "vocab": 11,
        "cross_attention": True,
        "attention": {"n_heads": 2, "bias": True},
        "ffn": {"kind": "mlp", "d_ff": 5},
        "norm": {"kind": "rmsnorm"},
    }
    n, s, config = 4, 9, config_of(asked)
    block = 5 * 2 * (10 + n * s) + n * (4 * 3 * 6 + 4 * 5 + 3 * 6)
    found = flops.forward(config, Workload(tokens=n, source=s), EVERYTHING)
    assert found.view("elementwise") == 2 * block + 4 * n * 6
    biases = n * 4 * 6 + n * 2 * 6 + s * 2 * 6 + n * (5 + 6)
    assert found.view("bias_adds") == 2 * biases


def test_what_stands_beside_the_readout_is_activated_too() -> None:
    name = "bert-base-multilingual-cased + MLM + NSP heads"
    found = flops.forward(sized.config_of(name), Workload(batch=2, tokens=10), EVERYTHING)
    values = {part.id: part.value for part in found.parts}
    assert values["mlm_head.activation"] == 4 * 2 * 10 * 768
    assert values["pooler.activation"] == 4 * 2 * 768
    assert values["pooler.W"] == 2 * 2 * 768 * 768
    assert values["mlm_head.W"] == 2 * 2 * 10 * 768 * 768
