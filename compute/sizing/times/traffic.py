"""Bytes that each operator of a pass moves: weights once, the cache as it is read, and rows.

An operator is a product, a lookup, or numbers that are only read (gains, biases). Every time a
block runs its weights are read; of tables the rows that are looked up. A mixture reads the experts
that its tokens chose: at most min(e, B·n·c) of e.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType

from compute.config import ModelConfig, reads_out
from compute.sizing import architecture
from compute.sizing.architecture import Stack
from compute.sizing.holdings import Holding, holdings
from compute.sizing.memory import weight_bytes
from compute.sizing.memory.stored import stored
from compute.sizing.operations import products
from compute.sizing.operations.passes import Pass
from compute.sizing.quantity import Quantity, least, number, q
from compute.sizing.times.attention_traffic import NOTHING, Stored, Traffic, of_attention
from compute.sizing.vocabulary import Conventions, Workload

_WIDTHS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "attn.W_Q": ("d", "h k"),
        "attn.W_K": ("d", "g k"),
        "attn.W_V": ("d", "g v"),
        "attn.W_O": ("h v", "d"),
        "attn.W_DQ": ("d", "r_q"),
        "attn.W_UQ": ("r_q", "h k"),
        "attn.W_DKV": ("d", "r_kv"),
        "attn.W_KR": ("d", "k_rope"),
        "attn.W_UK": ("r_kv", "h k_nope"),
        "attn.W_UV": ("r_kv", "h v"),
        "ffn.W_in": ("d", "f"),
        "ffn.W_gate": ("d", "f"),
        "ffn.W_out": ("f", "d"),
        "ffn.W_router": ("d", "e"),
        "ffn.W_shared_in": ("d", "u"),
        "ffn.W_shared_gate": ("d", "u"),
        "ffn.W_shared_out": ("u", "d"),
        "ffn.W_shared_weight": ("d", ""),
        "unembed.W_U": ("d_embed", "V"),
        "unembed_projection.W": ("d", "d_embed"),
        "mlm_head.W": ("d", "d_embed"),
        "embed_projection.W": ("d_embed", "d"),
        "patch_embed.W": ("channels patch patch", "d"),
        "pooler.W": ("d", "d"),
        "classifier.W": ("d", "C"),
    }
)
"""A product's name in its block -> the widths of a row before and after it."""


def of(
    config: ModelConfig, workload: Workload, run: Pass, conventions: Conventions, form: Stored
) -> Iterator[Traffic]:
    """Every operator of a pass that moves anything, in order of use, the readout last."""
    for stack in architecture.stacks(config):
        for held in products.held_by(config, stack):
            if held.id.removeprefix(stack.prefix).endswith(".W_O"):
                yield from of_attention(stack, held, workload, run, conventions, form)
            yield from _held(config, stack, held, run, form)
    if config.tied and reads_out(config) and run.readout.value:
        yield _tied_readout(config, run, form)


def _held(
    config: ModelConfig, stack: Stack, held: Holding, run: Pass, form: Stored
) -> Iterator[Traffic]:
    """What a tensor moves; nothing where no position meets it."""
    if held.reads == "lookup":
        yield _lookup(config, held, run, form)
        return
    rows = products.rows_of(stack, held.reads, run)
    if not rows.value:
        return
    rows = run.batch * rows
    moved = _rows(stack, held, rows, form) if held.role == "matrix" else NOTHING
    yield Traffic(
        id=held.id,
        count=held.runs,
        letter=held.runs_letter,
        weights=_stored(config, held.id, _numbers_read(stack, held, rows), form),
        activations=moved,
    )


def _stored(config: ModelConfig, name: str, numbers: Quantity, form: Stored) -> Quantity:
    """Bytes of numbers of a tensor, which may stay in a format of its own."""
    if name in _kept(config, form):
        return stored(numbers, form.kept.format, "keep")
    return stored(numbers, form.weights, "w")


@lru_cache(maxsize=64)
def _kept(config: ModelConfig, form: Stored) -> frozenset[str]:
    """The tensors that stay in a format of their own."""
    found = weight_bytes.size(config, form.weights, form.kept)
    return frozenset(part.id for part in found.parts if "kept" in part.views)


def _numbers_read(stack: Stack, held: Holding, rows: Quantity) -> Quantity:
    """All of a tensor; of experts those that some row chose, at most."""
    if held.used.value == held.size.value:
        return held.size
    letters = architecture.letters(stack.config)
    one = Fraction(held.size.value) / stack.config.ffn.n_experts
    return least(letters["e"], rows * letters["c"]) * number(one)


def _rows(stack: Stack, held: Holding, rows: Quantity, form: Stored) -> Quantity:
    """Rows read and rows written: rows · (width before + width after) · a."""
    name = held.id.removeprefix(stack.prefix).removeprefix("blocks.")
    name = name.replace("cross.", "attn.").replace("ffn.dense.", "ffn.")
    letters = architecture.letters(stack.config)
    before, after = (_width(letters, axes) for axes in _WIDTHS[name])
    if "ffn.dense." in held.id:
        dense = q("f_dense", stack.config.ffn.d_dense)
        before, after = (dense if x.formula == "f" else x for x in (before, after))
    chosen = letters["c"] if held.used.value != held.size.value else number(1)
    return chosen * rows * (before + after) * q("a", form.activation)


def _width(letters: Mapping[str, Quantity], axes: str) -> Quantity:
    made = number(1)
    for axis in axes.split():
        made = made * letters[axis]
    return made


def _lookup(config: ModelConfig, held: Holding, run: Pass, form: Stored) -> Traffic:
    """Rows of a table, each once: of positions n, of tokens at most B·(n + s)."""
    rows = run.source if held.id.startswith("encoder.") else run.rows
    if not held.id.endswith("pos_embed.W_pos"):
        shared = config.encoder is not None and config.encoder.patches is None
        rows = run.batch * (rows + run.source if shared else rows)
    stack = config.encoder if held.id.startswith("encoder.") and config.encoder else config
    letters = architecture.letters(stack)
    name = held.id.removeprefix("encoder.").partition(".")[0]
    table = letters[{"embed": "V", "pos_embed": "n_positions", "type_embed": "t"}[name]]
    width = letters["d" if stack.d_embed is None else "d_embed"]
    read = least(rows, table) * width
    return Traffic(id=held.id, count=1, letter="1", weights=_stored(config, held.id, read, form))


def _tied_readout(config: ModelConfig, run: Pass, form: Stored) -> Traffic:
    """The table of tokens, read whole as the readout."""
    letters = architecture.letters(config)
    table = next(x.size for x in holdings(config) if x.id == "embed.W_E")
    rows, a = run.batch * run.readout, q("a", form.activation)
    return Traffic(
        id="unembed.W_U",
        count=1,
        letter="1",
        weights=_stored(config, "embed.W_E", table, form),
        activations=rows * (letters["d_embed"] + letters["V"]) * a,
    )
