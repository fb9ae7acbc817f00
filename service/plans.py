"""From a request to a run: everything checked and weighed before anything large is made."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256

import orjson

from compute import config_json, edits, initial, inputs, selection, stages, weights
from compute.checkpoints import folder
from compute.checkpoints.folder import Checkpoint
from compute.config import ModelConfig
from compute.cost import Cost
from compute.errors import Fault, InputError
from compute.initial import Source
from compute.selection import Scene
from compute.trace import Run
from compute.types import Array, Bools, DType, Edit, Inputs
from compute.weights import ModelWeights
from schemas.inputs import InputAsked
from schemas.trace import TraceRequest
from schemas.weights import WeightsAsked
from service import limits
from service.settings import Settings
from service.store import Store


@dataclass(frozen=True, slots=True, eq=False)
class Brought:
    """What a request changes in the weights: whole tensors, then edits; and its own account."""

    asked: WeightsAsked
    tensors: Mapping[str, Array]
    edits: Sequence[Edit]

    @property
    def nothing(self) -> bool:
        """The weights are taken as they are."""
        return not self.tensors and not self.edits


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A run that is within the limits, what it costs, whose model it is.

    origin: where its weights came from. overrides: fields of the preset's config that the
    request changed. real: which token ids of a text are no padding.
    """

    run: Run
    cost: Cost
    checkpoint: Checkpoint | None
    preset: str | None
    overrides: Sequence[str]
    digest: str
    origin: Mapping[str, object]
    real: Bools | None


def plan(
    request: TraceRequest, store: Store, settings: Settings, check: Callable[[], None]
) -> Plan:
    """The Plan of a request, or the error that says why there is none.

    In this order: the config's rules, limits of size, the input, the selection, limits of work,
    the weights. Weights are made last.
    """
    limits.check_ranks(request, settings)
    limits.check_texts(request.input, settings)
    asked, dtype = request.model, request.dtype
    checkpoint = None if asked.name is None else store.get(asked.name)
    config = _config(request, checkpoint)
    limits.check_config(config, request, settings)
    read, real = _inputs(request.input, dtype, checkpoint)
    work = _weighed(request, config, read, settings)
    brought = _brought(config, asked.weights, dtype)
    made = _weights(config, brought, dtype, checkpoint, check)
    return Plan(
        run=Run(config=config, weights=made, inputs=read, selection=work.selected, check=check),
        cost=work.cost,
        checkpoint=checkpoint,
        preset=asked.preset,
        overrides=asked.overridden(),
        digest=_digest(config, brought, checkpoint),
        origin=_origin(brought, checkpoint),
        real=real,
    )


def _weighed(
    request: TraceRequest, config: ModelConfig, read: Inputs, settings: Settings
) -> limits.Work:
    """The selection against the model and the input, all of it within the limits."""
    limits.check_input(read, request.input, settings)
    with _in_text(request.input):
        inputs.check(read, config)
    lengths = stages.dimensions(config, read.positions, read.batch)
    scene = Scene(config, read.token_ids is not None, lengths)
    selected = selection.resolve(request.selected(), scene)
    work = limits.Work(scene, selected, request.dtype)
    limits.check_work(work, settings)
    return work


def _config(request: TraceRequest, checkpoint: Checkpoint | None) -> ModelConfig:
    if checkpoint is not None:
        return checkpoint.config
    asked = request.model.whole_config()
    assert asked is not None  # noqa: S101 - the schema: one of name, preset and config
    return asked.to_compute()


def _inputs(
    asked: InputAsked, dtype: DType, checkpoint: Checkpoint | None
) -> tuple[Inputs, Bools | None]:
    """The input, its text as token ids with padding masked; which ids are no padding."""
    read = asked.to_compute(dtype)
    if asked.text is None:
        return read, None
    if checkpoint is None:
        detail = "Only a named model brings a tokenizer; send token_ids or a tensor."
        raise InputError([Fault(code="no_tokenizer", detail=detail, place=("text",))])
    with _in_text(asked):
        tokens = checkpoint.text.encode(asked.text.strings, asked.special_tokens)
    real = tokens.real if asked.text.batched else tokens.real[0]
    return inputs.with_tokens(read, tokens.ids, tokens.real, asked.text.batched), real


@contextmanager
def _in_text(asked: InputAsked) -> Iterator[None]:
    """Faults of the tokens of a text are faults of the text: of one string, or of one in a list."""
    try:
        yield
    except InputError as error:
        if asked.text is None:
            raise
        raise InputError([_of_text(fault, asked.text.batched) for fault in error.faults]) from None


def _of_text(fault: Fault, batched: bool) -> Fault:
    if fault.place[0] not in ("text", "token_ids"):
        return fault
    return replace(fault, place=("text", *fault.place[1:2]) if batched else ("text",))


def _brought(config: ModelConfig, asked: WeightsAsked, dtype: DType) -> Brought:
    brought = Brought(asked, asked.given(dtype), asked.changes(dtype))
    edits.check(config, brought.tensors, brought.edits)
    return brought


def _weights(
    config: ModelConfig,
    brought: Brought,
    dtype: DType,
    checkpoint: Checkpoint | None,
    check: Callable[[], None],
) -> ModelWeights:
    if checkpoint is not None and brought.nothing:
        return folder.packed(checkpoint, dtype)
    source = (
        _initial(brought.asked, dtype, config.norm.gain_offset, check)
        if checkpoint is None
        else checkpoint.source()
    )
    return weights.build(
        config, edits.changed(source, brought.tensors, brought.edits, check), dtype
    )


def _initial(
    asked: WeightsAsked, dtype: DType, gain_offset: float, check: Callable[[], None]
) -> Source:
    if asked.init == "identity":
        return initial.identity(dtype, gain_offset)
    if asked.init == "zeros":
        return initial.zeros(dtype, gain_offset)
    return initial.seeded(asked.seed or 0, dtype, gain_offset, check)


def _origin(brought: Brought, checkpoint: Checkpoint | None) -> Mapping[str, object]:
    """Where the weights came from: what made them, which were given whole, which were edited."""
    asked = brought.asked
    init = (asked.init or "seeded") if checkpoint is None else None
    return {
        "init": init,
        "seed": (asked.seed or 0) if init == "seeded" else None,
        "given": list(brought.tensors),
        "edited": list(dict.fromkeys(edit.tensor for edit in brought.edits)),
    }


def digest_of(checkpoint: Checkpoint) -> str:
    """The digest of a stored model as it is."""
    return _digest(checkpoint.config, Brought(WeightsAsked(), {}, []), checkpoint)


def _digest(config: ModelConfig, brought: Brought, checkpoint: Checkpoint | None) -> str:
    """sha256 over what decides the model: its content or seed, its config, what was changed."""
    asked = brought.asked
    account = {
        "content": None if checkpoint is None else checkpoint.content,
        "made": {key: _origin(brought, checkpoint)[key] for key in ("init", "seed")},
        "config": config_json.as_json(config),
        "tensors": {
            name: sha256(values.tobytes()).hexdigest() for name, values in asked.tensors.items()
        },
        "edits": [edit.account() for edit in asked.edits],
    }
    text = orjson.dumps(account, option=orjson.OPT_SORT_KEYS | orjson.OPT_SERIALIZE_NUMPY)
    return f"sha256:{sha256(text).hexdigest()}"
