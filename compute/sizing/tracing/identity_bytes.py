"""Bytes of JSON that the identities of a trace take, about and at most."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from compute import _identity_routes as routes
from compute._identity_routes import Route
from compute.config import ModelConfig
from compute.sizing import architecture
from compute.sizing.tracing.json_bytes import LONGEST, NULL

_AROUND = len('{"name":"","formula":"","max_abs":,"rel":,"norm_ratio":,"holds":,"reason":},')
_NUMBERS = 3
_NUMBER = 21
"""Of differences as small as roundings, in float64."""

_REASON = 320
"""Longer than why an identity was not checked: three stages' names, or why there is no stage."""


@dataclass(frozen=True, slots=True)
class Text:
    """Bytes: about, where all were checked, and at most."""

    about: int
    at_most: int


@lru_cache(maxsize=64)
def of(config: ModelConfig) -> Text:
    """All identities of a model's stacks: so many for each block."""
    found = [_of_stack(stack.prefix, stack.config) for stack in architecture.stacks(config)]
    return Text(2 + sum(x.about for x in found), 2 + sum(x.at_most for x in found))


def _of_stack(prefix: str, config: ModelConfig) -> Text:
    alone = replace(config, n_layers=1, layers=())  # of any depth the text is the same
    once = _of_routes(prefix, [routes.embedding(alone), routes.expansion(alone)])
    block = f"{prefix}blocks.{config.n_layers - 1}."
    each = _of_routes(block, list(routes.in_block(config)))
    layers = config.n_layers
    return Text(once.about + layers * each.about, once.at_most + layers * each.at_most)


def _of_routes(prefix: str, listed: Iterable[Route]) -> Text:
    named = [
        _AROUND + len(prefix) + len(route.name) + len(route.formula.encode()) for route in listed
    ]
    checked = _NUMBERS * _NUMBER + NULL + len("true")
    most = _NUMBERS * LONGEST["float64"] + len("false") + NULL
    unchecked = (_NUMBERS + 1) * NULL + _REASON
    return Text(sum(named) + checked * len(named), sum(named) + max(most, unchecked) * len(named))
