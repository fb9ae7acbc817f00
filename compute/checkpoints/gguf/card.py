"""What a GGUF file says of itself, as a card: its name, what it is made of, and what it leaves
open."""

from collections import Counter
from collections.abc import Iterator, Mapping

from compute.checkpoints.gguf.header import Packed
from compute.checkpoints.gguf.taking import Value

_LONGEST = 1 << 10
_SAID = ("general.name", "general.license", "general.description", "general.architecture")


def card(
    keys: Mapping[str, Value], entries: Mapping[str, Packed], unsaid: str, no_text: str
) -> str:
    """Markdown: a line for each thing that is known, then what is not."""
    return "\n".join(_lines(keys, entries, unsaid, no_text)) + "\n"


def _lines(
    keys: Mapping[str, Value], entries: Mapping[str, Packed], unsaid: str, no_text: str
) -> Iterator[str]:
    for key in _SAID:
        value = keys.get(key)
        if isinstance(value, str) and value:
            yield f"- {key}: {value[:_LONGEST]}"
    counted = Counter(entry.dtype for entry in entries.values())
    types = ", ".join(f"{name} ({count})" for name, count in sorted(counted.items()))
    yield f"- Tensors by type: {types}. All are computed with as float32."
    yield from (f"- {sentence}" for sentence in (unsaid, no_text) if sentence)
