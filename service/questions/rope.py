"""POST /v1/rope: a pair or a spectrum turned to positions. The work of one worker thread."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from compute import config_json, rotation
from compute.config import ModelConfig, PositionConfig, block_config
from compute.errors import Fault, Place, QuestionError
from compute.rotation import Rotation, Vectors
from compute.types import Array, Ints
from schemas.rope import RopePairAsked, RopeRequest, RopeSpectrumAsked
from service import dry_runs, errors, limits, modelled
from service.limits import Need
from service.state import State

View = Mapping[str, object]

_ADVICE = "Ask for fewer positions, or for a head of fewer coordinates."
_OF_A_PAIR = 9  # numbers beside its angles
_HELD = 3  # numbers in memory for each of the answer
_VIEW_OF_A_PAIR = 2048  # bytes of its keys and arrays


def work(asked: RopeRequest, state: State, check: Callable[[], None]) -> View:
    """The members of the answer to a request."""
    ids = np.array(asked.positions, np.int64)
    if asked.pair is not None:
        vectors, need = _vectors(asked, 2), _need(len(ids), 2, 1)
        if asked.dry_run:
            return _plan(need, state)
        _check_need(need, state)
        return _of_pair(asked.pair, ids, vectors)
    d_head, position = _spectrum(asked, state, check)
    vectors, need = _vectors(asked, d_head), _need(len(ids), d_head, position.rotary_dim // 2)
    if asked.dry_run:
        return _plan(need, state)
    _check_need(need, state)
    found = rotation.of_spectrum(position, d_head, ids, vectors)
    return _view(found, {"spectrum": _view_of_spectrum(found, position)})


def _of_pair(asked: RopePairAsked, ids: Ints, vectors: Vectors | None) -> View:
    said = asked.degrees_per_position
    radians = asked.radians_per_position or 0.0 if said is None else float(np.radians(said))
    found = rotation.of_pair(radians, ids, vectors, in_degrees=said)
    two = len(ids) == 2
    between = found.relative * found.degrees_per_position[0]
    members = {
        "angles_degrees": found.angles_degrees[:, 0].copy(),
        "angles_radians": found.angles_radians[:, 0].copy(),
        "between_degrees": float(between[0, 1]) if two else None,
    }
    return _view(found, members, between)


def _spectrum(
    asked: RopeRequest, state: State, check: Callable[[], None]
) -> tuple[int, PositionConfig]:
    """d_head and the position of the spectrum that is asked for."""
    if asked.spectrum is not None:
        return asked.spectrum.d_head, _written_out(asked.spectrum)
    assert asked.model is not None  # noqa: S101 - exactly one of three
    with modelled.of(asked.model, "float64", state, check) as model:
        own = block_config(model.config, _block(asked.block or 0, model.config))
    if own.position.kind != "rope" or own.attention.kind == "none":
        detail = "Nothing turns in this block: its position.kind is not rope, or its theta is null."
        raise _refused("nothing_turns", detail, ("model",))
    return own.attention.d_head, own.position


def _written_out(asked: RopeSpectrumAsked) -> PositionConfig:
    """The spectrum's position; a broken rule of the config stands where the request has it."""
    with (
        errors.moved(("model", "config", "position"), ("spectrum",)),
        errors.moved(("model", "config", "attention"), ("spectrum",)),
    ):
        return asked.to_compute()


def _block(asked: int, config: ModelConfig) -> int:
    blocks = config.n_layers
    if not -blocks <= asked < blocks:
        detail = f"The model has {blocks} blocks: 0 to {blocks - 1}, or from the end."
        raise _refused("index_out_of_range", detail, ("block",))
    return asked % blocks


def _vectors(asked: RopeRequest, width: int) -> Vectors | None:
    given = asked.vectors
    if given is None:
        return None
    if given.shape[1] != width:
        detail = f"A query and a key have {width} numbers each here."
        raise _refused("shape_mismatch", detail, ("vectors",), [2, width], list(given.shape))
    return Vectors(given[0], given[1])


def _refused(
    code: str, detail: str, place: Place, expected: object = None, got: object = None
) -> QuestionError:
    fault = Fault(code=code, detail=detail, place=place, expected=expected, got=got)
    return QuestionError([fault])


def _need(positions: int, width: int, pairs: int) -> Need:
    parts = {
        "grid": 3 * positions * positions,
        "rotated": 2 * positions * width,
        "pairs": pairs * (2 * positions + _OF_A_PAIR),
    }
    elements = sum(parts.values())
    return Need(
        elements=elements,
        bytes=_HELD * 8 * elements + _VIEW_OF_A_PAIR * pairs,
        flops=2 * positions * positions * width,
        parts=list(parts.items()),
        in_arrays=parts["rotated"],
    )


def _check_need(need: Need, state: State) -> int:
    return limits.check_need(need, "float64", state.settings, _ADVICE, state.form)


def _plan(need: Need, state: State) -> View:
    plan = dry_runs.plan(need, "float64", state.form, partial(_check_need, need, state))
    return {"model": None, "plan": plan}


def _view(found: Rotation, own: View, between: Array | None = None) -> View:
    """All members; `own` has those that a pair and a spectrum do not share."""
    two = len(found.position_ids) == 2
    return {
        "positions": found.position_ids,
        "angles_degrees": None,
        "angles_radians": None,
        "relative": int(found.relative[0, 1]) if two else None,
        "between_degrees": None,
        "dot": float(found.dots[0, 1]) if two else None,
        "rotated": {"query": found.queries, "key": found.keys},
        "grid": {"relative": found.relative, "between_degrees": between, "dots": found.dots},
        "spectrum": None,
        **own,
    }


def _view_of_spectrum(found: Rotation, position: PositionConfig) -> View:
    d_head = found.queries.shape[1]
    two = len(found.position_ids) == 2
    dots = found.dots_of_pairs(0, 1).tolist() if two else [None] * len(found.coordinates)
    return {
        "d_head": d_head,
        "position": config_json.as_json(position),
        "attention_factor": found.turns.factor,
        "unrotated": list(range(position.rotary_dim, d_head)),
        "pairs": [_pair(found, at, dot) for at, dot in enumerate(dots)],
    }


def _pair(found: Rotation, at: int, dot: float | None) -> View:
    degrees = float(found.degrees_per_position[at])
    two = len(found.position_ids) == 2
    return {
        "pair": at,
        "coordinates": found.coordinates[at],
        "radians_per_position": float(found.turns.radians[at]),
        "degrees_per_position": degrees,
        "wavelength": float(found.wavelengths[at]),
        "angles_degrees": found.angles_degrees[:, at].copy(),
        "angles_radians": found.angles_radians[:, at].copy(),
        "between_degrees": float(found.relative[0, 1] * degrees) if two else None,
        "dot": dot,
    }
