"""The head of a picture: which model ran, with which weights, on what."""

from collections.abc import Iterable, Iterator

from schemas.answers import ModelAnswer, TraceAnswer
from schemas.resolved import AttentionAnswer, ConfigAnswer
from service.picture import words
from service.picture.reading import Reading

MOST_TOKENS, MOST_NAMES, _DIGEST = 48, 6, 19

Fact = tuple[str, str]
"""What it is, and what is said of it."""


def of_answer(answer: TraceAnswer) -> Iterator[Fact]:
    """Model, config, weights, digest."""
    model = answer["model"]
    name, preset = model["name"], model["preset"]
    yield "model", name or (f"preset {preset}" if preset else "written out")
    yield "config", config(model["config"])
    if model["overrides"]:
        yield "overrides", words.listed(model["overrides"], MOST_NAMES)
    yield "weights", weights(model)
    yield "digest", model["digest"][:_DIGEST]
    dtypes = {tensor["dtype"] for tensor in answer["tensors"].values()}
    if dtypes:
        yield "dtype", ", ".join(sorted(dtypes))


def of_reading(reading: Reading) -> Iterator[Fact]:
    """The input of one row: its tokens or its positions, and ids that are not 0, 1, 2 …"""
    count = words.counted(reading.positions, "position")
    if reading.tokens is None:
        yield "input", f"{count} of {reading.config['d_model']} numbers"
    else:
        yield "input", f"{count}: {_some(reading.tokens)}"
    ids = list(reading.position_ids)
    if ids != list(range(len(ids))):
        yield "position ids", _some(map(str, ids))
    if reading.key_mask is not None and not all(reading.key_mask):
        masked = [at for at, kept in enumerate(reading.key_mask) if not kept]
        yield "masked keys", f"positions {words.listed(masked, MOST_TOKENS)}"


def _some(told: Iterable[str]) -> str:
    pieces = list(told)
    more = len(pieces) - MOST_TOKENS
    shown = " ".join(pieces[:MOST_TOKENS])
    return f"{shown} … and {more:,} more" if more > 0 else shown


def config(told: ConfigAnswer) -> str:
    """A config in a line: blocks, width, heads, norm, position, ffn, vocab."""
    norm, position, ffn = told["norm"], told["position"], told["ffn"]
    return " · ".join(
        [
            words.counted(told["n_layers"], "block"),
            f"d_model {told['d_model']:,}",
            *_attention(told["attention"]),
            "no norm" if norm["kind"] == "none" else f"{norm['kind']} ({norm['placement']})",
            "no positions" if position["kind"] == "none" else f"{position['kind']} positions",
            "no ffn"
            if ffn["kind"] == "none"
            else f"{ffn['kind']} ffn {ffn['d_ff']:,} {ffn['activation']}",
            "no vocab" if told["vocab"] is None else f"vocab {told['vocab']:,}",
        ]
    )


def _attention(told: AttentionAnswer) -> Iterator[str]:
    if told["kind"] == "none":
        yield "no attention"
        return
    heads, groups = told["n_heads"], told["n_kv_heads"]
    shared = f" on {words.counted(groups, 'kv_head')}" if groups != heads else ""
    values = f", values {told['d_value']}" if told["d_value"] != told["d_head"] else ""
    yield f"{words.counted(heads, 'head')} of {told['d_head']}{values}{shared}"
    window = f", window {told['window']}" if told["window"] is not None else ""
    yield f"{told['mask']} mask{window}"


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
