"""A stack of any size that keeps the last resid_post, and the FLOPs that are predicted for it."""

from collections.abc import Callable

from benchmarks.sides import kept, ours
from benchmarks.sides.rows import rows
from compute import cost, selection
from compute.config import ModelConfig
from compute.trace import trace
from compute.types import Inputs, Selected

_HEAD = 64
_OF_A_PAIR = 4
"""Flops of a pair for each coordinate of all heads: its score, and its share of the mixture."""


def last(positions: int, width: int, layers: int) -> Callable[[], object]:
    """Runs the stack."""
    made = ours.run(_model(width, layers), positions, [_kept(layers)])
    return lambda: trace(made)


def flops(positions: int, width: int, layers: int) -> int:
    """What `cost.flops` of an answer says before the run, less the pairs that a causal mask hides,
    which are not computed: as POST /v1/sizing counts with `causal: exact`."""
    scene = selection.scene_for(_model(width, layers), Inputs(tensor=rows(positions, width)))
    hidden = positions * (positions - 1) // 2
    all_pairs = cost.flops(scene, selection.resolve([Selected(name=_kept(layers))], scene))
    return all_pairs - layers * _OF_A_PAIR * width * hidden


def _model(width: int, layers: int) -> ModelConfig:
    return ours.stack(layers, kept.Size(width, width // _HEAD, 4 * width))


def _kept(layers: int) -> str:
    return f"blocks.{layers - 1}.resid_post"
