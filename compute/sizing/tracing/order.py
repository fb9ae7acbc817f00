"""The order in which a run computes its stages: the catalogue's, but for the norms of post-norm."""

from collections.abc import Sequence
from typing import NamedTuple

from compute import selection, stages
from compute.config import ModelConfig
from compute.selection import Selection, Wanted

_AT = {name: at for at, name in enumerate(stages.BY_NAME)}
_AFTER_SUM = {"norm1": "attn_sum", "norm_cross": "cross_sum", "norm2": "ffn_sum"}
"""What post-norm normalizes, by the norm."""

_BELOW, _BLOCKS, _ABOVE = range(3)


class Moment(NamedTuple):
    """When a stage is there: an encoder's before all others; below, in or above the blocks; which
    block; the stage's place in the catalogue, or that of the sum before it, and what follows."""

    is_own: bool
    level: int
    layer: int
    place: int
    then: int

    @property
    def is_below(self) -> bool:
        """No block of its stack is begun."""
        return self.level == _BELOW

    @property
    def is_above(self) -> bool:
        """Every block of its stack is done."""
        return self.level == _ABOVE


def moment(name: str, config: ModelConfig) -> Moment:
    """When the stage of a full name is computed."""
    local, layer = stages.local_name(name), stages.layer_of(name)
    is_own = not stages.stack_of(name)
    if layer is None:
        return Moment(is_own, _ABOVE if stages.is_above(name) else _BELOW, 0, _AT[local], 0)
    summed = _AFTER_SUM.get(local.partition(".")[0])
    if summed is not None and _normalizes_sums(stages.config_of(name, config)):
        return Moment(is_own, _BLOCKS, layer, _AT[summed], 1 + _AT[local])
    return Moment(is_own, _BLOCKS, layer, _AT[local], 0)


def _normalizes_sums(config: ModelConfig) -> bool:
    return config.norm.placement == "post" and config.topology != "parallel"


def place_of(stage: str) -> int:
    """A stage's place in the catalogue."""
    return _AT[stage]


def last(wanted: Selection, config: ModelConfig) -> str | None:
    """The last stage that a selection's run computes; None where nothing is run."""
    needed = selection.kept_stages(wanted, config)
    return max(needed, key=lambda name: moment(name, config), default=None)


def kept(wanted: Selection, config: ModelConfig) -> list[str]:
    """The primary stages that a selection's run keeps, in order."""
    return sorted(selection.kept_stages(wanted, config), key=lambda name: moment(name, config))


def made(wanted: Selection, config: ModelConfig) -> Sequence[Wanted]:
    """What is wanted, in the order in which a run makes it: as soon as all it is made of is
    there."""
    return sorted(
        wanted.wanted,
        key=lambda one: max(moment(name, config) for name in selection.sources(one, config)),
    )
