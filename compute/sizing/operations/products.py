"""FLOPs of products with weights and of attention's two products, part by part.

A product of B·rows rows with a matrix of `used` numbers takes 2·B·rows·used FLOP, a multiply and
an add for each; of attention each pair takes 2·k in Q Kᵀ and 2·v in A V, for each of h heads: the
heads of queries, however few keys' heads there are.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from compute.config import ModelConfig, reads_out
from compute.sizing import architecture
from compute.sizing.architecture import Stack
from compute.sizing.holdings import Holding, Reads, holdings
from compute.sizing.ledger import Part
from compute.sizing.operations.passes import Pass
from compute.sizing.quantity import Quantity, number, q, total
from compute.sizing.vocabulary import Causal, Conventions

VIEWS: Mapping[str, str] = MappingProxyType(
    {
        "linear": "Products with weights, but for the readout.",
        "attention": "Q Kᵀ and A V of self-attention and cross-attention.",
        "head": "The readout: a masked language model's head, the table, pooler and classes.",
        "embedding": "The lookup, where it is counted as a product.",
        "elementwise": "Softmax, norms, activations, gates, additions to the stream.",
        "bias_adds": "Additions of biases.",
        "blocks": "Whatever is done in blocks, the encoder's too.",
        "encoder": "Whatever the encoder does.",
    }
)
"""View -> what it is the sum of."""

MOST_WINDOWS = 16
"""More windows than this are told as one part."""


@dataclass(frozen=True, slots=True)
class Alike:
    """Blocks whose attention counts the same pairs: what ends their parts' names, how many."""

    suffix: str
    count: int
    letter: str
    pairs: Quantity


def alike(stack: Stack, run: Pass, causal: Causal) -> tuple[Alike, ...]:
    """The blocks of a stack by the pairs of their attention, those without a window first."""
    config = stack.config
    counted, mask = run.memory_pairs if stack.is_encoder else run.own, config.attention.mask
    if config.attention.kind == "none":
        return ()
    windows = architecture.windows(config)
    if causal != "exact" or len(windows) == 1:
        return (Alike("", config.n_layers, stack.letter, counted(mask, windows[0][0], causal)),)
    found = [
        Alike(f".{name}", count, f"{stack.letter}_{name}", counted(mask, window, causal))
        for window, count in windows
        for name in (f"window_{'none' if window is None else window}",)
    ]
    return tuple(found) if len(found) <= MOST_WINDOWS else (_merged(found),)


def _merged(found: list[Alike]) -> Alike:
    """All of them as one: S_windows, the pairs of every block together."""
    every = total(number(each.count) * each.pairs for each in found)
    return Alike("", 1, "1", every.named("S_windows"))


def rows_of(stack: Stack, reads: Reads, run: Pass) -> Quantity:
    """The positions of a sequence that meet a tensor: none in an encoder that does not run."""
    if stack.is_encoder and not run.source.value:
        return number(0)
    return {
        "rows": run.rows,
        "source": run.source,
        "memory": run.source,
        "readout": run.readout,
        "first": run.runs,
        "patches": q("n_patches", _patches(stack.config)),
        "lookup": number(0),
        "none": number(0),
    }[reads]


def _patches(config: ModelConfig) -> int:
    class_token = config.patches is not None and config.patches.class_token
    return architecture.patch_rows(config) - int(class_token)


def of_stack(
    config: ModelConfig, stack: Stack, run: Pass, conventions: Conventions
) -> Iterator[Part]:
    """The products of one of a model's stacks, in order of use."""
    factor = number(conventions.multiply_add)
    attention = {
        f"{stack.prefix}blocks.attn.W_O": _attention,
        f"{stack.prefix}blocks.cross.W_O": _cross,
    }
    for held in held_by(config, stack):
        if held.id in attention:
            yield from attention[held.id](stack, run, conventions)
        if held.role == "matrix":
            rows = rows_of(stack, held.reads, run)
            yield _part(held, factor * run.batch * rows * held.used)


def held_by(config: ModelConfig, stack: Stack) -> Iterator[Holding]:
    """What one stack of a model holds."""
    return (x for x in holdings(config) if x.id.startswith("encoder.") == stack.is_encoder)


def shared(config: ModelConfig, run: Pass, conventions: Conventions) -> Iterator[Part]:
    """What is done with the table, and by the encoder with what it shares with the decoder."""
    factor, held = number(conventions.multiply_add), {x.id: x for x in holdings(config)}
    looked_up = conventions.embedding_lookup == "matmul"
    places = [("", run.rows)]
    if config.encoder is not None and config.encoder.patches is None:
        places.append(("encoder.", run.source))
    for prefix, rows in places:
        if looked_up and "embed.W_E" in held:
            each = factor * run.batch * rows * held["embed.W_E"].size
            yield Part(id=f"{prefix}embed.W_E", each=each, views=views_of(prefix, "embedding"))
        if prefix and "embed_projection.W" in held:
            each = factor * run.batch * rows * held["embed_projection.W"].size
            yield Part(id="encoder.embed_projection.W", each=each, views=views_of(prefix, "linear"))


def tied_readout(config: ModelConfig, run: Pass, conventions: Conventions) -> Iterator[Part]:
    """The readout by the table of tokens: the same FLOPs as by a matrix of its own."""
    if not (config.tied and reads_out(config)):
        return
    table = next(held for held in holdings(config) if held.id == "embed.W_E")
    each = number(conventions.multiply_add) * run.batch * run.readout * table.size
    yield Part(id="unembed.W_U", each=each, views=views_of("", "head"))


def _attention(stack: Stack, run: Pass, conventions: Conventions) -> Iterator[Part]:
    """Q Kᵀ and A V. Absorbed, a latent key is r_kv + k_rope wide and a latent value r_kv."""
    letters, factor = architecture.letters(stack.config), number(conventions.multiply_add)
    widths = {"scores": letters["k"], "mix": letters["v"]}
    if stack.config.attention.mla is not None and conventions.mla == "absorbed":
        widths = {"scores": letters["r_kv"] + letters["k_rope"], "mix": letters["r_kv"]}
    for name, width in widths.items():
        for blocks in alike(stack, run, conventions.causal):
            yield Part(
                id=f"{stack.prefix}blocks.attn.{name}{blocks.suffix}",
                each=factor * run.batch * letters["h"] * width * blocks.pairs,
                count=blocks.count,
                letter=blocks.letter,
                views=views_of(f"{stack.prefix}blocks.", "attention"),
            )


def _cross(stack: Stack, run: Pass, conventions: Conventions) -> Iterator[Part]:
    """Of every position with every position of the memory."""
    letters, factor = architecture.letters(stack.config), number(conventions.multiply_add)
    for name, width in (("scores", letters["k"]), ("mix", letters["v"])):
        yield Part(
            id=f"blocks.cross.{name}",
            each=factor * run.batch * letters["h"] * width * run.rows * run.memory,
            count=stack.config.n_layers,
            letter=stack.letter,
            views=views_of("blocks.", "attention"),
        )


def _part(held: Holding, each: Quantity) -> Part:
    view = "head" if held.reads in ("readout", "first") else "linear"
    return Part(
        id=held.id,
        each=each,
        count=held.runs,
        letter=held.runs_letter,
        views=views_of(held.id, view),
    )


def views_of(place: str, view: str) -> frozenset[str]:
    """The view itself, and those that its place puts a part in."""
    within = {"encoder": place.startswith("encoder."), "blocks": "blocks." in place}
    return frozenset([view, *(name for name, is_in in within.items() if is_in)])
