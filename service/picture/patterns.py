"""Attention patterns as heat maps: how much each query takes from each key, head by head."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from rich.text import Text

from compute import stages
from service.picture import fitting, heatmaps, rows, words
from service.picture.fitting import Look
from service.picture.heatmaps import Bools, Map
from service.picture.reading import Reading
from service.picture.tensor import PATTERNS, Tensor
from service.picture.words import Floats, Lines

Whole = npt.NDArray[np.int64]


def maps(tensor: Tensor, reading: Reading, look: Look) -> Lines:
    """What the maps show, every head's map side by side, a note of what is left out."""
    found = of_heads(tensor, reading)
    shown = (heatmaps.drawing(one, look) for one in found[: fitting.MOST_HEADS])
    notes = [words.text(note, words.DIM) for note in _notes(tensor, found[0], look)]
    return [_caption(tensor, reading), *fitting.beside(shown, look.width), *notes]


def _caption(tensor: Tensor, reading: Reading) -> Text:
    """What the numbers of the maps are; of norms the largest too, which they are shaded by."""
    told = f"{tensor.symbol or tensor.stage}  "
    if tensor.stage not in PATTERNS:
        told += "norm of what each source (column) gives a position (row); shaded by the largest, "
        return words.prose(told + _largest(rows.norms(tensor)))
    keys = "row of the memory" if tensor.axes[-1] == "source_position" else "key"
    told += f"pattern: how much a query (row) takes from each {keys} (column)"
    sunk = _sinks(tensor, reading) is not None
    return words.prose(told + ("; the last column is what the head's sink takes" if sunk else ""))


def of_heads(tensor: Tensor, reading: Reading) -> list[Map]:
    """The maps of a pattern, with its sink's share; of source_out those of its norms."""
    is_pattern, axis = tensor.stage in PATTERNS, _keys_of(tensor)
    values = tensor.values if is_pattern else rows.norms(tensor)
    masked, keys = masked_pairs(tensor, reading), tensor.indices[axis]
    labels = [*map(reading.rows_of(axis).label, keys)]
    sinks = _sinks(tensor, reading)
    if sinks is not None:
        values = np.concatenate([values, sinks[..., None]], axis=-1)
        masked = np.concatenate([masked, np.zeros_like(masked[..., :1])], axis=-1)
        keys, labels = (*keys, keys[-1] + 1), [*labels, "(sink)"]
    return [
        Map(
            title=title(reading, head),
            values=values[at],
            masked=masked[at],
            top=1.0 if is_pattern else float(_largest(values)),
            written=words.weight if is_pattern else words.size,
            keys=keys,
            row_labels=[*map(reading.rows.place, tensor.rows)],
            column_labels=labels,
        )
        for at, head in enumerate(tensor.parts)
    ]


def title(reading: Reading, head: int) -> str:
    """`head 3`, and whose keys and values it reads where they are shared."""
    attention = reading.config["attention"]
    heads, groups = attention.get("n_heads", 1), attention.get("n_kv_heads", 1)
    shared = f" (kv_head {head * groups // heads})" if groups < heads else ""
    return f"head {head}{shared}"


def _keys_of(tensor: Tensor) -> str:
    return "source_position" if "source_position" in tensor.axes else "key_position"


def _sinks(tensor: Tensor, reading: Reading) -> Floats | None:
    """(head, query): what the sinks take, where they were kept beside a whole pattern."""
    whole = tensor.stage == "attn.pattern" and "key_position" not in tensor.sliced
    sink = reading.beside(tensor, "attn.sink") if whole else None
    return None if sink is None else sink.values


def masked_pairs(tensor: Tensor, reading: Reading) -> Bools:
    """(head, query, key): as the scores have it, else as config and key mask have it."""
    scores = reading.beside(tensor, "cross.scores" if _is_cross(tensor) else "attn.scores")
    if scores is not None:
        return np.isneginf(scores.values)
    axis = _keys_of(tensor)
    keys = np.array(tensor.indices[axis])[None, :]
    masked = np.zeros(tensor.values.shape[:3], np.bool_)
    if not _is_cross(tensor):
        masked |= _out_of_sight(np.array(tensor.rows)[:, None], keys, _masking(tensor, reading))
    key_mask = reading.rows_of(axis).key_mask
    return masked if key_mask is None else masked | ~np.array(key_mask)[keys]


def _is_cross(tensor: Tensor) -> bool:
    return _keys_of(tensor) == "source_position"


def _masking(tensor: Tensor, reading: Reading) -> tuple[bool, int | None]:
    """Whether a block is causal, and its window."""
    attention, layers = reading.config["attention"], reading.config["layers"]
    layer = stages.layer_of(tensor.name)
    own = layers[layer]["window"] if layers and layer is not None else attention.get("window")
    return attention.get("mask") == "causal", own


def _out_of_sight(queries: Whole, keys: Whole, masking: tuple[bool, int | None]) -> Bools:
    causal, window = masking
    far = np.zeros(np.broadcast_shapes(queries.shape, keys.shape), np.bool_)
    if window is not None:
        far |= np.abs(queries - keys) >= window
    return far | (keys > queries) if causal else far


def _largest(norms: Floats) -> str:
    """The largest that is finite, as a map has it."""
    return words.size(float(norms[np.isfinite(norms)].max(initial=0.0)))


def _notes(tensor: Tensor, first: Map, look: Look) -> Iterator[str]:
    heads = tensor.parts
    if len(heads) > fitting.MOST_HEADS:
        yield f"Left out: heads {heads[fitting.MOST_HEADS]} to {heads[-1]}."
    laid = heatmaps.grid(first, look)
    for what, places, names in (
        ("queries", laid.queries, tensor.rows),
        ("keys", laid.keys, tensor.indices[_keys_of(tensor)]),
    ):
        gap = fitting.left_out(places, names)
        if gap:
            yield f"Left out: {what} {gap}."
