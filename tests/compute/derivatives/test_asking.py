"""A pair of states is resolved, or refused with every fault and its place."""

from dataclasses import replace

import pytest

from compute.derivatives.asking import PairAsked, pair
from compute.errors import QuestionError
from differences import point_of
from runs import case_of

SCENE = point_of(case_of(0))[1]
ASKED = PairAsked(of="blocks.0.resid_post", by="blocks.0.resid_pre", position=-1, source=0)


def test_positions_count_from_the_end_and_aliases_are_spelled_out() -> None:
    found = pair(SCENE, replace(ASKED, by="blocks.0.hook_resid_pre"))
    assert (found.of, found.by) == (ASKED.of, ASKED.by)
    assert (found.position, found.source) == (SCENE.lengths["n"] - 1, 0)


def test_source_is_the_position_where_none_is_sent() -> None:
    found = pair(SCENE, replace(ASKED, source=None))
    assert found.source == found.position


@pytest.mark.parametrize(
    ("change", "places", "code"),
    [
        ({"of": "blocks.0.nothing"}, [("of",)], "unknown_stage"),
        ({"of": "blocks.9.attn.z", "by": "nothing"}, [("of",), ("by",)], "unknown_stage"),
        ({"by": "blocks.*.resid_*"}, [("by",)], "several_stages"),
        ({"of": "blocks.*.resid_post", "by": "blocks.0.attn.z"}, [("by",)], "no_such_axis"),
        ({"position": 99, "source": None}, [("position",)], "index_out_of_range"),
        ({"position": 99, "source": -99}, [("position",), ("source",)], "index_out_of_range"),
        (
            {"of": "blocks.0.resid_pre", "by": "blocks.0.resid_post"},
            [("by",)],
            "computed_later",
        ),
    ],
)
def test_faults_of_a_pair_have_their_places(
    change: dict[str, object], places: list[tuple[str]], code: str
) -> None:
    seed = next(s for s in range(99) if _is_plain(s))
    scene = point_of(case_of(seed))[1]
    with pytest.raises(QuestionError) as caught:
        pair(scene, replace(ASKED, **change))  # type: ignore[arg-type]  # texts and numbers
    assert [fault.place for fault in caught.value.faults] == places
    assert {fault.code for fault in caught.value.faults} == {code}


def _is_plain(seed: int) -> bool:
    config = case_of(seed).config
    return bool(config["n_layers"] == 1 and config["attention"]["kind"] != "none")
