"""What derivatives cost, from the config alone, before anything is allocated."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod

from compute import cost, stages
from compute.cost import BYTES, Cost
from compute.derivatives.routes import Route
from compute.derivatives.rows import row_count
from compute.derivatives.steps import Rows, Step
from compute.selection import Scene, Selection, Wanted
from compute.types import DType

AT_ONCE = 64 << 20
"""Bytes that cotangents may take before their number is split into several walks."""

_LIVE = 3
"""A cotangent, what a pull makes on its way, and what it gives."""

_BACK = 2
"""A product of two states has two products on the way back, one of a state and a weight one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Of one run and of walks back over a route: rows of cotangents at once; bytes and flops."""

    run: Cost
    rows: int
    bytes: int
    flops: int


def price(
    scene: Scene,
    way: Route,
    keep: Collection[str],
    seeds: int,
    dtype: DType,
    at: Mapping[str, Rows] | None = None,
) -> Price:
    """The Price of pulling so many cotangents back over a route, with stages to keep beside.

    at: the rows of each stage that matter; None: all.
    """
    run = cost.estimate(scene, _whole({way.of, *keep, *way.needs}), dtype)
    steps = [(step, _share(scene, step, at)) for step in way.steps]
    widest = math.ceil(_LIVE * BYTES[dtype] * _widest(scene, steps))
    rows = max(1, min(seeds, AT_ONCE // max(widest, 1)))
    walks = _BACK * seeds - seeds // -rows
    return Price(
        run=run,
        rows=rows,
        bytes=run.bytes + rows * widest,
        flops=run.flops + math.ceil(walks * _reached(scene, run, steps)),
    )


Shares = list[tuple[Step, float]]
"""Steps, and how much of each one's rows a walk passes through."""


def _share(scene: Scene, step: Step, at: Mapping[str, Rows] | None) -> float:
    return 1.0 if at is None else len(at[step.stage]) / row_count(scene, step.stage)


def _whole(names: Collection[str]) -> Selection:
    return Selection(tuple(Wanted(name, stages.find(name), {}, False) for name in names), {})


def _reached(scene: Scene, run: Cost, steps: Shares) -> float:
    """Flops of the rows that a walk passes through, of the largest part of them in each block."""
    parts: dict[tuple[str, int | None], float] = {}
    for step, share in steps:
        part = stages.stack_of(step.stage), stages.layer_of(step.stage)
        parts[part] = max(parts.get(part, 0.0), share)
    return sum(share * _flops_of(scene, run, *part) for part, share in parts.items())


def _flops_of(scene: Scene, run: Cost, stack: str, layer: int | None) -> int:
    """Flops of a block; of what is above or below all blocks: what the run has beside them."""
    if layer is not None:
        ends = [_up_to(scene, stack, at) for at in (layer, layer - 1)]
        return ends[0] - ends[1]
    own = scene.config if not stack else scene.config.encoder
    return 0 if stack or own is None else max(0, run.flops - _up_to(scene, "", own.n_layers - 1))


def _up_to(scene: Scene, stack: str, layer: int) -> int:
    name = f"{stack}blocks.{layer}.resid_post"
    return cost.flops(scene, _whole([name])) if layer >= 0 else _below(scene, stack)


def _below(scene: Scene, stack: str) -> int:
    """Flops before a stack's first block: the encoder's, before those of the other."""
    encoder = scene.config.encoder
    return 0 if stack or encoder is None else _up_to(scene, stages.ENCODER, encoder.n_layers - 1)


def _widest(scene: Scene, steps: Shares) -> float:
    """Numbers of the stages of one block that a walk holds, or of those below or above the
    blocks; a cotangent of keys and values is made whole."""
    sizes: dict[tuple[str, int | None], float] = {}
    for step, share in steps:
        part = stages.stack_of(step.stage), stages.layer_of(step.stage)
        made = sum(_size(x, scene) * (1.0 if x in step.mixes else share) for x in step.reads)
        sizes[part] = sizes.get(part, 0.0) + share * _size(step.stage, scene) + made
    return max(sizes.values(), default=0.0)


def _size(name: str, scene: Scene) -> int:
    stage = stages.BY_NAME.get(stages.local_name(name))
    if stage is None:
        return scene.lengths.get("b", 1) * row_count(scene, name) * scene.config.d_model
    lengths = scene.lengths_of(name)
    return lengths.get("b", 1) * prod(lengths[x] for x in stage.axes)
