"""The list of weights: names, shapes and roles, and the parameters of published models."""

from typing import Any

import pytest

import runs
from cases import small
from compute import config_json, tensors
from compute.config import ModelConfig
from compute.types import AXES
from oracle import weights as reference

LLAMA_RMS = small.norm("rmsnorm", eps=1e-5)
NO_BIAS = {"in": False, "gate": False, "out": False}
ROTARY = small.rope(128)


def gpt2(**given: object) -> ModelConfig:
    """GPT-2 small: learned positions, biases everywhere, readout tied to the embedding."""
    heads = small.attention(12, 64, mask="causal", bias=small.biases(*"qkvo"))
    ffn = small.mlp(3072, activation="gelu_tanh")
    parts = {"attention": heads, "ffn": ffn, "norm": small.norm("layernorm")}
    return config_json.from_json(small.model(768, **(parts | given)))


def llama(kv_heads: int, d_ff: int, **given: object) -> ModelConfig:
    """A Llama of width 4096: RMSNorm, RoPE, a gated ffn, no biases, readout untied."""
    heads = small.attention(32, 128, n_kv_heads=kv_heads, mask="causal")
    ffn = small.mlp(d_ff, kind="gated", activation="silu", bias=NO_BIAS)
    parts = {"attention": heads, "ffn": ffn, "norm": LLAMA_RMS, "position": ROTARY}
    return config_json.from_json(small.model(4096, **parts) | given)


WHOLE: dict[str, Any] = {"final_norm": True}
MODELS = {
    "GPT-2 small": gpt2(
        position={"kind": "learned", "n_positions": 1024},
        n_layers=12,
        vocab=50257,
        tied=True,
        final_norm=True,
    ),
    "Llama 2 7B": llama(32, 11008, n_layers=32, vocab=32000, **WHOLE),
    "Llama 3 8B": llama(8, 14336, n_layers=32, vocab=128256, **WHOLE),
}


@pytest.mark.parametrize(
    ("config", "total", "matrices", "biases", "norms"),
    [
        (gpt2(), 12 * 768**2 + 13 * 768, 12 * 768**2, 9 * 768, 4 * 768),
        (gpt2(), 7_087_872, 7_077_888, 6_912, 3_072),
        (llama(32, 11008), 202_383_360, 202_375_168, 0, 2 * 4096),
        (llama(8, 14336), 218_112_000, 218_103_808, 0, 2 * 4096),
    ],
)
def test_a_block_has_the_published_number_of_parameters(
    config: ModelConfig, total: int, matrices: int, biases: int, norms: int
) -> None:
    assert tensors.parameter_counts(config) == {
        "total": total,
        "embedding": 0,
        "matrices": matrices,
        "biases": biases,
        "norms": norms,
        "readout": 0,
    }


PUBLISHED = {
    "GPT-2 small": {
        "total": 124_439_808,
        "embedding": (50257 + 1024) * 768,
        "matrices": 12 * 7_077_888,
        "biases": 12 * 6_912,
        "norms": 25 * 2 * 768,
        "readout": 0,
    },
    "Llama 2 7B": {
        "total": 6_738_415_616,
        "embedding": 32000 * 4096,
        "matrices": 32 * 202_375_168,
        "biases": 0,
        "norms": 65 * 4096,
        "readout": 32000 * 4096,
    },
    "Llama 3 8B": {
        "total": 8_030_261_248,
        "embedding": 128256 * 4096,
        "matrices": 32 * 218_103_808,
        "biases": 0,
        "norms": 65 * 4096,
        "readout": 128256 * 4096,
    },
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_whole_model_has_the_published_number_of_parameters(name: str) -> None:
    assert tensors.parameter_counts(MODELS[name]) == PUBLISHED[name]


def test_a_config_has_the_references_tensors_in_their_shapes() -> None:
    for seed in range(500):
        raw = runs.case_of(seed).config
        listed = tensors.tensors(config_json.from_json(raw))
        assert {name: t.shape for name, t in listed.items()} == reference.shapes(raw), seed


def test_counts_by_part_sum_to_the_sizes_of_all_tensors() -> None:
    for seed in range(0, 500, 5):
        config = config_json.from_json(runs.case_of(seed).config)
        counts = tensors.parameter_counts(config)
        sizes = {name: tensor.size for name, tensor in tensors.tensors(config).items()}
        assert counts["total"] == sum(sizes.values())
        assert counts["total"] == sum(counts.values()) - counts["total"]
        norms = sum(size for name, size in sizes.items() if "norm" in name)
        assert counts["norms"] == norms


def test_roles_and_fan_in_are_those_of_the_products() -> None:
    heads = small.attention(6, 5, n_kv_heads=2, d_value=7, bias=small.biases(*"qkvo"))
    gated = small.mlp(13, kind="gated", bias={"in": True, "gate": True, "out": True})
    parts = {"attention": heads, "ffn": gated, "norm": small.norm("layernorm")}
    above = {"vocab": 17, "unembed_bias": True}
    listed = tensors.tensors(config_json.from_json(small.model(11, **parts) | above))
    fan_in = {
        "attn.W_Q": 11,
        "attn.W_K": 11,
        "attn.W_V": 11,
        "attn.W_O": 6 * 7,
        "ffn.W_in": 11,
        "ffn.W_gate": 11,
        "ffn.W_out": 13,
    }
    assert {name: listed[f"blocks.0.{name}"].fan_in for name in fan_in} == fan_in
    assert listed["embed.W_E"].role == "table"
    assert listed["unembed.W_U"].role == "matrix"
    assert listed["blocks.0.norm1.weight"].role == "gain"
    for name, tensor in listed.items():
        assert (tensor.role == "bias") == is_bias(name), name
    assert listed["blocks.0.attn.W_K"].words == ("kv_head", "d_model", "d_head")
    assert all(word in AXES.values() for tensor in listed.values() for word in tensor.words)


def is_bias(name: str) -> bool:
    return ".b_" in name or name.endswith((".bias", ".b", ".sinks"))


def test_roles_and_fan_in_of_experts_tables_and_heads() -> None:
    heads = small.attention(6, 5, n_kv_heads=2, d_value=7, qk_norm="full", sinks=True)
    experts = small.moe(13, 9, 4, expert="gated", router_bias=True, d_shared=17, shared_gate=True)
    buckets = {"kind": "t5_bias", "n_buckets": 8, "max_distance": 20, "bidirectional": True}
    parts = {"attention": heads, "ffn": experts, "norm": small.norm("layernorm")}
    above = {"vocab": 19, "token_types": 3, "mlm_head": True, "cross_attention": True}
    raw = small.model(11, **parts, position=buckets) | above
    listed = tensors.tensors(config_json.from_json(raw))
    expected = {
        "blocks.0.ffn.W_in": ((9, 11, 13), ("expert", "d_model", "d_ff"), 11),
        "blocks.0.ffn.W_gate": ((9, 11, 13), ("expert", "d_model", "d_ff"), 11),
        "blocks.0.ffn.W_out": ((9, 13, 11), ("expert", "d_ff", "d_model"), 13),
        "blocks.0.ffn.W_router": ((11, 9), ("d_model", "expert"), 11),
        "blocks.0.ffn.W_shared_in": ((11, 17), ("d_model", "d_shared"), 11),
        "blocks.0.ffn.W_shared_out": ((17, 11), ("d_shared", "d_model"), 17),
        "blocks.0.ffn.W_shared_weight": ((11, 1), ("d_model", "1"), 11),
        "blocks.0.cross.W_Q": ((6, 11, 5), ("head", "d_model", "d_head"), 11),
        "blocks.0.cross.W_O": ((6, 7, 11), ("head", "d_value", "d_model"), 42),
        "type_embed.W_type": ((3, 11), ("token_type", "d_model"), 11),
        "rel_bias.W_rel": ((8, 6), ("bucket", "head"), 1),
        "mlm_head.W": ((11, 11), ("d_model", "d_mlm_head"), 11),
        "blocks.0.attn.sinks": ((6,), ("head",), 11),
        "blocks.0.attn.k_norm.weight": ((2, 5), ("kv_head", "d_head"), 11),
    }
    found = {name: (t.shape, t.words, t.fan_in) for name, t in listed.items() if name in expected}
    assert found == expected
    assert {listed[name].role for name in ("type_embed.W_type", "rel_bias.W_rel")} == {"table"}
    for name, tensor in listed.items():
        assert (tensor.role == "bias") == is_bias(name), name


def mixtral() -> ModelConfig:
    """Mixtral 8x7B: a Llama of width 4096 with eight experts, two for each token."""
    experts = small.moe(14336, 8, 2, expert="gated", activation="silu")
    return llama(8, 0, n_layers=32, vocab=32000, ffn=experts, **WHOLE)


def t5_small() -> ModelConfig:
    """T5 small, version 1.0: both stacks six blocks of width 512, readout tied."""
    heads = small.attention(8, 64, scale=1.0)
    ffn = small.mlp(2048, activation="relu", bias=NO_BIAS)

    def stack(*, bidirectional: bool) -> small.Config:
        buckets = {"kind": "t5_bias", "n_buckets": 32, "max_distance": 128}
        position = buckets | {"bidirectional": bidirectional}
        parts = {"attention": heads, "ffn": ffn, "norm": small.norm("rmsnorm")}
        return small.model(512, position=position, **parts) | {"n_layers": 6, **WHOLE}

    above = {"vocab": 32128, "tied": True, "cross_attention": True}
    encoder = stack(bidirectional=True)
    return config_json.from_json(stack(bidirectional=False) | above | {"encoder": encoder})


def bert_base() -> ModelConfig:
    """BERT base with its masked-token head: post-norm, token types, readout tied."""
    above = {"vocab": 30522, "tied": True, "unembed_bias": True, "token_types": 2}
    above |= {"embed_norm": True, "mlm_head": True, "n_layers": 12}
    position = {"kind": "learned", "n_positions": 512}
    return gpt2(position=position, norm=small.norm("layernorm", placement="post"), **above)


@pytest.mark.parametrize(
    ("config", "total"),
    [
        (mixtral(), 46_702_792_704),
        (t5_small(), 60_506_624),
        (bert_base(), 109_514_298),
    ],
    ids=["Mixtral 8x7B", "T5 small", "BERT base"],
)
def test_published_models_of_other_arrangements_have_their_number_of_parameters(
    config: ModelConfig, total: int
) -> None:
    assert tensors.parameter_counts(config)["total"] == total


def test_an_encoders_tensors_come_first_and_share_the_embedding() -> None:
    names = list(tensors.tensors(t5_small()))
    assert names[0] == "encoder.rel_bias.W_rel"
    assert names.index("encoder.final_norm.weight") < names.index("embed.W_E")
    assert "encoder.embed.W_E" not in names
    assert "blocks.5.cross.W_O" in names
    assert "encoder.blocks.5.cross.W_O" not in names
