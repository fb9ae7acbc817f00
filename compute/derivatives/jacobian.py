"""d(state at a position)/d(state at another): exact, row by row, the identity's part apart."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from compute import stages
from compute.derivatives.asking import Pair
from compute.derivatives.pulling import Point, pull_back
from compute.derivatives.routes import route
from compute.derivatives.rows import active
from compute.selection import Scene
from compute.types import Array, Inputs, Value


@dataclass(frozen=True, slots=True, eq=False)
class Jacobian:
    """J_ij = ∂ of_i / ∂ by_j = identity · δ_ij + branch_ij: (i, j).

    identity: 1 where the state itself is carried along by additions, to its own position; else 0.
    """

    identity: int
    branch: Array

    def whole(self) -> Array:
        """identity · I + branch."""
        if not self.identity:
            return self.branch
        return self.identity * np.eye(*self.branch.shape, dtype=self.branch.dtype) + self.branch


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """A run that was made, and how many rows of a Jacobian are walked back at once."""

    point: Point
    scene: Scene
    values: Mapping[str, Value]
    rows: int


def jacobian(walk: Walk, asked: Pair) -> Jacobian:
    """The Jacobian of a pair; the walk has the values that its route needs.

    Row i is the cotangent at `by` of the i-th coordinate of `of`: one product for each operation
    between them, no difference quotient.
    """
    way = route(walk.scene, asked.of, [asked.by])
    at = active(walk.scene, way, asked.position, asked.source)
    height, width = (_width(walk.scene, name) for name in (asked.of, asked.by))
    branch = np.zeros((height, width), walk.point.weights.dtype)
    one_row = np.eye(height, dtype=branch.dtype)[:, None]
    for start in range(0, height, walk.rows) if at[asked.by] else ():
        seeds = one_row[start : start + walk.rows]
        found = pull_back(walk.point, way, seeds, walk.values, at).get(asked.by)
        if found is not None and found.rest is not None:
            branch[start : start + walk.rows] = found.rest[:, 0]
    return Jacobian(way.plain_paths if asked.position == asked.source else 0, branch)


def _width(scene: Scene, name: str) -> int:
    return scene.lengths_of(name)[stages.find(name).axes[-1]]


@dataclass(frozen=True, slots=True)
class Factors:
    """Post-norm's J = norm · sum: through the norm after the addition, and of the sum itself."""

    norm: Array
    sum: Jacobian


def factors(walk: Walk, asked: Pair, total: str) -> Factors:
    """The two factors of a post-norm state's Jacobian; a norm acts on each position by itself."""
    norm = Pair(of=asked.of, by=total, position=asked.position, source=asked.position)
    return Factors(jacobian(walk, norm).whole(), jacobian(walk, replace(asked, of=total)))


def sum_before(scene: Scene, of: str) -> str | None:
    """The sum that a post-norm state is the norm of: of resid_post ffn_sum; of others None."""
    prefix = of.removesuffix(stages.local_name(of))
    for name in _SUMS.get(stages.local_name(of), ()):
        if scene.absence(prefix + name) is None:
            return prefix + name
    return None


def why_whole(scene: Scene, asked: Pair) -> str | None:
    """Why a Jacobian has no factors J_LN · (I + dF/dx); None where it has."""
    total = sum_before(scene, asked.of)
    if total is None:
        return f"{asked.of} is no norm of a sum: only post-norm puts a norm after the addition"
    if not route(scene, total, [asked.by]).plain_paths:
        return f"{asked.by} does not enter {total} by addition: more than one sublayer is between"
    return None


_SUMS: Mapping[str, tuple[str, ...]] = {
    "resid_mid": ("attn_sum",),
    "resid_cross": ("cross_sum",),
    "resid_post": ("ffn_sum", "attn_sum"),
}
"""A state that post-norm normalizes -> the sum that it is the norm of; a block without an ffn
ends with its attn_sum."""


def singular_values(matrix: Array) -> Array:
    """Largest first, in float64: (i, j) -> (min(i, j)); nan where an entry is not finite."""
    if not np.isfinite(matrix).all():
        return np.full(min(matrix.shape), np.nan)
    return np.linalg.svd(matrix.astype(np.float64), compute_uv=False)


def row_of(inputs: Inputs, batch: int) -> Inputs:
    """One row of a batch as an input without a batch axis; another row never reaches it."""
    if inputs.batch is None:
        return inputs
    memory = inputs.memory
    return replace(
        inputs,
        memory=None if memory is None else row_of(memory, batch),
        **{name: values[batch] for name, values in _batched(inputs)},
    )


_RANKS = {"tensor": 2, "attention_mask": 2}


def _batched(inputs: Inputs) -> Iterator[tuple[str, Value]]:
    """The members of an input that have the batch axis."""
    names = ("token_ids", "position_ids", "key_mask", "token_types", *_RANKS)
    for name in names:
        values = getattr(inputs, name)
        if values is not None and values.ndim > _RANKS.get(name, 1):
            yield name, values
