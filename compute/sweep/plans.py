"""A sweep before it is run: its grid and change resolved, what it keeps, what it costs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from compute import cost, interventions, stages
from compute.config import ModelConfig
from compute.errors import Fault, InterventionError, QuestionError
from compute.interventions import effects
from compute.interventions.changing import Change
from compute.measures import Measure
from compute.selection import Scene, Selection, Wanted
from compute.sweep import grids
from compute.sweep.grids import BLOCK, Grid
from compute.types import DType, Intervened

BELOW = -1
"""The depth of what lies below the first block."""

_ENCODER = -2
_COPIES = 3  # of the changed stages, alive at once in a cell
_KEYS: Mapping[str | int, str] = {"over": "mean_over"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """A sweep that can be run: changes by full name, of the first cell's entries.

    direct: updates after the change stay as they are in the base run.
    """

    scene: Scene
    grid: Grid
    changes: Mapping[str, Change]
    measure: Measure
    direct: bool

    @property
    def takes_donor(self) -> bool:
        """Whether another run brings the values."""
        return any(change.source is not None for change in self.changes.values())

    @cached_property
    def end(self) -> int:
        """How deep the measure's stage lies."""
        return depth(self.measure.stage, self.scene.config)

    @cached_property
    def reached(self) -> Mapping[str, int]:
        """The stages that are changed before the measure is taken, and how deep each lies."""
        depths = {name: depth(name, self.scene.config) for name in self.changes}
        return {name: at for name, at in depths.items() if at <= self.end}

    @cached_property
    def of_base(self) -> frozenset[str]:
        """The stages to keep of the base run."""
        starts = {start(at, self.scene.config) for at in self.reached.values() if at > BELOW}
        memory = {encoded_stage(self.scene.config)} if starts else set()
        frozen = {name for later in self.frozen.values() for name in later}
        return frozenset({self.measure.stage, *starts, *memory, *frozen} - {""})

    @cached_property
    def of_donor(self) -> frozenset[str]:
        """The stages to keep of the run that a patch takes its values from."""
        return frozenset({self.measure.stage, *self.reached})

    @cached_property
    def frozen(self) -> Mapping[tuple[str, ...], tuple[str, ...]]:
        """The stages that a cell changes -> the updates after them, up to the measure's depth,
        that stay as they were; nothing where all that follows is computed anew."""
        if not self.direct:
            return {}
        reached = list(self.reached)
        together = [(name,) for name in reached] if BLOCK in self.grid.axes else [tuple(reached)]
        return {names: self._later(names) for names in together}

    def _later(self, names: Sequence[str]) -> tuple[str, ...]:
        later = effects.later_updates([self.changes[name] for name in names], self.scene)
        return tuple(name for name in later if depth(name, self.scene.config) <= self.end)


def plan(
    asked: Intervened, over: Sequence[str], scene: Scene, measure: Measure, *, direct: bool
) -> Plan:
    """The Plan of a change over a grid; a QuestionError with every fault, placed in a request."""
    grid = grids.resolve(asked, over, scene)
    first = next(grid.cells())
    words = {**grid.fixed, **{w: (x[0],) for w, x in grid.axes.items() if w != BLOCK}}
    try:
        (change,) = interventions.resolve(
            [replace(asked, stage=first.names[0], where=words)], scene
        )
    except InterventionError as error:
        raise QuestionError([_placed(fault) for fault in error.faults]) from error
    names = grid.names.values()
    return Plan(
        scene=scene,
        grid=grid,
        changes={name: change.of(name) for name in names},
        measure=measure,
        direct=direct,
    )


def depth(name: str, config: ModelConfig) -> int:
    """How deep a stage lies: its block, the count of blocks above them, -1 below, -2 encoder."""
    if stages.stack_of(name):
        return _ENCODER
    layer = stages.layer_of(name)
    if layer is not None:
        return layer
    return config.n_layers if stages.is_above(name) else BELOW


def start(at: int, config: ModelConfig) -> str:
    """The stage with the stream that a depth goes on from."""
    return f"blocks.{at}.resid_pre" if at < config.n_layers else f"blocks.{at - 1}.resid_post"


def encoded_stage(config: ModelConfig) -> str:
    """The stage with what an encoder gives; the empty text without an encoder."""
    encoder = config.encoder
    if encoder is None:
        return ""
    normed = encoder.final_norm and encoder.norm.kind != "none"
    last = "final_norm.out" if normed else f"blocks.{encoder.n_layers - 1}.resid_post"
    return f"{stages.ENCODER}{last}"


def flops(planned: Plan) -> int:
    """2 · multiply-adds of the products of all runs, before any is run."""
    whole = cost.flops(planned.scene, _whole([planned.measure.stage]))
    of_cells = sum(
        count * (whole - _flops_below(at, planned.scene))
        for at, count in _cells_by_depth(planned).items()
    )
    donor = [_whole(planned.of_donor)] if planned.takes_donor else []
    runs = [_whole(planned.of_base), *donor]
    return of_cells + sum(cost.flops(planned.scene, one) for one in runs)


def memory_bytes(planned: Plan, dtype: DType) -> int:
    """Weights, what is kept of both runs, temporaries, and the changed stages of a cell."""
    base = cost.estimate(planned.scene, _whole(planned.of_base), dtype)
    of_donor = planned.of_donor if planned.takes_donor else ()
    donor = cost.estimate(planned.scene, _whole(of_donor), dtype)
    changed = list(planned.changes)[: 1 if BLOCK in planned.grid.axes else None]
    each = cost.estimate(planned.scene, _whole(changed), dtype)
    results = 2 * 8 * planned.grid.size
    return base.bytes + donor.kept_bytes + _COPIES * each.kept_bytes + results


def _whole(names: Iterable[str]) -> Selection:
    return Selection(tuple(Wanted(name, stages.find(name), {}, False) for name in names), {})


def _flops_below(at: int, scene: Scene) -> int:
    """What a run has done before a depth: the encoder, and the blocks below."""
    below = f"blocks.{at - 1}.resid_post" if at > 0 else encoded_stage(scene.config)
    return cost.flops(scene, _whole([below])) if at > BELOW and below else 0


def _cells_by_depth(planned: Plan) -> Mapping[int, int]:
    """Depth -> how many cells go on from there; cells that change nothing in time are left out."""
    reached, grid = planned.reached, planned.grid
    if BLOCK not in grid.axes:
        return {min(reached.values()): grid.size} if reached else {}
    blocks = grid.axes[BLOCK]
    depths = [reached[name] for block in blocks if (name := grid.names[block]) in reached]
    return {at: depths.count(at) * (grid.size // len(blocks)) for at in set(depths)}


def _placed(fault: Fault) -> Fault:
    """A fault of the one intervention, at the key of a sweep's request."""
    return replace(fault, place=tuple(_KEYS.get(key, key) for key in fault.place[1:]))
