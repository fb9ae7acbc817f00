"""What a run costs, from its config alone, in whole numbers, before anything is allocated."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from compute import stages, tensors
from compute.config import ModelConfig
from compute.selection import Selection, Wanted, kept_stages

BYTES = {"float32": 4, "float64": 8}
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


def estimate(
    config: ModelConfig, selection: Selection, lengths: Mapping[str, int], dtype: str
) -> Cost:
    """The cost of a run: `lengths` are the axes' lengths, `b` among them if there is a batch."""
    by_stage = {wanted.name: answer_elements(wanted, lengths) for wanted in selection.wanted}
    held = sum(_size(name, lengths) for name in kept_stages(selection, config))
    made = sum(sliced_elements(w, lengths) for w in selection.wanted if w.stage.derived or w.where)
    parameters = tensors.parameter_counts(config)["total"]
    width = BYTES[dtype]
    return Cost(
        parameters=parameters,
        flops=flops(config, selection, lengths),
        elements=sum(by_stage.values()),
        by_stage=by_stage,
        weight_bytes=width * parameters,
        kept_bytes=width * (held + made),
        work_bytes=width * _largest_temporaries(config, lengths),
    )


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


def flops(config: ModelConfig, selection: Selection, lengths: Mapping[str, int]) -> int:
    """2 · multiply-adds of the matrix products, of the blocks the selection reaches."""
    b, n = lengths.get("b", 1), lengths["n"]
    needed = kept_stages(selection, config)
    layers = [layer for name in needed if (layer := stages.layer_of(name)) is not None]
    reads = any(stages.find(name).level == "model" for name in needed if "embed" not in name)
    depth = config.n_layers if reads else max(layers, default=-1) + 1
    readout = n * config.d_model * (config.vocab or 0) if "logits" in needed else 0
    return 2 * b * (depth * _block(config, n) + readout) + _derived(selection, lengths)


def _block(config: ModelConfig, n: int) -> int:
    a, d = config.attention, config.d_model
    projections = d * (a.n_heads * (a.d_head + a.d_value) + a.n_kv_heads * (a.d_head + a.d_value))
    pairs = a.n_heads * n * (a.d_head + a.d_value)
    matrices = {"mlp": 2, "gated": 3, "none": 0}[config.ffn.kind]
    return n * (projections + pairs + matrices * d * config.ffn.d_ff)


def _derived(selection: Selection, lengths: Mapping[str, int]) -> int:
    return sum(
        2 * _inner(wanted, lengths) * _made(wanted, lengths)
        for wanted in selection.wanted
        if wanted.stage.derived
    )


def _inner(wanted: Wanted, lengths: Mapping[str, int]) -> int:
    """Multiply-adds for each number that is made."""
    return lengths["k"] if wanted.stage.name == "attn.dots" else lengths["v"]


def _made(wanted: Wanted, lengths: Mapping[str, int]) -> int:
    """Numbers that a derived stage's product makes.

    head_out cuts heads and positions before it; source_out makes v_m W_O^(r) once for all
    receiving positions; dots are made whole and then cut.
    """
    early = {"attn.head_out": "bhnd", "attn.source_out": "bhmd", "attn.dots": ""}
    axes = list(stages.axes_of(wanted.stage, "b" in lengths))
    if wanted.stage.name == "attn.source_out":
        axes.remove("n")
    where = {x: wanted.where[x] for x in early[wanted.stage.name] if x in wanted.where}
    return prod(len(where[x]) if x in where else lengths[x] for x in axes)


def _largest_temporaries(config: ModelConfig, lengths: Mapping[str, int]) -> int:
    """Elements alive at once in a block that nobody keeps: its widest moment."""
    b, n, d = lengths.get("b", 1), lengths["n"], config.d_model
    pairs = 2 * lengths["h"] * n * n
    heads = n * (lengths["h"] * (lengths["k"] + lengths["v"]) + lengths["g"] * lengths["k"])
    hidden = 3 * n * config.ffn.d_ff
    packing = tensors.packing_size(config)
    bias = (3 * lengths["h"] + 4) * n * n if config.position.kind == "alibi" else 0
    return max(packing, b * (4 * n * d + max(pairs + 2 * heads, hidden) + bias))
