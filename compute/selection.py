"""What a request asks to see, resolved against this model: which stages, whole or sliced."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice

from compute import derived, spelling, stages
from compute.config import ModelConfig
from compute.errors import (
    MOST_FAULTS,
    Fault,
    Place,
    QuestionError,
    SelectionError,
    out_of_range,
    refuse_if,
)
from compute.stages import Stage
from compute.types import AXES, Inputs, Selected

_MOST_LIKE, _MOST_NEAR = 12, 3  # spellings that are looked at, and told
_MOST_BLOCKS = 16
_LETTERS = {word: letter for letter, word in AXES.items() if letter != "1"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """One stage of the answer; `where` has axis letters and indices counted from the start."""

    name: str
    stage: Stage
    where: Mapping[str, tuple[int, ...]]
    summary: bool


@dataclass(frozen=True, slots=True)
class Selection:
    """The stages wanted, in the catalogue's order, and those only a wildcard met, with why not."""

    wanted: tuple[Wanted, ...]
    absent: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Scene:
    """What a selection is resolved against: the config, the kinds of input, the axes' lengths."""

    config: ModelConfig
    tokens: bool
    lengths: Mapping[str, int]
    memory_tokens: bool = False

    @property
    def key(self) -> Hashable:
        """What tells it from other scenes."""
        return self.config, self.tokens, self.memory_tokens, *self.lengths.items()

    def absence(self, name: str) -> str | None:
        """Why the stage of a full name does not exist here, or None."""
        tokens = self.memory_tokens if stages.stack_of(name) else self.tokens
        return stages.find(name).absent(stages.config_of(name, self.config), tokens)

    def lengths_of(self, name: str) -> Mapping[str, int]:
        """The lengths of a stage's axes, by letter."""
        return stages.lengths_of(name, self.config, self.lengths)


def scene_for(config: ModelConfig, inputs: Inputs) -> Scene:
    """The scene of a config and an input."""
    memory = inputs.memory
    sources = 0 if memory is None else memory.positions
    past = inputs.keys - inputs.positions
    lengths = stages.dimensions(config, inputs.positions, inputs.batch, sources, past)
    memory_tokens = memory is not None and memory.token_ids is not None
    return Scene(config, inputs.token_ids is not None, lengths, memory_tokens)


def resolve(asked: Sequence[Selected] | None, scene: Scene) -> Selection:
    """The Selection, or a SelectionError with every fault; None asks for the default answer.

    The default: every primary stage that exists, and head_out.
    """
    if asked is None:
        return _default(scene)
    wanted: dict[str, Wanted] = {}
    absent: dict[str, str] = {}
    faults: list[Fault] = []
    for index, selected in enumerate(asked):
        faults += islice(_add(selected, index, scene, wanted, absent), MOST_FAULTS)
        if len(faults) > MOST_FAULTS:
            break
    refuse_if(SelectionError, faults)
    return Selection(_sorted(wanted, scene.config), absent)


def kept_stages(selection: Selection, config: ModelConfig) -> frozenset[str]:
    """The primary stages a selection needs: those wanted, and the operands of derived ones."""
    return frozenset(name for wanted in selection.wanted for name in sources(wanted, config))


def sources(wanted: Wanted, config: ModelConfig) -> tuple[str, ...]:
    """The full names of the primary stages one wanted stage is made of."""
    if not wanted.stage.derived:
        return (wanted.name,)
    prefix = wanted.name.removesuffix(wanted.stage.name)
    block = stages.config_of(wanted.name, config)
    return tuple(prefix + name for name in derived.operands(wanted.stage, block))


def _default(scene: Scene) -> Selection:
    ordered = stages.in_order(scene.config)
    return Selection(
        tuple(
            Wanted(name, stage, {}, False)
            for name, stage in ordered
            if stage.by_default and scene.absence(name) is None
        ),
        {},
    )


def _sorted(wanted: Mapping[str, Wanted], config: ModelConfig) -> tuple[Wanted, ...]:
    return tuple(wanted[name] for name, _ in stages.in_order(config) if name in wanted)


def _add(
    selected: Selected,
    index: int,
    scene: Scene,
    wanted: dict[str, Wanted],
    absent: dict[str, str],
) -> Iterator[Fault]:
    found = spelling.meanings(selected.name, scene.config)
    if not found:
        yield unknown_stage(selected.name, scene, (index,))
    for meaning in found:
        names = list(meaning.names())
        reasons = {name: reason for name in names if (reason := scene.absence(name)) is not None}
        here = [name for name in names if name not in reasons]
        if here:
            yield from _want(selected, index, meaning.stage, here, scene, wanted)
        if meaning.outright and not here:
            yield absent_stage(meaning.stage, reasons[names[0]], (index,))
        else:
            absent.update(reasons)


def _want(
    selected: Selected,
    index: int,
    stage: Stage,
    names: Sequence[str],
    scene: Scene,
    wanted: dict[str, Wanted],
) -> Iterator[Fault]:
    where, faults = _where(selected, index, stage, scene.lengths_of(names[0]))
    yield from faults
    for name in names:
        new = Wanted(name, stage, where, selected.summary)
        if wanted.setdefault(name, new) != new:
            yield Fault(
                code="selected_twice",
                detail=f"{name} is selected twice, with different slices or summary.",
                place=(index,),
            )


def _where(
    selected: Selected, index: int, stage: Stage, lengths: Mapping[str, int]
) -> tuple[dict[str, tuple[int, ...]], list[Fault]]:
    axes = stages.axes_of(stage, "b" in lengths)
    where: dict[str, tuple[int, ...]] = {}
    faults: list[Fault] = []
    for word, indices in selected.where.items():
        letter = _LETTERS.get(word)
        if letter not in axes:
            faults.append(_no_axis(stage, axes, word, index, "*" in selected.name))
            continue
        length = lengths[letter]
        faults += out_of_range(stage.name, word, indices, length, (index, word))
        where[letter] = tuple(i % length for i in indices)
    if stage.name == "attn.source_out" and "position" not in selected.where:
        faults.append(_needs_position(stage, index))
    return where, faults


def _no_axis(stage: Stage, axes: Sequence[str], word: str, index: int, met: bool) -> Fault:
    words = [AXES[letter] for letter in axes]
    hint = " A wildcard met it: name the stages that have the axis." if met else ""
    detail = f"{stage.name} has no axis {word}; its axes are {', '.join(words)}.{hint}"
    return Fault(code="no_such_axis", detail=detail, place=(index, word), expected=words)


def _needs_position(stage: Stage, index: int) -> Fault:
    detail = f"{stage.name} is given for chosen receiving positions: say which in position."
    return Fault(code="position_needed", detail=detail, place=(index,), expected="position: [...]")


def absent_stage(stage: Stage, reason: str, place: Place) -> Fault:
    """A stage that a run does not have, and why not."""
    detail = f"This model has no {stage.name}: {reason}. It exists where {stage.exists}."
    return Fault(code="stage_absent", detail=detail, place=place, expected=stage.exists)


def one_stage(asked: str, scene: Scene, place: Place) -> str:
    """The full name of the one stage that a spelling means and that exists; a QuestionError where
    it means none, several, or one that this run does not have."""
    found = spelling.meanings(asked, scene.config)
    if not found:
        raise QuestionError([unknown_stage(asked, scene, place)])
    names = [name for meaning in found for name in meaning.names()]
    there = [name for name in names if scene.absence(name) is None]
    if not there:
        reason = scene.absence(names[0]) or ""
        raise QuestionError([absent_stage(found[0].stage, reason, place)])
    if len(there) > 1:
        detail = f"This means {len(there)} stages; name one, of one block: {there[-1]}."
        fault = Fault(code="several_stages", detail=detail, place=place, expected=there[-3:])
        raise QuestionError([fault])
    return there[0]


def unknown_stage(asked: str, scene: Scene, place: Place) -> Fault:
    """A spelling that means no stage here, why not, and spellings near it."""
    spelled = spelling.spellings(scene.config)
    reason = spelling.why_unknown(asked, scene.config)
    wanted = stages.local_name(asked)
    close = [] if wanted in spelled else _near(asked, spelled, scene)
    hint = f" Near it: {', '.join(close)}." if close else " The catalogue of stages lists them all."
    detail = reason if wanted in spelled else reason + hint
    return Fault(code="unknown_stage", detail=detail, place=place, expected=close or None)


def _near(asked: str, spelled: Mapping[str, Stage], scene: Scene) -> list[str]:
    """Spellings like one, whatever its case: of stages that the model has, else of others."""
    by_lower = {name.lower(): name for name in spelled}
    wanted = stages.local_name(asked).lower()
    near = [by_lower[name] for name in get_close_matches(wanted, list(by_lower), n=_MOST_LIKE)]
    present = [name for name in near if _exists(spelled[name], stages.stack_of(asked), scene)]
    return (present or near)[:_MOST_NEAR]


def _exists(stage: Stage, stack: str, scene: Scene) -> bool:
    """Whether a block of the stack has a stage; one that turns is among the first ones."""
    own = (scene.config.encoder if stack else None) or scene.config
    blocks = range(min(own.n_layers, _MOST_BLOCKS))
    return any(scene.absence(stages.full_name(stage, at, stack)) is None for at in blocks)
