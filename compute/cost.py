"""What a run costs, from its config alone, in whole numbers, before anything is allocated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from compute import stages, tensors
from compute.config import FfnConfig, ModelConfig
from compute.selection import Scene, Selection, Wanted, kept_stages

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


def estimate(scene: Scene, selection: Selection, dtype: str) -> Cost:
    """The cost of a run before it is run."""
    config = scene.config
    by_stage = {
        wanted.name: answer_elements(wanted, scene.lengths_of(wanted.name))
        for wanted in selection.wanted
    }
    width = BYTES[dtype]
    return Cost(
        parameters=tensors.parameter_counts(config)["total"],
        flops=flops(scene, selection),
        elements=sum(by_stage.values()),
        by_stage=by_stage,
        weight_bytes=width * _weights_read(scene, selection),
        kept_bytes=_kept_bytes(scene, selection, width),
        work_bytes=width * _largest_of_stacks(scene),
    )


def _kept_bytes(scene: Scene, selection: Selection, width: int) -> int:
    """Bytes of what is kept whole, and of what is cut out of it or made of it."""
    kept = kept_stages(selection, scene.config)
    held = sum(_size(name, scene.lengths_of(name)) * _width(name, width) for name in kept)
    return held + sum(
        sliced_elements(w, scene.lengths_of(w.name)) * _width(w.name, width)
        for w in selection.wanted
        if w.stage.derived or w.where
    )


def _width(name: str, width: int) -> int:
    """Bytes of a stage's number: chosen experts are whole numbers of 8 bytes in either dtype."""
    return 8 if stages.local_name(name) == "ffn.experts" else width


def _weights_read(scene: Scene, selection: Selection) -> int:
    """Numbers of the weights that a run fetches: it stops after the last stage needed."""
    needed = kept_stages(selection, scene.config)
    if not needed:
        return 0
    end = max(_moment(name) for name in needed)
    listed = tensors.tensors(scene.config).values()
    return sum(t.size for t in listed if any(at <= end for at in _reads(t.name, scene)))


_MOMENTS = (
    *("embed", "pos_embed", "type_embed", "embed_norm", "rel_bias"),
    *("blocks", "final_norm", "mlm_head", "mlm_norm", "unembed"),
)
"""What a stack computes and reads, by the first part of a name, in order."""


def _moment(name: str) -> tuple[bool, int, int]:
    """When a stage is computed or a tensor read: the encoder first, a block's tensors together."""
    first = name.removeprefix(stages.ENCODER).partition(".")[0]
    part = _MOMENTS.index("unembed" if first == "logits" else first)
    return not stages.stack_of(name), part, stages.layer_of(name) or 0


def _reads(name: str, scene: Scene) -> list[tuple[bool, int, int]]:
    """When a tensor is read, which for the shared embedding may be never or several times."""
    if name != "embed.W_E":
        return [_moment(name)]
    reads = {
        stages.ENCODER + name: scene.memory_tokens,
        name: scene.tokens,
        "unembed.W_U": scene.config.tied,
    }
    return [_moment(at) for at, happens in reads.items() if happens]


def answer_elements(wanted: Wanted, lengths: Mapping[str, int]) -> int:
    """Numbers of a stage in the answer, after slicing; five a row for a summary."""
    shape = _sliced_shape(wanted, lengths)
    return prod(shape[:-1]) * SUMMARIES if wanted.summary else prod(shape)


def sliced_elements(wanted: Wanted, lengths: Mapping[str, int]) -> int:
    """Numbers of a stage as it is made, after slicing and before it is summed up."""
    return prod(_sliced_shape(wanted, lengths))


def _sliced_shape(wanted: Wanted, lengths: Mapping[str, int]) -> list[int]:
    axes = stages.axes_of(wanted.stage, "b" in lengths)
    return [len(wanted.where[x]) if x in wanted.where else lengths[x] for x in axes]


def _size(name: str, lengths: Mapping[str, int]) -> int:
    return prod(lengths[x] for x in stages.axes_of(stages.find(name), "b" in lengths))


def flops(scene: Scene, selection: Selection) -> int:
    """2 · multiply-adds of the matrix products, of the blocks the selection reaches."""
    config, lengths, far = scene.config, scene.lengths, reach(scene, selection)
    b, n, s = lengths.get("b", 1), lengths["n"], lengths["s"]
    done = far.depth * _block(config, n, lengths["m"], s)
    if config.encoder is not None:
        done += far.encoder_depth * _block(config.encoder, s, s, 0)
    done += n * config.d_model * _columns_above(config, kept_stages(selection, config))
    return 2 * b * done + _derived(scene, selection)


def _columns_above(config: ModelConfig, needed: frozenset[str]) -> int:
    """Columns of the matrices above the final norm that a run multiplies by."""
    readout = (config.vocab or 0) if "logits" in needed else 0
    has_head = any(name.startswith(("mlm_", "logits")) for name in needed)
    return readout + (config.d_model if config.mlm_head and has_head else 0)


def _block(config: ModelConfig, n: int, m: int, s: int) -> int:
    """Multiply-adds of one block on n positions that meet m keys, with s rows of memory."""
    a, d = config.attention, config.d_model
    width = a.d_head + a.d_value
    attention = n * (d * (a.n_heads + a.n_kv_heads) * width + a.n_heads * m * width)
    across = n * a.n_heads * (d * width + s * width) + s * a.n_kv_heads * d * width
    cross = across if config.cross_attention else 0
    return attention + cross + n * _ffn(config.ffn, d)


def _ffn(ffn: FfnConfig, d: int) -> int:
    """Multiply-adds of an ffn for one position."""
    if ffn.kind == "none":
        return 0
    matrices = 3 if tensors.has_gate(ffn) else 2
    if ffn.kind != "moe":
        return matrices * d * ffn.d_ff
    shared = matrices * d * ffn.d_shared + (d if ffn.shared_gate else 0)
    return d * ffn.n_experts + ffn.top_k * matrices * d * ffn.d_ff + shared


def _derived(scene: Scene, selection: Selection) -> int:
    return sum(
        2 * _inner(wanted, lengths) * _made(wanted, lengths)
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
    packing = tensors.packing_size(config)
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
