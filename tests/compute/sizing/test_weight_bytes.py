"""Bytes of weights, against counts of parameters and sums over tensors listed by hand."""

from fractions import Fraction
from math import ceil, prod

import pytest

import runs
import sized
from compute import config_json
from compute.sizing.formats import Format, Grouped, KeptRole
from compute.sizing.memory import weight_bytes
from compute.sizing.memory.weight_bytes import Kept
from evaluating import evaluated
from oracle import weights as reference

FLOAT16 = Format(name="float16")


@pytest.mark.parametrize("name", sized.truths())
def test_two_bytes_a_parameter_take_twice_the_published_count(name: str) -> None:
    found = weight_bytes.size(sized.config_of(name), FLOAT16)
    assert found.total == 2 * sized.truths()[name]["params_total"]
    assert sum(part.value for part in found.parts) == found.total


def test_llama_70b_takes_the_published_bytes_in_float16() -> None:
    said = sized.extra_truths()["llama-3.1-70B fp16"]
    found = weight_bytes.size(sized.config_of("llama-3(.1)-70b"), FLOAT16).total
    assert found == said["expected"] == 141107412992
    assert found != 69503033344, "a byte a parameter and no readout is the reported bug"


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("grouped", [Grouped(), Grouped(group=32, scale_bits=16, zero_bits=4)])
def test_quantised_bytes_are_those_of_each_tensor_alone(seed: int, grouped: Grouped) -> None:
    drawn = runs.case_of(seed).config
    bits = Fraction(9, 2) + (Fraction(20, 32) if grouped.group else 0)
    counted = sum(ceil(prod(shape) * bits / 8) for shape in reference.shapes(drawn).values())
    form = Format(name="q4_0", grouped=grouped)
    assert weight_bytes.size(config_json.from_json(drawn), form).total == counted


LEFT: dict[KeptRole, tuple[str, ...]] = {
    "embeddings": ("embed.W_E", "pos_embed.W_pos"),
    "readout": (),
    "norms": (
        *("blocks.norm1.weight", "blocks.norm1.bias", "blocks.norm2.weight", "blocks.norm2.bias"),
        *("final_norm.weight", "final_norm.bias"),
    ),
    "biases": (
        *(f"blocks.attn.b_{x}" for x in "QKVO"),
        *("blocks.ffn.b_in", "blocks.ffn.b_out"),
    ),
}


@pytest.mark.parametrize("role", LEFT)
def test_of_gpt2_each_role_keeps_the_tensors_that_it_names(role: KeptRole) -> None:
    kept = Kept(roles=frozenset({role}), format=Format(name="float32"))
    found = weight_bytes.size(sized.config_of("gpt2-small"), Format(name="int8"), kept)
    assert {part.id for part in found.parts if "kept" in part.views} == set(LEFT[role])
    numbers = sized.truths()["gpt2-small"]["params_total"]
    apart = found.view("kept")
    assert found.total == numbers + apart - Fraction(apart) / 4


def test_an_untied_readout_is_kept_by_its_name() -> None:
    config = sized.config_of("llama-3(.1)-8b")
    kept = Kept(roles=frozenset({"readout"}), format=FLOAT16)
    found = weight_bytes.size(config, Format(name="q4_0"), kept)
    assert found.view("kept") == 2 * 4096 * 128256


SHAPED = ("gpt2-small", "mixtral-8x7b", "albert-base-v2 (1 shared layer x12)")


@pytest.mark.parametrize("name", SHAPED)
def test_formulas_with_the_numbers_in_give_the_values(name: str) -> None:
    for part in weight_bytes.size(sized.config_of(name), Format(name="q6_k")).parts:
        assert evaluated(part.quantity.substituted) == part.value
