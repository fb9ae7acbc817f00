"""What a request asks to see: whole stages, slices, and every fault with its place."""

import numpy as np
import pytest

import runs
from cases import small
from compute import config_json, selection, stages
from compute.errors import Fault, SelectionError
from compute.selection import Scene, Selection
from compute.types import Inputs, Selected
from oracle.configs import Case

HEADS = small.attention(3, 2, n_kv_heads=3, d_value=5)
RAW = small.model(11, attention=HEADS, ffn=small.mlp(13), norm=small.norm("layernorm"))
STACK = RAW | {"n_layers": 2}
FFN_ONLY = small.model(11, ffn=small.mlp(13))


def scene(raw: small.Config = STACK, batch: int | None = None, *, tokens: bool = False) -> Scene:
    config = config_json.from_json(raw)
    return Scene(config, tokens, stages.dimensions(config, 7, batch))


def scene_of(case: Case) -> Scene:
    return selection.scene_for(config_json.from_json(case.config), runs.inputs_of(case.inputs))


def resolve(*asked: Selected | str, at: Scene | None = None) -> Selection:
    selected = [Selected(name=item) if isinstance(item, str) else item for item in asked]
    return selection.resolve(selected, at or scene())


def names(found: Selection) -> list[str]:
    return [wanted.name for wanted in found.wanted]


def faults(*asked: Selected | str, at: Scene | None = None) -> tuple[Fault, ...]:
    with pytest.raises(SelectionError) as refused:
        resolve(*asked, at=at)
    return refused.value.faults


def sliced(name: str, **where: tuple[int, ...]) -> Selected:
    return Selected(name=name, where=where)


# What comes back.


def test_without_a_selection_every_primary_stage_that_exists_and_head_out_come_back() -> None:
    for seed in range(0, 500, 5):
        case = runs.case_of(seed)
        at = scene_of(case)
        found = selection.resolve(None, at)
        expected = [
            name
            for name, stage in stages.in_order(at.config)
            if at.absence(name) is None and (not stage.derived or "head_out" in stage.name)
        ]
        assert names(found) == expected
        assert found.absent == {}
        assert not any(wanted.where or wanted.summary for wanted in found.wanted)


def test_stages_come_in_the_catalogues_order_whatever_the_order_asked_in() -> None:
    found = names(resolve("blocks.1.resid_post", "Z", "attn.z", "blocks.0.resid_pre"))
    assert found == [
        "blocks.0.resid_pre",
        "blocks.0.attn.z",
        "blocks.0.resid_post",
        "blocks.1.attn.z",
        "blocks.1.resid_post",
    ]


def test_an_empty_selection_selects_nothing() -> None:
    assert resolve() == Selection((), {})


def test_indices_are_counted_from_the_start() -> None:
    (wanted, _) = resolve(sliced("attn.pattern", head=(0, -1), position=(-7, 3, -1))).wanted
    assert wanted.where == {"h": (0, 2), "n": (0, 3, 6)}


def test_a_batch_may_be_sliced_where_there_is_one() -> None:
    (wanted, _) = resolve(sliced("attn_out", batch=(-1,)), at=scene(batch=2)).wanted
    assert wanted.where == {"b": (1,)}
    (fault,) = faults(sliced("blocks.0.attn_out", batch=(0,)))
    assert (fault.code, fault.expected) == ("no_such_axis", ["position", "d_model"])


def test_the_same_stage_may_be_asked_for_twice_alike() -> None:
    assert names(resolve("blocks.0.A", "blocks.0.attn.pattern", "blocks.0.hook_pattern")) == [
        "blocks.0.attn.pattern"
    ]
    resolve(sliced("A", head=(-1,)), sliced("attn.pattern", head=(2,)))


# Absent and refused.


def test_a_stage_asked_for_by_name_that_the_config_lacks_is_refused_with_the_reason() -> None:
    (fault,) = faults("resid_post", "ffn.gate")
    assert (fault.code, fault.place) == ("stage_absent", (1,))
    assert "ffn.kind = mlp has no gate" in fault.detail
    assert fault.expected == "ffn.kind is gated"


def test_a_star_for_the_layer_alone_asks_by_name() -> None:
    assert [fault.code for fault in faults("blocks.*.ffn.gate")] == ["stage_absent"]


def test_a_stage_only_a_wildcard_met_is_listed_with_the_reason() -> None:
    found = resolve("*", at=scene(FFN_ONLY))
    assert not any("attn" in name for name in names(found))
    assert found.absent["blocks.0.attn.pattern"] == "attention.kind = none"
    assert found.absent["blocks.0.norm2.out"] == "norm.kind = none"
    assert found.absent["embed"] == "the input is a tensor, so nothing is embedded"
    assert not set(found.absent) & set(names(found))


def test_wildcards_and_existing_stages_cover_the_default_answer() -> None:
    for seed in range(0, 200, 3):
        case = runs.case_of(seed)
        at = scene_of(case)
        found = resolve("*", at=at)
        every = {name for name, stage in stages.in_order(at.config) if stage.by_default}
        assert {*names(found), *found.absent} == every
        assert names(found) == names(selection.resolve(None, at))


def test_u_is_refused_in_post_norm_with_the_reason() -> None:
    post = RAW | {"norm": small.norm("layernorm", placement="post")}
    (fault,) = faults("U", at=scene(post))
    assert fault.code == "unknown_stage"
    assert fault.detail.startswith("U means norm1.out in pre-norm configs only.")


# Blocks that differ.


def own(window: int | None = None, theta: float | None = None) -> small.Config:
    """What a block has of its own."""
    return {"window": window, "scale": 0.5, "theta": theta, "scaling": {"kind": "none"}}


MIXED = small.model(11, attention=HEADS, position=small.rope(2)) | {
    "n_layers": 3,
    "layers": [own(theta=1e4), own(), own(theta=1e6)],
}
STILL = MIXED | {"layers": [own(), own(), own()]}


@pytest.mark.parametrize("spelled", ["attn.q_rot", "blocks.*.attn.q_rot", "hook_rot_q"])
def test_a_name_for_all_blocks_gives_those_that_turn_and_lists_the_others(spelled: str) -> None:
    found = resolve(spelled, at=scene(MIXED))
    assert names(found) == ["blocks.0.attn.q_rot", "blocks.2.attn.q_rot"]
    assert list(found.absent) == ["blocks.1.attn.q_rot"]
    assert "rotates nothing" in found.absent["blocks.1.attn.q_rot"]


def test_a_block_that_does_not_turn_is_refused_by_its_name() -> None:
    (fault,) = faults("blocks.1.attn.q_rot", at=scene(MIXED))
    assert (fault.code, fault.place) == ("stage_absent", (0,))
    assert fault.expected == "position.kind is rope and the block turns (its theta is a number)"
    assert names(resolve("blocks.2.attn.q_rot", at=scene(MIXED))) == ["blocks.2.attn.q_rot"]


def test_a_name_that_no_block_has_is_refused() -> None:
    (fault,) = faults("attn.k_rot", at=scene(STILL))
    assert fault.code == "stage_absent"


def test_dots_are_of_the_queries_and_keys_that_meet_in_each_block() -> None:
    config = config_json.from_json(MIXED)
    found = resolve("attn.dots", at=scene(MIXED))
    assert [selection.sources(wanted, config) for wanted in found.wanted] == [
        ("blocks.0.attn.q_rot", "blocks.0.attn.k_rot"),
        ("blocks.1.attn.q", "blocks.1.attn.k"),
        ("blocks.2.attn.q_rot", "blocks.2.attn.k_rot"),
    ]
    normed = small.norm("rmsnorm")
    raw = MIXED | {"attention": HEADS | {"qk_norm": "full"}, "norm": normed}
    second = resolve("blocks.1.attn.dots", at=scene(raw)).wanted[0]
    assert selection.sources(second, config_json.from_json(raw)) == (
        "blocks.1.attn.q_norm",
        "blocks.1.attn.k_norm",
    )


# An encoder.

ENCODED = STACK | {
    "cross_attention": True,
    "vocab": 17,
    "encoder": small.model(11, attention=small.attention(5, 2), ffn=small.mlp(13)),
}


def encoded(*, tokens: bool = False, memory_tokens: bool = False) -> Scene:
    """Seven positions, four of them in the memory."""
    ids, rows = np.zeros(7, np.int64), np.zeros((7, 11))
    memory = Inputs(token_ids=ids[:4]) if memory_tokens else Inputs(tensor=rows[:4])
    read = Inputs(token_ids=ids, memory=memory) if tokens else Inputs(tensor=rows, memory=memory)
    return selection.scene_for(config_json.from_json(ENCODED), read)


def test_a_bare_name_means_the_main_stack() -> None:
    assert names(resolve("A", at=encoded())) == ["blocks.0.attn.pattern", "blocks.1.attn.pattern"]


@pytest.mark.parametrize("spelled", ["encoder.A", "encoder.attn.pattern", "encoder.blocks.0.A"])
def test_the_encoders_stages_are_asked_for_under_its_prefix(spelled: str) -> None:
    assert names(resolve(spelled, at=encoded())) == ["encoder.blocks.0.attn.pattern"]


def test_a_slice_of_the_encoder_is_of_its_own_lengths() -> None:
    (wanted,) = resolve(sliced("encoder.A", head=(-1,), position=(-1,)), at=encoded()).wanted
    assert wanted.where == {"h": (4,), "n": (3,)}
    (fault,) = faults(sliced("encoder.A", position=(5,)), at=encoded())
    assert (fault.code, fault.expected, fault.got) == ("index_out_of_range", "from -4 to 3", 5)


def test_cross_attention_is_sliced_by_positions_of_the_source() -> None:
    (wanted, _) = resolve(sliced("cross.pattern", source_position=(-1,)), at=encoded()).wanted
    assert wanted.where == {"s": (3,)}
    (fault,) = faults(sliced("blocks.0.cross.pattern", key_position=(0,)), at=encoded())
    assert fault.expected == ["head", "position", "source_position"]


def test_each_stack_embeds_what_its_own_input_says() -> None:
    assert "embed" in names(resolve("*", at=encoded(tokens=True)))
    assert "encoder.embed" in resolve("*", at=encoded(tokens=True)).absent
    assert names(resolve("encoder.embed", at=encoded(memory_tokens=True))) == ["encoder.embed"]
    (fault,) = faults("embed", at=encoded(memory_tokens=True))
    assert fault.code == "stage_absent"


def test_stages_of_the_encoder_come_before_those_of_the_stack() -> None:
    found = names(resolve("blocks.0.resid_pre", "encoder.Z", "encoder.X", at=encoded()))
    assert found == [
        "encoder.blocks.0.resid_pre",
        "encoder.blocks.0.resid_post",
        "blocks.0.resid_pre",
    ]


def test_an_encoder_that_is_not_there_is_what_is_refused() -> None:
    (fault,) = faults("encoder.A")
    assert (fault.code, fault.place) == ("unknown_stage", (0,))
    assert "This model has no encoder." in fault.detail


def test_an_unknown_name_of_the_encoder_is_answered_with_close_ones() -> None:
    (fault,) = faults("encoder.blocks.0.attn.patern", at=encoded())
    assert "attn.pattern" in fault.detail
    (fault,) = faults("encoder.blocks.3.A", at=encoded())
    assert "0 to 0" in fault.detail


# Faults.


def test_close_names_are_of_stages_that_the_model_has() -> None:
    (fault,) = faults("attn.q_rott")
    assert isinstance(fault.expected, list)
    assert not {"attn.q_rot", "attn.k_rot", "attn.q_norm"} & {*fault.expected}
    turned = RAW | {"position": small.rope(2)}
    (fault,) = faults("blocks.0.attn.q_rott", at=scene(turned))
    assert isinstance(fault.expected, list)
    assert fault.expected[0] == "attn.q_rot"


def test_close_names_of_stages_that_the_model_lacks_are_better_than_none() -> None:
    (fault,) = faults("attn.sinkk", at=scene(FFN_ONLY))
    assert isinstance(fault.expected, list)
    assert "attn.sink" in fault.expected


def test_an_unknown_name_is_answered_with_close_ones() -> None:
    (fault,) = faults("attn.patern")
    assert (fault.code, fault.place) == ("unknown_stage", (0,))
    assert "attn.pattern" in fault.detail
    assert isinstance(fault.expected, list)
    assert "attn.pattern" in fault.expected


def test_a_layer_that_is_not_there_is_answered_with_those_that_are() -> None:
    for spelled in ("blocks.2.attn.z", "blocks.2.A", "blocks.2.attn.hook_z"):
        (fault,) = faults(spelled)
        assert "the blocks are 0 to 1." in fault.detail.lower(), spelled


def test_a_name_like_no_other_is_answered_with_the_catalogue() -> None:
    (fault,) = faults("ξξξξξξ")
    assert fault.expected is None
    assert "catalogue" in fault.detail


def test_indices_out_of_range_are_refused_each_with_its_place() -> None:
    found = faults("resid_pre", sliced("blocks.0.attn.z", head=(0, 3, -4), position=(7,)))
    assert [(f.code, f.place, f.expected, f.got) for f in found] == [
        ("index_out_of_range", (1, "head", 1), "from -3 to 2", 3),
        ("index_out_of_range", (1, "head", 2), "from -3 to 2", -4),
        ("index_out_of_range", (1, "position", 0), "from -7 to 6", 7),
    ]


def test_an_axis_the_stage_lacks_is_refused_with_those_it_has() -> None:
    (fault,) = faults(sliced("blocks.0.attn.k", head=(0,)))
    assert (fault.code, fault.place) == ("no_such_axis", (0, "head"))
    assert fault.expected == ["kv_head", "key_position", "d_head"]


@pytest.mark.parametrize("word", ["row", "1", "h", "d_modle"])
def test_a_word_that_is_no_axis_is_refused(word: str) -> None:
    (fault,) = faults(Selected(name="blocks.0.norm1.scale", where={word: (0,)}))
    assert (fault.code, fault.place) == ("no_such_axis", (0, word))


def test_two_slices_of_one_stage_are_refused() -> None:
    (fault,) = faults(sliced("blocks.0.A", head=(0,)), sliced("blocks.0.attn.pattern", head=(1,)))
    assert (fault.code, fault.place) == ("selected_twice", (1,))
    assert "blocks.0.attn.pattern" in fault.detail


def test_a_stage_beside_its_own_slice_or_summary_is_refused() -> None:
    assert faults("blocks.0", sliced("blocks.0.attn.z", head=(0,)))[0].code == "selected_twice"
    summed = Selected(name="blocks.0.attn.z", summary=True)
    assert faults("blocks.0.attn.z", summed)[0].code == "selected_twice"


def test_what_sources_give_needs_a_receiving_position() -> None:
    (fault,) = faults("blocks.0.attn.source_out")
    assert (fault.code, fault.place) == ("position_needed", (0,))
    assert names(resolve(sliced("blocks.0.attn.source_out", position=(-1,)))) == [
        "blocks.0.attn.source_out"
    ]


def test_all_faults_are_reported_at_once() -> None:
    found = faults(
        "nothing", "ffn.gate", sliced("blocks.0.A", head=(9,)), "blocks.0.attn.source_out"
    )
    assert [(fault.code, fault.place[0]) for fault in found] == [
        ("unknown_stage", 0),
        ("stage_absent", 1),
        ("index_out_of_range", 2),
        ("position_needed", 3),
    ]


# Slices of values.


def test_a_slice_has_the_values_of_the_whole_at_its_indices() -> None:
    named = small.drawn(RAW, 0)
    rows = np.random.default_rng(0).standard_normal((2, 7, 11))
    whole = small.stages_of(small.run(RAW, named, select=small.DOTS, tensor=rows))
    made = small.stages_of(
        small.run(
            RAW,
            named,
            select=[
                sliced("attn.pattern", head=(2, 0), position=(-1,)),
                sliced("attn.v", kv_head=(1,), d_value=(4, 4)),
                sliced("resid_post", batch=(1,), d_model=(-11, 3)),
                sliced("attn.dots", key_position=(5, -3)),
                sliced("attn.head_out", head=(1,), d_model=(-1,)),
            ],
            tensor=rows,
        )
    )
    assert made["attn.pattern"].tolist() == whole["attn.pattern"][:, [2, 0]][:, :, [6]].tolist()
    assert made["attn.v"].tolist() == whole["attn.v"][:, [1]][..., [4, 4]].tolist()
    assert made["resid_post"].tolist() == whole["resid_post"][[1]][..., [0, 3]].tolist()
    # sums of two and five products, perhaps in another order
    small.close(made["attn.dots"], whole["attn.dots"][..., [5, 4]], atol=1e-14)
    small.close(made["attn.head_out"], whole["attn.head_out"][:, [1]][..., [10]], atol=1e-14)


def test_one_stage_means_a_stage_of_every_random_case() -> None:
    for seed in range(0, 100, 7):
        case = runs.case_of(seed)
        at = scene_of(case)
        for name, _ in stages.in_order(at.config):
            if at.absence(name) is None:
                assert selection.one_stage(name, at, ()) == name
