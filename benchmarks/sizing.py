"""Sizing calls over their limits of time: 20 ms at the 99th percentile, an inverse query 1 s.

    python benchmarks/sizing.py [--times 300]

Each request that a call's description shows, parsed, worked out and encoded in process by one
thread. Before each one the model's depth is changed, so that nothing of it was counted before; a
column has the same with nothing changed. Then: POST /v1/sizing as n and n_layers grow, and the
inverse from 1e6 to 1e12 parameters. A ratio is the time over its limit, in one run.
"""

import argparse
import copy
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import settled

LIMIT, OF_INVERSE = 0.020, 1.0
_INVERSE = "/sizing/inverse"

Ask = Callable[[bytes], object]


def main(asked: argparse.Namespace) -> int:
    """Print a line for each request; exit 1 where one is above its limit."""
    from service import commands  # noqa: PLC0415 - after the settings
    from service.app import SIZING  # noqa: PLC0415

    commands.settle()
    worst = 0.0
    for module in SIZING:
        worst = max([worst, *_of_call(module, asked.times)])
    worst = max([worst, *_growing(asked.times), *_inverse()])
    print(f"worst ratio to its limit: {worst:.2f}")
    return int(worst > 1)


def _of_call(module: Any, times: int) -> Iterator[float]:  # noqa: ANN401 - a route's module
    (route,) = module.router.routes
    shown = route.openapi_extra["requestBody"]["content"]["application/json"]["examples"]
    ask, limit = _asking(module), OF_INVERSE if route.path == _INVERSE else LIMIT
    for name, example in shown.items():
        cold = _quantile([_timed(ask, _changed(example["value"], at)) for at in range(times)])
        warm = _quantile([_timed(ask, example["value"]) for _ in range(times)])
        ratio = cold / limit
        label = f"{route.path} {name}"
        print(f"{label:36} p99 {1e3 * cold:7.2f} ms, seen before {1e3 * warm:7.2f} ms, {ratio:.2f}")
        yield ratio


def _asking(module: Any) -> Ask:  # noqa: ANN401 - a route's module
    from service import bodies, calls, state  # noqa: PLC0415 - after the settings
    from service.openapi import REQUESTS  # noqa: PLC0415
    from service.settings import Settings  # noqa: PLC0415

    (route,) = module.router.routes
    schema = route.openapi_extra["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    (model,) = (each for each in REQUESTS if schema.endswith(f"/{each.__name__}"))
    here = state.make(Settings())
    return lambda body: calls.answer(
        bodies.Sent(body), model, module.question.work, here, lambda: None
    )


def _timed(ask: Ask, request: Mapping[str, Any]) -> float:
    import orjson  # noqa: PLC0415 - after the settings

    body = orjson.dumps(request)
    start = time.perf_counter()
    ask(body)
    return time.perf_counter() - start


def _quantile(times: list[float]) -> float:
    return sorted(times)[int(0.99 * len(times))]


def _changed(request: dict[str, Any], at: int) -> dict[str, Any]:
    """The request with models of another depth, so that none was seen before."""
    made = copy.deepcopy(request)
    for model in _models(made):
        model["config"] = {**model.get("config", {}), "n_layers": 40 + at}
    return made


def _models(node: object) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        named = any(isinstance(node.get(key), str) for key in ("preset", "name"))
        if named and "value" not in node:
            yield node
        for key, value in node.items():
            if key != "device":
                yield from _models(value)
    elif isinstance(node, list):
        for value in node:
            yield from _models(value)


def _growing(times: int) -> Iterator[float]:
    """The same request as n and n_layers grow a thousandfold, over the first of its row."""
    from service.routes import sizing  # noqa: PLC0415 - after the settings

    ask = _asking(sizing)
    grown = {"tokens": (1 << 8, 1 << 20, 1 << 40), "n_layers": (8, 1 << 12, 1 << 20)}
    for key, values in grown.items():
        told = []
        for value in values:
            config = {"n_layers": value} if key == "n_layers" else {}
            said = {"tokens": value} if key == "tokens" else {}
            model = {"preset": "llama-3.1-8b", "config": config}
            told.append(_quantile([_timed(ask, {"model": model, **said}) for _ in range(times)]))
        print(f"{key:>8} {values}: " + ", ".join(f"{1e3 * x:.2f} ms" for x in told))
        yield told[-1] / LIMIT


def _inverse() -> Iterator[float]:
    """Targets of parameters from 1e6 to 1e12, two styles."""
    from service.routes import sizing_inverse  # noqa: PLC0415 - after the settings

    ask = _asking(sizing_inverse)
    for preset in ("gpt2", "llama-2-7b"):
        times = [
            _timed(ask, {"style": {"preset": preset}, "target": {"parameters": 10**power}})
            for power in range(6, 13)
        ]
        print(f"inverse, {preset}, 1e6 … 1e12: at most {1e3 * max(times):.1f} ms")
        yield max(times) / OF_INVERSE


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=300)
    return parser.parse_args()


if __name__ == "__main__":
    settled.restart()
    sys.exit(main(_arguments()))
