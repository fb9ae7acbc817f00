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
        "notes": list(NOTES),
        "excluded": list(EXCLUDED),
    }


def kept_of(asked: FormatAsked) -> Kept:
    """The roles that stay, and their format."""
    return Kept(roles=frozenset(asked.keep), format=Format(name=asked.keep_dtype))
