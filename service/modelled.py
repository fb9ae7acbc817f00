"""The model of a request: found, checked and weighed before any of its weights is made."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from compute import (
    config_json,
    config_rules,
    edits,
    initial,
    inputs,
    overriding,
    selection,
    weights,
)
from compute.checkpoints.folder import Checkpoint
from compute.checkpoints.text import Text
from compute.config import ModelConfig, reads_out
from compute.errors import ConfigError, Fault, InputError, Place, QuestionError
from compute.initial import Source
from compute.measures import Measure, measure_of
from compute.overriding import Fit
from compute.selection import Scene
from compute.types import DType, Inputs, Past
from compute.weights import ModelWeights
from schemas.inputs import InputAsked
from schemas.measures import MeasureAsked
from schemas.model import ModelAsked
from schemas.tokens import Token
from schemas.weights import WeightsAsked
from service import brought, errors, limits, reading
from service.brought import Brought
from service.forms.form import Form
from service.problems import Refusal
from service.reading import Reading
from service.settings import Settings
from service.state import State
from service.storage.store import Store


@dataclass(frozen=True, slots=True, eq=False)
class Weighted:
    """Weights, fetched as they are read; the model's digest; where its weights came from."""

    weights: ModelWeights
    digest: str
    origin: Mapping[str, object]


def no_past(read: Inputs) -> Past | None:
    """Nothing stands before the rows."""
    return None


@dataclass(frozen=True, slots=True, eq=False)
class Modelled:
    """A model within the limits, its weights still to be made.

    overrides: fields of the preset's or the stored model's config that the request changed.
    """

    asked: ModelAsked
    dtype: DType
    config: ModelConfig
    checkpoint: Checkpoint | None
    overrides: Sequence[str]
    fit: Fit
    settings: Settings
    store: Store
    form: Form
    check: Callable[[], None]

    @property
    def told_config(self) -> Mapping[str, object]:
        """The config as an answer tells it."""
        stored = self.checkpoint
        if stored is not None and self.config is stored.config:
            return brought.told(stored).config
        return config_json.as_json(self.config)

    @property
    def text(self) -> Text | None:
        """The tokenizer that a stored model brings."""
        return None if self.checkpoint is None else self.checkpoint.text

    def read(
        self,
        asked: InputAsked,
        place: Place = ("input",),
        past_of: Callable[[Inputs], Past | None] = no_past,
    ) -> Reading:
        """The input that stands at a place of the request, checked against model and limits.

        past_of: what stands before its rows, if anything does.
        """
        with errors.moved(("input",), place):
            limits.check_rank(asked, self.settings)
            read = reading.read(asked, self.dtype, self.checkpoint, self.settings)
            limits.check_input(read.inputs, asked, self.settings)
            found = replace(read, inputs=replace(read.inputs, past=past_of(read.inputs)))
            with reading.placed(asked):
                inputs.check(found.inputs, self.config)
            return found

    def scene(self, read: Inputs) -> Scene:
        """What a selection of stages is resolved against."""
        return selection.scene_for(self.config, read)

    def token(self, asked: Token, place: Place) -> int:
        """The id of a token: itself, or that of a text of exactly one token."""
        vocab = self.config.vocab
        if vocab is None:
            raise _refused("no_vocab", "This model has no vocab, so it knows no tokens.", place)
        if isinstance(asked, int):
            if asked < vocab:
                return asked
            detail = f"A token id is a whole number from 0 to {vocab - 1}."
            raise _refused("out_of_vocabulary", detail, place)
        return self._token_of(asked, vocab, place)

    def _token_of(self, text: str, vocab: int, place: Place) -> int:
        if self.text is None:
            detail = "Only a named model with a tokenizer knows texts: give the token's id."
            raise _refused("no_tokenizer", detail, place)
        ids = _ids_of(text, self.text)
        if len(ids) != 1 or ids[0] >= vocab:
            detail = "This text is not one token of the model: give one token, or its id."
            raise _refused("not_one_token", detail, place, got=len(ids))
        return int(ids[0])

    def measure(self, asked: MeasureAsked, scene: Scene, place: Place) -> Measure:
        """A number to be read off a run: a logit, a difference of two, a state along a direction.

        QuestionError where the model has no logits, or no such stage, row or token.
        """
        if asked.logit is None:
            return measure_of(
                scene,
                stage=asked.stage or "",
                direction=asked.direction,
                position=asked.position,
                batch=asked.batch,
                place=place,
            )
        if not reads_out(self.config):
            raise _refused("no_readout", "This model reads nothing out: it has no logits.", place)
        plus = self.token(asked.logit, (*place, "logit"))
        minus = None if asked.minus is None else self.token(asked.minus, (*place, "minus"))
        return measure_of(
            scene,
            stage="logits",
            tokens=(plus, minus),
            position=asked.position,
            batch=asked.batch,
            place=place,
        )

    def weights(self, needed_bytes: int) -> Weighted:
        """The weights, once everything else was checked; room is made for what the run needs."""
        asked = self.asked.weights
        changes = Brought(asked, asked.given(self.dtype), asked.changes(self.dtype), self.fit)
        edits.check(self.config, changes.tensors, changes.edits)
        self.store.make_room(needed_bytes, self.checkpoint, self.dtype)
        stored = _as_stored(self, changes)
        return Weighted(
            weights=_weights(self, changes),
            digest=brought.digest(self.config, changes, self.checkpoint)
            if stored is None
            else brought.told(stored).digest,
            origin=brought.origin(changes, self.checkpoint),
        )


@contextmanager
def of(
    asked: ModelAsked, dtype: DType, state: State, check: Callable[[], None]
) -> Iterator[Modelled]:
    """The model that a request means, within its limits; counted as settled in the end."""
    model = find(asked, dtype, state, check)
    try:
        yield model
    finally:
        state.store.settle(model.checkpoint, dtype)


def find(
    asked: ModelAsked,
    dtype: DType,
    state: State,
    check: Callable[[], None],
) -> Modelled:
    """The Modelled of a request: the config's rules, that all of it runs, then its limits, then
    what a stored model's tensors can serve; or the error that says why there is none."""
    store, settings = state.store, state.settings
    limits.check_weight_ranks(asked, settings)
    checkpoint = None if asked.name is None else store.get(asked.name)
    config, overrides = config_of(asked, checkpoint)
    _check_run(config, asked)
    limits.check_config(config, asked, settings)
    return Modelled(
        asked=asked,
        dtype=dtype,
        config=config,
        checkpoint=checkpoint,
        overrides=overrides,
        fit=_fit(asked, config, overrides, checkpoint),
        settings=settings,
        store=store,
        form=state.form,
        check=check,
    )


def _check_run(config: ModelConfig, asked: ModelAsked) -> None:
    """Refuse what is sized and not run, each where the request says it, or names what brings it."""
    try:
        config_rules.check_run(config)
    except ConfigError as error:
        placed = [replace(fault, place=asked.place_of(fault.place)) for fault in error.faults]
        raise errors.ServiceError(Refusal(code="config-rule", faults=placed)) from None


def _ids_of(text: str, tokenizer: Text) -> Sequence[int]:
    """The ids of a text; none where the tokenizer has no tokens for it."""
    try:
        ids: Sequence[int] = tokenizer.encode([text], special_tokens=False).ids[0].tolist()
    except InputError:
        return []
    return ids


def _refused(code: str, detail: str, place: Place, got: object = None) -> QuestionError:
    return QuestionError([Fault(code=code, detail=detail, place=place, got=got)])


def config_of(
    asked: ModelAsked, checkpoint: Checkpoint | None
) -> tuple[ModelConfig, Sequence[str]]:
    """The config resolved, and the fields of a preset's or a stored model's that were changed."""
    stored = None if checkpoint is None else checkpoint.config
    config, said = asked.to_compute(stored), asked.overridden(stored)
    if stored is None:
        return config, said
    return config, [name for name in said if overriding.differs(stored, config, name)]


def _fit(
    asked: ModelAsked,
    config: ModelConfig,
    overrides: Sequence[str],
    checkpoint: Checkpoint | None,
) -> Fit:
    if checkpoint is None or config is checkpoint.config:
        return Fit()
    return overriding.fit(checkpoint.config, config, overrides, asked.weights.tensors)


def _as_stored(model: Modelled, changes: Brought) -> Checkpoint | None:
    """The stored model, where nothing of it is changed."""
    stored = model.checkpoint
    changed = stored is None or model.config is not stored.config or not changes.nothing
    return None if changed else stored


def _weights(model: Modelled, changes: Brought) -> ModelWeights:
    config, checkpoint, dtype = model.config, model.checkpoint, model.dtype
    stored = _as_stored(model, changes)
    if stored is not None:
        return model.store.packed(stored, dtype)
    source = (
        initial.by_stack(config, _initial(changes.asked, dtype, model.check))
        if checkpoint is None
        else overriding.source(checkpoint.source(), changes.fit.filled, config, dtype)
    )
    changed = edits.changed(source, changes.tensors, changes.edits, model.check)
    return weights.build(config, changed, dtype)


def _initial(
    asked: WeightsAsked, dtype: DType, check: Callable[[], None]
) -> Callable[[float], Source]:
    if asked.init == "identity":
        return partial(initial.identity, dtype)
    if asked.init == "zeros":
        return partial(initial.zeros, dtype)
    return partial(initial.seeded, asked.seed or 0, dtype, check=check)
