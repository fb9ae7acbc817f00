"""POST /v1/sizing: what a model costs, from its config alone. The work of one worker thread."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import get_args

from compute.config import ModelConfig
from compute.errors import Fault, QuestionError
from compute.sizing.formats import ActivationFormat, CacheFormat
from compute.sizing.times.attention_traffic import Stored
from compute.sizing.vocabulary import Ask, Conventions, Device, Workload
from schemas.sizing.request import SizingRequest
from schemas.sizing.weights import FormatAsked
from service.settings import Settings
from service.sizing import (
    activations,
    crossovers,
    flops,
    kv_cache,
    parameters,
    roofline,
    sensitivity,
    sized,
    traced,
    training,
    weights,
    workloads,
)
from service.sizing.sized import Sized
from service.state import State

View = dict[str, object]

SECTIONS: tuple[Ask, ...] = get_args(Ask)

DOES_NOT_APPLY = ("no_cache", "sized_only")
"""Codes of refusals that a request which asks for everything is told under `absent`."""

_NO_DEVICE = "roofline needs a device: one of GET /v1/devices, or its numbers."


@dataclass(frozen=True, slots=True)
class Question:
    """A request against its model: everything a section is made from."""

    asked: SizingRequest
    model: Sized
    workload: Workload
    settings: Settings

    @property
    def config(self) -> ModelConfig:
        """The model's."""
        return self.model.config

    @property
    def conventions(self) -> Conventions:
        """How operations are counted."""
        return self.asked.conventions.to_compute()

    @property
    def weights(self) -> FormatAsked:
        """How weights are stored."""
        return self.asked.weights or FormatAsked(dtype=self.asked.dtype)

    @property
    def cache(self) -> CacheFormat:
        """How the cache is stored."""
        return self.asked.cache.to_compute(self.asked.dtype)

    @property
    def activations(self) -> ActivationFormat:
        """How activations are held."""
        said = self.conventions
        asked = self.asked.activations
        return asked.to_compute(self.asked.dtype, said.attention_kernel, said.recompute)

    @property
    def stored(self) -> Stored:
        """How all that moves is stored."""
        return Stored(
            weights=self.weights.to_compute(),
            cache=self.cache.format,
            activation=self.activations.bytes,
            kept=weights.kept_of(self.weights),
        )

    @property
    def device(self) -> Device | None:
        """What it runs on, where the request says so."""
        return None if self.asked.device is None else self.asked.device.to_compute()


def work(asked: SizingRequest, state: State, check: Callable[[], None]) -> View:
    """The members of the answer to a request."""
    model = sized.of(asked.model, state)
    workload = workloads.of(asked, model.config)
    found, absent = _sections(Question(asked, model, workload, state.settings), check)
    return {
        "model": sized.model(model),
        "symbols": [*sized.symbols(model), *workloads.symbols(workload)],
        "workload": {**workloads.view(workload), "dtype": asked.dtype},
        **found,
        "absent": absent,
    }


def _sections(question: Question, check: Callable[[], None]) -> tuple[View, Mapping[str, str]]:
    """Each section that is asked for, null where it is not; what does not apply, and why."""
    asked = question.asked.ask
    found: View = dict.fromkeys(SECTIONS)
    absent: dict[str, str] = {}
    for name in SECTIONS if asked is None else asked:
        check()
        if name == "roofline" and asked is None and question.device is None:
            absent[name] = _NO_DEVICE
            continue
        try:
            found[name] = VIEWS[name](question)
        except QuestionError as error:
            if asked is not None or error.faults[0].code not in DOES_NOT_APPLY:
                raise
            absent[name] = " ".join(fault.detail for fault in error.faults)
    return found, absent


def _flops(question: Question) -> View:
    return flops.view(
        question.config,
        question.workload,
        question.conventions,
        question.asked.side_by_side,
        question.asked.train_tokens,
    )


def _roofline(question: Question) -> View:
    """Times on the device; a QuestionError where the request names none."""
    if question.device is None:
        raise QuestionError([Fault(code="missing", detail=_NO_DEVICE, place=("device",))])
    return roofline.view(
        question.config,
        question.workload,
        question.stored,
        question.device,
        question.conventions,
    )


VIEWS: Mapping[Ask, Callable[[Question], View]] = MappingProxyType(
    {
        "parameters": lambda asked: parameters.view(asked.config),
        "flops": _flops,
        "kv_cache": lambda asked: kv_cache.view(asked.config, asked.workload, asked.cache),
        "weights": lambda asked: weights.view(asked.config, asked.weights),
        "activations": lambda asked: activations.view(
            asked.config, asked.workload, asked.activations
        ),
        "trace": lambda asked: traced.view(
            asked.model, asked.workload, asked.asked.trace, asked.settings
        ),
        "training": lambda asked: training.view(asked.config, asked.asked.training),
        "roofline": _roofline,
        "crossovers": lambda asked: crossovers.view(
            asked.config, asked.workload.batch, asked.stored, asked.cache.page, asked.device
        ),
        "sensitivity": lambda asked: sensitivity.view(
            asked.config, asked.workload, asked.cache, asked.conventions
        ),
    }
)
"""Section -> what makes it."""
