"""A question about contributions, resolved against a model and an input, or why it is refused."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

import numpy as np

from compute.config import reads_out
from compute.contributions import lens, readout
from compute.contributions.readout import Direction
from compute.contributions.seen import Rows
from compute.contributions.splits import By, Division
from compute.contributions.target import Target, find, is_post_norm, last_sum
from compute.errors import Fault, QuestionError, out_of_range, refuse_if
from compute.selection import Scene

_ROWS = 1 << 16
"""Numbers of the rows that are worked on at once."""

_NUMBERS = 1 << 18
"""Parts, over all rows, whose numbers are held at once."""

NormScale = Literal["frozen", "recomputed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked: which sum, split how, at which rows, read along which direction.

    of: a stage's spelling, None for what is read out. top_k: how many parts are shown one by
    one, the largest first; None for all. batch: rows of the batch, None for all of them.
    """

    of: str | None = None
    by: By = "sublayer"
    positions: tuple[int, ...] = (-1,)
    batch: tuple[int, ...] | None = None
    direction: Direction | None = None
    norm_scale: NormScale = "frozen"
    top_k: int | None = None
    vectors: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asked:
    """A question that can be answered: what it is of, and the stages it needs.

    lens: the states that are read out with their norm recomputed; none in frozen mode.
    """

    question: Question
    scene: Scene
    target: Target
    division: Division
    rows: Rows
    lens: tuple[str, ...]
    needed: frozenset[str] = frozenset()

    @property
    def slab(self) -> int:
        """How many rows are worked on at once."""
        count = self.division.count() if self.has_parts else 1
        d = self.scene.config.d_model
        return max(1, min(_ROWS // d, _NUMBERS // max(1, count)))

    @property
    def has_parts(self) -> bool:
        """Whether there is a sum to split: not where a lens reads a post-norm stack."""
        return not (self.lens and is_post_norm(self.scene.config))

    @property
    def is_logit(self) -> bool:
        """Whether all that is read along the direction adds up to a logit of the run."""
        direction = self.question.direction
        read = direction is not None and direction.vector is None
        return read and self.target.is_last and not self.lens


def resolve(question: Question, scene: Scene) -> Asked:
    """The question resolved, or a QuestionError with every fault."""
    target = find(question.of, scene)
    faults = chain(
        _of_rows(question, target, scene),
        _of_direction(question, target, scene),
        _of_lens(question, target, scene),
    )
    refuse_if(QuestionError, list(faults))
    recomputed = question.norm_scale == "recomputed"
    names = tuple(lens.states_to(target, scene.config)) if recomputed else ()
    division = Division(target, question.by, scene, lumped=recomputed)
    asked = Asked(
        question=question,
        scene=scene,
        target=target,
        division=division,
        rows=_rows(question, target, scene),
        lens=names,
    )
    return replace(asked, needed=frozenset(_needed(asked)))


def _needed(asked: Asked) -> set[str]:
    needed = set(asked.lens)
    if asked.has_parts:
        needed |= asked.division.needs() | {asked.target.name}
    direction, norms = asked.question.direction, asked.target.norms
    if direction is not None and direction.is_read_out and not asked.lens:
        needed |= readout.needs(norms or (), asked.is_logit, asked.scene.config)
    return needed


def _rows(question: Question, target: Target, scene: Scene) -> Rows:
    lengths = scene.lengths_of(target.name)
    positions = np.array([at % lengths["n"] for at in question.positions], np.int64)
    if "b" not in lengths:
        return Rows(positions, None)
    wanted = question.batch if question.batch is not None else range(lengths["b"])
    batch = np.array([row % lengths["b"] for row in wanted], np.int64)
    return Rows(np.tile(positions, len(batch)), np.repeat(batch, len(positions)))


def _of_rows(question: Question, target: Target, scene: Scene) -> Iterator[Fault]:
    lengths: Mapping[str, int] = scene.lengths_of(target.name)
    yield from out_of_range(
        "the input", "position", question.positions, lengths["n"], ("positions",)
    )
    if question.batch is None:
        return
    if "b" not in lengths:
        detail = "The input has no batch axis, so there is no row of it to choose."
        yield Fault(code="no_batch", detail=detail, place=("batch",))
        return
    yield from out_of_range("the input", "batch", question.batch, lengths["b"], ("batch",))


def _of_direction(question: Question, target: Target, scene: Scene) -> Iterator[Fault]:
    direction = question.direction
    if direction is None:
        if question.of == "logits" and question.norm_scale == "frozen":
            detail = "Logits are split along one of them: say which in direction."
            yield Fault(code="direction_needed", detail=detail, place=("direction",))
        return
    yield from _of_vector(direction, scene)
    if direction.vector is None:
        yield from _of_readout(direction, scene, question.norm_scale)
    if direction.is_read_out and target.norms is None and question.norm_scale == "frozen":
        detail = _not_read_out(target, scene)
        yield Fault(code="not_read_out", detail=detail, place=("direction",))


def _of_vector(direction: Direction, scene: Scene) -> Iterator[Fault]:
    width = scene.config.d_model
    if direction.vector is not None and len(direction.vector) != width:
        yield Fault(
            code="wrong_length",
            detail=f"A direction has d_model = {width} numbers.",
            place=("direction", "vector"),
            expected=width,
            got=len(direction.vector),
        )


def _of_readout(direction: Direction, scene: Scene, norm_scale: str) -> Iterator[Fault]:
    config = scene.config
    if not reads_out(config):
        reason = scene.absence("logits")
        detail = f"This model has no logits to attribute: {reason}. Give direction.vector."
        yield Fault(code="stage_absent", detail=detail, place=("direction", "token"))
        return
    for key, token in (("token", direction.token), ("minus", direction.minus)):
        if token is not None and not 0 <= token < (config.vocab or 0):
            expected = f"from 0 to {(config.vocab or 0) - 1}"
            detail = "The vocabulary has no token of this id."
            yield Fault(
                code="unknown_token", detail=detail, place=("direction", key), expected=expected
            )
    if config.mlm_head and norm_scale == "frozen":
        detail = (
            "mlm_head = true: an activation stands between the stream and the logits, so no part "
            'has a share of a logit. Give direction.vector, or norm_scale "recomputed".'
        )
        yield Fault(code="not_linear", detail=detail, place=("direction", "token"))


def _not_read_out(target: Target, scene: Scene) -> str:
    if target.stack:
        return "The readout does not read an encoder's stream: give a vector of the stream."
    return (
        "This stack is post-norm: what is added here reaches the readout through later norms of "
        f"sums, so no part of it has a share of a logit. Only {last_sum(scene.config)} does."
    )


def _of_lens(question: Question, target: Target, scene: Scene) -> Iterator[Fault]:
    if question.norm_scale == "frozen":
        return
    config, direction = scene.config, question.direction
    if target.stack or not (target.is_state or target.is_last):
        detail = "A lens reads states of the main stack: resid_pre, resid_mid, resid_post, logits."
        yield Fault(code="not_a_state", detail=detail, place=("of",))
    yield from _of_steps(question, scene)
    if direction is None and not reads_out(config):
        detail = "The model has no logits to show: give a direction with after_norm = true."
        yield Fault(code="stage_absent", detail=detail, place=("norm_scale",))
    if direction is not None and not direction.is_read_out:
        detail = "A lens reads behind the final norm: give after_norm = true beside the vector."
        yield Fault(code="not_read_out", detail=detail, place=("direction", "vector"))


def _of_steps(question: Question, scene: Scene) -> Iterator[Fault]:
    """Only what lies between two states of the stream has a change of its own."""
    if question.by not in ("block", "sublayer"):
        detail = (
            "With the norm recomputed a logit is not linear in the parts of a state, so only the "
            'steps of the stream have a change of it: ask by "block" or "sublayer".'
        )
        yield Fault(code="not_linear", detail=detail, place=("by",))
    elif question.by == "sublayer" and scene.config.topology == "parallel":
        detail = (
            "In a parallel block there is no state between attention and ffn to read out: "
            'ask by "block".'
        )
        yield Fault(code="not_linear", detail=detail, place=("by",))
