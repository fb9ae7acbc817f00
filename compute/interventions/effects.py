"""The direct effect of a change: what reaches a later state past every later sublayer.

The stream carries a change on in two ways: as it is, and through the updates that later
sublayers compute from it. Direct: those updates stay as they were in the run without the change,
while sums, norms and readout are computed again. Elhage et al. 2021, "A Mathematical Framework
for Transformer Circuits" (paths of length one); Wang et al. 2022, arXiv:2211.00593, section 3.1.

A sublayer that holds a changed stage is computed again. An encoder's stream reaches the decoder
through cross-attention alone, so a change in the encoder has no direct effect on the decoder.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from compute import stages
from compute.config import ModelConfig
from compute.driver import Patch
from compute.interventions.changing import Change
from compute.selection import Scene
from compute.types import Value


@dataclass(frozen=True, slots=True)
class _Sublayer:
    """The update of a sublayer, the norm it reads, and how the names of its stages begin."""

    update: str
    norm: str
    inside: tuple[str, ...]


_SUBLAYERS = (
    _Sublayer("attn_out", "norm1.", ("attn.", "norm1_post.")),
    _Sublayer("cross_out", "norm_cross.", ("cross.",)),
    _Sublayer("ffn_out", "norm2.", ("ffn.", "norm2_post.")),
)
_BY_UPDATE = {sublayer.update: sublayer for sublayer in _SUBLAYERS}


def later_updates(changes: Sequence[Change], scene: Scene) -> tuple[str, ...]:
    """The updates after the earliest change, but for those of sublayers that hold a change.

    After, in the catalogue's order. It has a norm behind a sum (post-norm) before the update that
    it stands behind: that update is named too, and freezing it changes nothing.
    """
    changed = {change.name for change in changes}
    ordered = [name for name, _ in stages.in_order(scene.config)]
    first = next((at for at, name in enumerate(ordered) if name in changed), len(ordered))
    return tuple(
        name
        for name in ordered[first:]
        if stages.local_name(name) in _BY_UPDATE
        and scene.absence(name) is None
        and not _holds_any(name, changed, scene.config)
    )


def frozen(names: Sequence[str], clean: Mapping[str, Value]) -> Mapping[str, Patch]:
    """The patches that give stages the values they had in the run without the change."""
    return {name: partial(_as_before, clean[name]) for name in names}


def _as_before(before: Value, x: Value) -> Value:
    return before


def _holds_any(update: str, changed: set[str], config: ModelConfig) -> bool:
    sublayer = _BY_UPDATE[stages.local_name(update)]
    prefix = update.removesuffix(sublayer.update)
    begins = _beginnings(sublayer, stages.config_of(update, config))
    return any(name.startswith(tuple(prefix + start for start in begins)) for name in changed)


def _beginnings(sublayer: _Sublayer, config: ModelConfig) -> tuple[str, ...]:
    """How the names of a sublayer's stages begin: a norm after the addition is none of them."""
    own = (sublayer.update, *sublayer.inside)
    if config.norm.placement == "post":
        return own
    return (*own, "norm1." if config.norm.shared else sublayer.norm)
