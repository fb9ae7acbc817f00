"""The foot of a picture: what was checked, what there is not, what it cost."""

from collections import Counter
from collections.abc import Iterator, Sequence

from compute import stages
from schemas.answers import CostAnswer, IdentityAnswer, MaskedRows, TraceAnswer
from service.picture import words
from service.picture.head import Fact

_MOST_NAMES, _MOST_POSITIONS = 12, 24


def of_answer(answer: TraceAnswer) -> Iterator[Fact]:
    """Identities, absent stages, fully masked rows, cost."""
    yield from identities(answer["identities"])
    yield from absent(answer["absent"])
    yield from fully_masked(answer["fully_masked_rows"])
    yield "cost", cost(answer["cost"])


def identities(told: Sequence[IdentityAnswer] | None) -> Iterator[Fact]:
    """How many hold; each that fails with its error; why the others were not checked."""
    if told is None:
        yield "identities", "turned off"
        return
    checked = [one for one in told if one["holds"] is not None]
    holding = sum(one["holds"] is True for one in checked)
    held = f"{holding} of {len(checked)} hold" if checked else "none could be checked"
    yield "identities", held + _unchecked(told)
    for one in checked:
        if not one["holds"]:
            errors = (("off by", one["max_abs"]), ("relative", one["rel"]))
            sizes = ", ".join(f"{word} {words.value(x)}" for word, x in errors if x is not None)
            yield "", f"FAILS {one['name']}: {one['formula']} ({sizes})"


def _unchecked(told: Sequence[IdentityAnswer]) -> str:
    reasons = Counter(str(one["reason"]).partition(":")[0] for one in told if one["holds"] is None)
    counts = ", ".join(f"{reason} ({count})" for reason, count in reasons.items())
    return f"; not checked: {counts}" if reasons else ""


def absent(told: dict[str, str]) -> Iterator[Fact]:
    """Reason by reason, the stages that only a wildcard met."""
    by_reason: dict[str, dict[str, None]] = {}
    for name, reason in told.items():
        by_reason.setdefault(reason, {})[stages.local_name(name)] = None
    for at, (reason, names) in enumerate(by_reason.items()):
        yield "" if at else "absent", f"{words.listed(names, _MOST_NAMES)}: {words.safe(reason)}"


def fully_masked(told: Sequence[MaskedRows]) -> Iterator[Fact]:
    """Positions with no key at all; all blocks of a stack have the same."""
    seen: dict[tuple[int | None, tuple[int, ...]], None] = {
        (row.get("batch"), tuple(row["position"])): None for row in told
    }
    for at, (batch, positions) in enumerate(seen):
        where = "" if batch is None else f"row {batch}, "
        which = "position" if len(positions) == 1 else "positions"
        listed = words.listed(positions, _MOST_POSITIONS)
        said = f"{where}{which} {listed}: no key to attend to; pattern and mixture are zeros"
        yield "" if at else "fully masked", said


def cost(told: CostAnswer) -> str:
    """Parameters, floating point operations, numbers answered, memory."""
    return " · ".join(
        [
            words.counted(told["parameters"], "parameter"),
            f"{words.rounded(told['flops'])}flop",
            f"{words.counted(told['elements'], 'number')} in the answer",
            f"{words.rounded(told['bytes'])}B of memory",
        ]
    )
