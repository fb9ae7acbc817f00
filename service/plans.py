"""From a trace request to its run: everything checked and weighed before anything is made."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import lru_cache

from compute import selection
from compute.cost import Cost
from compute.selection import Scene, Selection
from compute.trace import Run
from compute.types import Selected
from schemas.trace import RunAsked, TraceRequest
from service import limits
from service.forms.form import LINES, SAFETENSORS
from service.modelled import Modelled, Weighted
from service.reading import Reading
from service.traced_limits import check_work
from service.traced_work import Work

_MOST_REMEMBERED = 512
"""Names of a selection whose meaning is remembered."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A run that is within the limits, what it costs, whose model it is, what it reads.

    memory_bytes: of the run and its answer, at most.
    """

    run: Run
    cost: Cost
    memory_bytes: int
    model: Modelled
    weighted: Weighted
    reading: Reading


def seen(request: RunAsked, model: Modelled) -> tuple[Reading, Work]:
    """The input as read, and one run of the selection on it, not weighed yet."""
    read = model.read(request.input)
    scene = model.scene(read.inputs)
    plain = not (request.interventions or request.measures)
    offered = (SAFETENSORS, LINES) if plain else (SAFETENSORS,)
    work = Work(
        scene,
        _selected(request, scene),
        request.dtype,
        form=model.form,
        streamed=plain and model.form.is_lines,
        others=offered if isinstance(request, TraceRequest) else (),
        is_one_of_several=not plain,
    )
    return read, work


def _selected(request: RunAsked, scene: Scene) -> Selection:
    names = request.selected_names()
    if len(names or ()) > _MOST_REMEMBERED or (names is None and request.select is not None):
        return selection.resolve(request.selected(), scene)
    return _of_names(_Names(names, scene.key, scene))


@dataclass(frozen=True, slots=True)
class _Names:
    """Stages named whole, or the default ones, in a scene; equal to others that mean the same."""

    names: tuple[str, ...] | None
    key: Hashable
    scene: Scene = field(compare=False)


@lru_cache(maxsize=64)
def _of_names(asked: _Names) -> Selection:
    """What names mean, remembered: requests of a class are much alike."""
    named = None if asked.names is None else [Selected(name=name) for name in asked.names]
    return selection.resolve(named, asked.scene)


def weighed(request: RunAsked, model: Modelled) -> tuple[Reading, Work]:
    """The same within the limits."""
    read, work = seen(request, model)
    check_work(work, model.settings)
    limits.check_tokens(read.inputs, model.text, model.settings)
    return read, work


def plan(request: RunAsked, model: Modelled) -> Plan:
    """The Plan of a request, or the error that says why there is none.

    In this order: the input, the selection, limits of work, the weights. Weights are made last.
    """
    read, work = weighed(request, model)
    weighted = model.weights(work.memory_bytes)
    return Plan(
        run=Run(
            config=model.config,
            weights=weighted.weights,
            inputs=read.inputs,
            selection=work.selected,
            check=model.check,
        ),
        cost=work.cost,
        memory_bytes=work.memory_bytes,
        model=model,
        weighted=weighted,
        reading=read,
    )
