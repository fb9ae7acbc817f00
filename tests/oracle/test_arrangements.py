"""The reference's arrangements against values worked out by hand: small exact cases."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from cases import small
from cases.small import Array, Config
from oracle import functions, weights
from oracle.forward import trace


def traced(config: Config, given: dict[str, npt.ArrayLike], **inputs: Any) -> dict[str, Array]:  # noqa: ANN401
    """Stages, block 0's without their prefix; of the weights that are not given, gains are 1 and
    the rest 0. A given name is a full one, or block 0's."""
    named = {
        name: np.ones(shape) if name.endswith(".weight") else np.zeros(shape)
        for name, shape in weights.shapes(config).items()
    }
    for name, value in given.items():
        full = name if name in named else f"blocks.0.{name}"
        assert named[full].shape == np.shape(value), name
        named[full] = np.asarray(value, np.float64)
    stages = trace(config, named, **inputs)
    return {name.removeprefix("blocks.0."): value for name, value in stages.items()}


# Norms of a sublayer's output.

ADDING = {"attn.b_O": [3, 4], "ffn.b_out": [0, -2]}
HEADS = small.attention(1, 2, bias=small.biases("o"))


def rms(**given: object) -> Config:
    return small.norm("rmsnorm", eps=1e-16, **given)


@pytest.mark.parametrize("placement", ["sandwich", "output"])
def test_the_output_is_normalized_then_multiplied_then_added(placement: str) -> None:
    config = small.model(2, attention=HEADS, ffn=small.mlp(1), norm=rms(placement=placement))
    config |= {"residual_multiplier": 0.5}
    given = ADDING | {"norm1_post.weight": [1, 2], "attn.W_Q": [np.eye(2)]}
    stages = traced(config, given, tensor=[[1, 1]])
    root = math.sqrt(12.5)
    small.close(stages["attn.q"], [[[1, 1]]], atol=1e-14)
    small.close(stages["attn.out_raw"], [[3, 4]], atol=0)
    small.close(stages["norm1_post.out"], [[3 / root, 8 / root]], atol=1e-14)
    small.close(stages["attn_out"], [[1.5 / root, 4 / root]], atol=1e-14)
    small.close(stages["resid_mid"], [[1 + 1.5 / root, 1 + 4 / root]], atol=1e-14)
    small.close(stages["ffn.out_raw"], [[0, -2]], atol=0)
    small.close(stages["ffn_out"], [[0, -math.sqrt(2) / 2]], atol=1e-14)
    assert ("norm1.out" in stages) == (placement == "sandwich")


def test_what_is_read_is_normalized_by_a_sandwich_and_not_by_an_output_norm() -> None:
    for placement, expected in (("sandwich", math.sqrt(2)), ("output", 5.0)):
        config = small.model(2, attention=HEADS, norm=rms(placement=placement))
        stages = traced(config, {"attn.W_Q": [np.eye(2)]}, tensor=[[5, 0]])
        small.close(stages["attn.q"], [[[expected, 0]]], atol=1e-14)


def test_a_multiplier_without_a_norm_leaves_the_raw_output_beside_the_update() -> None:
    config = small.model(2, attention=HEADS, ffn=small.mlp(1)) | {"residual_multiplier": 0.5}
    stages = traced(config, ADDING, tensor=[[1, 1]])
    small.close(stages["attn.out_raw"], [[3, 4]], atol=0)
    small.close(stages["attn_out"], [[1.5, 2]], atol=0)
    small.close(stages["resid_post"], [[2.5, 2]], atol=0)


# Side by side.


@pytest.mark.parametrize("shared", [False, True])
def test_in_parallel_both_read_what_enters(*, shared: bool) -> None:
    config = small.model(2, attention=HEADS, ffn=small.mlp(2, activation="identity"))
    config |= {"topology": "parallel", "norm": rms(shared=shared)}
    given = {"attn.b_O": [3, 4], "ffn.W_in": np.eye(2), "ffn.W_out": np.eye(2)}
    stages = traced(config, given, tensor=[[1, -1]])
    small.close(stages["ffn.up"], [[1, -1]], atol=1e-14)
    small.close(stages["resid_post"], [[1 + 3 + 1, -1 + 4 - 1]], atol=1e-14)
    assert "resid_mid" not in stages
    assert ("norm2.out" in stages) != shared


# Inside attention.


def test_a_sink_takes_its_share_and_adds_nothing() -> None:
    config = small.model(2, attention=small.attention(1, 2, sinks=True, bias=small.biases("v")))
    given = {"attn.sinks": [math.log(2)], "attn.b_V": [[4, 8]]}
    stages = traced(config, given, tensor=np.zeros((2, 2)))
    small.close(stages["attn.pattern"], [[[0.25, 0.25]] * 2], atol=1e-15)
    small.close(stages["attn.sink"], [[0.5, 0.5]], atol=1e-15)
    small.close(stages["attn.z"], [[[2, 4]] * 2], atol=1e-14)


def test_where_no_key_is_allowed_the_sink_takes_all() -> None:
    config = small.model(2, attention=small.attention(1, 2, sinks=True))
    stages = traced(config, {}, tensor=np.zeros((2, 2)), key_mask=[False, False])
    small.close(stages["attn.pattern"], np.zeros((1, 2, 2)), atol=0)
    small.close(stages["attn.sink"], [[1, 1]], atol=0)


def test_a_softcap_bounds_scaled_scores_before_positions_and_masks() -> None:
    heads = small.attention(1, 1, scale=2.0, softcap=2.0, mask="causal")
    config = small.model(1, attention=heads, position={"kind": "alibi", "alibi_rule": "bloom"})
    given = {"attn.W_Q": [[[1]]], "attn.W_K": [[[1]]]}
    stages = traced(config, given, tensor=[[1], [2]])
    slope, two, four = 2.0**-8, 2 * math.tanh(2), 2 * math.tanh(4)
    expected = [[[2 * math.tanh(1), -math.inf], [two - slope, four]]]
    small.close(stages["attn.scores"], expected, atol=1e-15)


@pytest.mark.parametrize(
    ("over", "expected"),
    [
        ("head", [[[0.8485281, 1.1313708]], [[1.4142136, 0]]]),
        ("full", [[[3 / math.sqrt(12.5), 4 / math.sqrt(12.5)]], [[5 / math.sqrt(12.5), 0]]]),
    ],
)
def test_queries_are_normalized_head_by_head_or_all_together(
    over: str, expected: list[list[list[float]]]
) -> None:
    config = small.model(4, attention=small.attention(2, 2, qk_norm=over), norm=rms())
    eye = np.eye(4).reshape(4, 2, 2).swapaxes(0, 1)
    # norm1 divides by sqrt(50 / 4), which the norm of queries makes up for
    stages = traced(config, {"attn.W_Q": eye}, tensor=[[3, 4, 5, 0]])
    small.close(stages["attn.q_norm"], expected, atol=1e-7)


def test_queries_are_normalized_before_they_turn() -> None:
    heads = small.attention(1, 2, qk_norm="head", bias=small.biases("q", "k"))
    config = small.model(2, attention=heads, norm=rms(), position=small.rope(2))
    given = {"attn.b_Q": [[2, 0]], "attn.q_norm.weight": [1, 9]}
    stages = traced(config, given, tensor=[[0, 0]], position_ids=[1])
    turned = [[[math.sqrt(2) * math.cos(1), math.sqrt(2) * math.sin(1)]]]
    small.close(stages["attn.q_rot"], turned, atol=1e-14)


def test_t5_biases_are_looked_up_by_key_minus_query_once_for_all_blocks() -> None:
    position = {"kind": "t5_bias", "n_buckets": 4, "max_distance": 8, "bidirectional": True}
    config = small.model(1, attention=small.attention(2, 1), position=position) | {"n_layers": 2}
    table = [[0, 0], [1, 10], [2, 20], [3, 30]]
    stages = traced(config, {"rel_bias.W_rel": table}, tensor=np.zeros((3, 1)))
    one = [[0, 3, 3], [1, 0, 3], [1, 1, 0]]  # 1 bucket behind, 1 ahead: 2 of each, 0 is the same
    for name in ("attn.scores", "blocks.1.attn.scores"):
        small.close(stages[name], [one, 10 * np.array(one)], atol=0)


def test_a_layer_has_a_window_a_scale_and_a_rotation_of_its_own() -> None:
    config = small.model(2, attention=small.attention(1, 2, scale=7.0), position=small.rope(2))
    plain, linear = {"kind": "none"}, {"kind": "linear", "factor": 2.0}
    config |= {
        "n_layers": 3,
        "layers": [
            {"window": 1, "scale": 1.0, "theta": None, "scaling": plain},
            {"window": None, "scale": 0.5, "theta": 100.0, "scaling": plain},
            {"window": 2, "scale": 3.0, "theta": 100.0, "scaling": linear},
        ],
    }
    eyes = {f"blocks.{layer}.attn.W_{x}": [np.eye(2)] for layer in range(3) for x in "QK"}
    stages = traced(config, eyes, tensor=[[1, 0], [1, 0], [1, 0]])
    small.close(stages["attn.pattern"], [np.eye(3)], atol=0)
    assert "attn.q_rot" not in stages
    assert stages["attn.scores"][0, 0, 0] == 1.0
    assert stages["blocks.1.attn.scores"][0, 0, 2] == pytest.approx(0.5 * math.cos(2))
    assert stages["blocks.2.attn.scores"][0, 0, 1] == pytest.approx(3 * math.cos(0.5))
    assert stages["blocks.2.attn.scores"][0, 0, 2] == -math.inf


# Experts.


def experts(**given: object) -> Config:
    return small.moe(1, 3, 2, bias={"in": False, "gate": False, "out": True}, **given)


@pytest.mark.parametrize(("renormalize", "expected"), [(True, 46.0), (False, 230 / 6)])
def test_the_largest_experts_are_mixed_by_their_logits(
    expected: float, *, renormalize: bool
) -> None:
    config = small.model(1, ffn=experts(router_bias=True, renormalize=renormalize))
    logits = [0, math.log(3), math.log(2)]
    given = {"ffn.b_router": logits, "ffn.b_out": [[1], [10], [100]]}
    stages = traced(config, given, tensor=[[5]])
    assert stages["ffn.experts"].tolist() == [[1, 2]]
    small.close(stages["ffn.expert_out"], [[[10], [100]]], atol=0)
    small.close(stages["ffn_out"], [[expected]], atol=1e-13)


def test_of_equal_logits_the_lower_index_comes_first() -> None:
    stages = traced(small.model(1, ffn=experts()), {}, tensor=[[5], [2]])
    assert stages["ffn.experts"].tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize(("shared_gate", "weight"), [(False, 1.0), (True, 0.75)])
def test_a_shared_expert_sees_every_token(weight: float, *, shared_gate: bool) -> None:
    ffn = experts(d_shared=2, shared_gate=shared_gate, activation="identity")
    given = {"ffn.W_shared_in": [[1, 1]], "ffn.W_shared_out": [[2], [1]]}
    if shared_gate:
        given["ffn.W_shared_weight"] = [[math.log(3)]]
    stages = traced(small.model(1, ffn=ffn), given, tensor=[[1]])
    small.close(stages["ffn.shared_out"], [[3 * weight]], atol=1e-15)
    small.close(stages["ffn_out"], [[3 * weight]], atol=1e-15)


def test_gated_experts_open_each_expansion_by_its_own_gate() -> None:
    ffn = small.moe(1, 2, 2, expert="gated", activation="relu")
    given = {
        "ffn.W_in": [[[1]], [[1]]],
        "ffn.W_gate": [[[2]], [[-2]]],
        "ffn.W_out": [[[1]], [[1]]],
    }
    stages = traced(small.model(1, ffn=ffn), given, tensor=[[3]])
    small.close(stages["ffn.expert_hidden"], [[[18], [0]]], atol=0)
    small.close(stages["ffn_out"], [[9]], atol=1e-15)


@pytest.mark.parametrize(("x", "expected"), [(-2.0, 0.0), (3.0, 9.0), (0.5, 0.25)])
def test_relu2_is_the_square_of_relu(x: float, expected: float) -> None:
    assert functions.activate("relu2", np.array([[x]])).item() == expected


# A memory.


def reading(placement: str = "pre", **given: object) -> Config:
    heads = small.attention(1, 2, mask="causal", bias=small.biases("o"))
    config = small.model(2, attention=heads, ffn=small.mlp(1), norm=rms(placement=placement))
    return config | {"cross_attention": True} | given


def test_cross_attention_mixes_the_rows_of_the_memory_that_are_not_masked() -> None:
    given = {"cross.W_V": [np.eye(2)], "cross.W_O": [np.eye(2)], "cross.b_O": [100, 0]}
    memory = {"tensor": [[2, 4], [6, 8], [9, 9]], "key_mask": [True, True, False]}
    stages = traced(reading(), given, tensor=[[1, 1]], memory=memory)
    small.close(stages["cross.scores"], [[[0, 0, -math.inf]]], atol=0)
    small.close(stages["cross_out"], [[104, 6]], atol=1e-14)
    small.close(stages["resid_cross"], [[105, 7]], atol=1e-14)


def test_post_norm_normalizes_each_of_the_three_sums() -> None:
    given = {"attn.b_O": [0, 7], "cross.b_O": [6, 0], "ffn.b_out": [0, -1]}
    stages = traced(reading("post"), given, tensor=[[1, -7]], memory={"tensor": [[1, 1]]})
    root = math.sqrt(2)
    small.close(stages["attn_sum"], [[1, 0]], atol=0)
    small.close(stages["resid_mid"], [[root, 0]], atol=1e-14)
    small.close(stages["cross_sum"], [[root + 6, 0]], atol=1e-14)
    small.close(stages["resid_cross"], [[root, 0]], atol=1e-14)
    small.close(stages["ffn_sum"], [[root, -1]], atol=1e-14)


def test_the_memory_is_the_encoders_last_output_after_its_final_norm() -> None:
    encoder = small.model(2, ffn=small.mlp(1), norm=rms()) | {"final_norm": True}
    config = reading(encoder=encoder, vocab=3, tied=True, embed_multiplier=10.0)
    given = {
        "embed.W_E": [[1, 0], [0, 1], [3, 4]],
        "encoder.blocks.0.ffn.b_out": [1, -1],
        "cross.W_V": [np.eye(2)],
    }
    stages = traced(config, given, token_ids=[1], memory={"token_ids": [2, 2]})
    small.close(stages["embed"], [[0, 10]], atol=0)
    small.close(stages["encoder.embed"], [[3, 4]] * 2, atol=0)  # its own multiplier is 1
    small.close(stages["encoder.blocks.0.resid_post"], [[4, 3]] * 2, atol=0)
    expected = np.array([[4, 3]] * 2) / math.sqrt(12.5)
    small.close(stages["encoder.final_norm.out"], expected, atol=1e-14)
    small.close(stages["cross.v"], [expected], atol=1e-14)


# Below the stack and above it.


def test_tokens_positions_and_types_are_added_and_then_normalized() -> None:
    config = small.model(2, ffn=small.mlp(1), norm=rms(), position={"kind": "sinusoidal"})
    config |= {"vocab": 2, "tied": True, "token_types": 3, "embed_multiplier": 2.0}
    config |= {"embed_norm": True}
    given = {"embed.W_E": [[1, 0], [0, 0]], "type_embed.W_type": [[0, 0], [0, 0], [1, 3]]}
    stages = traced(config, given, token_ids=[0], token_types=[2])
    small.close(stages["embed"], [[2, 0]], atol=0)
    small.close(stages["type_embed"], [[1, 3]], atol=0)
    root = math.sqrt(12.5)  # [2, 0] + [0, 1] + [1, 3] = [3, 4]
    small.close(stages["resid_pre"], [[3 / root, 4 / root]], atol=1e-14)
    posted = traced(config, given, tensor=[[2, 0]], token_types=[2])
    small.close(posted["resid_pre"], stages["resid_pre"], atol=0)


def test_the_masked_token_head_stands_between_the_final_norm_and_the_readout() -> None:
    config = small.model(2, ffn=small.mlp(1, activation="relu"), norm=rms())
    config |= {"vocab": 2, "tied": True, "final_norm": True, "mlm_head": True}
    given = {
        "embed.W_E": np.eye(2),
        "mlm_head.W": [[0, 1], [1, 0]],
        "mlm_head.b": [-9, 0],
        "mlm_norm.weight": [1, 5],
    }
    stages = traced(config, given, tensor=[[3, 4]])
    root = math.sqrt(12.5)
    small.close(stages["mlm_head.up"], [[4 / root - 9, 3 / root]], atol=1e-14)
    small.close(stages["mlm_head.hidden"], [[0, 3 / root]], atol=1e-14)
    small.close(stages["logits"], [[0, 5 * math.sqrt(2)]], atol=1e-13)


def test_logits_are_multiplied_with_their_bias_and_then_bounded() -> None:
    config = small.model(1, ffn=small.mlp(1)) | {"vocab": 2, "tied": True, "unembed_bias": True}
    config |= {"logit_multiplier": 0.5, "logit_softcap": 3.0}
    given = {"embed.W_E": [[1], [-1]], "unembed.b_U": [2, 0]}
    stages = traced(config, given, tensor=[[4]])
    small.close(stages["logits"], [[3 * math.tanh(1), 3 * math.tanh(-2 / 3)]], atol=1e-15)


def test_a_layer_norm_may_have_no_bias() -> None:
    config = small.model(2, ffn=small.mlp(1), norm=small.norm("layernorm", bias=False, eps=1e-14))
    stages = traced(config, {"norm2.weight": [2, 3]}, tensor=[[1, 3]])
    small.close(stages["norm2.out"], [[-2, 3]], atol=1e-12)
    assert not [name for name in weights.shapes(config) if name.endswith(".bias")]


def test_without_a_readout_the_model_ends_with_its_stream() -> None:
    config = small.model(1, ffn=small.mlp(1)) | {"vocab": 2, "readout": False}
    stages = traced(config, {}, token_ids=[0])
    assert list(stages)[-1] == "resid_post"
