"""The one driver of equations: it keeps, replaces, streams and stops; the maths knows nothing."""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet

import numpy as np

from compute.types import Array, Equations

Patch = Callable[[Array], Array]
"""A stage's value -> the value the equations go on with. It must not write to its argument."""


def stream(
    equations: Equations, keep: AbstractSet[str], patches: Mapping[str, Patch] | None = None
) -> Iterator[tuple[str, Array]]:
    """Yield each kept stage as soon as it exists; stop after the last one needed.

    Kept arrays are frozen, never copied. Names must exist (check them against the catalogue
    before): one that is never computed raises LookupError at the end.
    """
    replaced = patches or {}
    missing = set(keep)
    sent: Array | None = None
    while missing:
        name, value = _step(equations, sent, missing)
        sent = np.array(replaced[name](value)) if name in replaced else value
        if name in missing:
            missing.discard(name)
            sent.flags.writeable = False
            yield name, sent
    equations.close()


def _step(equations: Equations, sent: Array | None, missing: set[str]) -> tuple[str, Array]:
    # Finite inputs may overflow: the answer then holds inf or nan, and says so.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        try:
            return next(equations) if sent is None else equations.send(sent)
        except StopIteration:
            raise LookupError(f"never computed: {sorted(missing)}") from None


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
