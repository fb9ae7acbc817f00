"""The one driver of equations: it keeps, replaces, streams and stops; the maths knows nothing."""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextvars import Context
from typing import cast

import numpy as np

from compute.types import Array, Equations, Value

Patch = Callable[[Array], Array]
"""A stage's value -> the value the equations go on with. It must not write to its argument."""

Send = Callable[[Value | None], tuple[str, Value]]


def _quiet() -> Context:
    context = Context()
    context.run(np.seterr, over="ignore", invalid="ignore", divide="ignore", under="ignore")
    return context


# Finite numbers may overflow without a warning: the answer holds inf or nan then, and says so.
# Each run steps in a copy of this context, since no context manager may be open across a yield.
_QUIET = _quiet()


def _nothing() -> None:
    """The check of a run that nobody stops."""


def stream(
    equations: Equations,
    keep: AbstractSet[str],
    patches: Mapping[str, Patch] | None = None,
    check: Callable[[], None] = _nothing,
) -> Iterator[tuple[str, Array]]:
    """Yield each kept stage as soon as it exists; stop after the last one needed.

    `check` is called before each stage and may raise to stop the work. Kept arrays are frozen,
    never copied. Names must exist (check them against the catalogue before): one that is never
    computed raises LookupError at the end.
    """
    replaced = patches or {}
    missing = set(keep)
    quietly = _QUIET.copy()
    send = cast(Send, equations.send)
    sent: Value | None = None
    while missing:
        check()
        try:
            name, value = quietly.run(send, sent)
        except StopIteration:
            raise LookupError(f"never computed: {sorted(missing)}") from None
        sent = np.array(replaced[name](value)) if name in replaced else value
        if name in missing:
            missing.discard(name)
            sent.setflags(write=False)
            yield name, sent
    equations.close()


def prefixed(prefix: str, equations: Equations) -> Equations:
    """The same equations with every stage's name prefixed."""
    try:
        name, value = next(equations)
        while True:
            name, value = equations.send((yield prefix + name, value))
    except StopIteration as end:
        return end.value


def checked(equations: Equations, check: Callable[[], None]) -> Equations:
    """The same equations; `check` is called before each stage and may raise to stop the work."""
    check()
    try:
        name, value = next(equations)
        while True:
            sent = yield name, value
            check()
            name, value = equations.send(sent)
    except StopIteration as end:
        return end.value
