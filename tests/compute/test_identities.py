"""The identities hold for every config, and say why where they were not checked."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import runs
from cases import small
from compute.identities import Identity
from compute.trace import Run, identities_of, trace
from compute.types import DType, Selected

DTYPES = pytest.mark.parametrize("dtype", ["float64", "float32"])
CHUNKS = pytest.mark.parametrize("first", range(0, 500, 100))

NOT_APPLICABLE = {
    "attention.kind = none",
    "ffn.kind = none",
    "post-norm, every sum is normalized before it goes on",
    "embed_norm = true, the sum is normalized before it goes on",
    "the input is a tensor, so nothing is embedded",
    "position.kind = none adds nothing to the stream",
    "position.kind = rope adds nothing to the stream",
    "position.kind = alibi adds nothing to the stream",
    "position.kind = t5_bias adds nothing to the stream",
}
ATTENTION = ("pattern_softmax", "pattern_rows", "mixture", "head_sum")
CROSS = tuple(f"cross_{name}" for name in ATTENTION)
IN_BLOCK = (*ATTENTION, "attn_addition")
FFN = ("ffn_product", "ffn_addition")


def found(run: Run) -> dict[str, Identity]:
    """The identities of a run, block 0's without their prefix."""
    identities = identities_of(trace(run))
    return {identity.name.removeprefix("blocks.0."): identity for identity in identities}


@DTYPES
@CHUNKS
def test_every_identity_holds_or_does_not_apply(first: int, dtype: DType) -> None:
    for seed in range(first, first + 100):
        case = runs.case_of(seed)
        broken = [
            identity
            for identity in found(runs.run_of_case(case, dtype=dtype)).values()
            if not (identity.holds or (identity.reason or "").startswith("not applicable: "))
        ]
        assert broken == [], seed


def test_the_reasons_for_not_applying_are_these_and_each_occurs() -> None:
    met: Counter[str] = Counter()
    for seed in range(500):
        identities = found(runs.run_of_case(runs.case_of(seed))).values()
        met.update({identity.reason for identity in identities if identity.reason})
    assert {reason.removeprefix("not applicable: ") for reason in met} == NOT_APPLICABLE


RESCALED = {"residual_multiplier": 0.5}
EXPERTS = ("expert_product", "expert_sum")
IN_ORDER: dict[str, tuple[dict[str, object], tuple[str, ...]]] = {
    "sequential": ({}, (*IN_BLOCK, *FFN)),
    "multiplied": (
        RESCALED,
        (*ATTENTION, "attn_update", "attn_addition", "ffn_product", "ffn_update", "ffn_addition"),
    ),
    "sandwich": (
        {"norm": small.norm("layernorm", placement="sandwich")},
        (*ATTENTION, "attn_update", "attn_addition", "ffn_product", "ffn_update", "ffn_addition"),
    ),
    "parallel": ({"topology": "parallel"}, (*ATTENTION, "ffn_product", "block_addition")),
    "experts": ({"ffn": small.moe(7, 3, 2)}, (*IN_BLOCK, *EXPERTS, "ffn_addition")),
    "crossing": (
        {"cross_attention": True},
        (*IN_BLOCK, *CROSS, "cross_addition", *FFN),
    ),
    "crossing, multiplied": (
        {"cross_attention": True} | RESCALED,
        (
            *(*ATTENTION, "attn_update", "attn_addition"),
            *(*CROSS, "cross_update", "cross_addition"),
            *("ffn_product", "ffn_update", "ffn_addition"),
        ),
    ),
}
"""What is given beside attention and an ffn, and the identities of a block."""


@pytest.mark.parametrize("arranged", IN_ORDER)
def test_a_stack_has_its_identities_in_order_of_computation(arranged: str) -> None:
    given, names = IN_ORDER[arranged]
    blocks = [f"blocks.{layer}.{name}" for layer in (0, 1) for name in names]
    identities = identities_of(trace(block(n_layers=2, **given)))
    assert [one.name for one in identities] == ["embedding_sum", *blocks, "expansion"]
    assert all(one.holds for one in identities[1:])


def test_an_encoders_identities_come_first() -> None:
    encoder = small.model(5, ffn=small.mlp(3)) | {"n_layers": 2}
    names = list(found(block(cross_attention=True, encoder=encoder)))
    theirs = [name for name in names if name.startswith("encoder.")]
    assert names[: len(theirs)] == theirs
    of_block = [*IN_BLOCK, *FFN]
    assert theirs == [
        "encoder.embedding_sum",
        *(f"encoder.blocks.{layer}.{name}" for layer in (0, 1) for name in of_block),
        "encoder.expansion",
    ]


def test_a_checked_identity_says_how_far_it_is_off() -> None:
    case = next(c for c in map(runs.case_of, range(99)) if runs.has_attention(c))
    for identity in found(runs.run_of_case(case)).values():
        measured = (identity.max_abs, identity.rel, identity.norm_ratio)
        if identity.holds is None:
            assert measured == (None, None, None)
            continue
        assert identity.reason is None
        assert identity.max_abs is not None
        assert 0 <= identity.max_abs < 1e-12
        assert identity.norm_ratio == pytest.approx(1.0, abs=1e-12)


# Why not.


def block(select: list[Selected] | None = None, **given: object) -> Run:
    """Attention and an ffn, pre-norm, unless given otherwise; four rows to cross to."""
    parts = {"attention": small.attention(2, 3), "ffn": small.mlp(7)}
    config = small.model(5, **{**parts, "norm": small.norm("layernorm"), **given})
    rows = np.random.default_rng(0).standard_normal((3, 5))
    other = np.random.default_rng(1).standard_normal((4, 5))
    memory = {"tensor": other} if config.get("cross_attention") else None
    return small.run(config, small.drawn(config, 0), select=select, tensor=rows, memory=memory)


def selected(*names: str, **where: tuple[int, ...]) -> list[Selected]:
    return [Selected(name=name, where=where) for name in names]


def test_what_was_not_kept_is_named() -> None:
    identities = found(block(selected("attn.pattern", "resid_pre", "attn_out", "resid_mid")))
    assert identities["pattern_rows"].holds is True
    assert identities["attn_addition"].holds is True
    assert identities["pattern_softmax"].reason == "not kept: blocks.0.attn.scores"
    assert identities["mixture"].reason == "not kept: blocks.0.attn.v, blocks.0.attn.z"
    assert identities["head_sum"].reason is not None
    assert identities["head_sum"].reason.startswith("not kept: blocks.0.attn.head_out")
    assert identities["expansion"].reason == "not kept: blocks.0.ffn_out, blocks.0.resid_post"


def test_what_was_sliced_is_named() -> None:
    select = [*selected("attn.z", "attn_out"), *selected("attn.head_out", head=(0,))]
    head_sum = found(block(select))["head_sum"]
    assert head_sum.holds is None
    assert head_sum.reason == "sliced: blocks.0.attn.head_out"


def test_a_primary_stage_that_was_sliced_for_the_answer_is_checked_whole() -> None:
    assert found(block(selected("attn.pattern", head=(0,))))["pattern_rows"].holds is True


def test_what_was_patched_is_named_and_the_rest_is_checked() -> None:
    identities = found(replace(block(), patches={"blocks.0.attn.z": np.zeros_like}))
    assert identities["mixture"].reason == "patched: blocks.0.attn.z"
    assert identities["pattern_softmax"].holds is True
    assert identities["ffn_addition"].holds is True
    assert identities["expansion"].holds is True


def test_what_was_patched_in_an_encoder_is_named_and_the_decoder_is_checked() -> None:
    encoder = small.model(5, attention=small.attention(2, 3), ffn=small.mlp(3))
    run = block(cross_attention=True, encoder=encoder)
    identities = found(replace(run, patches={"encoder.blocks.0.ffn_out": np.zeros_like}))
    for name in ("ffn_product", "ffn_addition"):
        assert identities[f"encoder.blocks.0.{name}"].reason == "patched: encoder.blocks.0.ffn_out"
    assert identities["encoder.expansion"].reason == "patched: encoder.blocks.0.ffn_out"
    assert identities["ffn_product"].holds is True
    assert identities["cross_mixture"].holds is True


def test_experts_that_were_not_kept_are_named() -> None:
    run = block(selected("ffn.expert_hidden", "ffn.expert_out"), ffn=small.moe(7, 3, 2))
    assert found(run)["expert_product"].reason == "not kept: blocks.0.ffn.experts"
    missing = "not kept: blocks.0.ffn.expert_weights, blocks.0.ffn_out"
    assert found(run)["expert_sum"].reason == missing


@pytest.mark.parametrize("placement", ["sandwich", "output"])
def test_a_multiplied_norm_makes_the_update(placement: str) -> None:
    norm = small.norm("rmsnorm", placement=placement)
    identity = found(block(norm=norm, **RESCALED))["attn_update"]
    assert identity.formula == "residual_multiplier · norm1_post.out = Δ_attn"
    assert identity.holds is True


def test_a_post_norm_stack_has_no_expansion_but_its_sums() -> None:
    post = small.norm("layernorm", placement="post")
    config = small.model(5, attention=small.attention(2, 3), ffn=small.mlp(7), norm=post)
    identities = found(small.run(config, small.drawn(config, 0), tensor=np.eye(5)))
    assert identities["expansion"].holds is None
    assert identities["expansion"].reason is not None
    assert identities["expansion"].reason.startswith("not applicable: post-norm")
    assert identities["attn_addition"].holds is True
    assert identities["attn_addition"].formula == "X + Δ_attn = attn_sum"
    assert identities["ffn_addition"].formula == "Y + Δ_ffn = ffn_sum"


def test_a_block_without_an_ffn_says_so() -> None:
    identities = found(block(ffn=small.NONE))
    assert {identities[name].reason for name in FFN} == {"not applicable: ffn.kind = none"}
    assert all(identities[name].holds for name in (*IN_BLOCK, "expansion"))


def test_a_block_without_attention_says_so() -> None:
    identities = found(block(attention=small.NONE))
    reasons = {identities[name].reason for name in IN_BLOCK}
    assert len(reasons) == 1
    assert all(
        str(reason).startswith("not applicable: attention.kind = none") for reason in reasons
    )
    assert all(identities[name].holds for name in (*FFN, "expansion"))


def test_numbers_that_overflowed_are_not_judged() -> None:
    config = small.model(2, ffn=small.mlp(3))
    given = {"ffn.W_in": np.full((2, 3), 1e200), "ffn.W_out": np.full((3, 2), 1e200)}
    identities = found(small.run(config, small.values(config, given), tensor=[[1.0, 2.0]]))
    assert identities["ffn_product"].holds is None
    assert identities["ffn_product"].reason == "a stage is not finite"


def test_a_ratio_of_nothing_to_nothing_is_not_given() -> None:
    config = small.model(5, attention=small.attention(2, 3), ffn=small.mlp(7))
    identities = found(small.run(config, small.values(config, {}), tensor=np.zeros((3, 5))))
    for name in ("mixture", "head_sum", "ffn_product", "attn_addition", "expansion"):
        identity = identities[name]
        assert (identity.holds, identity.max_abs) == (True, 0.0), name
        assert (identity.rel, identity.norm_ratio) == (None, None), name


@pytest.mark.parametrize("mask", ["causal", "full"])
def test_rows_without_a_key_sum_to_nothing(mask: str) -> None:
    config = small.model(5, attention=small.attention(2, 3, mask=mask))
    rows = np.random.default_rng(0).standard_normal((3, 5))
    blind = [[True, True, True], [False, False, False], [True, False, True]]
    run = small.run(config, small.drawn(config, 0), tensor=rows, attention_mask=blind)
    assert found(run)["pattern_rows"].holds is True
    assert found(run)["pattern_softmax"].holds is True


def test_rows_without_a_key_are_the_sinks_alone() -> None:
    config = small.model(5, attention=small.attention(2, 3, sinks=True))
    rows = np.random.default_rng(0).standard_normal((3, 5))
    run = small.run(config, small.drawn(config, 0), tensor=rows, key_mask=[False] * 3)
    assert small.stages_of(run)["attn.sink"].tolist() == [[1.0] * 3] * 2
    assert found(run)["pattern_rows"].holds is True
    assert found(run)["pattern_rows"].formula == "Σ_m A_nm + sink_n = 1, A >= 0"
    assert found(run)["pattern_softmax"].holds is True


@pytest.mark.parametrize("memory", [[False] * 4, [True, False, False, True]])
def test_rows_without_a_row_of_the_memory_sum_to_nothing(memory: list[bool]) -> None:
    run = block(cross_attention=True)
    assert run.inputs.memory is not None
    read = replace(run.inputs.memory, key_mask=np.array(memory))
    blind = replace(run, inputs=replace(run.inputs, memory=read))
    assert found(blind)["cross_pattern_rows"].holds is True
    assert found(blind)["cross_pattern_softmax"].holds is True
    unread = {**trace(blind).whole, "blocks.0.cross.pattern": np.zeros((2, 3, 4))}
    again = identities_of(replace(trace(blind), whole=unread))
    verdict = {one.name: one.holds for one in again}["blocks.0.cross_pattern_rows"]
    assert verdict is not any(memory)


def test_each_block_knows_its_own_queries_without_a_key() -> None:
    # each query may attend to keys before it: with a window of one to none
    pairs = np.tri(4, k=-1, dtype=bool)
    own = {"scale": 0.5, "theta": None, "scaling": {"kind": "none"}}
    layers = [{**own, "window": 1}, {**own, "window": 2}]
    config = small.model(5, attention=small.attention(2, 3)) | {"n_layers": 2, "layers": layers}
    rows = np.random.default_rng(0).standard_normal((4, 5))
    traced = trace(small.run(config, small.drawn(config, 0), tensor=rows, attention_mask=pairs))
    blind = {name: rows.tolist() for name, rows in traced.fully_masked.items()}
    assert blind == {
        "blocks.0.attn.pattern": [True] * 4,
        "blocks.1.attn.pattern": [True, False, False, False],
    }
    assert all(one.holds for one in identities_of(traced) if one.name.endswith("pattern_rows"))
