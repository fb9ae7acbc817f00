"""FLOPs of what is done number by number, where they are counted; and of biases.

How many operations one exp or one tanh is, is a matter of agreement: `COSTS` is what is taken
here. Softmax of routers, scaling, masks, rotations and caps are not counted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from compute.config import FfnConfig, ModelConfig
from compute.sizing import architecture
from compute.sizing.architecture import Blocks, Stack
from compute.sizing.holdings import Holding
from compute.sizing.ledger import Part
from compute.sizing.operations import products
from compute.sizing.operations.passes import Pass
from compute.sizing.quantity import Quantity, q
from compute.sizing.vocabulary import Conventions
from compute.tensors import has_gate

COSTS: Mapping[str, int] = MappingProxyType(
    {
        "softmax": 5,
        "layernorm": 7,
        "rmsnorm": 4,
        "activation": 4,
        "gate_product": 1,
        "residual": 1,
        "bias_add": 1,
    }
)
"""Operations: of softmax for each pair of each head; of the others for each number."""


def of_stack(
    config: ModelConfig, stack: Stack, run: Pass, conventions: Conventions
) -> Iterator[Part]:
    """What a stack does number by number."""
    yield from _softmax(stack, run, conventions)
    yield from _norms(config, stack, run)
    for kind in architecture.by_ffn(stack):
        yield from _activations(stack, kind, run)
    yield from _residuals(stack, run)
    yield from _above(stack, run)


def bias_adds(config: ModelConfig, stack: Stack, run: Pass) -> Iterator[Part]:
    """One addition for each number that a bias is added to; a norm's own are the norm's."""
    for held in products.held_by(config, stack):
        if held.role == "bias" and "norm" not in held.id and not held.id.endswith("sinks"):
            each = run.batch * products.rows_of(stack, held.reads, run) * held.used
            yield _repeated(held, held.id, each, "bias_adds")
    shares = config.encoder is not None and config.encoder.patches is None
    if stack.is_encoder and shares and config.d_embed is not None and config.embed_projection_bias:
        each = run.batch * run.source * architecture.letters(config)["d"]
        name = f"{stack.prefix}embed_projection.b"
        yield Part(id=name, each=each, views=products.views_of(stack.prefix, "bias_adds"))


def _softmax(stack: Stack, run: Pass, conventions: Conventions) -> Iterator[Part]:
    each, name = COSTS["softmax"] * run.batch * _letter(stack, "h"), f"{stack.prefix}blocks."
    for blocks in products.alike(stack, run, conventions.causal):
        yield Part(
            id=f"{name}attn.softmax{blocks.suffix}",
            each=each * blocks.pairs,
            count=blocks.count,
            letter=blocks.letter,
            views=products.views_of(name, "elementwise"),
        )
    if stack.config.cross_attention:
        yield _in_blocks(stack, "cross.softmax", each * run.rows * run.memory)


def _norms(config: ModelConfig, stack: Stack, run: Pass) -> Iterator[Part]:
    """Each norm by the numbers that it reads; a norm without gain is one too."""
    cost = COSTS.get(stack.config.norm.kind, 0)
    for held in products.held_by(_with_gains(config), stack):
        if held.role == "gain":
            rows = products.rows_of(stack, held.reads, run)
            each = cost * run.batch * rows * _normed(stack, held)
            yield _repeated(held, held.id.removesuffix(".weight"), each, "elementwise")


def _normed(stack: Stack, held: Holding) -> Quantity:
    """Numbers of a position that a norm reads: where it is each head's own, those of all heads."""
    heads = {"attn.q_norm.weight": "h", "attn.k_norm.weight": "g"}
    letter = heads.get(held.id.rpartition("blocks.")[2])
    if letter and stack.config.attention.qk_norm == "head":
        return _letter(stack, letter) * held.used
    return held.used


def _with_gains(config: ModelConfig) -> ModelConfig:
    """The same norms with gains, by which they are found."""
    encoder = None if config.encoder is None else _with_gains(config.encoder)
    return replace(config, norm=replace(config.norm, gain=True), encoder=encoder)


def _activations(stack: Stack, kind: Blocks, run: Pass) -> Iterator[Part]:
    """act of each hidden number, and its product with the gate; experts: the chosen ones'."""
    if kind.ffn.kind == "none":
        return
    hidden = run.batch * _rows(stack, run) * _hidden(stack, kind)
    made = partial(_in_kind, stack, kind)
    yield made("activation", COSTS["activation"] * hidden)
    if has_gate(kind.ffn):
        yield made("gate_product", COSTS["gate_product"] * hidden)


def _hidden(stack: Stack, kind: Blocks) -> Quantity:
    ffn: FfnConfig = kind.ffn
    width = _letter(stack, "f")
    if kind.prefix == "ffn.dense.":
        width = q("f_dense", ffn.d_ff)
    if ffn.kind != "moe":
        return width
    chosen = _letter(stack, "c") * width
    return chosen + _letter(stack, "u") if ffn.d_shared else chosen


def _residuals(stack: Stack, run: Pass) -> Iterator[Part]:
    """One addition to the stream for each sublayer and number."""
    config = stack.config
    sublayers = {
        "attn": config.attention.kind != "none",
        "cross": config.cross_attention,
        "ffn": config.ffn.kind != "none",
    }
    each = COSTS["residual"] * run.batch * _rows(stack, run) * _letter(stack, "d")
    for name, there in sublayers.items():
        if there:
            yield _in_blocks(stack, f"{name}.residual", each)


def _above(stack: Stack, run: Pass) -> Iterator[Part]:
    """Activations of what stands beside the readout."""
    config, cost = stack.config, COSTS["activation"] * run.batch
    width = "d" if config.d_embed is None else "d_embed"
    heads = {
        "mlm_head": (config.mlm_head, "readout", width),
        "pooler": (config.pooler, "first", "d"),
    }
    for name, (there, reads, letter) in heads.items():
        if there:
            rows = run.readout if reads == "readout" else products.rows_of(stack, "first", run)
            each, views = cost * rows * _letter(stack, letter), products.views_of("", "elementwise")
            yield Part(id=f"{stack.prefix}{name}.activation", each=each, views=views)


def _letter(stack: Stack, letter: str) -> Quantity:
    return architecture.letters(stack.config)[letter]


def _rows(stack: Stack, run: Pass) -> Quantity:
    return run.source if stack.is_encoder else run.rows


def _in_blocks(stack: Stack, name: str, each: Quantity) -> Part:
    everywhere = Blocks(stack.config.ffn, "", stack.config.n_layers, stack.letter, 0)
    return _in_kind(stack, everywhere, name, each)


def _in_kind(stack: Stack, kind: Blocks, name: str, each: Quantity) -> Part:
    return Part(
        id=f"{stack.prefix}blocks.{kind.prefix}{name}",
        each=each,
        count=kind.count,
        letter=kind.letter,
        views=products.views_of(f"{stack.prefix}blocks.", "elementwise"),
    )


def _repeated(held: Holding, name: str, each: Quantity, view: str) -> Part:
    return Part(
        id=name,
        each=each,
        count=held.runs,
        letter=held.runs_letter,
        views=products.views_of(held.id, view),
    )
