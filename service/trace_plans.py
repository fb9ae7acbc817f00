"""A dry run of a trace: its stages, what is kept of its run, where that stops, what all costs."""

from collections.abc import Iterator, Mapping
from functools import partial

from compute import cost, selection, stages
from compute.cost import BYTES, Cost
from compute.interventions import intervened_cost
from compute.interventions.intervened import Question
from compute.selection import Wanted
from compute.sizing.tracing import order, wire_bytes
from compute.sizing.tracing.shown import Shown
from compute.sizing.tracing.wire_bytes import Text
from compute.types import AXES, DType
from schemas.trace import TraceRequest
from service import dry_runs, intervening, limits, plans, traced_limits
from service.forms.form import JSON, LINES, SAFETENSORS, Form
from service.modelled import Modelled
from service.traced_work import Work

View = Mapping[str, object]

_FORMS = {
    "json": Form(JSON),
    "base64": Form(JSON, "base64"),
    "safetensors": Form(SAFETENSORS),
    "lines": Form(LINES),
}


def answer(request: TraceRequest, model: Modelled) -> View:
    """The members of the answer."""
    read, work = plans.seen(request, model)
    price, memory, runs = work.cost, work.memory_bytes, 1
    checks: list[dry_runs.Check] = [
        partial(traced_limits.check_work, work, model.settings),
        partial(limits.check_tokens, read.inputs, model.text, model.settings),
    ]
    if intervening.asks(request):
        question = intervening.question_of(request, model, read, work)
        price = intervened_cost.estimate(question, request.dtype)
        memory = limits.need_bytes(intervening.need_of(price, work), request.dtype, model.form)
        runs = _runs(question)
        checks.append(partial(intervening.check_all, price, work, model))
    plan = {
        **dry_runs.limit_view(dry_runs.first_broken(*checks)),
        "form": dry_runs.form_view(model.form),
        "elements": price.elements,
        "memory": memory,
        "flops": price.flops,
        "seconds": limits.seconds(price.flops, price.elements),
        "parts": traced_limits.estimate(work, with_weights=False)["parts"],
        **_stages(work),
        "runs": runs,
        "weights": {
            "numbers": price.weight_bytes // BYTES[work.dtype],
            "bytes": price.weight_bytes,
        },
        "bytes": _bytes(work, price),
    }
    return {"model": dry_runs.model_of(model), "plan": dry_runs.exact(plan)}


def _runs(question: Question) -> int:
    """The shown one, those that bring values, and those beside it."""
    beside = (question.of_clean(), question.of_other())
    return 1 + len(question.of_donors()) + sum(part is not None for part in beside)


def _stages(work: Work) -> View:
    config, selected = work.scene.config, work.selected
    return {
        "stages": [dict(_stage(each, work)) for each in order.made(selected, config)],
        "kept": order.kept(selected, config),
        "last": order.last(selected, config),
        "absent": selected.absent,
    }


def _stage(wanted: Wanted, work: Work) -> Iterator[tuple[str, object]]:
    lengths = work.scene.lengths_of(wanted.name)
    shown = Shown(wanted, work.scene, work.dtype)
    axes = stages.axes_of(wanted.stage, "b" in lengths)
    count = len(axes) - 1 if wanted.summary else len(axes)
    yield "name", wanted.name
    yield "axes", [AXES[x] for x in axes[:count]]
    yield "shape", shown.shape[:count]
    yield "dtype", _dtype(wanted, work.dtype)
    yield "elements", cost.answer_elements(wanted, lengths)
    yield "bytes", wire_bytes.raw(shown)
    if wanted.where:
        yield "index", {AXES[x]: wanted.where[x] for x in axes if x in wanted.where}
    if wanted.summary:
        yield "summary", True
    if wanted.stage.derived:
        yield "made_of", selection.sources(wanted, work.scene.config)


def _dtype(wanted: Wanted, dtype: DType) -> str:
    return "int64" if wanted.stage.name == "ffn.experts" else dtype


def _bytes(work: Work, price: Cost) -> View:
    """Of the answer, which with interventions shows each tensor so many times."""
    raw = {True: 0, False: 0}
    for each in work.selected.wanted:
        raw[each.summary] += wire_bytes.raw(Shown(each, work.scene, work.dtype))
    once = sum(price.by_stage.values())
    times = price.elements // once if once else 1
    sizes = {name: work.answer_text(form) * times for name, form in _FORMS.items()}
    return {
        "tensors": times * raw[False],
        "summaries": times * raw[True],
        "answer": {name: _size(text) for name, text in sizes.items()},
    }


def _size(text: Text) -> View:
    return {"about": text.about, "at_most": text.at_most}
