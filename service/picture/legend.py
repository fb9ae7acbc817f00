"""The legend: what letters, brackets and shades mean, as far as a picture has any."""

from collections.abc import Iterator, Sequence

from service.picture import rows, shades, words
from service.picture.fitting import Look
from service.picture.head import Fact
from service.picture.reading import Reading
from service.picture.tensor import LETTERS, PATTERNS, Tensor

_SHADES = (
    f"patterns: {shades.SHADES_SAY}",
    f"norms: {shades.SHADES_SAY} of the largest, which their caption says",
)
_COLOURS = (
    "patterns: from 0 to 1, the lighter the more",
    "norms: from 0 to the largest, which their caption says, the lighter the more",
)


def of_readings(found: Sequence[Reading], look: Look) -> Iterator[Fact]:
    """Axes, slices, norms, maps; where all of it is."""
    tensors = [tensor for reading in found for tensor in reading.tensors]
    axes = dict.fromkeys(axis for tensor in tensors for axis in tensor.axes if axis in LETTERS)
    if axes:
        yield "shapes", ", ".join(f"{LETTERS[axis]} {axis}" for axis in axes if axis != "1")
        yield from _slices(tensors)
        yield "numbers", "the norm of each position's row; over all heads where none is named"
        if any(tensor.stage == "attn.sink" for tensor in tensors):
            yield "", "attn.sink: the weight itself"
    yield from _maps({tensor.stage for tensor in tensors if not tensor.summed}, look)
    yield "all of it", "glassblock trace --json"


def _slices(tensors: Sequence[Tensor]) -> Iterator[Fact]:
    """What brackets are, by the first example there is."""
    examples = (rows.axis(one, axis) for one in tensors for axis in one.axes if axis in one.sliced)
    for example in examples:
        yield "slices", f"{example}: which of the axis these are, counted from 0"
        return


def _maps(stages: set[str], look: Look) -> Iterator[Fact]:
    """The scale of patterns, that of norms, and what all maps have."""
    patterns, norms = _COLOURS if look.coloured else _SHADES
    scales = {**dict.fromkeys(PATTERNS, patterns), "attn.source_out": norms}
    told = [*dict.fromkeys(scale for stage, scale in scales.items() if stage in stages)]
    if told:
        told.append(f"{words.MASKED} masked, 0 exactly zero")
        yield from zip(("maps", "", ""), told, strict=False)
