"""What a request asks to differentiate, resolved against a model: one fault for each that cannot
be answered."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from compute import selection, stages
from compute.derivatives.model import model
from compute.errors import Fault, Place, QuestionError, outside, refuse_if
from compute.measures import Measure
from compute.selection import Scene, Wanted
from compute.types import AXES, Selected


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Which state by which: full names of stages (n, i), and a position of each."""

    of: str
    by: str
    position: int
    source: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PairAsked:
    """The same as spelled; positions may count from the end, and without a source it is the
    position."""

    of: str
    by: str
    position: int
    source: int | None = None


def pair(scene: Scene, asked: PairAsked) -> Pair:
    """The Pair of spellings and of positions that may count from the end; or a QuestionError."""
    of, by = _named(scene, asked)
    lengths = {key: scene.lengths_of(name)["n"] for key, name in (("of", of), ("by", by))}
    faults = [
        *_without_rows(of, ("of",)),
        *_without_rows(by, ("by",)),
        *outside(of, "position", asked.position, lengths["of"], ("position",)),
    ]
    if asked.source is not None:
        faults += outside(by, "position", asked.source, lengths["by"], ("source",))
    refuse_if(QuestionError, faults)
    source = asked.position if asked.source is None else asked.source
    refuse_if(QuestionError, list(outside(by, "position", source, lengths["by"], ("position",))))
    refuse_if(QuestionError, _backwards(scene, of, by))
    return Pair(
        of=of, by=by, position=asked.position % lengths["of"], source=source % lengths["by"]
    )


def _named(scene: Scene, asked: PairAsked) -> list[str]:
    """The full names of `of` and `by`."""
    names: list[str] = []
    faults: list[Fault] = []
    for key, spelled in (("of", asked.of), ("by", asked.by)):
        try:
            names.append(selection.one_stage(spelled, scene, (key,)))
        except QuestionError as error:
            faults += error.faults
    refuse_if(QuestionError, faults)
    return names


def _without_rows(name: str, place: Place) -> Iterator[Fault]:
    stage = stages.find(name)
    if stage.derived or len(stage.axes) != 2 or stage.axes[0] != "n" or stage.name == _EXPERTS:
        axes = ", ".join(AXES[letter] for letter in stage.axes)
        rule = "A Jacobian is of a stage that is computed, with the axes position and one more"
        detail = f"{rule}; {stage.name} has {axes}. What a head adds to is attn_out."
        yield Fault(code="no_such_axis", detail=detail, place=place, expected="blocks.0.resid_post")


_EXPERTS = "ffn.experts"


def _backwards(scene: Scene, of: str, by: str) -> list[Fault]:
    order = [step.stage for step in model(scene)]
    if order.index(by) <= order.index(of):
        return []
    detail = f"{of} is computed before {by} and does not depend on it: exchange of and by."
    return [Fault(code="computed_later", detail=detail, place=("by",))]


@dataclass(frozen=True, slots=True)
class Asked:
    """The stages to differentiate by, in the order of the catalogue, and those only met among
    others, with why they have no gradient."""

    wanted: tuple[Wanted, ...]
    absent: Mapping[str, str]


def stages_of(scene: Scene, asked: Sequence[Selected], measure: Measure, place: Place) -> Asked:
    """The stages of a selection that a measure can be differentiated by.

    SelectionError as for any selection; QuestionError for an entry of which nothing is left.
    """
    chosen = selection.resolve(asked, scene)
    before = _computed_before(scene, measure.stage)
    why = {each.name: reason for each in chosen.wanted if (reason := _no_gradient(each, before))}
    refuse_if(QuestionError, _faults(scene, asked, why, place))
    wanted = tuple(each for each in chosen.wanted if each.name not in why)
    return Asked(wanted, {**chosen.absent, **why})


def _computed_before(scene: Scene, name: str) -> frozenset[str]:
    order = [step.stage for step in model(scene)]
    return frozenset(order[: order.index(name) + 1])


def _no_gradient(wanted: Wanted, before: frozenset[str]) -> str | None:
    if wanted.stage.derived:
        sources = ", ".join(wanted.stage.derived_from)
        return f"it is made of {sources} for the answer alone: nothing is computed from it"
    if wanted.stage.name == _EXPERTS:
        return "which experts are chosen is whole numbers"
    if wanted.name not in before:
        return "it is computed after what is measured, which does not depend on it"
    return None


def _faults(
    scene: Scene, asked: Sequence[Selected], why: Mapping[str, str], place: Place
) -> list[Fault]:
    faults = []
    for at, each in enumerate(asked):
        names = [one.name for one in selection.resolve([each], scene).wanted]
        if names and all(name in why for name in names):
            detail = f"{names[0]} has no gradient: {why[names[0]]}."
            faults.append(Fault(code="no_gradient", detail=detail, place=(*place, at)))
    return faults
