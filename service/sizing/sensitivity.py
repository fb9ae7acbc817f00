"""Sensitivity as members of an answer."""

from compute.config import ModelConfig
from compute.sizing import sensitivity
from compute.sizing.formats import CacheFormat
from compute.sizing.operations import flops
from compute.sizing.sensitivity import Field, Move
from compute.sizing.vocabulary import Conventions, Unit, Workload
from service.sizing import ledgers

View = dict[str, object]

_NOTES = (
    "One field is a step larger, all others stay as resolved: d_head where d_model grows.",
    "With n_heads grow the key/value heads where every head has its own.",
    "An elasticity is that of the step, not a limit.",
)


def view(
    config: ModelConfig, workload: Workload, cache: CacheFormat, conventions: Conventions
) -> View:
    """The member `sensitivity`."""
    fields, fixed = sensitivity.of(config, workload, cache, conventions)
    unit = flops.unit(conventions)
    return {"fields": [_field(x, unit) for x in fields], "fixed": fixed, "notes": list(_NOTES)}


def _field(found: Field, unit: Unit) -> View:
    kept = found.kv_bytes_per_token
    return {
        "field": found.name,
        "value": found.value,
        "next": found.after,
        "parameters": _move(found.parameters, "parameters"),
        "flops": _move(found.flops, unit),
        "kv_bytes_per_token": None if kept is None else _move(kept, "bytes"),
    }


def _move(found: Move, unit: Unit) -> View:
    return {
        "before": ledgers.amount(found.before, unit),
        "after": ledgers.amount(found.after, unit),
        "difference": ledgers.number(found.difference),
        "elasticity": found.elasticity,
    }
