"""Interventions: a slice of a stage replaced while a run goes on, as patches of the driver.

    zero   x <- 0                    set    x <- value
    scale  x <- value · x            mean   x <- the stage's mean over some axes
    add    x <- x + value            patch  x <- the same slice of another run, the donor

x is the slice `where` of a stage; all else of the stage stays. Several changes of one stage are
made in their order. Activation patching: Vig et al. 2020, arXiv:2004.12265; Meng et al. 2022,
arXiv:2202.05262, section 2.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from compute import selection, spelling, stages
from compute.driver import Patch
from compute.errors import MOST_FAULTS, Fault, InterventionError, out_of_range, refuse_if
from compute.interventions import changing
from compute.interventions.changing import BY_VALUE, Change
from compute.interventions.donors import check_donors
from compute.selection import Scene
from compute.stages import Stage
from compute.types import AXES, Intervened, Value

__all__ = ["Change", "check_donors", "needed", "patches", "resolve"]

_MOST_CHANGES = 4096
_LETTERS = {word: letter for letter, word in AXES.items() if letter != "1"}
_UNREAD = {"attn.sink": "nothing reads it, it is what a row of attn.pattern lacks"}
_INSTEAD = {
    "attn.sink": "change attn.scores or attn.pattern",
    "attn.dots": "change attn.q, attn.k or attn.scores",
    "attn.head_out": 'change attn.z with "where": {"head": [...]}',
    "attn.source_out": "change attn.pattern or attn.v",
    "cross.head_out": 'change cross.z with "where": {"head": [...]}',
}


@dataclass(frozen=True, slots=True)
class _Asked:
    """One intervention, its place in the list, and what it is resolved against."""

    intervened: Intervened
    at: int
    scene: Scene


def resolve(asked: Sequence[Intervened], scene: Scene) -> tuple[Change, ...]:
    """The changes, a stage each and in order, or an InterventionError with every fault."""
    changes: list[Change] = []
    faults: list[Fault] = []
    for at, intervened in enumerate(asked):
        faults += islice(_add(_Asked(intervened, at, scene), changes), MOST_FAULTS)
        if len(changes) > _MOST_CHANGES:
            faults.append(_too_many(at))
        if len(changes) > _MOST_CHANGES or len(faults) > MOST_FAULTS:
            break
    refuse_if(InterventionError, faults)
    return tuple(changes)


def needed(changes: Sequence[Change]) -> Mapping[int, frozenset[str]]:
    """Donor -> the stages of its run that the changes read."""
    names: dict[int, set[str]] = {}
    for change in changes:
        if change.source is not None:
            names.setdefault(change.source, set()).add(change.name)
    return {source: frozenset(found) for source, found in names.items()}


def patches(
    changes: Sequence[Change],
    donors: Mapping[int, Mapping[str, Value]],
    check: Callable[[], None] = lambda: None,
) -> Mapping[str, Patch]:
    """Full name -> the patch that makes a stage's changes in their order.

    donors: by source, the stages of `needed`, in shapes that `check_donors` lets through. `check`
    is called before each change and may raise to stop the work.
    """
    of_stage: dict[str, list[Change]] = {}
    for change in changes:
        of_stage.setdefault(change.name, []).append(change)
    return {name: partial(changing.changed, mine, donors, check) for name, mine in of_stage.items()}


def _add(asked: _Asked, changes: list[Change]) -> Iterator[Fault]:
    yield from _members(asked)
    spelled, scene = asked.intervened.stage, asked.scene
    found = spelling.meanings(spelled, scene.config)
    if not found:
        yield selection.unknown_stage(spelled, scene, (asked.at, "stage"))
    reasons: list[Fault] = []
    count = len(changes)
    for meaning in found:
        names, why_not = _changeable(asked, meaning)
        reasons += why_not
        if names:
            yield from _change(asked, meaning.stage, names, changes)
        elif meaning.outright:
            yield from why_not[:1]
    if found and len(changes) == count and not any(meaning.outright for meaning in found):
        yield from reasons[:1]


def _changeable(asked: _Asked, meaning: spelling.Meaning) -> tuple[list[str], list[Fault]]:
    """The full names that can be changed here, and the reasons why others cannot."""
    stage, place = meaning.stage, (asked.at, "stage")
    if stage.name in _INSTEAD:
        return [], [_read_only(stage, asked.at)]
    reasons = {name: asked.scene.absence(name) for name in meaning.names()}
    here = [name for name, reason in reasons.items() if reason is None]
    absent = [selection.absent_stage(stage, reason, place) for reason in reasons.values() if reason]
    return here, absent


def _read_only(stage: Stage, at: int) -> Fault:
    why = _UNREAD.get(stage.name, "it is derived from other stages after the run")
    detail = f"{stage.name} cannot be changed: {why}; {_INSTEAD[stage.name]}."
    return Fault(
        code="read_only", detail=detail, place=(at, "stage"), expected=_INSTEAD[stage.name]
    )


def _change(
    asked: _Asked, stage: Stage, names: Sequence[str], changes: list[Change]
) -> Iterator[Fault]:
    """The changes of one stage of some blocks; or what is wrong with them."""
    lengths = asked.scene.lengths_of(names[0])
    chosen, faults = _blocks(asked, stage, names)
    where, of_where = _where(asked, stage, lengths)
    over, of_over = _over(asked, stage, lengths)
    faults += [*of_where, *of_over]
    intervened = asked.intervened
    made = Change(
        at=asked.at,
        name=names[0],
        stage=stage,
        op=intervened.op,
        where=where,
        value=intervened.value,
        over=over,
        source=intervened.source,
    )
    faults += [] if faults else changing.misfit(made, lengths)
    yield from faults
    if not faults:
        changes += [made.of(name) for name in chosen]


def _blocks(asked: _Asked, stage: Stage, names: Sequence[str]) -> tuple[list[str], list[Fault]]:
    """The names of the blocks that `where` chooses, all where it does not say."""
    wanted = asked.intervened.where.get("block")
    if wanted is None:
        return list(names), []
    place = (asked.at, "where", "block")
    if stage.level == "model":
        detail = f"{stage.name} belongs to the model, not to a block."
        return [], [Fault(code="no_such_axis", detail=detail, place=place)]
    config = asked.scene.config
    own = (config.encoder if stages.stack_of(names[0]) else None) or config
    faults = list(out_of_range("the stack", "block", wanted, own.n_layers, place))
    indices = [index % own.n_layers for index in wanted]
    there = {stages.layer_of(name): name for name in names}
    if not faults and not set(indices) <= set(there):
        detail = f"{asked.intervened.stage} stands in the blocks {_listed(list(there))} alone."
        faults.append(Fault(code="no_such_block", detail=detail, place=place))
    faults += _twice("block", wanted, own.n_layers, place)
    return [] if faults else [there[layer] for layer in sorted(indices)], faults


def _where(
    asked: _Asked, stage: Stage, lengths: Mapping[str, int]
) -> tuple[dict[str, tuple[int, ...]], list[Fault]]:
    axes = stages.axes_of(stage, "b" in lengths)
    where: dict[str, tuple[int, ...]] = {}
    faults: list[Fault] = []
    for word, indices in asked.intervened.where.items():
        letter, place = _LETTERS.get(word), (asked.at, "where", word)
        if word == "block":
            continue
        if letter not in axes:
            faults.append(_no_axis(stage, axes, word, place))
            continue
        faults += out_of_range(stage.name, word, indices, lengths[letter], place)
        where[letter] = tuple(index % lengths[letter] for index in indices)
        faults += _twice(word, indices, lengths[letter], place)
    return where, faults


def _over(
    asked: _Asked, stage: Stage, lengths: Mapping[str, int]
) -> tuple[tuple[str, ...], list[Fault]]:
    """The letters of `over`; a batch may be the donor's."""
    batched = "b" in lengths or asked.intervened.source is not None
    axes = stages.axes_of(stage, batched)
    letters = tuple(_LETTERS.get(word, "") for word in asked.intervened.over)
    pairs = zip(letters, asked.intervened.over, strict=True)
    place = (asked.at, "over")
    faults = [_no_axis(stage, axes, word, place) for letter, word in pairs if letter not in axes]
    return letters, faults


def _members(asked: _Asked) -> Iterator[Fault]:
    """What an op needs that is missing, and what it does not take that is given."""
    intervened, op = asked.intervened, asked.intervened.op
    takes_source = op in ("mean", "patch")
    rules = {
        "value": (intervened.value is not None, op in BY_VALUE, op in BY_VALUE),
        "from": (intervened.source is not None, op == "patch", takes_source),
        "over": (bool(intervened.over), False, op == "mean"),
    }
    for key, (given, must, may) in rules.items():
        if must and not given:
            code, detail = f"{key}_needed", f"{op} needs {key}."
            yield Fault(code=code, detail=detail, place=(asked.at,), expected=key)
        if given and not may:
            yield Fault(code=f"{key}_unused", detail=f"{op} takes no {key}.", place=(asked.at, key))


def _no_axis(stage: Stage, axes: Sequence[str], word: str, place: tuple[str | int, ...]) -> Fault:
    words = [AXES[letter] for letter in axes if letter != "1"]
    detail = f"{stage.name} has no axis {word}; its axes are {', '.join(words)}."
    return Fault(code="no_such_axis", detail=detail, place=place, expected=words)


def _twice(
    word: str, indices: Sequence[int], length: int, place: tuple[str | int, ...]
) -> list[Fault]:
    inside = [index % length for index in indices if -length <= index < length]
    if len(set(inside)) == len(inside):
        return []
    detail = f"Each entry of {word} is changed once: it stands here twice."
    return [Fault(code="index_twice", detail=detail, place=place)]


def _listed(layers: Sequence[int | None]) -> str:
    shown = ", ".join(map(str, layers[:16]))
    return shown if len(layers) <= 16 else f"{shown}, …"


def _too_many(at: int) -> Fault:
    detail = f"A request changes at most {_MOST_CHANGES} stages, each block's counted."
    return Fault(code="too_many_changes", detail=detail, place=(at,), expected=_MOST_CHANGES)
