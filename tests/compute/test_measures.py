"""Numbers read off a run: logits, differences of two, rows of stages along directions."""

from typing import Any

import numpy as np
import pytest

from cases import small
from compute import config_json, stages
from compute.errors import Fault, QuestionError
from compute.measures import Measure, measure_of
from compute.selection import Scene

RAW = small.model(6, attention=small.attention(2, 3), ffn=small.mlp(7)) | {"n_layers": 2}


def scene(batch: int | None = None, **changes: object) -> Scene:
    config = config_json.from_json(RAW | changes)
    return Scene(config, True, stages.dimensions(config, 4, batch))


def faults(at: Scene, **asked: Any) -> tuple[Fault, ...]:  # noqa: ANN401
    with pytest.raises(QuestionError) as refused:
        measure_of(at, place=("measure",), **asked)
    return refused.value.faults


def test_logit_is_the_entry_of_its_token_and_a_difference_of_two() -> None:
    at, values = scene(vocab=5, readout=True), np.arange(20.0).reshape(4, 5)
    logit = measure_of(at, stage="logits", tokens=(3, None), place=())
    difference = measure_of(at, stage="logits", tokens=(3, 1), position=1, place=())
    assert logit.of(values) == values[3, 3]
    assert difference.of(values) == values[1, 3] - values[1, 1]


def test_difference_of_a_token_and_itself_is_zero() -> None:
    at = scene(vocab=5, readout=True)
    same = measure_of(at, stage="logits", tokens=(2, 2), place=())
    assert same.of(np.ones((4, 5))) == 0.0


def test_state_along_a_direction_is_their_dot_product_in_float64() -> None:
    rng = np.random.default_rng(1)
    values, direction = rng.normal(size=(2, 4, 6)).astype(np.float32), rng.normal(size=6)
    found = measure_of(
        scene(2), stage="blocks.1.Z", direction=direction, position=-2, batch=-1, place=()
    )
    expected = sum(float(x) * float(y) for x, y in zip(values[1, 2], direction, strict=True))
    assert found.stage == "blocks.1.resid_post"
    assert found.of(values) == pytest.approx(expected, rel=1e-14)


def test_numbers_outside_of_the_direction_do_not_matter() -> None:
    measure = Measure("logits", 0, None, np.array([0.0, 1.0, 0.0]))
    assert measure.of(np.array([[np.inf, 2.0, np.nan]])) == 2.0


def test_cotangent_is_the_direction_in_its_row_and_nothing_elsewhere() -> None:
    measure = Measure("logits", 1, 0, np.array([1.0, -1.0]))
    made = measure.cotangent((2, 3, 2), np.dtype(np.float32))
    assert made.dtype == np.float32
    assert made[0, 1].tolist() == [1.0, -1.0]
    assert np.count_nonzero(made) == 2


def test_every_misfit_of_a_measure_is_told_where_it_is() -> None:
    found = faults(scene(2), stage="blocks.0.Z", direction=np.ones(5), position=4, batch=-3)
    assert [(fault.code, fault.place) for fault in found] == [
        ("index_out_of_range", ("measure", "position")),
        ("index_out_of_range", ("measure", "batch")),
        ("shape_mismatch", ("measure", "direction")),
    ]


@pytest.mark.parametrize(
    ("stage", "code"),
    [
        ("nonsense", "unknown_stage"),
        ("resid_post", "several_stages"),
        ("blocks.0.attn.k_rot", "stage_absent"),
        ("blocks.0.attn.head_out", "no_such_axis"),
        ("blocks.0.attn.pattern", "no_such_axis"),
        ("blocks.0.norm1.scale", "no_such_axis"),
    ],
)
def test_stage_that_cannot_be_measured_is_refused(stage: str, code: str) -> None:
    normed = scene(norm=small.norm("layernorm"))
    (found,) = faults(normed, stage=stage, direction=np.ones(6))
    assert (found.code, found.place) == (code, ("measure", "stage"))
