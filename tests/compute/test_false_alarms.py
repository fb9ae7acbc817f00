"""What must raise no alarm: cancellation, width, length, equal numbers, the ends of the range."""

from dataclasses import replace

import numpy as np
import pytest

from cases import small
from compute.trace import Trace, identities_of, trace
from compute.types import DType

DTYPES = pytest.mark.parametrize("dtype", ["float64", "float32"])
ROWS = np.random.default_rng(1).standard_normal((5, 11))


def verdicts(traced: Trace) -> dict[str, bool | None]:
    return {identity.name: identity.holds for identity in identities_of(traced)}


def opposed(dtype: DType, difference: float) -> Trace:
    """Two heads that attend alike and write all but opposite updates."""
    config = small.model(11, attention=small.attention(2, 3), norm=small.norm("layernorm"))
    named = small.drawn(config, 4)
    for letter in "QKV":
        named[f"blocks.0.attn.W_{letter}"][1] = named[f"blocks.0.attn.W_{letter}"][0]
    named["blocks.0.attn.W_O"][1] = -named["blocks.0.attn.W_O"][0] * (1 + difference)
    return trace(small.run(config, named, dtype=dtype, tensor=1000 * ROWS))


@DTYPES
@pytest.mark.parametrize("difference", [0.0, 1e-7, 1e-3])
def test_heads_that_cancel_raise_no_alarm(difference: float, dtype: DType) -> None:
    traced = opposed(dtype, difference)
    assert traced.whole["blocks.0.attn.pattern"][0].tolist() == (
        traced.whole["blocks.0.attn.pattern"][1].tolist()
    )
    assert False not in verdicts(traced).values()


def test_a_head_left_out_of_two_that_cancel_is_seen() -> None:
    traced = opposed("float32", 1e-3)
    contributions = np.array(traced.whole["blocks.0.attn.head_out"])
    contributions[1] = 0.0
    whole = {**traced.whole, "blocks.0.attn.head_out": contributions}
    assert verdicts(replace(traced, whole=whole))["blocks.0.head_sum"] is False


@DTYPES
def test_a_block_as_wide_as_gpt2s_raises_no_alarm(dtype: DType) -> None:
    heads = small.attention(12, 64, bias=small.biases(*"qkvo"))
    config = small.model(768, attention=heads, ffn=small.mlp(3072), norm=small.norm("layernorm"))
    rows = np.random.default_rng(6).standard_normal((7, 768))
    traced = trace(small.run(config, small.drawn(config, 6), dtype=dtype, tensor=rows))
    assert False not in verdicts(traced).values()


@DTYPES
@pytest.mark.parametrize("number", [0.1, 0.3, 0.9])
def test_weights_that_are_all_equal_raise_no_alarm(number: float, dtype: DType) -> None:
    # each addition of such a dot product is rounded the same way, so that errors add up
    linear = small.mlp(3072, activation="relu")
    config = small.model(768, attention=small.attention(12, 64), ffn=linear)
    named = {name: np.full_like(W, number) for name, W in small.drawn(config, 0).items()}
    rows = np.full((3, 768), 0.1)
    traced = trace(small.run(config, named, dtype=dtype, tensor=rows))
    assert False not in verdicts(traced).values()


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("float32", 1e-45),
        ("float32", 1e-38),
        ("float32", 1e-30),
        ("float32", 1e18),
        ("float64", 1e-320),
        ("float64", 1e-300),
        ("float64", 1e-200),
        ("float64", 1e100),
        ("float64", 1e154),
        ("float64", 1e160),
        ("float64", 1e300),
    ],
)
def test_very_small_and_very_large_numbers_raise_no_alarm(dtype: DType, size: float) -> None:
    heads = small.attention(2, 3, scale=0.0)
    linear = small.mlp(13, activation="identity")
    config = small.model(11, attention=heads, ffn=linear)
    named = small.drawn(config, 2)
    for name in ("b_in", "b_out"):
        named[f"blocks.0.ffn.{name}"] = np.zeros_like(named[f"blocks.0.ffn.{name}"])
    traced = trace(small.run(config, named, dtype=dtype, tensor=size * ROWS))
    for identity in identities_of(traced):
        assert identity.holds is not False, identity
        for measured in (identity.max_abs, identity.rel, identity.norm_ratio):
            assert measured is None or np.isfinite(measured), identity


@DTYPES
@pytest.mark.parametrize("scale", [1e2, 1e4, 1e6])
def test_large_scores_raise_no_alarm(scale: float, dtype: DType) -> None:
    config = small.model(11, attention=small.attention(2, 3, scale=scale))
    traced = trace(small.run(config, small.drawn(config, 2), dtype=dtype, tensor=ROWS))
    assert False not in verdicts(traced).values()


@DTYPES
def test_a_long_input_raises_no_alarm(dtype: DType) -> None:
    config = small.model(11, attention=small.attention(1, 3), ffn=small.mlp(13))
    rows = np.random.default_rng(8).random((1031, 11)) + 1.0
    traced = trace(small.run(config, small.drawn(config, 2), dtype=dtype, tensor=rows))
    assert False not in verdicts(traced).values()


# The same of what other arrangements add.

WIDE_EXPERTS = small.moe(1536, 8, 4, expert="gated", activation="silu", d_shared=512)


@DTYPES
@pytest.mark.parametrize("placement", ["pre", "sandwich", "output"])
def test_wide_experts_raise_no_alarm(placement: str, dtype: DType) -> None:
    heads = small.attention(8, 64, n_kv_heads=2, qk_norm="head", softcap=50.0, sinks=True)
    norm = small.norm("rmsnorm", placement=placement)
    config = small.model(512, attention=heads, ffn=WIDE_EXPERTS, norm=norm)
    config |= {"residual_multiplier": 0.22}
    rows = np.random.default_rng(6).standard_normal((7, 512))
    traced = trace(small.run(config, small.drawn(config, 6), dtype=dtype, tensor=rows))
    assert False not in verdicts(traced).values()


def opposed_experts(dtype: DType, difference: float) -> Trace:
    """Two experts of equal weight that write all but opposite updates."""
    config = small.model(11, ffn=small.moe(13, 2, 2))
    named = small.drawn(config, 4)
    named["blocks.0.ffn.W_router"][:] = 0.0
    named["blocks.0.ffn.W_in"][1] = named["blocks.0.ffn.W_in"][0]
    named["blocks.0.ffn.W_out"][1] = -named["blocks.0.ffn.W_out"][0] * (1 + difference)
    return trace(small.run(config, named, dtype=dtype, tensor=1000 * ROWS))


@DTYPES
@pytest.mark.parametrize("difference", [0.0, 1e-7, 1e-3])
def test_experts_that_cancel_raise_no_alarm(difference: float, dtype: DType) -> None:
    traced = opposed_experts(dtype, difference)
    assert bool(traced.whole["blocks.0.ffn_out"].any()) is (difference > 0.0)
    assert False not in verdicts(traced).values()


@DTYPES
def test_an_expert_left_out_of_two_that_cancel_is_seen(dtype: DType) -> None:
    traced = opposed_experts(dtype, 1e-3)
    outs = np.array(traced.whole["blocks.0.ffn.expert_out"])
    outs[:, 1] = 0.0
    whole = {**traced.whole, "blocks.0.ffn.expert_out": outs}
    assert verdicts(replace(traced, whole=whole))["blocks.0.expert_sum"] is False


@DTYPES
@pytest.mark.parametrize("logit", [-1e4, -80.0, 0.0, 80.0, 1e4])
def test_sinks_of_any_size_raise_no_alarm(logit: float, dtype: DType) -> None:
    config = small.model(11, attention=small.attention(2, 3, sinks=True))
    named = small.drawn(config, 2) | {"blocks.0.attn.sinks": np.full(2, logit)}
    traced = trace(small.run(config, named, dtype=dtype, tensor=ROWS))
    assert all(identity.holds is not False for identity in identities_of(traced))


@DTYPES
@pytest.mark.parametrize("number", [0.1, 0.3, 0.9])
def test_a_block_of_equal_numbers_that_crosses_raises_no_alarm(number: float, dtype: DType) -> None:
    config = small.model(256, attention=small.attention(4, 64), ffn=small.mlp(1024))
    config |= {"cross_attention": True, "residual_multiplier": 0.3}
    named = {name: np.full_like(W, number) for name, W in small.drawn(config, 0).items()}
    memory = {"tensor": np.full((300, 256), 0.1)}
    rows = np.full((3, 256), 0.1)
    traced = trace(small.run(config, named, dtype=dtype, tensor=rows, memory=memory))
    assert False not in verdicts(traced).values()


@DTYPES
@pytest.mark.parametrize("size", [1e-30, 1e18])
def test_small_and_large_numbers_raise_no_alarm_in_other_arrangements(
    size: float, dtype: DType
) -> None:
    heads = small.attention(2, 3, scale=0.0)
    experts = small.moe(13, 4, 2, activation="identity", d_shared=5)
    above = {"cross_attention": True, "residual_multiplier": 0.3}
    config = small.model(11, attention=heads, ffn=experts) | above
    memory = {"tensor": size * ROWS}
    named = small.drawn(config, 2)
    run = small.run(config, named, dtype=dtype, tensor=size * ROWS, memory=memory)
    for identity in identities_of(trace(run)):
        assert identity.holds is not False, identity
        for measured in (identity.max_abs, identity.rel, identity.norm_ratio):
            assert measured is None or np.isfinite(measured), identity


@DTYPES
@pytest.mark.parametrize("multiplier", [1e-40, 1e-3, 1 / 3, -1e6])
def test_any_residual_multiplier_raises_no_alarm(multiplier: float, dtype: DType) -> None:
    # in float32 1e-40 is one of few numbers near it: what is multiplied by is that number
    config = small.model(11, attention=small.attention(2, 3), ffn=small.mlp(7))
    config |= {"residual_multiplier": multiplier}
    run = small.run(config, small.drawn(config, 8), dtype=dtype, tensor=ROWS)
    told = verdicts(trace(run))
    assert told["blocks.0.attn_update"] is told["blocks.0.ffn_update"] is True
    assert False not in told.values()
