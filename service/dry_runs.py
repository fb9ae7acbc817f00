"""A request with `dry_run`: its plan. Nothing is run, and no weight is made.

What is wrong with a request is refused as ever, and so are models and inputs beyond the limits of
size. Beyond the limits of work a plan says which limit, and what would fit.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import cast

from compute.types import DType
from schemas.problems import Advice, BrokenLimit
from service import limits, views
from service.errors import TooLarge
from service.forms.form import Form
from service.limits import Need
from service.modelled import Modelled

View = Mapping[str, object]
Check = Callable[[], object]

_EXACT = 1 << 53
"""Larger whole numbers are written as strings, which keep their digits."""


def answer(
    model: Modelled,
    need: Need,
    dtype: DType,
    advice: str,
    *checks: Check,
    weighed: Need | None = None,
) -> View:
    """The answer for a call that knows what it needs. checks: raise TooLarge beyond other limits;
    weighed: what admission counts, where that is more."""
    check = partial(limits.check_need, weighed or need, dtype, model.settings, advice, model.form)
    return {
        "model": model_of(model),
        "plan": plan(need, dtype, model.form, check, *checks),
    }


def plan(need: Need, dtype: DType, form: Form, *checks: Check) -> View:
    """The plan alone."""
    return exact(
        {
            **limit_view(first_broken(*checks)),
            "form": form_view(form),
            "elements": need.elements,
            "memory": limits.need_bytes(need, dtype, form),
            "flops": need.flops,
            "seconds": limits.seconds(need.flops, need.elements),
            "parts": limits.estimate_of(need, 0)["parts"],
        }
    )


Broken = tuple[BrokenLimit, Advice | None]


def first_broken(*checks: Check) -> Broken | None:
    """The first limit that a check raises TooLarge for, with the advice."""
    for check in checks:
        try:
            check()
        except TooLarge as error:
            found = error.refusal.members
            return cast(Broken, (found["limit"], found.get("advice")))
    return None


def model_of(model: Modelled) -> View:
    """The model as an answer tells it; of its weights it is checked what the request brings."""
    return views.model(model, model.weights(0))


def limit_view(broken: Broken | None) -> View:
    """Whether a request fits, the limit that it breaks, and what would fit."""
    limit, advice = broken or (None, None)
    return {"fits": broken is None, "broken": limit, "advice": advice}


def form_view(form: Form) -> View:
    """The form of an answer."""
    return {"media": form.media, "encoding": form.encoding, "digits": form.digits}


def exact(value: View) -> View:
    """The same with whole numbers beyond 2^53 as strings."""
    return {key: _exact(inner) for key, inner in value.items()}


def _exact(value: object) -> object:
    if isinstance(value, Mapping):
        return exact(value)
    if isinstance(value, list | tuple):
        return [_exact(inner) for inner in value]
    return str(value) if type(value) is int and abs(value) > _EXACT else value
