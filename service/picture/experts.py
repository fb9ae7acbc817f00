"""Which experts each token went to, the largest logit first, and how much each one counts."""

from collections import Counter

from rich.text import Text

from service.picture import fitting, shades, words
from service.picture.fitting import Look
from service.picture.reading import Reading
from service.picture.tensor import Tensor
from service.picture.words import Floats, Lines

_MOST_TOKENS, _MOST_LABEL = 32, 16


def chosen(tensor: Tensor, reading: Reading, look: Look) -> Lines:
    """A line for each token; weights where they were kept; how many tokens each expert got."""
    weights = reading.beside(tensor, "ffn.expert_weights")
    told = "experts: which ones each token goes to, the largest logit first"
    lines = [words.prose(told + (", and their weights" if weights is not None else ""))]
    places = [reading.rows.place(position) for position in tensor.rows]
    edge = words.widest(places, _MOST_LABEL) + 2
    shown = fitting.kept(len(places), _MOST_TOKENS)
    for at in shown:
        if at is None:
            gap = fitting.left_out(shown, tensor.rows)
            lines.append(words.text(f"{words.LEFT_OUT} left out: positions {gap}", words.DIM))
            continue
        line = words.text(words.left(places[at], edge), words.DIM)
        lines.append(line.append_text(_choices(tensor, weights, at, look.width - edge)))
    count = reading.config["ffn"]["n_experts"]
    return [*lines, words.prose(_shares(tensor.values, count), words.DIM)]


def _choices(tensor: Tensor, weights: Tensor | None, at: int, room: int) -> Text:
    """`3 0.62▓  1 0.38▒`, as many as there is room for."""
    numbers = [str(int(expert)) for expert in tensor.values[at]]
    width = words.widest((str(int(x)) for x in tensor.values.flat), 9)
    most = max((room + 2) // (width + (2 if weights is None else 8)), 2)
    shown = len(numbers) if len(numbers) <= most else most - 1
    line = Text(no_wrap=True, overflow="ellipsis")
    for choice in range(shown):
        line.append(("  " if choice else "") + words.right(numbers[choice], width))
        if weights is not None:
            weight = float(weights.values[at, choice])
            shade = shades.shade(shades.share(weight, 1.0))
            line.append(f" {words.weight(weight)}{shade}", words.DIM)
    return line if shown == len(numbers) else line.append(f"  {words.LEFT_OUT}")


def _shares(values: Floats, experts: int) -> str:
    """How many experts were chosen, and expert by expert for how many of the tokens."""
    counts = Counter(int(expert) for expert in values.flat)
    told = [f"{expert} ({words.counted(n, 'token')})" for expert, n in sorted(counts.items())]
    return f"Chosen: {len(counts)} of {experts} experts: {words.listed(told, 12)}."
