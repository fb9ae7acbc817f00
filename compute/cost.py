"""What a run costs, from its config alone, in whole numbers, before anything is allocated."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

from compute import stages
from compute.config import FfnConfig, ModelConfig
from compute.selection import Scene, Selection, Wanted, kept_stages
from compute.sizing import parameters
from compute.sizing.tracing import fetched, order, work
from compute.sizing.tracing.order import Moment

BYTES = {"float32": 4, "float64": 8}
_MASKS, _TURNING, _SORTING = 1, 6, 8
"""Numbers beside what is computed: for each pair half of the masks that are joined and held; for
each coordinate that turns its angles, cosines and sines in float64 and those held; for each logit
of a router and each choice the places that they are sorted by."""

SUMMARIES = 5
"""norm, rms, mean, min, max."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """parameters: numbers held. flops: 2 for each multiply-add of a product, up to the last stage
    needed. elements: numbers in the answer, and by stage. Bytes: weights, kept arrays and largest
    temporaries of the run."""

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
        kept_bytes=sum(size for _, size in _kept(scene, selection, width, alike)),
        work_bytes=width * _largest_of_stacks(scene),
    )


def kept_parts(scene: Scene, selection: Selection, dtype: str) -> Mapping[str, int]:
    """Bytes kept of each block, by its prefix, and of what is below and above a stack's blocks:
    whole stages, what is cut out of them and what is made of them."""
    found: dict[str, int] = {}
    for name, size in _kept(scene, selection, BYTES[dtype], _ITSELF):
        layer, level = stages.layer_of(name), "above" if stages.is_above(name) else "below"
        part = stages.stack_of(name) + (level if layer is None else f"blocks.{layer}.")
        found[part] = found.get(part, 0) + size
    return found


def _kept(
    scene: Scene, selection: Selection, width: int, alike: Alike
) -> Iterator[tuple[str, int]]:
    """(stage, bytes) of what is kept whole, and of what is cut out of it or made of it."""
    for name in kept_stages(selection, scene.config):
        size = _size(name, scene.lengths_of(name))
        yield name, size * stage_width(name, width) * times(name, alike)
    for wanted in selection.wanted:
        if wanted.stage.derived or wanted.where:
            size = sliced_elements(wanted, scene.lengths_of(wanted.name))
            yield wanted.name, size * stage_width(wanted.name, width) * times(wanted.name, alike)


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
    """2 · multiply-adds of the matrix products up to the last stage that is needed, attention's of
    all pairs, masked or not."""
    return 2 * scene.lengths.get("b", 1) * _multiplied(scene, selection) + _derived(
        scene, selection, alike
    )


def _multiplied(scene: Scene, selection: Selection) -> int:
    """Multiply-adds of one example: the encoder comes first, and whole where more does."""
    config, lengths = scene.config, scene.lengths
    needed = kept_stages(selection, config)
    if not needed:
        return 0
    end = max(order.moment(name, config) for name in needed)
    n, s = lengths["n"], lengths["s"]
    done = 0
    if config.encoder is not None:
        done += _of_blocks(config.encoder, None if end.is_own else end, s, s, 0)
    if end.is_own:
        done += _of_blocks(config, end, n, lengths["m"], s) + n * _above(config, needed)
    return done


def _of_blocks(config: ModelConfig, end: Moment | None, n: int, m: int, s: int) -> int:
    """Multiply-adds of a stack's blocks up to a moment in it, None: of all of them."""
    whole = _block(config, order.place_of("resid_post"), n, m, s)
    if end is None or end.is_above:
        return config.n_layers * whole
    return 0 if end.is_below else end.layer * whole + _block(config, end.place, n, m, s)


def _block(config: ModelConfig, place: int, n: int, m: int, s: int) -> int:
    """Multiply-adds of one block up to a place in the catalogue, on n positions that meet m keys,
    with s rows of memory."""
    far = s if config.cross_attention else 0
    each = work.products_until(
        place, config.d_model, config.attention, config.ffn, config.cross_attention
    )
    return n * each.position + far * each.memory + n * m * each.pair + n * far * each.far


def _above(config: ModelConfig, needed: frozenset[str]) -> int:
    """Multiply-adds above the final norm for one position, of what a run needs there."""
    if not any(name.startswith(("mlm_", "logits")) for name in needed):
        return 0
    head, readout = work.readout_products(config)
    return head + (readout if "logits" in needed else 0)


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
