"""What fits into a memory, as members of an answer."""

from compute.config import ModelConfig
from compute.sizing.fitting import occupied
from compute.sizing.fitting.capacity import Found
from compute.sizing.fitting.occupied import Held, Room
from compute.sizing.memory.stored import RULE
from compute.sizing.vocabulary import Kind
from schemas.sizing.capacity import CapacityRequest
from service.sizing import ledgers, weights

View = dict[str, object]

_LARGEST = (
    "The answer is the largest whole number whose parts, each by its exact formula, are within "
    "what is usable; one more is looked at too."
)
_TRAINED = (
    "Positions are as memory allows: how many a model was trained on its config does not say, but "
    "for a learned table."
)
NOTES = (
    "budget · utilisation and fractions of a unit are rounded down to whole bytes.",
    "The cache is of all positions; activations are the peak of one pass over all of them at once.",
    RULE,
)
EXCLUDED = (
    "What is not in include; buffers of an engine, its pages that are free, fragments, the "
    "driver: say them as overhead or utilisation.",
    "Gradients and what an optimizer remembers.",
)


def view(asked: CapacityRequest, config: ModelConfig, held: Held, room: Room, found: Found) -> View:
    """All members but the model."""
    kind = occupied.kind(config, held)
    return {
        "ask": asked.ask,
        "answer": _answer(asked, found),
        "fits": found.fits,
        "batch": found.batch,
        "tokens": found.tokens,
        "memory": {
            "device": None if asked.device is None else asked.device.name,
            "total": ledgers.amount(room.budget, "bytes"),
            "utilisation": room.utilisation,
            "usable": ledgers.amount(room.usable, "bytes"),
        },
        "total": ledgers.amount(found.total, "bytes", kind),
        "parts": [_part(name, found, kind) for name in found.parts],
        "left": ledgers.amount(found.left, "bytes", kind),
        "following": _following(asked, found, kind),
        "binding": _binding(asked, found),
        "kind": kind,
        "include": list(held.include),
        "windows": held.windows,
        "notes": [*_first_notes(asked), *NOTES, *weights.notes_of(held.weights)],
        "excluded": list(EXCLUDED),
    }


def _first_notes(asked: CapacityRequest) -> list[str]:
    if asked.ask == "fits":
        return []
    return [_LARGEST, _TRAINED] if asked.ask == "context" else [_LARGEST]


def _value(asked: CapacityRequest, found: Found) -> int:
    return found.tokens if asked.ask == "context" else found.batch


def _answer(asked: CapacityRequest, found: Found) -> View | None:
    if asked.ask == "fits":
        return None
    value = _value(asked, found)
    unit = "tokens" if asked.ask == "context" else "sequences"
    return {"value": value, "exact": str(value), "unit": unit}


def _part(name: str, found: Found, kind: Kind) -> View:
    size, following = found.parts[name], found.following
    own = kind if name in ("kv_cache", "activations") else "exact"
    growth = None if following is None else ledgers.amount(following[name] - size, "bytes", own)
    return {
        "id": name,
        "bytes": ledgers.amount(size, "bytes", own),
        "share": size / found.total if found.total else 0.0,
        "growth": growth,
    }


def _following(asked: CapacityRequest, found: Found, kind: Kind) -> View | None:
    if found.following is None:
        return None
    total = sum(found.following.values())
    return {
        "value": _value(asked, found) + 1,
        "total": ledgers.amount(total, "bytes", kind),
        "missing": ledgers.amount(total - found.usable, "bytes", kind),
    }


def _binding(asked: CapacityRequest, found: Found) -> View:
    part = found.part if found.limit == "memory" else None
    if found.limit == "weights":
        part = "weights" if found.parts.get("weights") else "overhead"
    return {"limit": found.limit, "part": part, "detail": _told(asked, found, part)}


def _told(asked: CapacityRequest, found: Found, part: str | None) -> str:
    if found.limit == "weights":
        return "What stands there before the first position is more than is usable already."
    if found.limit == "positions":
        return f"A learned table of positions ends after {found.tokens} rows; memory is left."
    if found.limit == "cap":
        return "What is counted fits 2^40 times: more is not looked for."
    if asked.ask == "fits":
        return f"{part} is the largest part."
    return f"One more does not fit; {part} grows most."
