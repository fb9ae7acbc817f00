"""What a request asks to see: whole stages, slices, and every fault with its place."""

import numpy as np
import pytest

import runs
from cases import small
from compute import config_json, selection, stages
from compute.errors import Fault, SelectionError
from compute.selection import Scene, Selection
from compute.types import Selected

HEADS = small.attention(3, 2, n_kv_heads=3, d_value=5)
RAW = small.model(11, attention=HEADS, ffn=small.mlp(13), norm=small.norm("layernorm"))
STACK = RAW | {"n_layers": 2}
FFN_ONLY = small.model(11, ffn=small.mlp(13))


def scene(raw: small.Config = STACK, batch: int | None = None, *, tokens: bool = False) -> Scene:
    config = config_json.from_json(raw)
    return Scene(config, tokens, stages.dimensions(config, 7, batch))


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
        config, tokens = config_json.from_json(case.config), "token_ids" in case.inputs
        lengths = stages.dimensions(config, runs.shape_of(case)[-1], None)
        found = selection.resolve(None, Scene(config, tokens, lengths))
        expected = [
            name
            for name, stage in stages.in_order(config.n_layers)
            if stage.absent(config, tokens) is None
            and (not stage.derived or stage.name == "attn.head_out")
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
        config, tokens = config_json.from_json(case.config), "token_ids" in case.inputs
        at = Scene(config, tokens, stages.dimensions(config, runs.shape_of(case)[-1], None))
        found = resolve("*", at=at)
        every = {name for name, stage in stages.in_order(config.n_layers) if stage.by_default}
        assert {*names(found), *found.absent} == every
        assert names(found) == names(selection.resolve(None, at))


def test_u_is_refused_in_post_norm_with_the_reason() -> None:
    post = RAW | {"norm": small.norm("layernorm", placement="post")}
    (fault,) = faults("U", at=scene(post))
    assert fault.code == "unknown_stage"
    assert fault.detail.startswith("U means norm1.out in pre-norm configs only.")


# Faults.


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
