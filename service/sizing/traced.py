"""A trace as sized: what compute predicts, and what this service's limits say to it."""

from collections.abc import Iterator
from dataclasses import replace

from compute import config_rules
from compute.config import ModelConfig
from compute.errors import ConfigError, Fault, QuestionError
from compute.selection import Scene
from compute.sizing.tracing import traced
from compute.sizing.tracing.traced import Predicted
from compute.sizing.vocabulary import Workload
from schemas.sizing.trace import SizedTraceAsked
from service import errors, limits, trace_text
from service.settings import Settings
from service.sizing import ledgers
from service.sizing.sized import Sized

View = dict[str, object]

EXCLUDED = (
    "What is cached and what is generated: a trace is one pass over all its positions.",
    "Weights that a request brings or edits, and interventions: each of those is a run more.",
    "In JSON the texts of a tokenizer's tokens, and rows of masks that leave a query no key.",
)


def view(model: Sized, workload: Workload, asked: SizedTraceAsked, settings: Settings) -> View:
    """The member `trace`; a QuestionError for a model that is only sized, or its input."""
    config = model.config
    _check_run(model)
    reads = asked.input or ("tensor" if config.vocab is None else "token_ids")
    scene = _scene(config, workload, reads)
    with errors.moved(("select",), ("trace", "select")):
        found = traced.predict(scene, asked.selected(), asked.dtype)
    beside = trace_text.beside(scene, found.absent)
    at_most = found.json_at_most + beside.at_most
    memory = limits.memory_bytes(found.cost, at_most)
    broken = list(_broken(config, workload, found, memory, settings))
    return {
        "dtype": asked.dtype,
        "input": reads,
        "elements": ledgers.ledger(found.elements),
        "bytes": ledgers.amount(found.bytes.total, "bytes"),
        "json_bytes": ledgers.amount(found.json + beside.about, "bytes", "estimate"),
        "json_bytes_at_most": ledgers.amount(at_most, "bytes", "upper_bound"),
        "flops": ledgers.amount(found.cost.flops, "FLOP"),
        "memory": ledgers.amount(memory, "bytes", "upper_bound"),
        "fits": not broken,
        "limits": broken,
        "excluded": list(EXCLUDED),
    }


def _check_run(model: Sized) -> None:
    """A QuestionError with all of a config that no trace can be of."""
    try:
        config_rules.check_run(model.config)
    except ConfigError as error:
        place_of = model.asked.place_of
        faults = [replace(fault, place=place_of(fault.place)) for fault in error.faults]
        raise QuestionError(faults) from error


def _scene(config: ModelConfig, workload: Workload, reads: str) -> Scene:
    """What is read: an encoder reads what its decoder does; rows of a memory are a tensor."""
    tokens = reads == "token_ids"
    if tokens and config.vocab is None:
        detail = "This model has no vocab, so it reads no token ids: its input is a tensor."
        place, code = ("trace", "input"), "no_vocab"
        raise QuestionError([Fault(code=code, detail=detail, place=place, expected="tensor")])
    memory_tokens = tokens and config.encoder is not None
    return traced.scene_of(config, workload, tokens=tokens, memory_tokens=memory_tokens)


def _broken(
    config: ModelConfig, workload: Workload, found: Predicted, memory: int, settings: Settings
) -> Iterator[View]:
    """Each limit that the trace is beyond, in the order in which a request meets them."""
    depths = [stack.n_layers for stack in (config, config.encoder) if stack is not None]
    sizes = {
        "d_model": config.d_model,
        "blocks": max(depths),
        "positions": max(workload.tokens, workload.source),
        "batch": workload.batch,
    }
    for name, got in sizes.items():
        if got > (most := getattr(settings, name)):
            yield _limit(name, most, got)
    price = found.cost
    for name, most, got in limits.beyond(price.elements, memory, price.flops, settings):
        yield _limit(name, most, got)


def _limit(name: str, most: int, got: int) -> View:
    return {"name": name, "value": most, "got": ledgers.number(got), "exact": str(got)}
