"""Cached decoding: rows after a past, and rows that a model goes on with by itself.

The cache is what attention reads of earlier rows: attn.k and attn.v of each block, before qk-norm
and rotation, with their position ids and mask. Rows that follow it have the states they would
have in one run over all rows, since a causal mask lets no row see a later one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from compute import cost, masks, ops, positions, selection, stages
from compute.config import ModelConfig, block_config, reads_out
from compute.cost import Cost
from compute.errors import Fault
from compute.selection import Scene, Selection, Wanted
from compute.trace import Run, Trace, trace
from compute.types import Array, Inputs, Ints, Past, Selected

Select = Callable[[Scene], Selection]
"""What is wanted of a step, for the lengths that it has."""

LARGEST = 2**53
"""The largest position id: a whole number that every reader of JSON keeps exactly."""

SHOWN = ("attn.pattern", "attn_out", "ffn_out", "resid_post")
"""The default answer: where a row looks, what it is given, what it becomes."""


@dataclass(frozen=True, slots=True)
class Step:
    """A run of some rows, and the past with these rows in it."""

    trace: Trace
    past: Past

    @property
    def logits(self) -> Array | None:
        """(..., n, V), or None where nothing is read out."""
        return self.trace.also.get("logits")


def remembered(config: ModelConfig) -> tuple[str, ...]:
    """The full names of the stages that a cache is made of."""
    if config.attention.kind == "none":
        return ()
    return tuple(f"blocks.{layer}.attn.{x}" for layer in range(config.n_layers) for x in "kv")


def stepped(run: Run) -> Step:
    """The run, and what it leaves for the rows after it. Keys and values: (..., g, m, k or v)."""
    traced = trace(replace(run, also=_needed(run.config)))
    cached = [traced.also[name] for name in remembered(run.config)]
    past = Past(
        keys=tuple(cached[::2]),
        values=tuple(cached[1::2]),
        position_ids=positions.key_ids_for(run.inputs),
        key_mask=masks.keys_of(run.inputs),
    )
    return Step(traced, past)


def continued(run: Run, steps: int, select: Select) -> Iterator[Step]:
    """The run, then one row for each of `steps` tokens: each time the one of the largest logit."""
    step = stepped(run)
    yield step
    for _ in range(steps):
        rows = following(step)
        scene = selection.scene_for(run.config, rows)
        step = stepped(replace(run, inputs=rows, selection=select(scene)))
        yield step


def following(step: Step) -> Inputs:
    """The row after a step: its likeliest token, and no mask of its own. (1) or (b, 1)."""
    inputs = step.trace.run.inputs
    types = inputs.token_types
    return Inputs(
        token_ids=likeliest(step.trace.also["logits"]),
        token_types=None if types is None else types[..., -1:],
        memory=inputs.memory,
        past=step.past,
    )


def likeliest(logits: Array) -> Ints:
    """argmax of the last row's logits, of equals the first: (..., n, V) -> (..., 1)."""
    return logits[..., -1:, :].argmax(axis=-1)


def largest(logits: Array, count: int) -> tuple[Ints, Array]:
    """The ids of the largest entries, of equals the first, and their softmax in float64: (V) ->
    (count) or (V), the same."""
    exact = logits.astype(np.float64)
    ids = ops.largest(exact, min(count, len(exact)))
    with np.errstate(over="ignore", invalid="ignore"):  # logits may have overflowed
        weights = np.exp(exact - exact[ids[0]])
        return ids, weights[ids] / weights.sum()


def _needed(config: ModelConfig) -> frozenset[str]:
    """What is kept of every step: the cache's stages, and the logits where there are any."""
    return frozenset((*remembered(config), *(("logits",) if reads_out(config) else ())))


def _with_needed(wanted: Selection, config: ModelConfig) -> Selection:
    """The selection, and what is kept besides."""
    more = sorted(_needed(config) - selection.kept_stages(wanted, config))
    return Selection((*wanted.wanted, *map(_whole, more)), wanted.absent)


def _whole(name: str) -> Wanted:
    return Wanted(name, stages.find(name), {}, False)


def shown(config: ModelConfig) -> list[Selected]:
    """The default selection: those of `SHOWN` that the config has."""
    kinds = {"attn": config.attention.kind, "ffn": config.ffn.kind}
    absent = {part for part, kind in kinds.items() if kind == "none"}
    return [Selected(name=name) for name in SHOWN if name[:4].rstrip("._") not in absent]


def scenes(config: ModelConfig, inputs: Inputs, steps: int) -> tuple[Scene, ...]:
    """The scenes of the sent rows and of the first and the last row that follows them."""
    first = selection.scene_for(config, inputs)
    ahead = sorted({1, steps}) if steps else []
    return first, *(_ahead(first, count) for count in ahead)


def _ahead(first: Scene, count: int) -> Scene:
    return replace(first, lengths={**first.lengths, "n": 1, "m": first.lengths["m"] + count})


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What all steps cost: flops and numbers of all of them, the weights once, and the most bytes
    at once; numbers by stage, summed over the steps."""

    parameters: int
    flops: int
    elements: int
    by_stage: dict[str, int]
    cache_elements: int
    bytes: int


def price(seen: tuple[Scene, ...], select: Select, steps: int, dtype: str) -> Price:
    """The cost of all steps before the first: a later row meets one more key than the one before,
    so that the sums of first and last are those of all."""
    costs, shown_costs = [], []
    for scene in seen:
        wanted = select(scene)
        whole = _with_needed(wanted, scene.config)
        costs.append(cost.estimate(scene, whole, dtype))
        shown_costs.append(cost.estimate(scene, wanted, dtype))
    by_stage = {
        name: _summed([one.by_stage[name] for one in shown_costs], steps)
        for name in shown_costs[0].by_stage
    }
    elements = sum(by_stage.values())
    cached = sum(_cached(name, seen[-1]) for name in remembered(seen[-1].config))
    return Price(
        parameters=costs[0].parameters,
        flops=_summed([one.flops for one in costs], steps),
        elements=elements,
        by_stage=by_stage,
        cache_elements=cached,
        bytes=_most_bytes(costs) + cost.BYTES[dtype] * (elements + 2 * cached),
    )


def _summed(ends: list[int], steps: int) -> int:
    """The sent rows', and an arithmetic series between the first and the last of the others."""
    return ends[0] + steps * (ends[1] + ends[-1]) // 2 if steps else ends[0]


def _most_bytes(costs: list[Cost]) -> int:
    return max(one.bytes for one in costs)


def _cached(name: str, scene: Scene) -> int:
    return cost.answer_elements(_whole(name), scene.lengths)


def inexact(config: ModelConfig, past: Past, sent: int) -> str | None:
    """Why rows after a past have not the states of one run over all rows; None where they have.

    Dynamic NTK alone: beyond original_positions each length has frequencies of its own, and
    earlier rows were computed with those of theirs. `sent` are the last rows that ran at once.
    """
    if past.positions == sent:
        return None
    length = int(past.position_ids.max()) + 1
    scalings = (block_config(config, x).position for x in range(config.n_layers))
    trained = [
        position.scaling.original_positions
        for position in scalings
        if position.kind == "rope" and position.scaling.kind == "dynamic"
    ]
    if not trained or length <= min(trained):
        return None
    return (
        f"Dynamic NTK scaling: at {length} positions, beyond the {min(trained)} trained on, RoPE's "
        "frequencies follow the length. Keys turn by the new ones, but earlier rows were computed "
        "with those of their own length, so one run over all rows gives other states."
    )


def faults(inputs: Inputs, config: ModelConfig, steps: int) -> Iterator[Fault]:
    """Why there is no decoding of a model, or not so far. Places as in a request."""
    attention = config.attention
    if attention.kind != "none" and attention.mask != "causal":
        detail = (
            "Every row of this model sees the later ones (attention.mask is full), so that an "
            "earlier row's keys and values change with each new row: nothing can be cached."
        )
        yield Fault(code="not_causal", detail=detail, place=("model",))
    if steps and not reads_out(config):
        detail = "This model reads nothing out, so no token follows: steps = 0 runs the rows alone."
        yield Fault(code="no_readout", detail=detail, place=("steps",), expected=0, got=steps)
    if steps and inputs.token_ids is None:
        detail = "Tokens follow token_ids or text, not a tensor: steps = 0 runs the rows alone."
        yield Fault(code="no_tokens", detail=detail, place=("steps",), expected=0, got=steps)
    if steps and inputs.key_mask is not None and not inputs.key_mask[..., -1].all():
        detail = "Tokens follow the last row, which key_mask masks here: pad on the left."
        yield Fault(code="masked_last", detail=detail, place=("input", "key_mask"))
    yield from _beyond_table(inputs, config, steps)


def _beyond_table(inputs: Inputs, config: ModelConfig, steps: int) -> Iterator[Fault]:
    last = int(positions.key_ids_for(inputs).max())
    if last + steps > LARGEST:
        detail = "Position ids go on from the cache's largest, and end at 2^53."
        yield Fault(code="out_of_positions", detail=detail, place=("cache", "position_ids"))
    elif steps and config.position.kind == "learned":
        rows = config.position.n_positions or 0
        left = max(rows - 1 - last, 0)
        if steps > left:
            detail = f"The table of learned positions has {rows} rows: {left} are left."
            told = f"at most {left}"
            place = ("steps",)
            yield Fault(
                code="out_of_positions", detail=detail, place=place, expected=told, got=steps
            )
