"""A streamed run tells what the same run tells at once, to the bit, and holds a block at a time."""

import gc
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import runs
from cases import small
from compute.streaming import Streaming
from compute.trace import Run, identities_of, trace
from compute.types import DType, Selected

CHUNKS = pytest.mark.parametrize("first", range(0, 200, 100))
DTYPES = pytest.mark.parametrize("dtype", ["float64", "float32"])


def assert_same(run: Run, at: object) -> None:
    """The stream of a run is its trace: stages in order, identities, logits, rows without keys."""
    whole, streaming = trace(run), Streaming(run, checked=True)
    told = list(streaming.stages())
    assert [made.wanted for made in told] == [made.wanted for made in whole.made], at
    for mine, theirs in zip(told, whole.made, strict=True):
        assert mine.values.dtype == theirs.values.dtype
        assert mine.values.tobytes() == theirs.values.tobytes(), (at, mine.wanted.name)
    assert streaming.identities() == identities_of(whole), at
    assert streaming.trace.whole.keys() == whole.whole.keys() & {"logits"}, at
    for name, values in streaming.trace.whole.items():
        assert values.tobytes() == whole.whole[name].tobytes(), at
    assert streaming.trace.fully_masked.keys() == whole.fully_masked.keys()


@DTYPES
@CHUNKS
def test_stream_of_every_config_is_its_trace(first: int, dtype: DType) -> None:
    for seed in range(first, first + 100):
        assert_same(runs.run_of_case(runs.case_of(seed), dtype=dtype), seed)


@CHUNKS
def test_stream_of_a_selection_is_its_trace(first: int) -> None:
    for seed in range(first, first + 100):
        case = runs.case_of(seed)
        names = [made.wanted.name for made in trace(runs.run_of_case(case)).made]
        rng = np.random.default_rng(seed)
        chosen = rng.choice(names, size=rng.integers(1, len(names) + 1), replace=False)
        select = [one(rng, str(name)) for name in chosen]
        assert_same(runs.run_of_case(case, select=select), seed)


def one(rng: np.random.Generator, name: str) -> Selected:
    """A stage whole, summed up or cut to its first row or coordinate."""
    summary = bool(rng.integers(0, 4) == 0)
    cut = rng.integers(0, 3) == 0 and "embed" not in name and "logits" not in name
    has_rows = cut and "attn.k" not in name and "attn.v" not in name and "cross" not in name
    return Selected(name=name, where={"position": (0,)} if has_rows else {}, summary=summary)


def test_derived_stages_are_told_like_those_of_the_trace() -> None:
    for seed in range(60):
        case = runs.case_of(seed)
        assert_same(runs.run_of_case(case, select=runs.every_stage(case)), seed)


STACKS: dict[str, dict[str, Any]] = {
    "pre-norm": {},
    "post-norm": {"norm": small.norm("layernorm", placement="post")},
    "parallel": {"topology": "parallel"},
    "without attention": {"attention": small.NONE},
    "without an ffn": {"ffn": small.NONE},
    "experts": {"ffn": small.moe(7, 3, 2)},
    "rescaled": {"residual_multiplier": 0.3},
    "crossing": {"cross_attention": True},
    "encoder": {
        "cross_attention": True,
        "encoder": small.model(5, attention=small.attention(2, 3), ffn=small.mlp(3))
        | {"n_layers": 3},
    },
}


def deep(stack: str, select: Sequence[Selected] | None = None, scale: float = 1.0) -> Run:
    """Five blocks on a batch of two inputs, in float32."""
    parts = {"attention": small.attention(2, 3), "ffn": small.mlp(7), "n_layers": 5}
    config = small.model(5, **{"norm": small.norm("layernorm"), **parts, **STACKS[stack]})
    rows = scale * np.random.default_rng(0).standard_normal((2, 3, 5))
    other = np.random.default_rng(1).standard_normal((2, 4, 5))
    memory = {"tensor": other} if config.get("cross_attention") else None
    values = small.drawn(config, 0)
    return small.run(config, values, select=select, tensor=rows, memory=memory, dtype="float32")


@pytest.mark.parametrize("stack", STACKS)
def test_stream_of_a_deep_stack_is_its_trace(stack: str) -> None:
    assert_same(deep(stack), stack)
    assert_same(deep(stack, [Selected(name="*", where={"batch": (1,)})]), stack)


@pytest.mark.parametrize("scale", [1e20, 1e38])
def test_stream_that_overflows_is_its_trace(scale: float) -> None:
    assert_same(deep("pre-norm", scale=scale), scale)


def test_long_stream_is_summed_in_the_same_blocks_of_rows() -> None:
    config = small.model(640, ffn=small.mlp(2), n_layers=2)
    rows = np.random.default_rng(0).standard_normal((2, 1200, 640))
    run = small.run(config, small.drawn(config, 0), tensor=rows, dtype="float32")
    assert_same(run, "long")


def test_unchecked_stream_has_no_identities() -> None:
    streaming = Streaming(deep("pre-norm"), checked=False)
    told = [made.wanted for made in streaming.stages()]
    assert streaming.identities() is None
    assert told == [made.wanted for made in trace(deep("pre-norm")).made]


def test_stages_of_a_block_are_gone_when_the_next_one_has_begun() -> None:
    """But the stream itself, which goes on, and what came into the stack."""
    alive: dict[str, weakref.ref[Any]] = {}
    gc.disable()
    try:
        for made in Streaming(deep("pre-norm"), checked=True).stages():
            name = made.wanted.name
            alive[name] = weakref.ref(made.values)
            if name.endswith("resid_mid"):
                before = f"blocks.{int(name.split('.')[1]) - 1}."
                there = {one for one, value in alive.items() if value() is not None}
                assert {one for one in there if one.startswith(before)} <= {
                    f"{before}resid_post",
                    "blocks.0.resid_pre",
                }
            del made
    finally:
        gc.enable()
    assert len(alive) > 5 * 10


def test_stream_stops_after_the_last_stage_that_is_needed() -> None:
    asked: list[None] = []
    whole = deep("pre-norm", [Selected(name="blocks.0.resid_pre")])
    run = replace(whole, check=lambda: asked.append(None))
    told = Streaming(run, checked=False).stages()
    assert [made.wanted.name for made in told] == ["blocks.0.resid_pre"]
    assert len(asked) < 4
