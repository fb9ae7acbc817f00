"""What checkpoints store beside a model's numbers: buffers, copies, scales, further layers."""

from collections.abc import Iterator
from dataclasses import replace

from compute.config import ModelConfig, reads_out
from compute.sizing import architecture
from compute.sizing.architecture import Blocks, Stack
from compute.sizing.holdings import Holding, holdings
from compute.sizing.quantity import Quantity, ceil_div, number, q, total
from compute.sizing.reconciling.differences import Change, Difference

_SCALED = 128
"""Rows and columns of a block of a matrix that shares a scale. DeepSeek-V3, section 3.3.2."""

_GEMMA_VOCAB = 262144
_TOWER_NUMBERS = 416_866_032
_TOWER_WIDTH = 1152


def buffers(config: ModelConfig) -> Iterator[Difference]:
    """Constants that are stored and not trained."""
    letters, rows = architecture.letters(config), config.position.n_positions
    blocks = q("L", config.n_layers)
    if config.position.kind == "learned":
        words = "The indices of the positions, a buffer of whole numbers, are counted."
        yield _one("position_ids", "ids", words, "position_ids", letters["n_positions"])
    if config.position.kind == "rope":
        half = q("rotary_dim", config.position.rotary_dim) / 2
        words = "The frequencies of RoPE, a buffer in every block, are counted."
        yield _one("rotary_buffers", "rotary", words, "blocks.attn.inv_freq", blocks * half)
        words = "The frequencies of RoPE, one buffer for all blocks, are counted."
        yield _one("rotary_buffer_once", "rotary", words, "inv_freq", half)
    if config.position.kind == "learned" and config.attention.mask == "causal" and rows:
        mask = blocks * letters["n_positions"] ** 2
        words = "The causal mask, a buffer of rows · rows in every block, is counted."
        yield _one("causal_mask_buffers", "mask", words, "blocks.attn.mask", mask)


def _one(name: str, group: str, words: str, part: str, added: Quantity) -> Difference:
    return Difference(id=name, group=group, words=words, changes=(Change(part, added),))


def _copy(name: str, group: str, words: str, part: str, added: Quantity) -> Difference:
    return replace(_one(name, group, words, part, added), copied=frozenset({"embed.W_E"}))


def copies(config: ModelConfig) -> Iterator[Difference]:
    """A shared table that is stored again."""
    letters = architecture.letters(config)
    if config.vocab is None:
        return
    table = letters["V"] * letters["d_embed" if config.d_embed else "d"]
    if reads_out(config) and config.tied:
        words = "The table that is the readout too is stored, or counted, again."
        yield _copy("tied_head_again", "readout", words, "unembed.W_U", table)
    if config.encoder is not None:
        words = "The table that both stacks read is stored again for one of them."
        yield _copy("stack_table_again", "copies", words, "encoder.embed.W_E", table)
        words = "The table that both stacks read is stored again for each of them."
        yield _copy("stack_tables_again", "copies", words, "encoder.embed.W_E", 2 * table)


def prediction_layers(config: ModelConfig) -> Iterator[Difference]:
    """One more block that predicts the token after the next. DeepSeek-V3, section 2.2."""
    if config.ffn.kind != "moe" or config.vocab is None or config.encoder is not None:
        return
    letters = architecture.letters(config)
    d, table = letters["d"], letters["V"] * letters["d"]
    last = architecture.by_ffn(next(architecture.stacks(config)))[-1]
    block = total(held.size for held in _of_block(config, last))
    own = (
        Change("mtp.block", block),
        Change("mtp.projection", 2 * d**2),
        Change("mtp.norms", 3 * d),
    )
    words = "One more layer, which predicts a further token: a block, a product of 2d, 3 norms"
    again = Change("mtp.tables", 2 * table)
    copied = f"{words}, and its copies of the table and the readout."
    for name, said, changes in (
        ("mtp_layer", copied, (*own, again)),
        ("mtp_layer_without_copies", f"{words}.", own),
    ):
        yield Difference(id=name, group="prediction", words=said, changes=changes)


def _of_block(config: ModelConfig, kind: Blocks) -> Iterator[Holding]:
    """What a block of a kind holds, whatever other kinds there are."""
    for held in holdings(config):
        in_ffn = held.id.startswith("blocks.ffn.")
        if held.id.startswith("blocks.") and (not in_ffn or held.letter == _letter(kind)):
            yield held


def _letter(kind: Blocks) -> str:
    return kind.letter if kind.distinct == kind.count else f"{kind.letter}_distinct"


def scales(config: ModelConfig) -> Iterator[Difference]:
    """A scale for each 128 · 128 block of what float8 checkpoints quantise: blocks' products.

    Source: quantization_config.weight_block_size of DeepSeek-V3; W_DKV and W_KR are one matrix
    there, and so are W_UK and W_UV.
    """
    if config.norm.kind != "rmsnorm" or config.encoder is not None:
        return
    stack = next(architecture.stacks(config))
    kinds = architecture.by_ffn(stack)
    own = tuple(
        Change(f"scales.{kind.letter}", q(_letter(kind), kind.distinct) * _scales(stack, kind))
        for kind in kinds
    )
    words = "The scales of float8 are counted, one for 128 · 128 numbers of a block's matrices"
    yield Difference(id="fp8_scales", group="scales", words=f"{words}.", changes=own)
    if config.ffn.kind == "moe":
        yield Difference(
            id="fp8_scales_with_mtp",
            group="scales",
            words=f"{words}, those of the further layer too.",
            changes=(*own, Change("scales.mtp", _scales(stack, kinds[-1]))),
            needs="prediction",
        )


def _scales(stack: Stack, kind: Blocks) -> Quantity:
    """Scales of one block: matrices of the same sides are told once."""
    counted: dict[tuple[str, str], tuple[Quantity, Quantity]] = {}
    for times, rows, columns in _matrices(stack.config, kind):
        scale = ceil_div(rows, _SCALED) * ceil_div(columns, _SCALED)
        key = (rows.formula, columns.formula)
        before = counted[key][0] if key in counted else number(0)
        counted[key] = (before + times, scale)
    return total(times * scale for times, scale in counted.values())


Sides = tuple[Quantity, Quantity, Quantity]


def _matrices(config: ModelConfig, kind: Blocks) -> Iterator[Sides]:
    """(how many, rows, columns) of a block's matrices that are quantised."""
    x, one = architecture.letters(config), number(1)
    d, out = x["d"], x["h"] * x["v"]
    yield from _latent(config) if config.attention.mla is not None else _plain(config)
    yield one, d, out
    gated = kind.ffn.kind == "gated" or (kind.ffn.kind == "moe" and kind.ffn.expert == "gated")
    factor = number(3 if gated else 2)
    if kind.prefix == "ffn.dense.":
        yield factor, q("f_dense", kind.ffn.d_ff), d
    elif kind.ffn.kind != "none":
        yield factor * x["e"] if kind.ffn.kind == "moe" else factor, x["f"], d
    if kind.ffn.kind == "moe" and kind.ffn.d_shared:
        yield factor, x["u"], d


def _plain(config: ModelConfig) -> Iterator[Sides]:
    x, one = architecture.letters(config), number(1)
    yield one, x["h"] * x["k"], x["d"]
    yield one, x["g"] * x["k"], x["d"]
    yield one, x["g"] * x["v"], x["d"]


def _latent(config: ModelConfig) -> Iterator[Sides]:
    x, one = architecture.letters(config), number(1)
    if x["r_q"].value:
        yield one, x["r_q"], x["d"]
        yield one, x["h"] * x["k"], x["r_q"]
    else:
        yield one, x["h"] * x["k"], x["d"]
    yield one, x["r_kv"] + x["k_rope"], x["d"]
    yield one, x["h"] * (x["k_nope"] + x["v"]), x["r_kv"]


def towers(config: ModelConfig) -> Iterator[Difference]:
    """The vision tower of a Gemma 3 that reads images: 27 blocks of width 1152 over 4096 patches.

    Source: SigLIP so400m at 896 pixels, arXiv:2503.19786, section 2.2; a product to d, its norm,
    and 64 more rows of the table.
    """
    if config.vocab != _GEMMA_VOCAB or not config.tied or not reads_out(config):
        return
    d, width = q("d", config.d_model), number(_TOWER_WIDTH)
    changes = (
        Change("vision.tower", number(_TOWER_NUMBERS)),
        Change("vision.projection", width * d + width),
        Change("embed.W_E", 64 * d),
    )
    words = "The model that reads images too: its vision tower, a product to d, 64 more tokens."
    yield Difference(id="vision_tower", group="tower", words=words, changes=changes)
