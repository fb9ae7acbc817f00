"""How one of our tensors lies in a file: which tensors it is read from, and what turns them.

A `Stored` says names and shapes before anything is read, so that a file is checked by its header
alone; `make` turns what was read into ours, in views where it can.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from compute.config import ModelConfig
from compute.tensors import Tensor, tensors
from compute.types import Array

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """The names and shapes of the tensors of a file that one of ours is made of.

    `left` says what of them is not read, where something is.
    """

    names: tuple[str, ...]
    shapes: tuple[Shape, ...]
    make: Callable[..., Array]
    left: str = ""


Layout = Callable[[str, Tensor], Stored]
"""How a tensor lies under a name."""

Table = Mapping[str, tuple[str, Layout]]
"""Our name -> (the file's name, layout); `{l}` in both is a block's number, `{e}` an expert's."""

_BLOCK = re.compile(r"\bblocks\.(\d+)\.")


def by_table(config: ModelConfig, table: Table) -> dict[str, Stored]:
    """Where each tensor of a config lies. The table may list tensors that the config lacks."""
    return {name: _look_up(tensor, table) for name, tensor in tensors(config).items()}


def _look_up(tensor: Tensor, table: Table) -> Stored:
    block = _BLOCK.search(tensor.name)
    if block is None:
        name, layout = table[tensor.name]
        return layout(name, tensor)
    name, layout = table[tensor.name.replace(block[0], "blocks.{l}.")]
    return layout(name.replace("{l}", block[1]), tensor)


def as_is(name: str, tensor: Tensor) -> Stored:
    """The same numbers in the same order: gains, biases, tables, and matrices that multiply rows
    from the right. Heads may lie side by side: (h k) for (h, k)."""
    return one(name, _flat(tensor), lambda values: values.reshape(tensor.shape))


def transposed(name: str, tensor: Tensor) -> Stored:
    """A matrix (out, in), as torch's Linear has it: (h d k) from (h k, d), (h v d) from (d, h v),
    (d f) from (f, d)."""
    rows, columns = _plane(tensor)
    return one(name, (columns, rows), lambda values: _from_plane(values.T, tensor))


def side_by_side(name: str, tensor: Tensor) -> Stored:
    """A matrix (in, out), as GPT-2 has it: (h d k) from (d, h k), (h v d) from (h v, d)."""
    return one(name, _plane(tensor), lambda values: _from_plane(values, tensor))


def one(name: str, shape: Shape, make: Callable[[Array], Array]) -> Stored:
    """Ours from one tensor of the file."""
    return Stored((name,), (shape,), make)


def rows_from(first: int) -> Layout:
    """A table whose first rows belong to no position: they are not read."""
    left = "row 0" if first == 1 else f"rows 0 to {first - 1}"

    def layout(name: str, tensor: Tensor) -> Stored:
        rows, columns = tensor.shape
        return Stored((name,), ((first + rows, columns),), lambda values: values[first:], left)

    return layout


def each_expert(layout: Layout) -> Layout:
    """(e, …) from one tensor for each expert, `{e}` in its name."""

    def whole(name: str, tensor: Tensor) -> Stored:
        one_of = replace(tensor, axes=tensor.axes[1:], shape=tensor.shape[1:])
        numbers = range(tensor.shape[0])
        return stacked([layout(name.replace("{e}", str(e)), one_of) for e in numbers])

    return whole


def stacked(parts: list[Stored]) -> Stored:
    """Ours from one tensor for each expert: (e, …) from e times what a part says."""
    makes = [part.make for part in parts]
    return Stored(
        tuple(part.names[0] for part in parts),
        tuple(part.shapes[0] for part in parts),
        lambda *each: np.stack([make(x) for make, x in zip(makes, each, strict=True)]),
    )


def _plane(tensor: Tensor) -> Shape:
    """The shape as one matrix (in, out), heads concatenated."""
    if len(tensor.shape) == 2:
        return tensor.shape
    heads, rows, columns = tensor.shape
    reads = tensor.axes[1] == "d"  # (h, d, k) reads the stream, (h, v, d) writes to it
    return (rows, heads * columns) if reads else (heads * rows, columns)


def _from_plane(values: Array, tensor: Tensor) -> Array:
    if len(tensor.shape) == 2:
        return values
    heads, rows, columns = tensor.shape
    if tensor.axes[1] == "d":
        return values.reshape(rows, heads, columns).swapaxes(0, 1)
    return values.reshape(tensor.shape)


def _flat(tensor: Tensor) -> Shape:
    """(h, k) lies as (h k); everything else as it is."""
    return (
        (prod(tensor.shape),)
        if tensor.axes in (("h", "k"), ("g", "k"), ("g", "v"))
        else (tensor.shape)
    )
