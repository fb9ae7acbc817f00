"""What a trace and its answer really hold in each form, against what is weighed for it."""

import tracemalloc
from dataclasses import replace
from typing import Any

import pytest

from compute import cost
from schemas.trace import TraceRequest
from service import calls, modelled, plans, state, traces
from service.forms.form import JSON, LINES, SAFETENSORS, Form
from service.settings import Settings
from service.traced_work import Work

FORMS = {"json": Form(JSON), "base64": Form(JSON, "base64"), "safetensors": Form(SAFETENSORS)}
Json = dict[str, Any]


def request_of(config: Json, n: int, **asked: object) -> TraceRequest:
    scale = asked.pop("scale", 0.5)
    d = config["d_model"]
    rows = [[scale * ((7 * i + j) % 5 - 2) for j in range(d)] for i in range(n)]
    model = {"config": config, "weights": asked.pop("weights", {"init": "seeded"})}
    return TraceRequest.model_validate({"model": model, "input": {"tensor": rows}, **asked})


def work_of(request: TraceRequest, form: Form) -> Work:
    own = replace(state.make(Settings()), form=form)
    with modelled.of(request.model, request.dtype, own, lambda: None) as model:
        return plans.seen(request, model)[1]


def peak(request: TraceRequest, form: Form) -> int:
    """The most bytes alive at once while a request is run and its answer written."""
    own = replace(state.make(Settings(memory_bytes=1 << 40)), form=form)
    tracemalloc.start()
    try:
        calls.encoded(traces.work(request, own, lambda: None), form)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


SMALL: Json = {"d_model": 128, "n_layers": 3, "attention": {"n_heads": 8}}
WIDE: Json = {"d_model": 64, "attention": {"n_heads": 4}}
REQUESTS = {
    "every stage": request_of(SMALL, 160),
    "every stage in float64": request_of(SMALL, 160, dtype="float64"),
    "few digits": request_of(SMALL, 160, format={"digits": 4}),
    "one large stage": request_of(WIDE, 900, select=["attn.scores"]),
    "infinities everywhere": request_of(
        {**SMALL, "n_layers": 2, "norm": {"kind": "none"}},
        160,
        scale=1.6e38,
        weights={"init": "identity"},
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", REQUESTS)
def test_a_trace_holds_no_more_than_is_weighed(name: str, form: str) -> None:
    request = REQUESTS[name]
    own = replace(FORMS[form], digits=request.format.digits)
    assert peak(request, own) <= work_of(request, own).memory_bytes


def test_binary_forms_are_weighed_less_than_text() -> None:
    request = REQUESTS["every stage in float64"]
    weighed = [work_of(request, form).memory_bytes for form in FORMS.values()]
    assert weighed == sorted(weighed, reverse=True)
    assert len(set(weighed)) == len(weighed)


def test_a_stream_is_weighed_by_two_blocks_whatever_the_depth() -> None:
    def held(blocks: int) -> tuple[int, int]:
        """(bytes weighed beside the weights, bytes of the stages of one block)."""
        work = work_of(request_of({**SMALL, "n_layers": blocks}, 160), Form(LINES))
        of_block = cost.kept_parts(work.scene, work.selected, "float32")["blocks.0."]
        return work.memory_bytes - work.cost.weight_bytes, of_block

    (few, block), (many, _) = held(2), held(12)
    assert many - few < 100_000  # of the head and the end, which grow with the depth
    plain = work_of(request_of({**SMALL, "n_layers": 12}, 160), Form(LINES))
    whole = replace(plain, streamed=False)
    saved = whole.memory_bytes - plain.memory_bytes
    assert saved > 10 * block


def test_figures_of_requests_that_are_alike_are_the_same_and_of_others_are_not() -> None:
    first, again = (work_of(request_of(SMALL, 16), FORMS["json"]) for _ in range(2))
    assert first.cost is again.cost
    others = [
        work_of(request_of(SMALL, 17), FORMS["json"]),
        work_of(request_of(SMALL, 16, dtype="float64"), FORMS["json"]),
        work_of(request_of(SMALL, 16, select=["attn.z"]), FORMS["json"]),
        work_of(request_of(SMALL, 16, select=[{"name": "attn.z", "head": [1]}]), FORMS["json"]),
        work_of(request_of(SMALL, 16, select=[{"name": "attn.z", "head": [2]}]), FORMS["json"]),
        work_of(request_of(SMALL, 16, select=[{"name": "attn.z", "summary": True}]), Form(JSON)),
        work_of(request_of({**SMALL, "n_layers": 2}, 16), FORMS["json"]),
        work_of(request_of(SMALL, 16), FORMS["safetensors"]),
    ]
    assert len({id(work.cost) for work in [first, *others]}) == 1 + len(others)
