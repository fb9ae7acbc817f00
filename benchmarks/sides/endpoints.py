"""What people put on the web around the same function, in FastAPI, and a hello world.

    python -m benchmarks.sides.endpoints NAME PORT

typed: Pydantic lists in, response_model out. naive: `.tolist()` and the default JSON.
hello: a hello world that imports NumPy. ticking: the product, and how late its loop was.
"""

import sys
from collections.abc import Callable, Mapping

import numpy as np
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel, create_model
from starlette.types import ASGIApp

from benchmarks.sides import kept

Rows = list[list[float]]


class Asked(BaseModel):
    """The rows that enter the block."""

    tensor: Rows


def hello() -> ASGIApp:
    """A hello world."""
    app = FastAPI()

    @app.get("/")
    async def answer() -> dict[str, str]:
        return {"hello": "world", "numpy": np.__version__}

    return app


def typed() -> ASGIApp:
    """An endpoint as FastAPI's documentation writes it."""
    app, compute = FastAPI(), _compute()
    heads = ("attn.q", "attn.k", "attn.v", "attn.scores", "attn.pattern", "attn.z")
    shapes = {name: list[Rows] if name in heads else Rows for name in kept.STAGES}
    fields = {name.replace(".", "_"): (shape, ...) for name, shape in shapes.items()}
    model = create_model("Stages", **fields)  # type: ignore[call-overload]

    @app.post("/", response_model=model)
    async def answer(asked: Asked) -> object:
        made = compute(np.asarray(asked.tensor, np.float32))
        return {_word(name): values.tolist() for name, values in made.items()}

    return app


def naive() -> ASGIApp:
    """An endpoint as it is written first: a dictionary goes back."""
    app, compute = FastAPI(), _compute()

    @app.post("/")
    def answer(asked: dict[str, Rows]):  # type: ignore[no-untyped-def]
        made = compute(np.asarray(asked["tensor"], np.float32))
        return {_word(name): values.tolist() for name, values in made.items()}

    return app


def ticking() -> ASGIApp:
    """The product with its settings from the environment, beside a clock on the same loop."""
    from benchmarks.sides.ticking import Ticking  # noqa: PLC0415 - the product is imported here
    from service.app import create_app  # noqa: PLC0415

    return Ticking(create_app())


def _compute() -> Callable[[np.ndarray], Mapping[str, np.ndarray]]:
    from benchmarks.sides import by_hand  # noqa: PLC0415 - hello does without it

    w = by_hand.packed()
    return lambda rows: by_hand.printable(rows, w, kept.SMALL.heads)


def _word(name: str) -> str:
    return name.removeprefix("blocks.0.").replace(".", "_")


APPS = {"hello": hello, "typed": typed, "naive": naive, "ticking": ticking}


if __name__ == "__main__":
    uvicorn.run(APPS[sys.argv[1]](), host="127.0.0.1", port=int(sys.argv[2]), log_level="error")
