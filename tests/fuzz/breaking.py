"""What faults of configs are made of."""

from collections.abc import Callable

from fuzz.parts import Drawn

OfConfig = Callable[[Drawn], str | None]
"""Changes a config so that one rule breaks, and gives its place; None where it cannot."""


def part(config: Drawn, name: str, **fields: object) -> None:
    """Put fields into a part of a config."""
    config[name] = {**config.get(name, {}), **fields}


def is_parallel(config: Drawn) -> bool:
    """Whether a block's parts read the same stream."""
    return bool(config.get("topology") == "parallel")
