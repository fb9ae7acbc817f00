"""Bytes of weights as members of an answer."""

from compute.config import ModelConfig
from compute.sizing.formats import Format
from compute.sizing.memory import weight_bytes
from compute.sizing.memory.stored import RULE
from compute.sizing.memory.weight_bytes import Kept
from compute.sizing.quantity import told
from schemas.sizing.weights import FormatAsked
from service.sizing import ledgers, storage

View = dict[str, object]

NOTES = (
    RULE,
    "Every number is stored in dtype but for the roles that keep names.",
    "A tensor that several blocks or the readout share is stored once; experts are one tensor.",
)
EXCLUDED = (
    "Buffers, a file's header and its alignment.",
    "A shared table's second copy.",
)


_SCALED = ("int4", "int8", "nf4", "float8")


def notes_of(form: Format) -> list[str]:
    """What is to be said of a format that has no scales of its own."""
    if form.name not in _SCALED or form.grouped.group:
        return []
    return [
        f"{form.name} by itself holds no scales: what is quantised in groups takes more; say "
        "grouped, or a format that counts them."
    ]


def view(config: ModelConfig, asked: FormatAsked) -> View:
    """The member `weights`."""
    form, kept = asked.to_compute(), kept_of(asked)
    found = weight_bytes.size(config, form, kept)
    symbols = [storage.symbol(form, "w")]
    if asked.keep:
        symbols.append(storage.symbol(kept.format, "keep"))
    return {
        **ledgers.ledger(found),
        "dtype": form.name,
        "bits": told(form.bits),
        "keep": list(asked.keep),
        "keep_dtype": asked.keep_dtype,
        "kept": ledgers.amount(found.view("kept"), "bytes"),
        "symbols": symbols,
        "notes": [*NOTES, *notes_of(form)],
        "excluded": list(EXCLUDED),
    }


def kept_of(asked: FormatAsked) -> Kept:
    """The roles that stay, and their format."""
    return Kept(roles=frozenset(asked.keep), format=Format(name=asked.keep_dtype))
