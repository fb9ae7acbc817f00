"""A (512, 768) input parsed: strictly, as the service does it, and by orjson and NumPy alone."""

from collections.abc import Callable, Mapping

import numpy as np
import orjson

from benchmarks.sides import requests
from schemas.trace import TraceRequest
from service import bodies
from service.settings import Settings

_SHAPE = (512, 768)


def strict(*, packed: bool) -> Callable[[], object]:
    """A trace request's body as the request model, its tensor an array."""
    given = requests.packed(*_SHAPE) if packed else requests.tensor(*_SHAPE)
    sent, settings = bodies.Sent(_body(given)), Settings()
    return lambda: bodies.parse(sent, TraceRequest, settings)


def plain() -> Callable[[], object]:
    """orjson.loads, then np.asarray."""
    body = _body(requests.tensor(*_SHAPE))
    return lambda: np.asarray(orjson.loads(body)["input"]["tensor"], np.float32)


def _body(given: Mapping[str, object]) -> bytes:
    request = {"model": {"preset": "gpt2"}, "input": given}
    return orjson.dumps(request, option=orjson.OPT_SERIALIZE_NUMPY)
