"""How the stream grows: the mean norm of its rows, block by block, as bars of one scale."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.text import Text

from compute import stages
from service.picture import rows, shades, words
from service.picture.fitting import Look
from service.picture.reading import Reading
from service.picture.tensor import Tensor
from service.picture.words import Lines

_STREAM = ("resid_pre", "resid_mid", "resid_cross", "resid_post")
_UPDATES = ("attn_out", "cross_out", "ffn_out")


@dataclass(frozen=True, slots=True)
class Step:
    """A state of the stream or an update to it, and the mean norm of its rows."""

    block: int
    symbol: str
    is_stream: bool
    norm: float


def growth(reading: Reading, look: Look) -> Lines:
    """A bar for each state and update; nothing where fewer than two were kept alike."""
    steps = _steps(reading)
    if len(steps) < 2:
        return []
    top = max((step.norm for step in steps if np.isfinite(step.norm)), default=0.0)
    symbols = words.widest((step.symbol for step in steps), 12)
    lines: Lines = []
    for before, step in zip([None, *steps], steps, strict=False):
        begins = before is None or before.block != step.block
        lines.append(_line(step, begins, (top, symbols, look.width)))
    return lines


def _line(step: Step, begins: bool, scale: tuple[float, int, int]) -> Text:
    top, symbols, width = scale
    line = words.text(f"block {step.block:<4}" if begins else " " * 10, words.DIM)
    line.append(words.left(step.symbol, symbols), words.STRONG if step.is_stream else words.PLAIN)
    line.append(f"  {words.right(words.size(step.norm), 6)}  ", words.PLAIN)
    cells = max(min(width - line.cell_len, 50), 8)
    colour = shades.STREAM if step.is_stream else shades.UPDATE
    return line.append(shades.bar(shades.share(step.norm, top), cells), colour)


def _steps(reading: Reading) -> list[Step]:
    """X of the first block, then each update and each state after it, all of the same rows."""
    steps: list[Step] = []
    shown = [one for one in reading.tensors if one.stage in (*_STREAM, *_UPDATES)]
    for tensor in shown:
        repeats = tensor.stage == "resid_pre" and bool(steps)
        if tensor.indices["position"] == shown[0].indices["position"] and not repeats:
            steps.append(_step(tensor, reading))
    return steps


def _step(tensor: Tensor, reading: Reading) -> Step:
    block = stages.layer_of(tensor.name) or 0
    attended = _attended(tensor.rows, reading)
    norms = rows.norms(tensor)[attended]
    mean = float(norms.mean()) if norms.size else float("nan")
    return Step(block, tensor.symbol or tensor.stage, tensor.stage in _STREAM, mean)


def _attended(positions: Sequence[int], reading: Reading) -> list[int]:
    """The rows that count: padding does not."""
    mask = reading.rows.key_mask
    return [at for at, position in enumerate(positions) if mask is None or mask[position]]
