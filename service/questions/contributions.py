"""POST /v1/contributions: find the sum, weigh the split, run, tell each part."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from compute.contributions import cost
from compute.contributions.answer import At, LensRow, Logit, Part, Sum
from compute.contributions.answer import State as Split
from compute.contributions.contribute import contributions
from compute.contributions.question import Asked, Question, resolve
from compute.contributions.readout import Direction
from compute.types import DType
from schemas.contributions import ContributionsRequest, DirectionAsked
from service import dry_runs, limits, modelled, views
from service.limits import Need
from service.modelled import Modelled
from service.state import State

View = Mapping[str, object]

_TOLD: DType = "float64"

_ADVICE = (
    "Ask for top_k parts and leave vectors out, for fewer positions, or split by head in the place "
    "of source or neuron; an update of one block (blocks.0.attn_out) has fewer parts than a state."
)


def work(
    asked: ContributionsRequest, state: State, check: Callable[[], None]
) -> Mapping[str, object]:
    """The members of the answer to a request; `check` may raise to stop the work."""
    with modelled.of(asked.model, asked.dtype, state, check) as model:
        reading = model.read(asked.input)
        direction = None if asked.direction is None else _direction(asked.direction, model)
        resolved = resolve(_question(asked, direction), model.scene(reading.inputs))
        need = _need(resolved, model)
        tokens = partial(limits.check_tokens, reading.inputs, model.text, model.settings)
        if asked.dry_run:
            return dry_runs.answer(model, need, _TOLD, _ADVICE, tokens)
        tokens()
        needed = limits.check_need(need, _TOLD, model.settings, _ADVICE, model.form)
        weighted = model.weights(needed)
        found = contributions(resolved, weighted.weights, reading.inputs, check)
        return {
            "model": views.model(model, weighted),
            "input": views.read(model, reading),
            "of": resolved.target.name,
            "by": asked.by,
            "norm_scale": asked.norm_scale,
            "direction": None if direction is None else _direction_view(direction, model),
            "at": [_row(at, model) for at in found],
        }


def _direction(asked: DirectionAsked, model: Modelled) -> Direction:
    """The direction, its tokens as ids."""
    if asked.token is None:
        return Direction(vector=asked.vector, after_norm=asked.after_norm)
    minus = None
    if asked.minus is not None:
        minus = model.token(asked.minus, ("direction", "minus"))
    return Direction(token=model.token(asked.token, ("direction", "token")), minus=minus)


def _question(asked: ContributionsRequest, direction: Direction | None) -> Question:
    return Question(
        of=asked.of,
        by=asked.by,
        positions=tuple(asked.positions),
        batch=None if asked.batch is None else tuple(asked.batch),
        direction=direction,
        norm_scale=asked.norm_scale,
        top_k=asked.top_k,
        vectors=asked.vectors,
    )


def _need(resolved: Asked, model: Modelled) -> Need:
    """Of the run, the split and the answer."""
    price = cost.price(resolved, model.dtype)
    return Need(
        elements=price.elements,
        bytes=price.bytes,
        flops=price.flops,
        parts=[(name, count) for name, count in price.parts.items() if count],
        in_arrays=price.parts["vectors"],
    )


def _direction_view(direction: Direction, model: Modelled) -> View:
    return {
        "token_id": direction.token,
        "token": _piece(direction.token, model),
        "minus_id": direction.minus,
        "minus": _piece(direction.minus, model),
        "after_norm": direction.is_read_out,
    }


def _piece(token: int | None, model: Modelled) -> str | None:
    return None if token is None else views.piece(model, token)


def _row(at: At, model: Modelled) -> View:
    return {
        "position": at.position,
        **({} if at.batch is None else {"batch": at.batch}),
        "state": None if at.state is None else _state(at.state),
        "parts": [_part(part) for part in at.parts],
        "sum": None if at.sum is None else _sum(at.sum),
        "logit": None if at.logit is None else _logit(at.logit),
        "lens": None if at.lens is None else [_lens(row, model) for row in at.lens],
    }


def _state(split: Split) -> View:
    vector = {} if split.vector is None else {"vector": split.vector}
    return {"norm": split.norm, "along": split.along, **vector}


def _part(part: Part) -> View:
    return {
        "id": part.id,
        **({} if part.source is None else {"source": part.source}),
        **({"count": part.count} if part.id == "rest" else {}),
        "norm": part.norm,
        "projection": part.projection,
        "share": part.share,
        "cosine": part.cosine,
        "along": part.along,
        **({} if part.vector is None else {"vector": part.vector}),
    }


def _sum(found: Sum) -> View:
    return {
        "max_abs": found.max_abs,
        "rel": found.rel,
        "tolerance": found.tolerance,
        "holds": found.holds,
    }


def _logit(found: Logit) -> View:
    return {"value": found.value, "sum": found.sum, **_sum(found.check)}


def _lens(row: LensRow, model: Modelled) -> View:
    return {
        "state": row.state,
        "value": row.value,
        "change": row.change,
        "top": list(_top(row, model)),
    }


def _top(row: LensRow, model: Modelled) -> Iterator[View]:
    for shown in row.top:
        yield {
            "token_id": shown.token,
            "token": views.piece(model, shown.token),
            "logit": shown.logit,
            "probability": shown.probability,
        }
