"""What a question costs, worked out before anything is run."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from compute import cost, stages
from compute.contributions.question import Asked
from compute.contributions.seen import KEPT_WHOLE
from compute.selection import Selection, Wanted

_NUMBERS = 8
"""Numbers of a part beside its vector: its five, its count and place, its name."""

_OBJECT = 1200
"""Bytes of a part while it is an object and then JSON, beside its vector."""

_TOP = 20
"""Numbers of a state read out by a lens."""

_MOVED = 64
"""Flops that take as long as all that is done with one number of a part's vector."""

_CHUNKS = 64 << 20
"""Bytes of temporaries: parts' vectors are made in chunks of 2 MiB, numbers in slabs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """elements: numbers in the answer. bytes: weights, run, rows kept and the answer's arrays.
    flops: of the run and of the split. parts: (what, numbers) of the answer."""

    elements: int
    bytes: int
    flops: int
    parts: Mapping[str, int]


def price(asked: Asked, dtype: str) -> Price:
    """The cost of a question in a run of a dtype."""
    rows = len(asked.rows.positions)
    run = cost.estimate(asked.scene, _selection(asked), dtype)
    answered = _answered(asked)
    held = rows * (8 * answered["vectors"] + _OBJECT * (_shown(asked) + len(asked.lens) + 2))
    width = cost.BYTES[dtype]
    kept = _kept_numbers(asked, rows) + _largest_block(asked)
    return Price(
        elements=rows * sum(answered.values()),
        bytes=run.weight_bytes + run.work_bytes + width * kept + held + _CHUNKS,
        flops=run.flops + _split_flops(asked, rows),
        parts={name: rows * count for name, count in answered.items()},
    )


def _selection(asked: Asked) -> Selection:
    names = sorted(asked.needed)
    return Selection(tuple(Wanted(name, stages.find(name), {}, False) for name in names), {})


def _shown(asked: Asked) -> int:
    """How many parts a row's answer has."""
    if not asked.has_parts:
        return 0
    count, top_k = asked.division.count(), asked.question.top_k
    return count if top_k is None or top_k >= count else top_k + 1


def _answered(asked: Asked) -> dict[str, int]:
    """Numbers of the answer at one row."""
    d = asked.scene.config.d_model
    return {
        "parts": _NUMBERS * (_shown(asked) + 1),
        "vectors": d * (_shown(asked) + 1) if asked.question.vectors else 0,
        "lens": _TOP * len(asked.lens),
    }


def _sizes(asked: Asked) -> dict[str, tuple[int, int]]:
    """Of each stage needed: numbers of all of it, and of one row (or of all, if kept whole)."""
    found = {}
    for name in asked.needed:
        axes, lengths = stages.find(name).axes, asked.scene.lengths_of(name)
        whole = lengths.get("b", 1) * prod(lengths[x] for x in axes)
        of_row = prod(lengths[x] for x in axes if x != "n")
        found[name] = whole, of_row
    return found


def _kept_numbers(asked: Asked, rows: int) -> int:
    sizes = _sizes(asked)
    return sum(
        whole if stages.local_name(name) in KEPT_WHOLE else rows * of_row
        for name, (whole, of_row) in sizes.items()
    )


def _largest_block(asked: Asked) -> int:
    """Numbers of the needed stages of one block: whole until they are cut."""
    by_block: dict[object, int] = {}
    for name, (whole, _) in _sizes(asked).items():
        block = stages.stack_of(name), stages.layer_of(name)
        by_block[block] = by_block.get(block, 0) + whole
    return max(by_block.values(), default=0)


def _split_flops(asked: Asked, rows: int) -> int:
    """Each part's vector made, measured and made again; products with W_O; a lens' readouts."""
    config, d = asked.scene.config, asked.scene.config.d_model
    count = asked.division.count() if asked.has_parts else 0
    measured = _MOVED * rows * count * d
    projected = 4 * rows * len(asked.target.sublayers) * _head_width(asked) * d
    read = 2 * rows * len(asked.lens) * d * ((config.vocab or 1) + d * config.mlm_head)
    return measured + projected + _source_flops(asked, rows) + read


def _head_width(asked: Asked) -> int:
    return sum(
        sub.config.attention.n_heads * sub.config.attention.d_value
        for sub in asked.target.sublayers[:1]
        if sub.name != "ffn"
    )


def _source_flops(asked: Asked, rows: int) -> int:
    """V_m W_O^(r) of every source and head, once more for each slab of rows."""
    if asked.question.by != "source":
        return 0
    d, batch = asked.scene.config.d_model, asked.rows.batch
    slabs = rows // asked.slab + (1 if batch is None else len(set(batch.tolist())))
    lengths = asked.scene.lengths_of(asked.target.name)
    return sum(
        4 * slabs * lengths["s" if sub.name == "cross" else "m"] * d * a.n_heads * a.d_value
        for sub in asked.target.sublayers
        if sub.name != "ffn"
        for a in (sub.config.attention,)
    )
