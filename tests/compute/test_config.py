"""The defaults a config derives from what is given."""

from dataclasses import replace

import pytest

from compute import config
from compute.config import NormConfig


def test_heads_take_their_widths_from_the_stream() -> None:
    attention = config.attention_config(12, 3)
    assert (attention.n_kv_heads, attention.d_head, attention.d_value) == (3, 4, 4)
    assert attention.scale == 0.5
    assert (attention.kind, attention.mask, attention.window) == ("softmax", "causal", None)
    assert attention.bias == config.AttentionBias(q=False, k=False, v=False, o=False)


def test_a_width_of_its_own_decides_the_value_width_and_the_scale() -> None:
    attention = config.attention_config(5, 2, d_head=4)
    assert (attention.d_head, attention.d_value, attention.scale) == (4, 4, 0.5)
    attention = config.attention_config(5, 2, d_head=16, d_value=3, n_kv_heads=1)
    assert (attention.d_value, attention.n_kv_heads, attention.scale) == (3, 1, 0.25)


def test_a_given_scale_is_kept_even_when_it_is_zero() -> None:
    assert config.attention_config(4, 1, scale=0.0).scale == 0.0


def test_heads_that_do_not_divide_the_stream_have_no_default_width() -> None:
    assert config.attention_config(5, 2).d_head == 0


def test_an_ffn_is_four_times_as_wide_with_its_biases() -> None:
    mlp = config.ffn_config(3, "mlp")
    assert (mlp.d_ff, mlp.activation) == (12, "gelu")
    assert mlp.bias == config.FfnBias(in_=True, gate=False, out=True)
    assert config.ffn_config(3, "gated").bias == config.FfnBias(in_=True, gate=True, out=True)
    none = config.FfnBias(in_=False, gate=False, out=False)
    assert config.ffn_config(3, "gated", d_ff=5, bias=none).bias == none


def test_a_whole_head_turns_by_default() -> None:
    rope = config.position_config("rope", 6)
    assert (rope.rotary_dim, rope.theta, rope.pairing) == (6, 10000.0, "half")
    assert config.position_config("rope", 6, rotary_dim=2).rotary_dim == 2


def test_experts_have_no_biases_unless_asked_for() -> None:
    none = config.FfnBias(in_=False, gate=False, out=False)
    experts = config.ffn_config(3, "moe", n_experts=4, top_k=2)
    assert (experts.bias, experts.expert, experts.renormalize) == (none, "gated", True)
    assert (experts.d_ff, experts.d_shared, experts.router_bias) == (12, 0, False)


# Blocks that differ.

PLAIN = config.ModelConfig(
    d_model=12,
    n_layers=2,
    attention=config.attention_config(12, 3, window=5),
    ffn=config.ffn_config(12, "mlp"),
    norm=NormConfig(),
    position=config.position_config("rope", 4, theta=1e4),
    vocab=None,
    tied=False,
    unembed_bias=False,
    final_norm=False,
)
LINEAR = config.RopeScaling(kind="linear", factor=2.0)
STILL = config.LayerConfig(window=None, scale=0.25, theta=None, scaling=config.RopeScaling())
TURNING = config.LayerConfig(window=3, scale=0.5, theta=1e6, scaling=LINEAR)


def test_blocks_that_are_alike_have_the_stacks_config() -> None:
    assert config.block_config(PLAIN, 0) is config.block_config(PLAIN, 1) is PLAIN
    alike = replace(PLAIN, layers=(config.layer_config(PLAIN),) * 2)
    assert config.block_config(alike, 1) == PLAIN


def test_a_block_has_what_is_its_own() -> None:
    stack = replace(PLAIN, layers=(TURNING, STILL))
    first, second = (config.block_config(stack, layer) for layer in (0, 1))
    assert (first.attention.window, first.attention.scale) == (3, 0.5)
    assert (first.position.theta, first.position.scaling) == (1e6, LINEAR)
    assert (second.attention.window, second.attention.scale) == (None, 0.25)
    assert second.position.kind == "none"
    assert first.ffn is stack.ffn


@pytest.mark.parametrize("kind", ["none", "learned", "alibi", "t5_bias"])
def test_a_block_of_a_stack_that_does_not_rotate_keeps_its_positions(kind: str) -> None:
    position = config.position_config(kind, 4, n_positions=7)
    stack = replace(PLAIN, position=position, layers=(STILL, STILL))
    assert config.block_config(stack, 0).position is position


@pytest.mark.parametrize(
    ("norm", "vocab", "expected"),
    [
        (NormConfig(placement="sandwich"), 17, True),
        (NormConfig(placement="output"), 17, True),
        (NormConfig(), 17, True),
        (NormConfig(kind="rmsnorm"), 17, True),
        (NormConfig(), None, False),
        (NormConfig(placement="post"), 17, False),
        (NormConfig(kind="none"), 17, False),
    ],
)
def test_a_pre_norm_stack_normalizes_once_more_before_its_readout(
    norm: NormConfig, vocab: int | None, expected: bool
) -> None:
    assert config.default_final_norm(norm, vocab) is expected
