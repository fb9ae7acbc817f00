"""FLOPs as members of an answer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction

from compute.config import ModelConfig
from compute.sizing.ledger import Ledger
from compute.sizing.operations import approximations, elementwise, flops, training_flops
from compute.sizing.operations.approximations import Approximation, Priced
from compute.sizing.operations.products import VIEWS
from compute.sizing.operations.training_flops import TrainingFlops
from compute.sizing.quantity import Quantity, letters_of
from compute.sizing.vocabulary import Conventions, Workload
from service.sizing import ledgers

View = dict[str, object]

_LETTERS: Mapping[str, str] = {
    "steps": "new_tokens - 1: the prompt's pass gives the first",
    "S_windows": "pairs of all blocks together, each with its window",
    "n_patches": "patches of an image",
    "F": "the forward pass",
    "F_blocks": "the forward pass, blocks alone",
    "F_attention": "the forward pass, scores and mix alone",
    "F_scores": "the forward pass, scores alone",
    "N": "parameters",
    "N_non_embedding": "parameters without tables and readout",
    "N_active": "parameters that a token meets",
}

_MEANINGS = {
    "prefill": "The prompt's pass, which gives the first new token.",
    "decode": "The steps of the later tokens.",
    **VIEWS,
}


def view(
    config: ModelConfig,
    workload: Workload,
    conventions: Conventions,
    side_by_side: bool,
    train_tokens: int | None = None,
) -> View:
    """The member `flops`; with `train_tokens` training over so many tokens too."""
    asked = (config, workload, conventions)
    priced = approximations.side_by_side(config, workload) if side_by_side else None
    forward, trained = flops.forward(*asked), training_flops.train(*asked)
    generated = flops.generation(*asked) if workload.new else None
    step = flops.decode(*asked) if flops.decodes(config) else None
    rules = approximations.of(*asked)
    ledgers_made = [x for x in (forward, trained.hardware, generated, step) if x is not None]
    made = [part.quantity for found in ledgers_made for part in found.parts]
    positions = workload.batch * workload.tokens
    steps = None if train_tokens is None else Fraction(train_tokens, positions)
    return {
        "conventions": asdict(conventions),
        "forward": _pass(forward),
        "decode": None if step is None else _step(step, workload),
        "generation": None if generated is None else _pass(generated),
        "train": _train(trained, train_tokens),
        "approximations": [_approximation(found) for found in rules],
        "symbols": list(_symbols([*made, *(rule.value for rule in rules)])),
        "side_by_side": None if priced is None else _priced(priced, steps),
        "elementwise_costs": dict(elementwise.COSTS),
        "excluded": list(_excluded(*asked)),
    }


def _step(found: Ledger, workload: Workload) -> View:
    """A cached step, in whose formulas n and past are its own."""
    behind = workload.cached + workload.tokens
    return {
        **_pass(found),
        "symbols": [
            {"letter": "n", "meaning": "positions of the step", "value": 1},
            {"letter": "past", "meaning": "cached + tokens", "value": behind},
        ],
    }


def _symbols(made: Sequence[Quantity]) -> Iterator[View]:
    """The letters that neither the config nor the workload says."""
    found = dict.fromkeys(pair for quantity in made for pair in letters_of(quantity))
    for letter, value in found:
        window = letter.partition("_window_")[2]
        if letter.startswith("w_"):
            meaning: str | None = "a window, in positions"
        else:
            meaning = f"blocks whose window is {window}" if window else _LETTERS.get(letter)
        if meaning is not None:
            yield {"letter": letter, "meaning": meaning, "value": ledgers.number(value)}


def _pass(found: Ledger) -> View:
    views = {
        name: {"total": ledgers.amount(found.view(name), found.unit), "meaning": _MEANINGS[name]}
        for name in found.views
    }
    return {**ledgers.ledger(found), "views": views}


def _train(found: TrainingFlops, tokens: int | None) -> View:
    unit = found.model.unit
    return {
        "model": ledgers.amount(found.model.total, unit),
        "hardware": ledgers.amount(found.hardware.total, unit),
        "parts": ledgers.parts(found.hardware),
        "train_tokens": None if tokens is None else _over(found, tokens),
    }


def _over(found: TrainingFlops, tokens: int) -> View:
    model, hardware = found.over(tokens)
    return {
        "tokens": tokens,
        "model": ledgers.amount(model, found.model.unit),
        "hardware": ledgers.amount(hardware, found.model.unit),
    }


def _approximation(found: Approximation) -> View:
    return {
        "name": found.name,
        "of": found.of,
        "value": ledgers.amount(found.value.value, "FLOP", "estimate"),
        "formula": found.value.formula,
        "substituted": found.value.substituted,
        "relative_error": found.relative_error,
        "source": found.source,
    }


def _priced(found: Sequence[Priced], steps: Fraction | None) -> list[View]:
    return [
        {
            "preset": each.preset,
            "conventions": asdict(each.conventions),
            "forward": ledgers.amount(each.forward, flops.unit(each.conventions)),
            "train": ledgers.amount(each.train, flops.unit(each.conventions)),
            "train_tokens": None
            if steps is None
            else ledgers.amount(each.train * steps, flops.unit(each.conventions)),
        }
        for each in found
    ]


def _excluded(config: ModelConfig, workload: Workload, conventions: Conventions) -> Iterator[str]:
    """What is not in the numbers, and what they take for granted."""
    if conventions.elementwise == "none":
        yield "Softmax, norms, activations, gates, additions to the stream."
    if not conventions.bias_adds:
        yield "Additions of biases."
    if conventions.embedding_lookup == "free":
        yield "The lookup of embeddings."
    if conventions.causal != "exact":
        yield f"Windows: causal = {conventions.causal} takes no notice of them."
    yield "Scaling, masks, rotations and biases of scores, caps; a router's softmax and choice."
    yield "Sampling; the optimizer's step; communication."
    yield from _of_memory(config, workload)
    rows, position = workload.cached + workload.tokens, config.position
    if position.kind == "learned" and rows >= position.n_positions and flops.decodes(config):
        yield "decode: the table of positions has no row for its position; the number holds."
    if config.extras:
        yield "What extras compute: only their numbers are known."


def _of_memory(config: ModelConfig, workload: Workload) -> Iterator[str]:
    if not config.cross_attention:
        return
    made = "decode and later steps of generation"
    places = f"forward, {made}" if workload.cached else made
    own = "The encoder, and W_K and W_V" if config.encoder is not None else "W_K and W_V"
    yield f"{own} of cross-attention in {places}: the memory's keys and values are cached."
