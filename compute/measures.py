"""A number read off a run: a logit, the difference of two, or a state along a direction."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compute import spelling, stages
from compute.errors import Fault, Place, QuestionError, refuse_if
from compute.selection import Scene
from compute.types import Array


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """Σ_i direction_i x_i over the row x of a stage at a position (and row of the batch).

    direction is float64, as long as the stage's last axis: of a logit 1 at its token, of a
    difference -1 at the other one besides.
    """

    stage: str
    position: int
    batch: int | None
    direction: Array

    @property
    def row(self) -> tuple[int, ...]:
        """Where the row is in the stage's values."""
        return (self.position,) if self.batch is None else (self.batch, self.position)

    def of(self, values: Array) -> float:
        """The number, from the stage's values (n, i) or (b, n, i), in float64."""
        row = values[self.row].astype(np.float64)
        told = self.direction != 0.0  # a logit that is nobody's may be infinite
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.dot(row[told], self.direction[told]))

    def cotangent(self, shape: tuple[int, ...], dtype: np.dtype[np.floating]) -> Array:
        """d measure / d values: the direction in its row, 0 elsewhere."""
        made = np.zeros(shape, dtype)
        made[self.row] = self.direction
        return made


def measure_of(
    scene: Scene,
    *,
    stage: str,
    place: Place,
    tokens: tuple[int, int | None] | None = None,
    direction: Array | None = None,
    position: int = -1,
    batch: int = 0,
) -> Measure:
    """The Measure of a stage's spelling; a QuestionError with every fault, at `place`.

    tokens: of logits, the one whose logit it is and the one whose logit is taken off. The stage's
    axes are position and one more, and it means one stage of one block.
    """
    name = _name_of(stage, scene, place)
    lengths = scene.lengths_of(name)
    width = lengths[stages.find(name).axes[-1]]
    row = {"position": (position, lengths["n"]), "batch": (batch, lengths.get("b", 1))}
    faults = [
        *(_outside(word, index, length, place) for word, (index, length) in row.items()),
        None if direction is None else _misfit(name, direction, width, place),
    ]
    refuse_if(QuestionError, [fault for fault in faults if fault is not None])
    return Measure(
        stage=name,
        position=position % lengths["n"],
        batch=batch % lengths["b"] if "b" in lengths else None,
        direction=_one_hot(tokens, width) if direction is None else direction.astype(np.float64),
    )


def one_stage(asked: str, scene: Scene, place: Place) -> str:
    """The full name of the one stage that a spelling means and that exists; a QuestionError where
    it means none, several, or one that this run does not have."""
    found = [name for meaning in spelling.meanings(asked, scene.config) for name in meaning.names()]
    if not found:
        detail = spelling.why_unknown(asked, scene.config)
        raise QuestionError([Fault(code="unknown_stage", detail=detail, place=place)])
    there = [name for name in found if scene.absence(name) is None]
    if not there:
        detail = f"This run has no {stages.local_name(found[0])}: {scene.absence(found[0])}."
        raise QuestionError([Fault(code="stage_absent", detail=detail, place=place)])
    if len(there) > 1:
        detail = "One stage of one block is due here, as blocks.0.resid_post."
        fault = Fault(code="several_stages", detail=detail, place=place, expected=there[:3])
        raise QuestionError([fault])
    return there[0]


def _name_of(asked: str, scene: Scene, place: Place) -> str:
    name = one_stage(asked, scene, (*place, "stage"))
    stage = stages.find(name)
    if stage.derived or len(stage.axes) != 2 or stage.axes[0] != "n" or stage.axes[1] in "1c":
        detail = (
            f"A measure reads a row of a stage of positions, and {stage.name} has no such rows."
        )
        raise QuestionError([Fault(code="no_such_axis", detail=detail, place=(*place, "stage"))])
    return name


def _outside(word: str, index: int, length: int, place: Place) -> Fault | None:
    if -length <= index < length:
        return None
    return Fault(
        code="index_out_of_range",
        detail=f"{word} has {length} entries here: 0 to {length - 1}, or from the end.",
        place=(*place, word),
        expected=f"from {-length} to {length - 1}",
        got=index,
    )


def _misfit(name: str, direction: Array, width: int, place: Place) -> Fault | None:
    if direction.shape == (width,):
        return None
    return Fault(
        code="shape_mismatch",
        detail=f"A direction of {stages.local_name(name)} is {width} numbers.",
        place=(*place, "direction"),
        expected=[width],
        got=list(direction.shape),
    )


def _one_hot(tokens: Sequence[int | None] | None, width: int) -> Array:
    made = np.zeros(width)
    plus, minus = tokens or (None, None)
    if plus is not None:
        made[plus] += 1.0
    if minus is not None:
        made[minus] -= 1.0
    return made
