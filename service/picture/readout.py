"""What the model would say next: the largest logits at one position, as probabilities."""

import numpy as np

from service.picture import shades, words
from service.picture.reading import Reading
from service.picture.tensor import Tensor
from service.picture.words import Floats, Lines

MOST = 5
_BAR = 20


def likeliest(tensor: Tensor, reading: Reading) -> Lines:
    """The likeliest tokens after the last position that may be attended to, if it was kept.

    Nothing where the logits are summed up or cut: their probabilities cannot be known.
    """
    if tensor.summed or len(tensor.indices["vocabulary"]) != reading.config["vocab"]:
        return []
    rows, following = tensor.rows, reading.next_token
    asked = rows[-1] if following is None else following["position"]
    position = asked if asked in rows else rows[-1]
    logits = tensor.values[rows.index(position)]
    title = words.text(f"likeliest after position {reading.rows.place(position)}", words.STRONG)
    if not np.isfinite(logits.max()) or np.isnan(logits).any():
        return [title, words.text("The logits are not finite: no probabilities.")]
    lines = [title, *_bars(logits, reading)]
    more = len(logits) - MOST
    note = f"{words.counted(more, 'token')} of the vocabulary left out."
    return [*lines, words.text(note.capitalize(), words.DIM)] if more > 0 else lines


def probabilities(logits: Floats) -> Floats:
    """exp(logit) over the sum of all exp(logit)."""
    weights = np.exp(logits - logits.max())
    return np.asarray(weights / weights.sum(), np.float64)


def _bars(logits: Floats, reading: Reading) -> Lines:
    chances = probabilities(logits)
    order = np.argsort(-logits, kind="stable")[:MOST]
    names = [reading.token(int(token_id)) for token_id in order]
    edge = words.widest(names, 24)
    lines: Lines = []
    for name, token_id in zip(names, order, strict=True):
        chance = float(chances[token_id])
        line = words.text(f"  {words.left(name, edge)}  {words.percent(chance):>6}  ")
        line.append(words.left(shades.bar(chance, _BAR), _BAR))
        lines.append(line.append(f"  logit {words.value(float(logits[token_id]))}", words.DIM))
    return lines
