"""What a spelling means: names, symbols, other libraries' names, patterns."""

from collections import defaultdict

import pytest

import runs
from cases import small
from compute import config_json, spelling, stages
from compute.config import ModelConfig


def stack(**given: object) -> ModelConfig:
    """Twelve blocks with attention and an ffn, and a readout."""
    parts = {"attention": small.attention(3, 2), "ffn": small.mlp(5)}
    norm = small.norm("layernorm", placement=given.pop("placement", "pre"))
    above = {"n_layers": 12, "vocab": 17, "final_norm": True}
    return config_json.from_json(small.model(7, norm=norm, **parts, **given) | above)


STACK = stack()
POST = stack(placement="post")
BY_DEFAULT = [stage.name for stage in stages.STAGES if stage.by_default]
OF_BLOCK = [stage.name for stage in stages.STAGES if stage.by_default and stage.level == "block"]


def meant(spelled: str, config: ModelConfig = STACK) -> dict[str, tuple[int, ...]]:
    """Stage -> layers of a spelling."""
    return {m.stage.name: m.layers for m in spelling.meanings(spelled, config)}


EVERY = tuple(range(12))


@pytest.mark.parametrize(
    ("spelled", "stage", "layers"),
    [
        ("attn.pattern", "attn.pattern", EVERY),
        ("pattern", "attn.pattern", EVERY),
        ("A", "attn.pattern", EVERY),
        ("hook_pattern", "attn.pattern", EVERY),
        ("attn.hook_pattern", "attn.pattern", EVERY),
        ("blocks.3.attn.pattern", "attn.pattern", (3,)),
        ("blocks.3.A", "attn.pattern", (3,)),
        ("blocks.3.attn.hook_pattern", "attn.pattern", (3,)),
        ("blocks.*.attn.pattern", "attn.pattern", EVERY),
        ("blocks.1*.attn.pattern", "attn.pattern", (1, 10, 11)),
        ("blocks.*1.attn.pattern", "attn.pattern", (1, 11)),
        ("blocks.0.hook_resid_pre", "resid_pre", (0,)),
        ("Δ_attn", "attn_out", EVERY),
        ("Q K^T", "attn.dots", EVERY),
        ("attn.source_out", "attn.source_out", EVERY),
        ("logits", "logits", (0,)),
        ("ln_final.hook_normalized", "final_norm.normalized", (0,)),
        ("inputs_embeds", "embed", (0,)),
    ],
)
def test_one_spelling_means_one_stage(spelled: str, stage: str, layers: tuple[int, ...]) -> None:
    assert meant(spelled) == {stage: layers}


@pytest.mark.parametrize(
    "spelled",
    [
        *("a", "ATTN.Z", "q k^t", "Attn.pattern"),  # case-sensitive
        *(
            "out",
            "scale",
            "normalized",
            "hook_scale",
            "hook_normalized",
            "hook_out",
        ),  # of several norms
        *("blocks.12.attn.z", "blocks.-1.attn.z", "blocks.01.attn.z", "blocks.x.attn.z"),
        *("blocks..attn.z", "blocks.0.", "blocks.", "block.0.attn.z", "blocks.0.attn"),
        *("blocks.0.logits", "blocks.*.final_norm.out"),  # not of a block
        *("attn.z ", " attn.z", "", ".", "attn..z"),
        *("blocks.0.blocks.0.attn.z", "attn.[qk]", "attn.?", "blocks.[01].attn.z"),
    ],
)
def test_what_is_spelled_otherwise_means_nothing(spelled: str) -> None:
    assert meant(spelled) == {}


def test_a_star_means_the_default_answer_in_the_catalogues_order() -> None:
    assert list(meant("*")) == BY_DEFAULT
    assert "attn.head_out" in BY_DEFAULT
    assert not {"attn.dots", "attn.source_out"} & set(BY_DEFAULT)


@pytest.mark.parametrize("spelled", ["blocks.5", "blocks.5.*", "blocks.5*"])
def test_a_block_means_its_default_stages(spelled: str) -> None:
    assert meant(spelled) == dict.fromkeys(OF_BLOCK, (5,))


@pytest.mark.parametrize("spelled", ["blocks.*", "blocks*", "blocks.*.*", "bl*"])
def test_all_blocks_mean_their_default_stages_and_none_of_the_model(spelled: str) -> None:
    assert meant(spelled) == dict.fromkeys(OF_BLOCK, EVERY)


def test_a_star_in_a_part_meets_every_stage_of_that_part() -> None:
    attention = [name for name in OF_BLOCK if name.startswith("attn.")]
    assert meant("blocks.2.attn.*") == dict.fromkeys(attention, (2,))
    assert meant("attn.*") == dict.fromkeys(attention, EVERY)
    assert list(meant("norm1.*")) == ["norm1.scale", "norm1.normalized", "norm1.out"]
    assert list(meant("final_norm.*")) == [
        *("final_norm.scale", "final_norm.normalized", "final_norm.out")
    ]
    assert list(meant("blocks.*.*_out")) == [
        *("attn.head_out", "attn_out", "cross.head_out", "cross_out"),
        *("ffn.expert_out", "ffn.shared_out", "ffn_out"),
    ]
    assert list(meant("blocks.0.mlp.hook_*")) == [*("ffn.experts", "ffn.up", "ffn.hidden")]


@pytest.mark.parametrize(
    ("spelled", "layers"),
    [("*.0.attn.z", (0,)), ("*.1.attn.z", (1,)), ("*s.11.attn.z", (11,)), ("*attn.z", EVERY)],
)
def test_a_star_across_dots_is_matched_against_whole_names(
    spelled: str, layers: tuple[int, ...]
) -> None:
    assert meant(spelled) == {"attn.z": layers}


def test_only_a_wildcard_in_the_stage_makes_a_meaning_less_than_outright() -> None:
    assert all(m.outright for m in spelling.meanings("blocks.*.attn.z", STACK))
    assert not any(m.outright for m in spelling.meanings("blocks.0.attn.*", STACK))
    assert not any(m.outright for m in spelling.meanings("blocks.0", STACK))


def test_every_canonical_name_means_its_stage_under_every_config() -> None:
    for seed in range(500):
        config = config_json.from_json(runs.case_of(seed).config)
        spelled = spelling.spellings(config)
        assert all(spelled[stage.name] is stage for stage in stages.STAGES)


def test_a_last_part_alone_means_the_one_stage_that_has_it_or_nothing() -> None:
    for seed in range(0, 500, 5):
        config = config_json.from_json(runs.case_of(seed).config)
        spelled, ends = spelling.spellings(config), defaultdict(set)
        whole = {name for stage in stages.STAGES for name in stages.names_for(stage, config)}
        for stage in stages.STAGES:
            for name in stages.names_for(stage, config):
                assert spelled[name] is stage
                ends[name.rpartition(".")[2]].add(stage.name)
        for last, found in ends.items():
            first = {name for name in found if not name.startswith(("cross.", "mlm_head."))}
            if last not in whole:
                meaning = min(first or found)
                expected = stages.BY_NAME[meaning] if len(first or found) == 1 else None
                assert spelled.get(last) is expected, last


# Two attentions, two stacks.

CROSSING = stack(cross_attention=True)
ENCODER = small.model(7, attention=small.attention(2, 3), ffn=small.mlp(5)) | {"n_layers": 3}
ENCODED = stack(cross_attention=True, encoder=ENCODER)


def in_stacks(spelled: str) -> dict[tuple[str, str], tuple[int, ...]]:
    """(stack, stage) -> layers."""
    return {(m.stack, m.stage.name): m.layers for m in spelling.meanings(spelled, ENCODED)}


@pytest.mark.parametrize("last", ["q", "k", "v", "z", "scores", "pattern", "head_out"])
def test_the_end_of_a_name_of_both_attentions_means_the_self_attention(last: str) -> None:
    assert meant(last) == meant(last, CROSSING) == {f"attn.{last}": EVERY}
    assert meant(f"cross.{last}", CROSSING) == {f"cross.{last}": EVERY}


def test_the_end_of_a_name_of_the_ffn_and_the_masked_token_head_means_the_ffn() -> None:
    with_head = stack(mlm_head=True)
    for last in ("up", "hidden"):
        assert meant(last, with_head) == {f"ffn.{last}": EVERY}
        assert meant(f"mlm_head.{last}", with_head) == {f"mlm_head.{last}": (0,)}


def test_symbols_are_of_the_self_attention() -> None:
    for symbol, stage in (("A", "attn.pattern"), ("Q", "attn.q"), ("H", "attn.z")):
        assert meant(symbol, CROSSING) == {stage: EVERY}
    assert meant("cross_attentions", CROSSING) == {"cross.pattern": EVERY}


def test_a_star_in_cross_attention_meets_its_stages() -> None:
    cross = [name for name in OF_BLOCK if name.startswith("cross.")]
    assert meant("cross.*", CROSSING) == dict.fromkeys(cross, EVERY)
    assert set(meant("*.pattern", CROSSING)) == {"attn.pattern", "cross.pattern"}


@pytest.mark.parametrize(
    ("spelled", "expected"),
    [
        ("A", {("", "attn.pattern"): EVERY}),
        ("attn.pattern", {("", "attn.pattern"): EVERY}),
        ("blocks.1.A", {("", "attn.pattern"): (1,)}),
        ("blocks.*.attn.z", {("", "attn.z"): EVERY}),
        ("encoder.A", {("encoder.", "attn.pattern"): (0, 1, 2)}),
        ("encoder.hook_resid_pre", {("encoder.", "resid_pre"): (0, 1, 2)}),
        ("encoder.pattern", {("encoder.", "attn.pattern"): (0, 1, 2)}),
        ("encoder.blocks.2.A", {("encoder.", "attn.pattern"): (2,)}),
        ("encoder.blocks.*.attn.z", {("encoder.", "attn.z"): (0, 1, 2)}),
        ("encoder.embed", {("encoder.", "embed"): (0,)}),
        (
            "*.attn.pattern",
            {("encoder.", "attn.pattern"): (0, 1, 2), ("", "attn.pattern"): EVERY},
        ),
        ("*.1.attn.z", {("encoder.", "attn.z"): (1,), ("", "attn.z"): (1,)}),
        ("encoder.blocks.3.A", {}),
        ("encoder.encoder.A", {}),
        ("encoder.", {}),
        ("encoder", {}),
        ("blocks.0.encoder.A", {}),
        ("Encoder.A", {}),
    ],
)
def test_a_name_means_the_main_stack_and_the_encoders_has_its_prefix(
    spelled: str, expected: dict[tuple[str, str], tuple[int, ...]]
) -> None:
    assert in_stacks(spelled) == expected


def test_a_star_alone_means_both_stacks_the_encoder_first() -> None:
    found = list(in_stacks("*"))
    assert found == [(stack, name) for stack in ("encoder.", "") for name in BY_DEFAULT]
    assert list(in_stacks("encoder.*")) == [("encoder.", name) for name in BY_DEFAULT]
    assert list(in_stacks("encoder.blocks.1")) == [("encoder.", name) for name in OF_BLOCK]


def test_full_names_of_a_meaning_have_their_stack() -> None:
    (meaning,) = spelling.meanings("encoder.A", ENCODED)
    assert list(meaning.names()) == [f"encoder.blocks.{x}.attn.pattern" for x in range(3)]
    assert meaning.outright


def test_why_a_name_of_the_encoder_means_nothing() -> None:
    assert spelling.why_unknown("encoder.A", STACK) == "This model has no encoder."
    assert "0 to 2" in spelling.why_unknown("encoder.blocks.3.A", ENCODED)
    assert "belongs to the model" in spelling.why_unknown("encoder.blocks.0.embed", ENCODED)


# Why a spelling means nothing here.


@pytest.mark.parametrize(
    ("spelled", "config", "sentence"),
    [
        ("U", POST, "U means norm1.out in pre-norm configs only."),
        ("blocks.3.U", POST, "U means norm1.out in pre-norm configs only."),
        ("F", POST, "F means norm2.out in pre-norm configs only."),
        (
            "mlp.hook_pre_linear",
            STACK,
            "mlp.hook_pre_linear means ffn.up in gated ffn configs only.",
        ),
        (
            "hook_normalized_resid_post",
            STACK,
            "hook_normalized_resid_post means resid_post in post-norm configs only.",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_spelling_of_other_configs_says_which(
    spelled: str, config: ModelConfig, sentence: str
) -> None:
    assert meant(spelled, config) == {}
    assert spelling.why_unknown(spelled, config).startswith(sentence)


@pytest.mark.parametrize(
    "spelled", ["blocks.99.A", "blocks.99.attn.hook_z", "blocks.99", "blocks.12.*"]
)
def test_a_block_that_is_not_there_is_answered_with_those_that_are(spelled: str) -> None:
    assert "0 to 11" in spelling.why_unknown(spelled, STACK)


@pytest.mark.parametrize(
    "spelled", ["blocks.0.logits", "blocks.3.inputs_embeds", "attn.zz*", "zz*"]
)
def test_a_block_is_not_blamed_for_what_no_block_has(spelled: str) -> None:
    assert meant(spelled) == {}
    assert "no such block" not in spelling.why_unknown(spelled, STACK)


@pytest.mark.parametrize("last", ["hook_scale", "hook_normalized", "scale", "out"])
def test_the_end_of_several_names_is_answered_with_them(last: str) -> None:
    whole = [
        name
        for stage in stages.STAGES
        for name in stages.names_for(stage, STACK)
        if name.endswith(f".{last}")
    ]
    assert len(whole) > 1
    assert all(name in spelling.why_unknown(last, STACK) for name in whole)


@pytest.mark.parametrize(
    "spelled",
    ["hook_scale", "hook_normalized", "blocks.99.A", "blocks.99.attn.hook_z", "blocks.0.logits"],
)
def test_what_holds_always_is_not_said_to_hold_elsewhere_only(spelled: str) -> None:
    assert "configs only" not in spelling.why_unknown(spelled, STACK)


@pytest.mark.parametrize("spelled", ["*" * 100 + "!", "*o" * 60, "blocks." + "*" * 100 + "x.A"])
def test_many_stars_are_answered_at_once(spelled: str) -> None:
    # a plain ".*" for each star would take longer than anybody waits
    assert meant(spelled) == {}
