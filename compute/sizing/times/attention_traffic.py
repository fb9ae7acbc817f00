"""Bytes that attention moves: queries in, keys and values as they are kept, mixtures out."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from compute.sizing import architecture
from compute.sizing.architecture import Stack
from compute.sizing.formats import Format
from compute.sizing.holdings import Holding
from compute.sizing.memory.stored import stored
from compute.sizing.memory.weight_bytes import Kept
from compute.sizing.operations import flops, products
from compute.sizing.operations.passes import Pass
from compute.sizing.quantity import Quantity, least, number, q, total
from compute.sizing.vocabulary import Conventions, Workload

NOTHING = number(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """How numbers are stored: weights and roles that are kept otherwise, the cache, and bytes of an
    activation."""

    weights: Format
    cache: Format
    activation: int
    kept: Kept = field(default_factory=Kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Bytes of one of `count` alike operators."""

    id: str
    count: int
    letter: str
    weights: Quantity = NOTHING
    cache: Quantity = NOTHING
    activations: Quantity = NOTHING


def of_attention(
    stack: Stack,
    held: Holding,
    workload: Workload,
    run: Pass,
    conventions: Conventions,
    form: Stored,
) -> Iterator[Traffic]:
    """Q Kᵀ and A V: queries in, keys and values as kept, mixtures out; the pattern out and in
    where it is written out."""
    cross = ".cross." in held.id
    rows = run.source if stack.is_encoder else run.rows
    if not rows.value:
        return
    seen = _cross_seen(stack, run) if cross else _seen(stack, workload, run, conventions)
    letters, a = architecture.letters(stack.config), q("a", form.activation)
    place = held.id.removesuffix("W_O")
    for suffix, count, letter, keys, pairs in seen:
        pattern = run.batch * letters["h"] * pairs * a
        written = pattern if conventions.attention_kernel == "materialised" else number(0)
        kept = _kept(stack, keys, run, form, cross=cross)
        for name, width in (("scores", letters["k"]), ("mix", letters["v"])):
            yield Traffic(
                id=f"{place}{name}{suffix}",
                count=count,
                letter=letter,
                cache=kept[name],
                activations=run.batch * rows * letters["h"] * width * a + written,
            )


Seen = Iterator[tuple[str, int, str, Quantity, Quantity]]
"""(end of the part's name, blocks, their letter, keys that are read, pairs) of alike blocks."""


def _seen(stack: Stack, workload: Workload, run: Pass, conventions: Conventions) -> Seen:
    """A window w leaves of past + n keys the last n + w - 1."""
    alike = products.alike(stack, run, conventions.causal)
    windows = architecture.windows(stack.config)
    if conventions.causal != "exact":
        windows = ((None, stack.config.n_layers),)
    if len(alike) != len(windows):
        merged = total(number(c) * _keys(stack, workload, run, w) for w, c in windows)
        yield "", 1, "1", merged.named("keys_windows"), alike[0].pairs
        return
    for found, (window, _) in zip(alike, windows, strict=True):
        keys = _keys(stack, workload, run, window)
        yield found.suffix, found.count, found.letter, keys, found.pairs


def _keys(stack: Stack, workload: Workload, run: Pass, window: int | None) -> Quantity:
    if stack.is_encoder:
        return run.source
    every = q("past", workload.cached) + run.rows if workload.cached else run.rows
    return every if window is None else least(every, run.rows + q(f"w_{window}", window) - 1)


def _cross_seen(stack: Stack, run: Pass) -> Seen:
    yield "", stack.config.n_layers, stack.letter, run.memory, run.rows * run.memory


def _kept(
    stack: Stack, keys: Quantity, run: Pass, form: Stored, *, cross: bool
) -> dict[str, Quantity]:
    """Bytes of keys, and of values; of latent attention the latent numbers, read once for both."""
    x, config = architecture.letters(stack.config), stack.config
    cached = cross or (flops.decodes(config) and not stack.is_encoder)
    held = {"scores": x["g"] * x["k"], "mix": x["g"] * x["v"]}
    if config.attention.mla is not None:
        held = {"scores": x["r_kv"] + x["k_rope"], "mix": number(0)}
    read = {name: run.batch * keys * width for name, width in held.items()}
    if cached:
        return {name: stored(each, form.cache, "kv") for name, each in read.items()}
    return {name: each * q("a", form.activation) for name, each in read.items()}
