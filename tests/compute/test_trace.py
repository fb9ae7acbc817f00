"""Runs as a whole: patches, numbers that overflow, queries without a key."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pytest

import runs
from cases import small
from compute.trace import trace
from compute.types import Selected

Array = npt.NDArray[np.generic]


def patched(patches: Mapping[str, object], select: list[str]) -> dict[str, Array]:
    config = small.model(5, attention=small.attention(2, 3), ffn=small.mlp(7))
    rows = np.random.default_rng(0).standard_normal((3, 5))
    run = runs.run_of(
        config,
        small.drawn(config, 0),
        {"tensor": rows},
        select=[Selected(name=name) for name in select],
        patches=patches,
    )
    return runs.states(run)


def test_a_derived_stage_is_made_of_the_patched_one() -> None:
    made = patched({"blocks.0.attn.z": np.zeros_like}, ["attn.z", "attn.head_out", "attn_out"])
    assert not any(values.any() for values in made.values())


def test_a_head_that_is_zeroed_takes_its_contribution_away() -> None:
    def without_first(z: Array) -> Array:
        rest = np.array(z)
        rest[0] = 0.0
        return rest

    whole = patched({}, ["attn.head_out", "resid_mid"])
    ablated = patched({"blocks.0.attn.z": without_first}, ["resid_mid"])
    left = whole["blocks.0.resid_mid"] - whole["blocks.0.attn.head_out"][0]
    # one rounding for each of four additions of numbers of order one
    small.close(ablated["blocks.0.resid_mid"], left, atol=1e-14)


def test_the_same_patched_run_gives_the_same_bits_again() -> None:
    mine = np.full((3, 7), 2.0)
    for _ in range(2):
        made = patched({"blocks.0.ffn.up": lambda up: mine}, ["ffn.hidden"])
        # gelu(2) = 2 Φ(2), Φ(2) = 0.977249868…
        small.close(made["blocks.0.ffn.hidden"], np.full((3, 7), 1.954499736104), atol=1e-12)
    assert mine.tolist() == [[2.0] * 7] * 3


@pytest.mark.parametrize(
    ("given", "kept", "derived"),
    [
        (("attn.W_Q", "attn.W_K"), "attn.q", "attn.dots"),
        (("attn.W_V", "attn.W_O"), "attn.z", "attn.head_out"),
    ],
)
def test_finite_numbers_may_overflow_in_derived_stages_without_a_warning(
    given: tuple[str, str], kept: str, derived: str
) -> None:
    config = small.model(5, attention=small.attention(2, 3))
    named = small.values(config, {})
    for name in given:
        named[f"blocks.0.{name}"] += 1e180
    select = [Selected(name=name) for name in (kept, derived)]
    made = small.stages_of(small.run(config, named, select=select, tensor=[[1.0] * 5]))
    assert np.isfinite(made[kept]).all()
    assert np.isposinf(made[derived]).all()


# Patches in other arrangements.


def arranged(
    config: small.Config, patches: Mapping[str, object], select: list[str]
) -> dict[str, Array]:
    """Stages of a run on three rows, with four rows to cross to."""
    rng = np.random.default_rng(0)
    inputs: dict[str, object] = {"tensor": rng.standard_normal((3, 5))}
    if config.get("cross_attention"):
        inputs["memory"] = {"tensor": rng.standard_normal((4, 5))}
    run = runs.run_of(
        config,
        small.drawn(config, 0),
        inputs,
        select=[Selected(name=name) for name in select],
        patches=patches,
    )
    return runs.states(run)


EXPERTS = small.model(5, ffn=small.moe(7, 3, 1))


def test_tokens_go_to_the_experts_a_patch_says() -> None:
    def second(experts: Array) -> Array:
        return np.ones_like(experts)

    made = arranged(EXPERTS, {"blocks.0.ffn.experts": second}, ["ffn.experts", "ffn_out"])
    assert made["blocks.0.ffn.experts"].tolist() == [[1]] * 3
    named = small.drawn(EXPERTS, 0)
    alone = {n: W[[1]] if n.split(".")[-1] in ("W_in", "W_out") else W for n, W in named.items()}
    alone["blocks.0.ffn.W_router"] = named["blocks.0.ffn.W_router"][:, [1]]
    one = small.model(5, ffn=small.moe(7, 1, 1))
    rows = np.random.default_rng(0).standard_normal((3, 5))
    expected = small.stages_of(small.run(one, alone, tensor=rows))["ffn_out"]
    small.close(made["blocks.0.ffn_out"], expected, atol=1e-15)


def test_an_expert_of_no_weight_adds_nothing() -> None:
    made = arranged(EXPERTS, {"blocks.0.ffn.expert_weights": np.zeros_like}, ["ffn_out"])
    assert not made["blocks.0.ffn_out"].any()


def test_a_patched_raw_output_is_what_is_multiplied() -> None:
    config = small.model(5, ffn=small.mlp(7)) | {"residual_multiplier": 0.5}
    made = arranged(config, {"blocks.0.ffn.out_raw": np.ones_like}, ["ffn_out"])
    assert made["blocks.0.ffn_out"].tolist() == [[0.5] * 5] * 3


def test_a_patched_memory_is_what_cross_attention_reads() -> None:
    encoder = small.model(5, ffn=small.mlp(3))
    config = small.model(5, attention=small.attention(2, 3), ffn=small.mlp(7))
    config |= {"cross_attention": True, "encoder": encoder}
    patches = {"encoder.blocks.0.resid_post": np.zeros_like}
    made = arranged(config, patches, ["cross.k", "cross.head_out", "resid_cross", "resid_mid"])
    assert not made["blocks.0.cross.k"].any()
    assert not made["blocks.0.cross.head_out"].any()
    assert made["blocks.0.resid_cross"].tolist() == made["blocks.0.resid_mid"].tolist()


# Queries without a key.


def test_a_run_says_which_queries_have_no_key() -> None:
    config = small.model(5, attention=small.attention(2, 3, mask="causal"))
    run = small.run(
        config,
        small.values(config, {}),
        tensor=np.zeros((2, 3, 5)),
        key_mask=[[False, True, True], [True, True, True]],
    )
    found = trace(run).fully_masked
    assert list(found) == ["blocks.0.attn.pattern"]
    assert found["blocks.0.attn.pattern"].tolist() == [[[True, False, False]], [[False] * 3]]


def test_a_run_says_so_of_each_pattern() -> None:
    encoder = small.model(5, attention=small.attention(2, 3, mask="causal"))
    config = small.model(5, attention=small.attention(2, 3), ffn=small.mlp(7))
    config |= {"cross_attention": True, "encoder": encoder, "n_layers": 2}
    run = small.run(
        config,
        small.values(config, {}),
        tensor=np.zeros((3, 5)),
        memory={"tensor": np.zeros((2, 5)), "key_mask": [False, False]},
    )
    found = {name: rows.tolist() for name, rows in trace(run).fully_masked.items()}
    assert found == {
        "blocks.0.cross.pattern": [True] * 3,
        "blocks.1.cross.pattern": [True] * 3,
        "encoder.blocks.0.attn.pattern": [True] * 2,
    }
