"""Weights that nobody brings: the documented formula in whole numbers, and its bits."""

import hashlib
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cases import small
from compute import config_json, initial, tensors
from compute.checkpoints import folder
from compute.config import ModelConfig
from compute.tensors import Tensor
from compute.types import Array, DType
from oracle.configs import random_case

TOY = Path(__file__).resolve().parents[2] / "models" / "eiffel-toy"
WORD = 1 << 64


def splitmix64(x: int) -> int:
    """The mixer of Steele, Lea and Flood 2014 (SplitMix64), in whole numbers."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % WORD
    return x ^ (x >> 31)


def unit(seed: int, name: str, i: int) -> float:
    """Element i, of mean 0 and deviation 1, by the formula of the documentation."""
    key = int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:8], "little")
    x = splitmix64((key + (i + 1) * 0x9E3779B97F4A7C15) % WORD)
    lanes = sum((x >> shift) & 0xFFFF for shift in (0, 16, 32, 48))
    return (lanes - 131070) / math.sqrt((2**32 - 1) / 3)


def config_of(**given: object) -> ModelConfig:
    heads = small.attention(5, 3, d_value=2, bias=small.biases(*"qkvo"))
    gated = small.mlp(13, kind="gated", bias={"in": True, "gate": True, "out": True})
    parts = {"attention": heads, "ffn": gated, "norm": small.norm("layernorm")}
    readout = {"vocab": 17, "unembed_bias": True, "final_norm": True, "n_layers": 2}
    return config_json.from_json(small.model(11, **(parts | given)) | readout)


def value(seed: int, tensor: Tensor, i: int) -> float:
    if tensor.role == "gain":
        return 1.0 + 0.1 * unit(seed, tensor.name, i)
    if tensor.role == "bias":
        return 0.1 * unit(seed, tensor.name, i)
    return unit(seed, tensor.name, i) / math.sqrt(tensor.fan_in)


def test_splitmix64_gives_its_published_first_numbers() -> None:
    # of the state 1234567, as in the reference implementation's output
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    state = [1234567 + (i + 1) * 0x9E3779B97F4A7C15 for i in range(3)]
    assert [splitmix64(x % WORD) for x in state] == published


@pytest.mark.parametrize("seed", [0, 1, 2**53])
def test_seeded_numbers_follow_the_documented_formula(seed: int) -> None:
    source = initial.seeded(seed, "float64", 0.0)
    for tensor in tensors.tensors(config_of()).values():
        made = source(tensor).reshape(-1)
        for i in {0, 1, tensor.size // 2, tensor.size - 1}:
            # the product is rounded once or twice
            assert made[i] == pytest.approx(value(seed, tensor, i), rel=4e-16, abs=1e-300)


def test_seeded_numbers_go_on_past_a_chunk() -> None:
    tensor = Tensor("blocks.0.ffn.W_in", ("d", "f"), (300, 700), "matrix", 300, "matrices")
    made = initial.seeded(3, "float64", 0.0)(tensor).reshape(-1)
    for i in (65535, 65536, 65537, 131072, 209999):
        assert made[i] == pytest.approx(value(3, tensor, i), rel=4e-16)


GOLDEN = {
    "embed.W_E": "3532f63ecd60f0beefa997be6478afbb",
    "blocks.1.attn.W_O": "1bfac93ee482083e8b61003e31a2173f",
}
"""The first four float32 numbers of seed 0 as little-endian bytes."""


@pytest.mark.parametrize("name", GOLDEN)
def test_seeded_bits_are_the_same_on_every_platform(name: str) -> None:
    made = initial.seeded(0, "float32", 0.0)(tensors.tensors(config_of())[name])
    assert made.reshape(-1)[:4].astype("<f4").tobytes().hex() == GOLDEN[name]


def test_a_float32_number_is_the_float64_one_rounded_once() -> None:
    for tensor in tensors.tensors(config_of()).values():
        exact = initial.seeded(0, "float64", 0.0)(tensor)
        single = initial.seeded(0, "float32", 0.0)(tensor)
        assert single.dtype == np.float32
        assert single.tobytes() == exact.astype(np.float32).tobytes()


def all_of(config: ModelConfig, seed: int) -> dict[str, Array]:
    source = initial.seeded(seed, "float64", config.norm.gain_offset)
    return {name: source(tensor) for name, tensor in tensors.tensors(config).items()}


def test_another_layer_changes_no_other_tensor() -> None:
    two, three = config_of(), replace(config_of(), n_layers=3)
    before, after = all_of(two, 0), all_of(three, 0)
    assert set(before) < set(after)
    assert all(before[name].tobytes() == after[name].tobytes() for name in before)


def test_another_seed_changes_every_tensor_and_no_two_tensors_are_alike() -> None:
    zero, one = all_of(config_of(), 0), all_of(config_of(), 1)
    assert not any(np.array_equal(zero[name], one[name]) for name in zero)
    first = [float(values.reshape(-1)[0]) for values in zero.values()]
    assert len(set(first)) == len(first)


def test_seeded_numbers_have_mean_0_and_the_documented_spread() -> None:
    tensor = Tensor("W", ("d", "f"), (400, 500), "matrix", 400, "matrices")
    made = initial.seeded(0, "float64", 0.0)(tensor).reshape(-1) * math.sqrt(400)
    # 200,000 numbers: the mean is known to 0.0022, the deviation to 0.0016, at one sigma
    assert abs(made.mean()) < 0.01
    assert made.std() == pytest.approx(1.0, abs=0.008)
    assert np.abs(made).max() < 131070 / math.sqrt((2**32 - 1) / 3)
    # within one sigma: a sum of four uniform numbers, 0.6693 by Irwin and Hall
    assert (np.abs(made) < 1).mean() == pytest.approx(0.6693, abs=0.005)
    assert abs(np.corrcoef(made[:-1], made[1:])[0, 1]) < 0.01


def test_seeded_gains_are_near_1_with_their_offset_added() -> None:
    gain = tensors.tensors(config_of())["blocks.0.norm1.weight"]
    stored, offset = initial.seeded(0, "float64", 1.0), initial.seeded(0, "float64", 0.0)
    small.close(stored(gain) + 1.0, offset(gain), atol=4e-16)
    assert np.abs(offset(gain) - 1.0).max() < 0.5


# Identity and zeros.


@pytest.mark.parametrize("gain_offset", [0.0, 1.0])
def test_zeros_are_zeros_of_every_tensor_and_gains_of_one(gain_offset: float) -> None:
    for seed in range(0, 40, 5):
        for tensor in tensors.tensors(config_json.from_json(random_case(seed).config)).values():
            made = initial.zeros("float32", gain_offset)(tensor)
            assert (made.shape, made.dtype) == (tensor.shape, np.float32)
            assert set(made.ravel()) == {1.0 - gain_offset if tensor.role == "gain" else 0.0}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_identity_gives_each_head_its_own_coordinates(dtype: DType) -> None:
    heads = small.attention(3, 2, d_value=4, n_kv_heads=3, bias=small.biases(*"qkvo"))
    config = config_of(attention=heads)
    source = initial.identity(dtype, 0.0)
    made = {name: source(tensor) for name, tensor in tensors.tensors(config).items()}
    for r in range(3):
        W_Q, W_V, W_O = (made[f"blocks.0.attn.W_{letter}"][r] for letter in "QVO")
        for i in range(11):
            assert W_Q[i].tolist() == [float(i == 2 * r + j) for j in range(2)]
            assert W_V[i].tolist() == [float(i == 4 * r + j) for j in range(4)]
            assert W_O[:, i].tolist() == [float(i == 4 * r + j) for j in range(4)]
    assert made["blocks.0.ffn.W_in"].tolist() == np.eye(11, 13).tolist()
    assert made["unembed.W_U"].tolist() == np.eye(11, 17).tolist()
    assert made["embed.W_E"].tolist() == np.eye(17, 11).tolist()
    assert not made["blocks.0.attn.b_Q"].any()
    assert made["blocks.1.norm2.weight"].tolist() == [1.0] * 11
    assert {values.dtype for values in made.values()} == {np.dtype(dtype)}


def test_an_identity_gain_is_1_with_its_offset_and_positions_are_0() -> None:
    config = config_of(
        norm=small.norm("rmsnorm", gain_offset=1.0), position={"kind": "learned", "n_positions": 7}
    )
    source = initial.identity("float64", 1.0)
    listed = tensors.tensors(config)
    assert not source(listed["blocks.0.norm1.weight"]).any()
    assert not source(listed["pos_embed.W_pos"]).any()


EXPERTS = config_of(
    attention=small.attention(5, 3, sinks=True, qk_norm="full"),
    ffn=small.moe(13, 4, 2, expert="gated", router_bias=True, d_shared=7, shared_gate=True)
    | {"bias": {"in": True, "gate": True, "out": True}},
    position={"kind": "t5_bias", "n_buckets": 8, "max_distance": 20, "bidirectional": True},
    cross_attention=True,
    token_types=3,
    mlm_head=True,
)


def made_of(source: initial.Source, config: ModelConfig = EXPERTS) -> dict[str, Array]:
    return {name: source(tensor) for name, tensor in tensors.tensors(config).items()}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_each_expert_of_the_identity_is_one_by_itself(dtype: DType) -> None:
    made = made_of(initial.identity(dtype, 0.0))
    for name, eye in (("W_in", (11, 13)), ("W_gate", (11, 13)), ("W_out", (13, 11))):
        assert made[f"blocks.0.ffn.{name}"].tolist() == [np.eye(*eye).tolist()] * 4
    for name, eye in (("W_router", (11, 4)), ("W_shared_in", (11, 7)), ("W_shared_out", (7, 11))):
        assert made[f"blocks.0.ffn.{name}"].tolist() == np.eye(*eye).tolist()
    assert made["mlm_head.W"].tolist() == np.eye(11).tolist()
    assert {values.dtype for values in made.values()} == {np.dtype(dtype)}
    assert all(values.flags.c_contiguous for values in made.values())


def test_the_identity_has_no_sinks_types_biases_or_relative_positions() -> None:
    made = made_of(initial.identity("float64", 0.0))
    for name in ("attn.sinks", "ffn.b_in", "ffn.b_gate", "ffn.b_out", "ffn.b_router"):
        assert not made[f"blocks.1.{name}"].any(), name
    assert not made["type_embed.W_type"].any()
    assert not made["rel_bias.W_rel"].any()
    assert made["blocks.0.attn.q_norm.weight"].tolist() == [[1.0] * 3] * 5


def test_cross_attention_of_the_identity_is_that_of_the_self_attention() -> None:
    made = made_of(initial.identity("float64", 0.0))
    for name in ("W_Q", "W_K", "W_V", "W_O"):
        assert made[f"blocks.0.cross.{name}"].tolist() == made[f"blocks.0.attn.{name}"].tolist()


def test_an_encoders_identity_has_no_positions_or_types_either() -> None:
    learned = {"kind": "learned", "n_positions": 7}
    encoder = small.model(11, ffn=small.mlp(13), position=learned) | {"token_types": 2}
    config = config_of(cross_attention=True, encoder=encoder)
    made = made_of(initial.identity("float64", 0.0), config)
    assert not made["encoder.pos_embed.W_pos"].any()
    assert not made["encoder.type_embed.W_type"].any()
    assert made["encoder.blocks.0.ffn.W_in"].tolist() == np.eye(11, 13).tolist()


def test_seeded_experts_and_tables_have_the_documented_spread() -> None:
    listed = tensors.tensors(EXPERTS)
    fan_in = {
        "blocks.0.ffn.W_in": 11,
        "blocks.0.ffn.W_out": 13,
        "blocks.0.ffn.W_router": 11,
        "blocks.0.ffn.W_shared_out": 7,
        "blocks.0.ffn.W_shared_weight": 11,
        "blocks.0.cross.W_O": 5 * 3,
        "type_embed.W_type": 11,
        "rel_bias.W_rel": 1,
        "mlm_head.W": 11,
    }
    source = initial.seeded(7, "float64", 0.0)
    for name, numbers in fan_in.items():
        made = source(listed[name]).reshape(-1)
        expected = [unit(7, name, i) / math.sqrt(numbers) for i in range(made.size)]
        # the product is rounded once or twice
        assert made.tolist() == pytest.approx(expected, rel=4e-16, abs=1e-300), name
    for name in ("blocks.0.attn.sinks", "blocks.0.ffn.b_router", "blocks.0.ffn.b_out"):
        assert listed[name].role == "bias"
        made = source(listed[name]).reshape(-1)
        expected = [0.1 * unit(7, name, i) for i in range(made.size)]
        assert made.tolist() == pytest.approx(expected, rel=4e-16, abs=1e-300), name


def test_no_two_experts_are_seeded_alike() -> None:
    made = made_of(initial.seeded(0, "float64", 0.0))["blocks.0.ffn.W_in"]
    assert len({expert.tobytes() for expert in made}) == 4


def test_identity_weights_are_those_of_the_toy_but_for_its_query_and_embedding() -> None:
    toy = folder.load(TOY)
    stored, source = toy.source(), initial.identity("float64", 0.0)
    differ = [
        name
        for name, tensor in tensors.tensors(toy.config).items()
        if not np.array_equal(stored(tensor), source(tensor))
    ]
    assert sorted(differ) == ["blocks.0.attn.W_Q", "embed.W_E"]
    W_Q = stored(tensors.tensors(toy.config)["blocks.0.attn.W_Q"])
    assert W_Q.tolist() == [[[0.0, 1.0], [1.0, 0.0]]]
