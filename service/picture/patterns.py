"""Attention patterns as heat maps: how much each query takes from each key, head by head."""

from collections.abc import Iterator, Sequence

import numpy as np
from rich.text import Text

from service.picture import fitting, heatmaps, rows, words
from service.picture.fitting import Look
from service.picture.heatmaps import Bools, Map
from service.picture.reading import Reading, Tensor
from service.picture.words import Floats, Lines


def maps(tensor: Tensor, reading: Reading, look: Look) -> Lines:
    """Every head's map side by side, with a note of what is left out."""
    found = of_heads(tensor, reading)
    shown = (heatmaps.drawing(one, look) for one in found[: fitting.MOST_HEADS])
    notes = [words.text(note, words.DIM) for note in _notes(tensor, found[0], look)]
    return [*fitting.beside(shown, look.width), *notes]


def caption(tensor: Tensor) -> Text:
    """What the numbers of the maps are; of norms the largest too, which they are shaded by."""
    told = "pattern: how much a query (row) takes from each key (column)"
    if tensor.stage != "attn.pattern":
        told = "norm of what each source (column) gives a position (row); shaded by the largest, "
        told += _largest(rows.norms(tensor))
    return words.prose(f"{tensor.symbol}  {told}")


def of_heads(tensor: Tensor, reading: Reading) -> list[Map]:
    """The maps of a pattern; of source_out those of its norms."""
    is_pattern = tensor.stage == "attn.pattern"
    values = tensor.values if is_pattern else rows.norms(tensor)
    masked, keys = masked_pairs(tensor, reading), tensor.indices["key_position"]
    return [
        Map(
            title=title(reading, head),
            values=values[at],
            masked=masked[at],
            top=1.0 if is_pattern else float(_largest(values)),
            written=words.weight if is_pattern else words.size,
            keys=keys,
            row_labels=[reading.place(query) for query in tensor.rows],
            column_labels=[reading.label(key) for key in keys],
        )
        for at, head in enumerate(tensor.heads or ())
    ]


def title(reading: Reading, head: int) -> str:
    """`head 3`, and whose keys and values it reads where they are shared."""
    attention = reading.config["attention"]
    heads, groups = attention.get("n_heads", 1), attention.get("n_kv_heads", 1)
    shared = f" (kv_head {head * groups // heads})" if groups < heads else ""
    return f"head {head}{shared}"


def masked_pairs(tensor: Tensor, reading: Reading) -> Bools:
    """(head, query, key): as the scores have it, else as config and key mask have it."""
    name = f"{tensor.name.removesuffix(tensor.stage)}attn.scores"
    scores = next((one for one in reading.tensors if one.name == name), None)
    if scores is not None and not scores.summed and scores.indices.items() >= _pairs(tensor):
        return np.isneginf(scores.values)
    attention = reading.config["attention"]
    queries = np.array(tensor.rows)[:, None]
    keys = np.array(tensor.indices["key_position"])[None, :]
    masked = np.zeros(tensor.values.shape[:3], np.bool_)
    if attention.get("mask") == "causal":
        masked |= keys > queries
    window = attention.get("window")
    if window is not None:
        masked |= np.abs(queries - keys) >= window
    if reading.key_mask is not None:
        masked |= ~np.array(reading.key_mask)[keys]
    return masked


def _pairs(tensor: Tensor) -> set[tuple[str, tuple[int, ...]]]:
    return {(axis, tensor.indices[axis]) for axis in ("head", "position", "key_position")}


def _largest(norms: Floats) -> str:
    """The largest that is finite, as a map has it."""
    return words.size(float(norms[np.isfinite(norms)].max(initial=0.0)))


def _notes(tensor: Tensor, first: Map, look: Look) -> Iterator[str]:
    heads: Sequence[int] = tensor.heads or ()
    if len(heads) > fitting.MOST_HEADS:
        yield f"Left out: heads {heads[fitting.MOST_HEADS]} to {heads[-1]}."
    laid = heatmaps.grid(first, look)
    for what, places, names in (
        ("queries", laid.queries, tensor.rows),
        ("keys", laid.keys, tensor.indices["key_position"]),
    ):
        gap = fitting.left_out(places, names)
        if gap:
            yield f"Left out: {what} {gap}."
