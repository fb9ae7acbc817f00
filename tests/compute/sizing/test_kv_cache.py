"""The KV cache, against published bytes and against keys and values counted one by one."""

import random
from dataclasses import replace
from fractions import Fraction
from math import ceil

import pytest

import sized
from compute.config import ModelConfig
from compute.errors import QuestionError
from compute.sizing.formats import CacheFormat, Format, Grouped, NumberFormat
from compute.sizing.memory import kv_cache
from compute.sizing.vocabulary import Workload
from evaluating import evaluated
from schemas.config import ConfigAsked

FLOAT16 = CacheFormat(format=Format(name="float16"))
GIB = 1 << 30
SEEDS = range(60)

CACHED = [name for name, truth in sized.truths().items() if "kv_bytes_per_token_fp16" in truth]
WINDOWED = [name for name, truth in sized.truths().items() if truth.get("kv_window")]
UNCACHED = [name for name in sized.truths() if name not in CACHED]

PUBLISHED = (
    *("yi-34b", "phi-2", "phi-3-mini", "llama-3(.1)-8b", "llama-3(.1)-70b"),
    *("qwen2.5-7b", "qwen2.5-72b"),
)


def made(**config: object) -> ModelConfig:
    return ConfigAsked.model_validate(config).to_compute()


def size(config: ModelConfig, cache: CacheFormat = FLOAT16, **workload: int) -> kv_cache.KvCache:
    return kv_cache.size(config, Workload(**workload), cache)


def drawn(seed: int) -> ModelConfig:
    """A small causal model whose widths all differ; some blocks have windows."""
    draw = random.Random(seed)
    kv_heads, layers = draw.randint(1, 3), draw.randint(1, 5)
    return made(
        d_model=24,
        n_layers=layers,
        attention={
            "n_heads": kv_heads * draw.randint(1, 3),
            "n_kv_heads": kv_heads,
            "d_head": draw.randint(1, 7),
            "d_value": draw.randint(1, 7),
        },
        layers=[{"window": draw.choice([None, 1, 3, 8])} for _ in range(layers)],
        cross_attention=draw.random() < 0.4,
    )


def kept(config: ModelConfig, positions: int) -> dict[str, int]:
    """Numbers of the keys and of the values of one block: a head of a position at a step."""
    attention, found = config.attention, {"k": 0, "v": 0}
    for _position in range(positions):
        for _head in range(attention.n_kv_heads):
            found["k"] += attention.d_head
            found["v"] += attention.d_value
    return found


@pytest.mark.parametrize("name", CACHED)
def test_a_token_adds_the_published_bytes(name: str) -> None:
    config, truth = sized.config_of(name), sized.truths()[name]
    found = size(config, tokens=3, source=4 if config.cross_attention else 0)
    assert found.per_token.value == truth["kv_bytes_per_token_fp16"]
    assert found.per_token_per_block.value * config.n_layers == truth["kv_bytes_per_token_fp16"]
    assert found.per_token_kind == "exact"


@pytest.mark.parametrize("name", UNCACHED)
def test_a_model_that_masks_nothing_has_no_cache(name: str) -> None:
    with pytest.raises(QuestionError) as refused:
        size(sized.config_of(name), tokens=3)
    (fault,) = refused.value.faults
    assert (fault.code, fault.place) == ("no_cache", ("ask",))


def test_a_model_without_attention_has_no_cache() -> None:
    with pytest.raises(QuestionError) as refused:
        size(made(d_model=8, attention={"kind": "none"}), tokens=3)
    assert refused.value.faults[0].code == "no_cache"


@pytest.mark.parametrize("name", WINDOWED)
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("n", [1, 511, 512, 4095, 4096, 4097, 131072])
def test_windows_cap_the_bound_and_not_the_allocation(name: str, batch: int, n: int) -> None:
    said = sized.truths()[name]["kv_window"]
    found = size(sized.config_of(name), tokens=n, batch=batch)
    wide, local, each = (
        said[key] for key in ("global_layers", "local_layers", "bytes_per_token_per_layer")
    )
    bound = batch * (wide * n + local * min(n, said["window"])) * each
    assert found.lower_bound.total == bound
    assert found.allocation.total == batch * (wide + local) * n * each
    assert (found.lower_bound.kind, found.allocation.kind) == ("lower_bound", "upper_bound")


@pytest.mark.parametrize("name", ["t5-small", "t5-3b", "t5-v1.1-xxl (untied)"])
def test_cross_attention_keeps_as_much_for_each_source_token_once(name: str) -> None:
    config, each = sized.config_of(name), sized.truths()[name]["kv_bytes_per_token_fp16"]
    found = size(config, tokens=5, source=7, new=6)
    assert found.per_source_token is not None
    assert found.per_source_token.value == each
    assert found.allocation.total == found.lower_bound.total == (5 + 6 + 7) * each
    cross = [part for part in found.allocation.parts if ".cross." in part.id]
    assert sum(part.value for part in cross) == 7 * each


def test_deepseek_keeps_latent_numbers_and_not_those_of_its_heads() -> None:
    config = sized.config_of("deepseek-v3 (main model, no MTP)")
    truths = sized.extra_truths()
    compact = truths["deepseek-v3 compact MLA bf16"]["expected"]
    expanded = truths["deepseek-v3 expanded (non-compressed) K,V per token bf16"]["expected"]
    found = size(config, tokens=163840)
    assert found.per_token.value == compact
    assert found.expanded is not None
    assert found.expanded.per_token.value == expanded
    assert found.expanded.ledger.total == 163840 * expanded
    assert found.lower_bound.total == truths["deepseek-v3.1 at 163840"]["expected"] * GIB
    assert found.per_token.value != 2 * 61 * 512 * 2, "no factor 2 for keys and values"


def test_gpt_oss_120b_adds_what_its_engine_logs() -> None:
    said = sized.extra_truths()["gpt-oss-120b bf16"]["expected"]
    assert size(sized.config_of("gpt-oss-120b"), tokens=1).per_token.value == said


@pytest.mark.parametrize("name", PUBLISHED)
def test_2048_tokens_take_the_published_bytes(name: str) -> None:
    expected = sized.extra_truths()[f"{name} KV cache, 2048 tokens fp16"]["expected"]
    assert size(sized.config_of(name), tokens=2048).allocation.total == expected


def test_gemma_3_27b_takes_the_windowed_bytes_and_never_the_naive_ones() -> None:
    truths = sized.extra_truths()
    right = truths["gemma-3-27b at 131072 tokens, 10 global + 52 local(1024)"]["expected"]
    wrong = truths["gemma-3-27b, naive all-global and head_dim=d/h=168"]["expected"]
    found = size(sized.config_of("gemma-3-27b (text)"), tokens=131072)
    assert found.lower_bound.total == right * GIB
    assert wrong * GIB not in (found.lower_bound.total, found.allocation.total)
    assert found.allocation.total == Fraction(wrong) * GIB * 128 / 168


def test_qwen3_takes_its_own_head_width() -> None:
    expected = sized.extra_truths()["qwen3-0.6b at 40960"]["expected"]
    assert size(sized.config_of("qwen3-0.6b"), tokens=40960).allocation.total == expected * GIB


def test_gpt_oss_20b_takes_the_bound_and_the_allocation_as_reported() -> None:
    truths, found = (
        sized.extra_truths(),
        size(sized.config_of("gpt-oss-20b"), tokens=8192, batch=32),
    )
    bound = truths["gpt-oss-20b 8192 tokens x 32 seqs, window-capped lower bound"]["expected"]
    pages = "gpt-oss-20b 8192 x 32, full pages for every layer (engine allocation)"
    assert found.lower_bound.total == bound * GIB
    assert found.allocation.total == truths[pages]["expected"] * GIB


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("page", [0, 4])
def test_the_cache_is_what_a_loop_over_blocks_and_positions_counts(seed: int, page: int) -> None:
    config, draw = drawn(seed), random.Random(-seed)
    cached, tokens, new, batch, source = (draw.randint(0, 6) for _ in range(5))
    tokens, batch = tokens + 1, batch + 1
    source = source if config.cross_attention else 0
    windows = [layer.window for layer in config.layers] or [config.attention.window]
    windows = windows * (config.n_layers // len(windows))
    name: NumberFormat = draw.choice(["float16", "q4_0", "q6_k", "int4"])
    bits = {"float16": 16, "q4_0": Fraction(9, 2), "q6_k": Fraction(105, 16), "int4": 4}[name]
    cache = CacheFormat(format=Format(name=name), page=page)
    found = size(config, cache, cached=cached, tokens=tokens, new=new, batch=batch, source=source)
    t = cached + tokens + new
    for ledger, capped in ((found.lower_bound, True), (found.allocation, False)):
        counted = 0
        for window in windows:
            seen = min(t, window) if capped and window is not None else t
            positions = 0
            while positions < seen:
                positions += page or 1
            counted += _bytes(config, batch, positions, bits)
            if config.cross_attention:
                counted += _bytes(config, batch, source, bits)
        assert ledger.total == counted


def _bytes(config: ModelConfig, batch: int, positions: int, bits: int | Fraction) -> int:
    numbers = kept(config, batch * positions)
    return sum(ceil(held * Fraction(bits) / 8) for held in numbers.values())


def test_a_group_adds_its_share_of_scale_and_zero() -> None:
    config = made(d_model=64, n_layers=3, attention={"n_heads": 1})
    grouped = Grouped(group=64, scale_bits=16, zero_bits=16)
    cache = CacheFormat(format=Format(name="int4", grouped=grouped))
    assert size(config, cache, tokens=2).per_token.value == 3 * 2 * (64 * 4 + 32) // 8


def test_a_token_that_ends_within_a_byte_is_said_to_be_rounded_up() -> None:
    config = made(d_model=5, n_layers=3, attention={"n_heads": 1})
    found = size(config, CacheFormat(format=Format(name="q4_0")), tokens=7)
    assert found.per_token_kind == "upper_bound"
    assert found.per_token.value == 3 * 2 * 3, "22.5 bits of a key are 3 bytes"
    assert found.allocation.total == 3 * 2 * 20, "157.5 bits of seven are 20"


@pytest.mark.parametrize("seed", SEEDS)
def test_half_the_kv_heads_take_half(seed: int) -> None:
    config = drawn(seed)
    twice = replace(config.attention, n_kv_heads=2 * config.attention.n_kv_heads)
    double = size(replace(config, attention=twice), tokens=9, batch=2, source=3)
    assert double.allocation.total == 2 * size(config, tokens=9, batch=2, source=3).allocation.total


@pytest.mark.parametrize("seed", SEEDS)
def test_a_window_of_all_positions_changes_nothing(seed: int) -> None:
    config = replace(drawn(seed), layers=())
    wide = replace(config, attention=replace(config.attention, window=9))
    full, windowed = (size(x, tokens=9, source=2) for x in (config, wide))
    assert windowed.lower_bound.total == full.lower_bound.total == full.allocation.total
    narrow = replace(config, attention=replace(config.attention, window=8))
    assert size(narrow, tokens=9, source=2).lower_bound.total < full.lower_bound.total


@pytest.mark.parametrize("seed", SEEDS)
def test_bytes_grow_with_the_batch_in_a_straight_line(seed: int) -> None:
    config = drawn(seed)
    one, seven = (size(config, tokens=9, source=2, batch=b).lower_bound.total for b in (1, 7))
    assert seven == 7 * one


@pytest.mark.parametrize("seed", SEEDS)
def test_formulas_with_the_numbers_in_give_the_values(seed: int) -> None:
    cache = CacheFormat(format=Format(name="q6_k"), page=4)
    found = size(drawn(seed), cache, tokens=9, source=2, batch=3)
    for part in (*found.lower_bound.parts, *found.allocation.parts):
        assert evaluated(part.quantity.substituted) == part.value
