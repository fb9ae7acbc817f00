"""The Steps between some stages and a later one."""

from collections.abc import Collection
from dataclasses import dataclass

from compute.derivatives.model import model
from compute.derivatives.steps import Step, up_to
from compute.selection import Scene


@dataclass(frozen=True, slots=True)
class Route:
    """The Steps over which `of` depends on the stages `by`, in the order of computation."""

    of: str
    by: frozenset[str]
    steps: tuple[Step, ...]

    @property
    def needs(self) -> frozenset[str]:
        """The stages whose values the pulls read."""
        return frozenset(name for step in self.steps for name in step.needs)

    @property
    def plain_paths(self) -> int:
        """How many ways lead from `by` to `of` over additions alone."""
        ways = dict.fromkeys(self.by, 1)
        for step in self.steps:
            if step.plain:
                own = ways.get(step.stage, 0)
                ways[step.stage] = own + sum(ways.get(name, 0) for name in step.reads)
        return ways.get(self.of, 0)


def route(scene: Scene, of: str, by: Collection[str]) -> Route:
    """The Route of a model; without steps where `of` depends on none of `by`."""
    reached, onward = set(by), []
    for step in up_to(of, model(scene)):
        if reached.intersection(step.reads):
            reached.add(step.stage)
            onward.append(step)
    wanted, back = {of}, []
    for step in reversed(onward):
        if step.stage in wanted:
            back.append(step)
            wanted.update(step.reads)
    return Route(of, frozenset(by), tuple(reversed(back)))
