"""Gradients of a measure, and attributions: of a linear model their sum is the measure itself."""

import numpy as np
import pytest

from compute.derivatives.asking import stages_of
from compute.derivatives.gradients import Gradients, gradients
from compute.derivatives.pulling import Point
from compute.errors import QuestionError, SelectionError
from compute.measures import Measure, measure_of
from compute.selection import Scene
from compute.types import Selected
from differences import NEAR, apart, moved, point_of
from runs import case_of

PLACE = ("gradients",)


def measured(scene: Scene, seed: int, stage: str) -> Measure:
    width = scene.lengths_of(stage)["d"]
    direction = np.random.default_rng(seed).standard_normal(width)
    return measure_of(scene, stage=stage, direction=direction, place=("measure",))


def found(point: Point, scene: Scene, measure: Measure, *asked: Selected) -> Gradients:
    return gradients(point, scene, measure, stages_of(scene, asked, measure, PLACE).wanted)


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_gradient_of_a_measure_is_that_of_differences(seed: int) -> None:
    point, scene = point_of(case_of(seed))
    last = f"blocks.{scene.config.n_layers - 1}.resid_post"
    measure = measured(scene, seed, last)
    (made,) = found(point, scene, measure, Selected(name="blocks.0.resid_pre")).made
    change = np.random.default_rng(seed).standard_normal(made.gradient.shape)
    terms = made.gradient * change

    def f(h: float) -> np.ndarray:
        return np.asarray(measure.of(moved(point, last, made.wanted.name, h * change)))

    size = max(1e-5, float(np.abs(terms).sum()))
    assert apart(np.asarray(terms.sum()), f, size) <= NEAR


def test_gradient_is_cut_as_asked_and_attribution_with_it() -> None:
    point, scene = point_of(case_of(next(s for s in range(99) if _heads(s) > 1)))
    measure = measured(scene, 0, "blocks.0.resid_post")
    name = "blocks.0.attn.z"
    (whole,) = found(point, scene, measure, Selected(name=name)).made
    asked = Selected(name=name, where={"head": (-1,), "position": (0, -1)})
    (cut,) = found(point, scene, measure, asked).made
    for one, other in (
        (cut.values, whole.values),
        (cut.gradient, whole.gradient),
        (cut.attribution(), whole.values * whole.gradient),
    ):
        assert np.array_equal(one, other[..., [-1], :, :][..., [0, -1], :])


def _heads(seed: int) -> int:
    config = case_of(seed).config
    return config["attention"]["n_heads"] if config["attention"]["kind"] != "none" else 0


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_values_at_a_linear_readout_sum_to_the_measure(seed: int) -> None:
    """The stream at a position is the only thing a direction reads: Σ x ∂/∂x is the measure."""
    point, scene = point_of(case_of(seed))
    last = f"blocks.{scene.config.n_layers - 1}.resid_post"
    answer = found(point, scene, measured(scene, seed, last), Selected(name=last))
    total = float(answer.made[0].attribution().sum())
    assert abs(total - answer.value) <= 1e-12 * max(1.0, abs(answer.value))


def test_masked_scores_have_an_attribution_of_0() -> None:
    seed = next(s for s in range(99) if _is_causal(s))
    point, scene = point_of(case_of(seed))
    measure = measured(scene, seed, "blocks.0.resid_post")
    (made,) = found(point, scene, measure, Selected(name="blocks.0.attn.scores")).made
    masked = np.isneginf(made.values)
    assert masked.any()
    assert not made.attribution()[masked].any()
    assert np.isfinite(made.attribution()).all()


def _is_causal(seed: int) -> bool:
    attention = case_of(seed).config["attention"]
    return _heads(seed) > 0 and attention["mask"] == "causal"


def test_stage_that_only_a_wildcard_met_is_absent_with_a_reason() -> None:
    seed = next(s for s in range(99) if _is_mixture(s) and _heads(s))
    _, scene = point_of(case_of(seed))
    measure = measured(scene, seed, "blocks.0.resid_post")
    asked = stages_of(scene, [Selected(name="*")], measure, PLACE)
    assert "whole numbers" in asked.absent["blocks.0.ffn.experts"]
    assert "attn.z" in asked.absent["blocks.0.attn.head_out"]
    last = f"blocks.{scene.config.n_layers - 1}.resid_post"
    assert last == measure.stage or "computed after" in asked.absent[last]
    assert not asked.absent.keys() & {each.name for each in asked.wanted}


def _is_mixture(seed: int) -> bool:
    return bool(case_of(seed).config["ffn"]["kind"] == "moe")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("blocks.0.ffn.experts", "whole numbers"),
        ("blocks.0.resid_post", "computed after what is measured"),
    ],
)
def test_stage_without_a_gradient_is_refused_by_name(name: str, said: str) -> None:
    seed = next(s for s in range(99) if _is_mixture(s))
    _, scene = point_of(case_of(seed))
    measure = measured(scene, seed, "blocks.0.resid_pre")
    with pytest.raises(QuestionError, match=said) as caught:
        stages_of(scene, [Selected(name="X"), Selected(name=name)], measure, PLACE)
    assert [fault.place for fault in caught.value.faults] == [("gradients", 1)]


def test_stage_that_is_none_is_refused_as_in_any_selection() -> None:
    _, scene = point_of(case_of(0))
    measure = measured(scene, 0, "blocks.0.resid_pre")
    with pytest.raises(SelectionError):
        stages_of(scene, [Selected(name="blocks.0.nothing")], measure, PLACE)
