"""The foot of a picture: what was checked, what there is not, what it cost."""

from collections import Counter
from collections.abc import Iterator, Sequence

from compute import stages
from schemas.answers import CostAnswer, IdentityAnswer, MaskedRows, TraceAnswer
from schemas.resolved import ConfigAnswer
from service.picture import words
from service.picture.head import Fact

_MOST_NAMES, _MOST_POSITIONS = 12, 24
_READERS = {
    "attn.pattern": "",
    "cross.pattern": "cross-attention, ",
    "encoder.attn.pattern": "encoder, ",
}


def of_answer(answer: TraceAnswer) -> Iterator[Fact]:
    """Identities, absent stages, fully masked rows, cost."""
    yield from identities(answer["identities"])
    yield from absent(answer["absent"])
    yield from fully_masked(answer["fully_masked_rows"], answer["model"]["config"])
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
    """Reason by reason, the stages that only a wildcard met; an encoder's where it alone lacks
    them."""
    own = {(stages.local_name(x), why) for x, why in told.items() if not stages.stack_of(x)}
    by_reason: dict[str, dict[str, None]] = {}
    for name, reason in told.items():
        local = stages.local_name(name)
        both = (local, reason) in own
        said = local if both else stages.stack_of(name) + local
        by_reason.setdefault(reason, {})[said] = None
    for at, (reason, names) in enumerate(by_reason.items()):
        yield "" if at else "absent", f"{words.listed(names, _MOST_NAMES)}: {words.safe(reason)}"


def fully_masked(told: Sequence[MaskedRows], config: ConfigAnswer) -> Iterator[Fact]:
    """Positions with no key at all, once for all the blocks that have the same."""
    found: dict[tuple[str, int | None, tuple[int, ...]], list[int]] = {}
    for row in told:
        prefix = row["stage"].partition("blocks.")[0]
        reader = _READERS[prefix + stages.local_name(row["stage"])]
        same = (reader, row.get("batch"), tuple(row["position"]))
        found.setdefault(same, []).append(stages.layer_of(row["stage"]) or 0)
    encoder = config["encoder"] or config
    for at, ((reader, batch, positions), layers) in enumerate(found.items()):
        blocks = (encoder if reader == "encoder, " else config)["n_layers"]
        which = "" if len(layers) == blocks else f"blocks {words.listed(layers, _MOST_NAMES)}, "
        where = "" if batch is None else f"row {batch}, "
        word = "position" if len(positions) == 1 else "positions"
        listed = words.listed(positions, _MOST_POSITIONS)
        said = f"{word} {listed}: no key to attend to; pattern and mixture are zeros"
        yield "" if at else "fully masked", f"{reader}{which}{where}{said}"


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
