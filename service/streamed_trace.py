"""POST /v1/trace as JSON Lines: a line a stage, as it is computed."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from compute import stages
from compute.selection import Selection, Wanted
from compute.streaming import Streaming
from schemas.trace import TraceRequest
from service import intervening, modelled, streams, views
from service.forms import lines, tensors
from service.modelled import Modelled
from service.plans import Plan, plan
from service.state import State
from service.streams import Step, Steps


def steps(request: TraceRequest, state: State, check: Callable[[], None]) -> Steps | None:
    """The steps of a plain trace: a head, each stage or piece of one, what follows from them.

    None where the answer is known whole before its first line: with interventions, and of a run
    that is only planned.
    """
    if intervening.asks(request) or request.dry_run:
        return None
    return _steps(request, state, check)


def _steps(request: TraceRequest, state: State, check: Callable[[], None]) -> Steps:
    with modelled.of(request.model, request.dtype, state, check) as model:
        planned = plan(request, model)
        yield Step(lines.line(_head(model, planned), model.form), planned.memory_bytes)
        streaming = Streaming(planned.run, checked=request.identities)
        yield from streams.gathered(_stages(model, streaming, planned.run.selection))
        yield Step(lines.line(_end(model, planned, streaming), model.form))


def _stages(model: Modelled, streaming: Streaming, selected: Selection) -> Iterator[bytes]:
    """The lines of the stages; after those of a block an empty one: they do not wait for others."""
    to_come = Counter(map(_block, selected.wanted))
    for made in streaming.stages():
        shown = tensors.tensor(made.wanted, made.values, model.config)
        yield from lines.of_tensor({"stage": made.wanted.name}, shown, model.form)
        block = _block(made.wanted)
        to_come[block] -= 1
        del made, shown  # before the next stage is computed
        if not to_come[block]:
            yield b""


def _block(wanted: Wanted) -> tuple[str, int | None]:
    return stages.stack_of(wanted.name), stages.layer_of(wanted.name)


def _head(model: Modelled, planned: Plan) -> Mapping[str, object]:
    selected = planned.run.selection
    return {
        "model": views.model(model, planned.weighted),
        "input": views.read(model, planned.reading),
        "absent": selected.absent,
        "stages": [wanted.name for wanted in selected.wanted],
    }


def _end(model: Modelled, planned: Plan, streaming: Streaming) -> Mapping[str, object]:
    return {
        "end": True,
        "fully_masked_rows": views.fully_masked_rows(streaming.trace),
        "next_token": views.next_token(model, streaming.trace),
        "identities": streaming.identities(),
        "cost": views.cost(planned.cost),
    }
