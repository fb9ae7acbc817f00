"""A number read off a run: a logit, the difference of two, or a state along a direction."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from compute import selection, stages
from compute.errors import Fault, Place, QuestionError, outside, refuse_if
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
        *(x for word, at in row.items() for x in outside(name, word, *at, (*place, word))),
        *([] if direction is None else _misfit(name, direction, width, place)),
    ]
    refuse_if(QuestionError, faults)
    return Measure(
        stage=name,
        position=position % lengths["n"],
        batch=batch % lengths["b"] if "b" in lengths else None,
        direction=_one_hot(tokens, width) if direction is None else direction.astype(np.float64),
    )


def _name_of(asked: str, scene: Scene, place: Place) -> str:
    name = selection.one_stage(asked, scene, (*place, "stage"))
    stage = stages.find(name)
    if stage.derived or len(stage.axes) != 2 or stage.axes[0] != "n" or stage.axes[1] in "1c":
        detail = (
            f"A measure reads a row of a stage of positions, and {stage.name} has no such rows."
        )
        raise QuestionError([Fault(code="no_such_axis", detail=detail, place=(*place, "stage"))])
    return name


def _misfit(name: str, direction: Array, width: int, place: Place) -> Iterator[Fault]:
    if direction.shape != (width,):
        yield Fault(
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
