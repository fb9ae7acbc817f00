"""What a run costs, from its config alone, in whole numbers, before anything is allocated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

from compute import stages
from compute.config import FfnConfig, ModelConfig
from compute.selection import Scene, Selection, Wanted, kept_stages
from compute.sizing import parameters
from compute.sizing.tracing import fetched, work

BYTES = {"float32": 4, "float64": 8}
_MASKS, _TURNING, _SORTING = 1, 6, 8
"""Numbers beside what is computed: for each pair half of the masks that are joined and held; for
each coordinate that turns its angles, cosines and sines in float64 and those held; for each logit
of a router and each choice the places that they are sorted by."""

SUMMARIES = 5
"""norm, rms, mean, min, max."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """parameters: numbers held. flops: 2 for each multiply-add of a product. elements: numbers
    in the answer, and by stage. Bytes: weights, kept arrays and largest temporaries of the run."""

    parameters: int
    flops: int
    elements: int
    by_stage: Mapping[str, int]
    weight_bytes: int
    kept_bytes: int
    work_bytes: int

    @property
    def bytes(self) -> int:
        """Memory of the run: weights, kept arrays, temporaries; the answer's text comes beside."""
        return self.weight_bytes + self.kept_bytes + self.work_bytes


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a run goes: blocks of the encoder, blocks of the stack."""

    encoder_depth: int
    depth: int


def reach(scene: Scene, selection: Selection) -> Reach:
    """How far the run of a selection goes; the encoder comes first, and whole where more does."""
    config = scene.config
    needed = kept_stages(selection, config)
    own = [name for name in needed if not stages.stack_of(name)]
    depth = _depth(own, config)
    if config.encoder is None:
        return Reach(0, depth)
    theirs = [name for name in needed if stages.stack_of(name)]
    return Reach(config.encoder.n_layers if own else _depth(theirs, config.encoder), depth)


def _depth(names: Sequence[str], config: ModelConfig) -> int:
    if any(stages.is_above(name) for name in names):
        return config.n_layers
    layers = [layer for name in names if (layer := stages.layer_of(name)) is not None]
    return max(layers, default=-1) + 1


Alike = Mapping[str, int]
"""`blocks.3.` or `encoder.blocks.3.` -> how many blocks that one stands for; left out: itself."""

_ITSELF: Alike = MappingProxyType({})


def times(name: str, alike: Alike) -> int:
    """How many stages one of a full name stands for."""
    if not alike:
        return 1
    layer = stages.layer_of(name)
    return 1 if layer is None else alike.get(f"{stages.stack_of(name)}blocks.{layer}.", 1)


def estimate(scene: Scene, selection: Selection, dtype: str, alike: Alike = _ITSELF) -> Cost:
    """The cost of a run before it is run; by_stage counts what each stage stands for."""
    by_stage = {
        wanted.name: times(wanted.name, alike)
        * answer_elements(wanted, scene.lengths_of(wanted.name))
        for wanted in selection.wanted
    }
    width, needed = BYTES[dtype], kept_stages(selection, scene.config)
    return Cost(
        parameters=parameters.count(scene.config),
        flops=flops(scene, selection, alike),
        elements=sum(by_stage.values()),
        by_stage=by_stage,
        weight_bytes=width * fetched.numbers(scene, needed),
        kept_bytes=_kept_bytes(scene, selection, width, alike),
        work_bytes=width * _largest_of_stacks(scene),
    )


def _kept_bytes(scene: Scene, selection: Selection, width: int, alike: Alike) -> int:
    """Bytes of what is kept whole, and of what is cut out of it or made of it."""
    whole = sum(
        _size(name, scene.lengths_of(name)) * stage_width(name, width) * times(name, alike)
        for name in kept_stages(selection, scene.config)
    )
    return whole + sum(
        sliced_elements(w, scene.lengths_of(w.name))
        * stage_width(w.name, width)
        * times(w.name, alike)
        for w in selection.wanted
        if w.stage.derived or w.where
    )


def stage_width(name: str, width: int) -> int:
    """Bytes of a stage's number: chosen experts are whole numbers of 8 bytes in either dtype."""
    return 8 if stages.local_name(name) == "ffn.experts" else width


def answer_elements(wanted: Wanted, lengths: Mapping[str, int]) -> int:
    """Numbers of a stage in the answer, after slicing; five a row for a summary."""
    shape = sliced_shape(wanted, lengths)
    return prod(shape[:-1]) * SUMMARIES if wanted.summary else prod(shape)


def sliced_elements(wanted: Wanted, lengths: Mapping[str, int]) -> int:
    """Numbers of a stage as it is made, after slicing and before it is summed up."""
    return prod(sliced_shape(wanted, lengths))


def sliced_shape(wanted: Wanted, lengths: Mapping[str, int]) -> list[int]:
    """The lengths of a stage's axes after slicing, before it is summed up."""
    axes = stages.axes_of(wanted.stage, "b" in lengths)
    return [len(wanted.where[x]) if x in wanted.where else lengths[x] for x in axes]


def _size(name: str, lengths: Mapping[str, int]) -> int:
    return prod(lengths[x] for x in stages.axes_of(stages.find(name), "b" in lengths))


def flops(scene: Scene, selection: Selection, alike: Alike = _ITSELF) -> int:
    """2 · multiply-adds of the matrix products, of the blocks the selection reaches."""
    config, lengths, far = scene.config, scene.lengths, reach(scene, selection)
    b, n, s = lengths.get("b", 1), lengths["n"], lengths["s"]
    done = far.depth * _block(config, n, lengths["m"], s)
    if config.encoder is not None:
        done += far.encoder_depth * _block(config.encoder, s, s, 0)
    done += n * _above(config, kept_stages(selection, config))
    return 2 * b * done + _derived(scene, selection, alike)


def _above(config: ModelConfig, needed: frozenset[str]) -> int:
    """Multiply-adds above the final norm for one position, of what a run needs there."""
    if not any(name.startswith(("mlm_", "logits")) for name in needed):
        return 0
    head, readout = work.readout_products(config)
    return head + (readout if "logits" in needed else 0)


def _block(config: ModelConfig, n: int, m: int, s: int) -> int:
    """Multiply-adds of one block on n positions that meet m keys, with s rows of memory."""
    far = s if config.cross_attention else 0
    each = work.products(config.d_model, config.attention, config.ffn, config.cross_attention)
    return n * each.position + far * each.memory + n * (m + far) * each.pair


def _derived(scene: Scene, selection: Selection, alike: Alike) -> int:
    return sum(
        2 * _inner(wanted, lengths) * _made(wanted, lengths) * times(wanted.name, alike)
        for wanted in selection.wanted
        if wanted.stage.derived
        for lengths in (scene.lengths_of(wanted.name),)
    )


def _inner(wanted: Wanted, lengths: Mapping[str, int]) -> int:
    """Multiply-adds for each number that is made."""
    return lengths["k"] if wanted.stage.name == "attn.dots" else lengths["v"]


def _made(wanted: Wanted, lengths: Mapping[str, int]) -> int:
    """Numbers that a derived stage's product makes.

    head_out cuts heads and positions before it; source_out makes v_m W_O^(r) once for all
    receiving positions; dots are made whole and then cut.
    """
    heads = {"attn.head_out": "bhnd", "cross.head_out": "bhnd"}
    early = {**heads, "attn.source_out": "bhmd", "attn.dots": ""}
    axes = list(stages.axes_of(wanted.stage, "b" in lengths))
    if wanted.stage.name == "attn.source_out":
        axes.remove("n")
    where = {x: wanted.where[x] for x in early[wanted.stage.name] if x in wanted.where}
    return prod(len(where[x]) if x in where else lengths[x] for x in axes)


def _largest_of_stacks(scene: Scene) -> int:
    own = _largest_temporaries(scene.config, scene.lengths)
    encoder = scene.config.encoder
    if encoder is None:
        return own
    theirs = stages.dimensions(encoder, scene.lengths["s"], scene.lengths.get("b"))
    return max(own, _largest_temporaries(encoder, theirs))


def _largest_temporaries(config: ModelConfig, lengths: Mapping[str, int]) -> int:
    """Elements alive at once in a block that nobody keeps: its widest moment."""
    b, n, m, d = lengths.get("b", 1), lengths["n"], lengths["m"], config.d_model
    far = lengths["s"] if config.cross_attention else 0
    keys = max(m, far)
    pairs = 2 * (lengths["h"] + _MASKS) * n * keys
    rows = max(n, far)
    heads = n * lengths["h"] * (lengths["k"] + lengths["v"]) + keys * lengths["g"] * lengths["k"]
    packing = work.packing_size(config)
    bias = _bias_of_a_pair(config) * n * m
    hidden = n * _widest_hidden(config.ffn, d)
    alive = 3 if config.attention.qk_norm == "full" else 2
    turning = _TURNING * m * config.position.rotary_dim if config.position.kind == "rope" else 0
    joined = lengths["g"] * (lengths["k"] + lengths["v"]) * m if m > n else 0
    block = max(pairs + alive * heads + joined, hidden)
    return max(packing, b * (4 * rows * d + block + bias + turning))


def _bias_of_a_pair(config: ModelConfig) -> int:
    """Numbers a pair of positions needs at once for its bias; T5's buckets are 8 bytes wide."""
    if config.position.kind not in ("alibi", "t5_bias"):
        return 0
    of_heads = 3 * config.attention.n_heads + 4
    return max(of_heads, 14) if config.position.kind == "t5_bias" else of_heads


def _widest_hidden(ffn: FfnConfig, d: int) -> int:
    """Numbers a position needs at once in the ffn."""
    if ffn.kind != "moe":
        return 3 * ffn.d_ff
    each_choice = 3 * ffn.d_ff + 2 * d + _SORTING
    return ffn.top_k * each_choice + _SORTING * ffn.n_experts + 3 * ffn.d_shared + d
