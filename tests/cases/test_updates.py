"""What a block adds, as implementations have got it wrong in public: raw outputs taken for
updates, parallel blocks for sequential ones, sums that a norm has undone."""

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pytest

from cases import small
from cases.small import Array, Config
from compute.errors import SelectionError
from compute.identities import Identity
from compute.trace import Run, identities_of, trace
from compute.types import Selected

BOTH = {"attention": small.attention(2, 3), "ffn": small.mlp(7)}
ALONE = {"attention": BOTH["attention"]}, {"ffn": BOTH["ffn"]}


def drawn(config: Config, **inputs: object) -> Run:
    rows = np.random.default_rng(4).standard_normal((3, 5))
    return small.run(config, small.drawn(config, 3), tensor=rows, **inputs)


def identities(run: Run) -> Mapping[str, Identity]:
    """By name, block 0's without their prefix."""
    return {i.name.removeprefix("blocks.0."): i for i in identities_of(trace(run))}


# The raw output is not the update.

ARRANGED: dict[str, Config] = {
    "sandwich": {"norm": small.norm("rmsnorm", placement="sandwich")},
    "output": {"norm": small.norm("rmsnorm", placement="output")},
    "sandwich, layernorm": {"norm": small.norm("layernorm", placement="sandwich")},
    "pre": {"norm": small.norm("rmsnorm")},
    "none": {},
    "parallel": {"norm": small.norm("rmsnorm"), "topology": "parallel"},
    "cross": {"norm": small.norm("rmsnorm"), "cross_attention": True},
}


def arranged(name: str, **given: object) -> Run:
    """A drawn block of an arrangement, with a memory where it reads one."""
    config = small.model(5, **BOTH) | ARRANGED[name] | given
    memory = {"tensor": np.random.default_rng(5).standard_normal((2, 5))}
    return drawn(config, **({"memory": memory} if name == "cross" else {}))


@pytest.mark.parametrize("multiplier", [0.22, 1.0, -1.5, 0.0])
@pytest.mark.parametrize("name", ARRANGED)
def test_the_stream_changes_by_the_updates_and_not_by_the_raw_outputs(
    name: str, multiplier: float
) -> None:
    stages = small.stages_of(arranged(name, residual_multiplier=multiplier))
    updates = [
        value for key, value in stages.items() if key in {"attn_out", "cross_out", "ffn_out"}
    ]
    assert len(updates) == (3 if name == "cross" else 2)
    small.close(stages["resid_post"] - stages["resid_pre"] - sum(updates), 0, atol=1e-12)
    normed = ARRANGED[name].get("norm", small.NONE).get("placement") in {"sandwich", "output"}
    for part, norm in (("attn", "norm1_post"), ("ffn", "norm2_post"), ("cross", None)):
        if not normed and multiplier == 1.0:
            assert f"{part}.out_raw" not in stages
        elif f"{part}_out" in stages:
            raw, update = stages[f"{part}.out_raw"], stages[f"{part}_out"]
            before = stages[f"{norm}.out"] if normed else raw
            small.close(update, multiplier * before, atol=1e-15)
            assert np.abs(update - raw).max() > 1e-2


def test_a_cosine_cannot_tell_the_update_from_the_raw_output_and_a_norm_ratio_can() -> None:
    stages = small.stages_of(arranged("pre", residual_multiplier=0.22))
    update, raw = stages["attn_out"].ravel(), stages["attn.out_raw"].ravel()
    ratio = np.linalg.norm(update) / np.linalg.norm(raw)
    assert update @ raw / np.linalg.norm(update) / np.linalg.norm(raw) == pytest.approx(
        1, abs=1e-15
    )
    assert ratio == pytest.approx(0.22, rel=1e-14)


@pytest.mark.parametrize("name", ARRANGED)
def test_the_ledger_holds_with_a_norm_ratio_of_one(name: str) -> None:
    found = identities(arranged(name, residual_multiplier=0.22))
    for identity in found.values():
        if identity.holds is None:
            assert (identity.reason or "").startswith("not applicable: ")
        else:
            assert identity.holds
            assert identity.norm_ratio == pytest.approx(1, abs=1e-12)
    checked = {key for key, identity in found.items() if identity.holds}
    additions = {"block_addition"} if name == "parallel" else {"attn_addition", "ffn_addition"}
    assert checked >= {"head_sum", "expansion"} | additions


@pytest.mark.parametrize("placement", ["sandwich", "output"])
@pytest.mark.parametrize("parts", ALONE, ids=["attention alone", "ffn alone"])
def test_a_block_of_one_sublayer_adds_its_normalized_output(parts: Config, placement: str) -> None:
    norm = small.norm("rmsnorm", placement=placement)
    config = small.model(5, **parts, norm=norm) | {"residual_multiplier": 0.22}
    stages = small.stages_of(drawn(config))
    part, after = ("attn", "norm1_post") if "attention" in parts else ("ffn", "norm2_post")
    update = 0.22 * stages[f"{after}.out"]
    small.close(stages[f"{part}_out"], update, atol=1e-15)
    small.close(stages["resid_post"], stages["resid_pre"] + update, atol=1e-15)
    assert "resid_mid" not in stages


def test_a_sandwich_in_numbers() -> None:
    heads = small.attention(1, 2, bias=small.biases("o"))
    norm = small.norm("rmsnorm", placement="sandwich", eps=1e-16)
    config = small.model(2, attention=heads, ffn=small.mlp(1), norm=norm)
    given = {"attn.b_O": [3, 4], "ffn.b_out": [0, -2], "norm1_post.weight": [1, 2]}
    stages = small.block(config | {"residual_multiplier": 0.22}, given, tensor=[[1, 1]])
    root = math.sqrt(12.5)
    small.close(stages["attn.out_raw"], [[3, 4]], atol=0)
    small.close(stages["norm1_post.out"], [[3 / root, 8 / root]], atol=1e-14)
    small.close(stages["attn_out"], [[0.66 / root, 1.76 / root]], atol=1e-14)
    small.close(stages["ffn_out"], [[0, -0.22 * math.sqrt(2)]], atol=1e-14)


# Post-norm is not pre-norm, with a memory or without one.


def constants(placement: str, *, cross: bool) -> tuple[Config, dict[str, npt.ArrayLike]]:
    """Attention adds [4, 0], cross-attention [0, 7] and the ffn [0, -6]."""
    heads = small.attention(1, 2, bias=small.biases("o"))
    norm = small.norm("layernorm", placement=placement, eps=1e-14)
    config = small.model(2, attention=heads, ffn=small.mlp(1), norm=norm)
    given = {"attn.W_Q": [np.eye(2)], "attn.b_O": [4, 0], "ffn.b_out": [0, -6]}
    given |= {"norm1.weight": [2, 1], "norm1.bias": [0, 5]}
    return config | {"cross_attention": cross}, given | ({"cross.b_O": [0, 7]} if cross else {})


def test_post_norm_with_a_memory_normalizes_each_of_three_sums() -> None:
    config, given = constants("post", cross=True)
    run = small.run(
        config, small.values(config, given), tensor=[[1, 3]], memory={"tensor": [[1, 2]]}
    )
    stages = small.stages_of(run)
    small.close(stages["attn.q"], [[[1, 3]]], atol=0)
    small.close(stages["attn_sum"], [[5, 3]], atol=0)
    small.close(stages["resid_mid"], [[2, 4]], atol=1e-12)
    small.close(stages["cross_sum"], [[2, 11]], atol=1e-12)
    small.close(stages["resid_cross"], [[-1, 1]], atol=1e-12)
    small.close(stages["ffn_sum"], [[-1, -5]], atol=1e-12)
    small.close(stages["resid_post"], [[1, -1]], atol=1e-12)


@pytest.mark.parametrize("cross", [False, True])
def test_the_expansion_of_a_post_norm_stack_is_not_applicable_and_its_sums_hold(
    *, cross: bool
) -> None:
    config, given = constants("post", cross=cross)
    memory = {"memory": {"tensor": [[1, 2]]}} if cross else {}
    run = small.run(config, small.values(config, given), tensor=[[1, 3]], **memory)
    found = identities(run)
    assert found["expansion"].holds is None
    assert (found["expansion"].reason or "").startswith("not applicable: post-norm")
    sums = {"attn_addition", "ffn_addition"} | ({"cross_addition"} if cross else set())
    assert all(found[name].holds for name in sums)


# Side by side is not one after the other.

NORMS: dict[str, Config] = {
    "two norms": small.norm("rmsnorm"),
    "one norm": small.norm("rmsnorm", shared=True),
    "layernorm": small.norm("layernorm"),
    "no norm": small.NONE,
}


def both_ways(norm: Config) -> tuple[dict[str, Array], dict[str, Array]]:
    """The same weights in a parallel block and in a sequential one: those of LN1 serve as LN2
    where the parallel block has one norm."""
    parallel = small.model(5, **BOTH, norm=norm) | {"topology": "parallel"}
    plain = {key: value for key, value in norm.items() if key != "shared"}
    sequential = small.model(5, **BOTH, norm=plain)
    named = small.drawn(parallel, 3)
    of_norm1 = {k.replace("norm1", "norm2"): v for k, v in named.items() if "norm1" in k}
    rows = np.random.default_rng(4).standard_normal((3, 5))
    runs = (
        small.run(parallel, named, tensor=rows),
        small.run(sequential, of_norm1 | named, tensor=rows),
    )
    one, other = map(small.stages_of, runs)
    return one, other


@pytest.mark.parametrize("name", NORMS)
def test_a_parallel_block_adds_both_updates_to_what_entered(name: str) -> None:
    stages, _ = both_ways(NORMS[name])
    total = stages["resid_pre"] + stages["attn_out"] + stages["ffn_out"]
    small.close(stages["resid_post"], total, atol=1e-14)
    assert "resid_mid" not in stages
    assert ("norm2.out" in stages) == (name in {"two norms", "layernorm"})


@pytest.mark.parametrize("name", NORMS)
def test_with_the_same_weights_a_sequential_ffn_reads_what_attention_has_changed(
    name: str,
) -> None:
    parallel, sequential = both_ways(NORMS[name])
    assert parallel["attn_out"].tobytes() == sequential["attn_out"].tobytes()
    middle = sequential["resid_pre"] + sequential["attn_out"]
    small.close(sequential["resid_mid"], middle, atol=1e-15)
    small.close(sequential["resid_post"], middle + sequential["ffn_out"], atol=1e-14)
    assert np.abs(parallel["ffn_out"] - sequential["ffn_out"]).max() > 1e-2


@pytest.mark.parametrize("name", NORMS)
def test_a_parallel_block_has_no_stream_between_and_says_why(name: str) -> None:
    config = small.model(5, **BOTH, norm=NORMS[name]) | {"topology": "parallel"}
    named, rows = small.drawn(config, 3), np.ones((3, 5))
    with pytest.raises(SelectionError) as refused:
        small.run(config, named, tensor=rows, select=[Selected(name="blocks.0.resid_mid")])
    (fault,) = refused.value.faults
    assert fault.code == "stage_absent"
    assert "topology = parallel" in fault.detail
    met = small.run(config, named, tensor=rows, select=[Selected(name="blocks.*.resid_*")])
    assert "topology = parallel" in met.selection.absent["blocks.0.resid_mid"]
    assert {"resid_pre", "resid_post"} <= small.stages_of(met).keys()


def test_a_parallel_block_in_numbers() -> None:
    heads = small.attention(1, 2, bias=small.biases("o"))
    ffn = small.mlp(2, activation="identity")
    eye = {"attn.b_O": [10, 20], "ffn.W_in": np.eye(2), "ffn.W_out": np.eye(2)}
    for topology, expected in (("parallel", [12, 24]), ("sequential", [22, 44])):
        config = small.model(2, attention=heads, ffn=ffn) | {"topology": topology}
        stages = small.block(config, eye, tensor=[[1, 2]])
        small.close(stages["resid_post"], [expected], atol=0)
