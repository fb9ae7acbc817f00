"""An inverse question as compute has it, and what was found as members of an answer."""

from compute import config_json
from compute.sizing import parameters
from compute.sizing.formats import Format
from compute.sizing.inverting.inverse import UNITS, Found, Goal, Hit
from compute.sizing.inverting.inverse_style import Rule
from schemas.sizing.inverse import InverseRequest, TargetAsked
from service.sizing import ledgers

View = dict[str, object]


def goal(asked: TargetAsked) -> Goal:
    """What is to be so much."""
    (measured,) = (name for name in UNITS if getattr(asked, name) is not None)
    value: int = getattr(asked, measured)
    return Goal(measured=measured, value=value, format=Format(name=asked.dtype or "float16"))


def rule(asked: InverseRequest) -> Rule:
    """Which sizes are allowed."""
    return Rule(
        multiple_of=asked.d_model.multiple_of,
        least=asked.d_model.least,
        most=asked.d_model.most,
        aspect=(asked.aspect.least, asked.aspect.most),
        d_head=asked.d_head,
        kv_ratio=asked.kv_ratio,
        ff_ratio=asked.d_ff.exact,
        round_to=asked.d_ff.round_to,
    )


def view(found: Found, wanted: Goal) -> View:
    """The members about what was found."""
    unit = UNITS[wanted.measured]
    return {
        "target": {
            "measured": wanted.measured,
            "value": ledgers.amount(wanted.value, unit),
            "dtype": wanted.format.name if unit == "bytes" else None,
        },
        "best": [_hit(hit, wanted) for hit in found.best],
        "nearest_below": _hit(found.below, wanted) if found.below else None,
        "nearest_above": _hit(found.above, wanted) if found.above else None,
        "unique": False,
        "grid": {
            "multiple_of": found.unit,
            "widths": found.widths,
            "candidates": found.candidates,
            "smallest": _end(found.smallest, wanted) if found.smallest else None,
            "largest": _end(found.largest, wanted) if found.largest else None,
            "width_below": found.around[0],
            "width_above": found.around[1],
        },
        "reason": _reason(found),
    }


def _hit(hit: Hit, wanted: Goal) -> View:
    unit, error = UNITS[wanted.measured], hit.value - wanted.value
    return {
        **_end(hit, wanted),
        "error": ledgers.amount(error, unit),
        "relative_error": error / wanted.value,
        "parameters": ledgers.amount(parameters.count(hit.config), "parameters"),
        "config": config_json.as_json(hit.config),
    }


def _end(hit: Hit, wanted: Goal) -> View:
    return {
        "d_model": hit.config.d_model,
        "n_layers": hit.config.n_layers,
        "value": ledgers.amount(hit.value, UNITS[wanted.measured]),
    }


def _reason(found: Found) -> str | None:
    if not found.best:
        return (
            f"No width within d_model is a multiple of {found.unit} (multiple_of, with whole heads "
            "and kv heads) and leaves a number of blocks within aspect."
        )
    if found.below is None:
        return "Every model of the grid is above the target: see grid.smallest."
    if found.above is None:
        return "Every model of the grid is below the target: see grid.largest."
    return None
