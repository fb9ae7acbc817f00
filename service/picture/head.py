"""The head of a picture: which model ran, with which weights, on what."""

from collections.abc import Iterable, Iterator

from schemas.answers import ModelAnswer, TraceAnswer
from schemas.resolved import StackAnswer
from service.picture import arrangement, words
from service.picture.reading import Reading, Rows

MOST_TOKENS, MOST_NAMES, _DIGEST = 48, 6, 19

Fact = tuple[str, str]
"""What it is, and what is said of it."""


def of_answer(answer: TraceAnswer) -> Iterator[Fact]:
    """Model, config, weights, digest."""
    model = answer["model"]
    name, preset = model["name"], model["preset"]
    yield "model", name or (f"preset {preset}" if preset else "written out")
    yield from _stack("", model["config"])
    encoder = model["config"]["encoder"]
    if encoder is not None:
        yield from _stack("encoder", encoder)
    if model["overrides"]:
        yield "overrides", words.listed(model["overrides"], MOST_NAMES)
    yield "weights", weights(model)
    yield "digest", model["digest"][:_DIGEST]
    dtypes = {tensor["dtype"] for tensor in answer["tensors"].values()}
    if dtypes:
        yield "dtype", ", ".join(sorted(dtypes))


def _stack(name: str, config: StackAnswer) -> Iterator[Fact]:
    yield name or "config", arrangement.config(config)
    if config["layers"]:
        yield "by block", arrangement.layers(config["layers"])


def of_reading(reading: Reading) -> Iterator[Fact]:
    """The input of one row, and the memory beside it."""
    yield from _rows("input", reading.rows, reading.config["d_model"])
    if reading.memory is not None:
        yield from _rows("memory", reading.memory, reading.config["d_model"])


def _rows(what: str, rows: Rows, width: int) -> Iterator[Fact]:
    """Tokens or positions; ids that are not 0, 1, 2 …; types; what is masked."""
    count = words.counted(rows.positions, "position")
    told = f" of {width} numbers" if rows.tokens is None else f": {_some(rows.tokens)}"
    yield what, count + told
    its = "its " if what == "memory" else ""
    ids = list(rows.position_ids)
    if ids != list(range(len(ids))):
        yield f"{its}position ids", _some(map(str, ids))
    if rows.token_types is not None:
        yield f"{its}token types", _some(map(str, rows.token_types))
    if rows.key_mask is not None and not all(rows.key_mask):
        masked = [at for at, kept in enumerate(rows.key_mask) if not kept]
        yield f"{its}masked keys", f"positions {words.listed(masked, MOST_TOKENS)}"


def _some(told: Iterable[str]) -> str:
    pieces = list(told)
    more = len(pieces) - MOST_TOKENS
    shown = " ".join(pieces[:MOST_TOKENS])
    return f"{shown} … and {more:,} more" if more > 0 else shown


def weights(model: ModelAnswer) -> str:
    """Where the weights came from, and which were given or edited."""
    origin = model["weights"]
    if origin["init"] is None:
        told = "of the model"
    else:
        told = (
            "seeded, seed " + str(origin["seed"]) if origin["init"] == "seeded" else origin["init"]
        )
    for word, names in (("given", origin["given"]), ("edited", origin["edited"])):
        told += f"; {word}: {words.listed(names, MOST_NAMES)}" if names else ""
    return told
