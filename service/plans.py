"""From a request to a run: everything checked and weighed before anything large is made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256

import orjson

from compute import (
    config_json,
    edits,
    initial,
    inputs,
    overriding,
    selection,
    weights,
)
from compute.checkpoints.folder import Checkpoint
from compute.config import ModelConfig
from compute.cost import Cost
from compute.initial import Source
from compute.overriding import Fit
from compute.trace import Run
from compute.types import Array, Bools, DType, Edit, Inputs
from compute.weights import ModelWeights
from schemas.model import ModelAsked
from schemas.trace import TraceRequest
from schemas.weights import WeightsAsked
from service import limits, reading
from service.settings import Settings
from service.storage.store import Store


@dataclass(frozen=True, slots=True, eq=False)
class Brought:
    """What a request changes in the weights: whole tensors, then edits; and its own account.

    fit: how a stored model's tensors serve the changed config.
    """

    asked: WeightsAsked
    tensors: Mapping[str, Array]
    edits: Sequence[Edit]
    fit: Fit = field(default_factory=Fit)

    @property
    def nothing(self) -> bool:
        """The weights are taken as they are."""
        return not self.tensors and not self.edits


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A run that is within the limits, what it costs, whose model it is.

    origin: where its weights came from. overrides: fields of the preset's or the stored model's
    config that the request changed. real, memory_real: which token ids of a text are no padding.
    """

    run: Run
    cost: Cost
    checkpoint: Checkpoint | None
    preset: str | None
    overrides: Sequence[str]
    digest: str
    origin: Mapping[str, object]
    real: Bools | None
    memory_real: Bools | None


def plan(
    request: TraceRequest, store: Store, settings: Settings, check: Callable[[], None]
) -> Plan:
    """The Plan of a request, or the error that says why there is none.

    In this order: the config's rules, limits of size, the input, the selection, limits of work,
    the weights. Weights are made last.
    """
    limits.check_ranks(request, settings)
    asked, dtype = request.model, request.dtype
    checkpoint = None if asked.name is None else store.get(asked.name)
    config, overrides = _config(asked, checkpoint)
    limits.check_config(config, request, settings)
    fit = _fit(asked, config, overrides, checkpoint)
    read = reading.read(request.input, dtype, checkpoint, settings)
    work = _weighed(request, config, read.inputs, settings)
    limits.check_tokens(read.inputs, None if checkpoint is None else checkpoint.text, settings)
    brought = _brought(config, asked.weights, dtype, fit)
    store.make_room(limits.memory_bytes(work.cost, dtype), checkpoint, dtype)
    made = _weights(config, brought, dtype, checkpoint, store, check)
    return Plan(
        run=Run(
            config=config,
            weights=made,
            inputs=read.inputs,
            selection=work.selected,
            check=check,
        ),
        cost=work.cost,
        checkpoint=checkpoint,
        preset=asked.preset,
        overrides=overrides,
        digest=_digest(config, brought, checkpoint),
        origin=_origin(brought, checkpoint),
        real=read.real,
        memory_real=read.memory_real,
    )


def _weighed(
    request: TraceRequest, config: ModelConfig, read: Inputs, settings: Settings
) -> limits.Work:
    """The selection against the model and the input, all of it within the limits."""
    limits.check_input(read, request.input, settings)
    with reading.placed(request.input):
        inputs.check(read, config)
    scene = selection.scene_for(config, read)
    selected = selection.resolve(request.selected(), scene)
    work = limits.Work(scene, selected, request.dtype)
    limits.check_work(work, settings)
    return work


def _config(asked: ModelAsked, checkpoint: Checkpoint | None) -> tuple[ModelConfig, Sequence[str]]:
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


def _brought(config: ModelConfig, asked: WeightsAsked, dtype: DType, fit: Fit) -> Brought:
    brought = Brought(asked, asked.given(dtype), asked.changes(dtype), fit)
    edits.check(config, brought.tensors, brought.edits)
    return brought


def _weights(
    config: ModelConfig,
    brought: Brought,
    dtype: DType,
    checkpoint: Checkpoint | None,
    store: Store,
    check: Callable[[], None],
) -> ModelWeights:
    plain = checkpoint is not None and config is checkpoint.config and brought.nothing
    if checkpoint is not None and plain:
        return store.packed(checkpoint, dtype)
    source = (
        initial.by_stack(config, _initial(brought.asked, dtype, check))
        if checkpoint is None
        else overriding.source(checkpoint.source(), brought.fit.filled, config, dtype)
    )
    return weights.build(
        config, edits.changed(source, brought.tensors, brought.edits, check), dtype
    )


def _initial(
    asked: WeightsAsked, dtype: DType, check: Callable[[], None]
) -> Callable[[float], Source]:
    if asked.init == "identity":
        return partial(initial.identity, dtype)
    if asked.init == "zeros":
        return partial(initial.zeros, dtype)
    return partial(initial.seeded, asked.seed or 0, dtype, check=check)


def _origin(brought: Brought, checkpoint: Checkpoint | None) -> Mapping[str, object]:
    """Where the weights came from: what made them, which were given whole, which were edited."""
    asked = brought.asked
    init = (asked.init or "seeded") if checkpoint is None else None
    return {
        "init": init,
        "seed": (asked.seed or 0) if init == "seeded" else None,
        "given": list(brought.tensors),
        "edited": list(dict.fromkeys(edit.tensor for edit in brought.edits)),
        "filled": brought.fit.filled,
        "unused": brought.fit.unused,
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
