"""The grid of a sweep, resolved against a model: which blocks, which entries of which axes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from compute import selection, spelling, stages
from compute.errors import Fault, Place, QuestionError, out_of_range, refuse_if
from compute.selection import Scene
from compute.spelling import Meaning
from compute.stages import Stage
from compute.types import AXES, Intervened

BLOCK = "block"
_LETTERS = {word: letter for letter, word in AXES.items() if letter != "1"}

Where = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: the full names of the stages that it changes, and axis letter -> its entry."""

    names: tuple[str, ...]
    where: Where


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """names: full names by block (by 0 where the stage is the model's). axes: of the grid, word ->
    entries. fixed: what each cell's slice is narrowed to besides, word -> entries. All entries
    count from the start."""

    stage: Stage
    names: Mapping[int, str]
    axes: Where
    fixed: Where

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis of the grid."""
        return tuple(map(len, self.axes.values()))

    @property
    def size(self) -> int:
        """How many cells there are."""
        return prod(self.shape)

    def cells(self) -> Iterator[Cell]:
        """The cells in row order."""
        for entries in product(*self.axes.values()):
            at = dict(zip(self.axes, entries, strict=True))
            blocks = [at.pop(BLOCK)] if BLOCK in at else list(self.names)
            where = {_LETTERS[word]: (entry,) for word, entry in at.items()}
            yield Cell(tuple(self.names[block] for block in blocks), where)


def resolve(asked: Intervened, over: Sequence[str], scene: Scene) -> Grid:
    """The Grid of a change over axis words (or `block`); a QuestionError with every fault, at
    `stage`, `over` and `where`.

    An axis that is not of the grid is taken whole in each cell, or as `where` narrows it.
    """
    meaning = _meaning(asked.stage, scene)
    stage = meaning.stage
    lengths = scene.lengths_of(next(meaning.names()))
    letters = stages.axes_of(stage, "b" in lengths)
    words = [AXES[letter] for letter in letters if letter != "1"]
    known = [BLOCK, *words] if stage.level == "block" else words
    refuse_if(QuestionError, list(_strangers(asked, over, stage, known)))
    full = {word: lengths[_LETTERS[word]] for word in words}
    chosen, faults = _blocks(asked, meaning, scene)
    for word, indices in asked.where.items():
        if word != BLOCK:
            faults += out_of_range(stage.name, word, indices, full[word], ("where", word))
    refuse_if(QuestionError, faults)
    where = {w: tuple(i % full[w] for i in x) for w, x in asked.where.items() if w != BLOCK}
    entries = {BLOCK: chosen, **{word: tuple(range(full[word])) for word in words}, **where}
    return Grid(
        stage=stage,
        names={block: stages.full_name(stage, block, meaning.stack) for block in chosen},
        axes={word: entries[word] for word in over},
        fixed={word: entry for word, entry in where.items() if word not in over},
    )


def _meaning(asked: str, scene: Scene) -> Meaning:
    """The one stage that a spelling means, of some blocks of a stack."""
    found = spelling.meanings(asked, scene.config)
    place: Place = ("stage",)
    if not found:
        raise QuestionError([selection.unknown_stage(asked, scene, place)])
    if len(found) > 1:
        detail = "One stage is swept: this name means several."
        raise QuestionError([Fault(code="several_stages", detail=detail, place=place)])
    (meaning,) = found
    if meaning.stage.derived:
        detail = f"{meaning.stage.name} is derived after a run: nothing goes on from it. Sweep one "
        detail += f"of {', '.join(meaning.stage.derived_from)}."
        raise QuestionError([Fault(code="derived_stage", detail=detail, place=place)])
    reasons = [scene.absence(name) for name in meaning.names()]
    if None not in reasons:
        raise QuestionError([selection.absent_stage(meaning.stage, reasons[0] or "", place)])
    return meaning


def _strangers(
    asked: Intervened, over: Sequence[str], stage: Stage, known: Sequence[str]
) -> Iterator[Fault]:
    """Axes that the stage does not have."""
    detail = f"{stage.name} has no such axis; a sweep of it goes over {', '.join(known)}."
    places: list[tuple[str, Place]] = [(word, ("over", at)) for at, word in enumerate(over)]
    places += [(word, ("where", word)) for word in asked.where]
    for word, place in places:
        if word not in known:
            yield Fault(code="no_such_axis", detail=detail, place=place, expected=list(known))


def _blocks(
    asked: Intervened, meaning: Meaning, scene: Scene
) -> tuple[tuple[int, ...], list[Fault]]:
    """The blocks that are swept: those asked for, else those that have the stage."""
    stack = scene.config.encoder if meaning.stack else scene.config
    assert stack is not None  # noqa: S101 - the spelling has found the stage
    reasons = {
        block: scene.absence(name)
        for block, name in zip(meaning.layers, meaning.names(), strict=True)
    }
    if BLOCK not in asked.where:
        return tuple(block for block, reason in reasons.items() if reason is None), []
    given, count = asked.where[BLOCK], stack.n_layers
    faults = list(out_of_range("this stack", BLOCK, given, count, ("where", BLOCK)))
    chosen = tuple(block % count for block in given)
    for at, block in enumerate(chosen):
        if block not in reasons:
            detail = "stage names another block."
            faults.append(Fault(code="wrong_block", detail=detail, place=("where", BLOCK, at)))
        elif reasons[block] is not None:
            why_not = reasons[block] or ""
            faults.append(selection.absent_stage(meaning.stage, why_not, ("where", BLOCK, at)))
    return chosen, faults
