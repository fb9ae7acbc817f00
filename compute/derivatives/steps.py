"""A Step: a stage, what it is computed from, and how its cotangent is pulled back to that.

The Steps of a config are known before any weight is: a pull reads weights and setting from `Here`,
when it is called.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace

from compute.block_weights import BlockWeights
from compute.setting import Setting
from compute.types import Array, Value
from compute.weights import ModelWeights, StackWeights

Values = Sequence[Value]
Rows = range
"""Some of a stage's rows, one after another."""

Pull = Callable[[Array, Values, "Here"], tuple[Array, ...]]
"""(cotangent of a stage, the values it needs, where it is) -> cotangents of what it reads."""


@dataclass(frozen=True, slots=True)
class Step:
    """A stage is computed from what it `reads`; its pull needs the values of the stages `needs`.

    mixes: those of them whose every row enters each row of the stage: keys and values.
    plain: the stage is what it reads, or their sum, so a cotangent reaches each of them as it is.
    A name that is no stage of the catalogue stands for a sum that has no name there; it is never
    among `needs`.
    """

    stage: str
    reads: tuple[str, ...]
    needs: tuple[str, ...]
    pull: Pull
    mixes: tuple[str, ...] = ()
    plain: bool = False


Steps = Generator[Step, None, str]
"""Steps in the order of computation; returns the name of the last result."""


@dataclass(frozen=True, slots=True, eq=False)
class Here:
    """Where a step is: the model's weights, its stack's, and in a block the layer's setting.

    rows: those of the stage that its cotangent is of; None: all.
    """

    model: ModelWeights
    stack: StackWeights
    settings: Sequence[Setting]
    layer: int
    rows: Rows | None = None

    @property
    def block(self) -> BlockWeights:
        """The weights of the step's block."""
        return self.stack.blocks[self.layer]

    def cut(self, x: Value) -> Value:
        """What a setting has for every row (..., n, i), for the rows; what serves all as it is."""
        if self.rows is None or x.shape[-2] == 1:
            return x
        return x[..., self.rows.start : self.rows.stop, :]

    @property
    def setting(self) -> Setting:
        """The setting of the step's block."""
        return self.settings[self.layer]


def added(name: str, *reads: str) -> Steps:
    """name = Σ reads: the cotangent reaches each as it is."""
    yield Step(name, reads, (), _to_each(len(reads)), plain=True)
    return name


def _to_each(count: int) -> Pull:
    return lambda c, values, here: (c,) * count


def given(name: str) -> Step:
    """A stage that is computed from nothing that a derivative passes through."""
    return Step(name, (), (), lambda c, values, here: ())


def prefixed(prefix: str, steps: Steps) -> Steps:
    """The same steps with every name prefixed."""
    try:
        while True:
            yield _with(prefix, next(steps))
    except StopIteration as end:
        return prefix + str(end.value)


def _with(prefix: str, step: Step) -> Step:
    return replace(
        step,
        stage=prefix + step.stage,
        reads=tuple(prefix + name for name in step.reads),
        needs=tuple(prefix + name for name in step.needs),
        mixes=tuple(prefix + name for name in step.mixes),
    )


def up_to(stage: str, steps: Iterator[Step]) -> Iterator[Step]:
    """The steps up to a stage's own."""
    for step in steps:
        yield step
        if step.stage == stage:
            return
