"""The estimate against real runs: elements, bytes, and products counted one by one."""

import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

import runs
from cases import small
from compute import config_json, cost, selection, stages
from compute.cost import Cost
from compute.trace import Run, trace
from compute.types import DType, Selected
from oracle.configs import Case


def estimate_of(run: Run, dtype: DType = "float64") -> Cost:
    lengths = stages.dimensions(run.config, run.inputs.positions, run.inputs.batch)
    return cost.estimate(run.config, run.selection, lengths, dtype)


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_elements_are_the_sizes_of_the_arrays_of_a_real_trace(first: int) -> None:
    rng = np.random.default_rng(first)
    for seed in range(first, first + 50):
        case = runs.case_of(seed)
        run = runs.run_of_case(case, select=runs.random_selection(rng, case))
        made = trace(run).made
        sizes = {
            m.wanted.name: 5 * m.values[..., 0].size if m.wanted.summary else m.values.size
            for m in made
        }
        estimated = estimate_of(run)
        assert estimated.by_stage == sizes, seed
        assert estimated.elements == sum(sizes.values())


def test_the_default_answers_elements_are_those_of_its_arrays() -> None:
    for seed in range(0, 500, 5):
        run = runs.run_of_case(runs.case_of(seed))
        assert estimate_of(run).elements == sum(m.values.size for m in trace(run).made)


def test_parameters_and_weight_bytes_are_those_of_the_tensors() -> None:
    for seed in range(0, 500, 5):
        case = runs.case_of(seed)
        held = sum(values.size for values in case.weights.values())
        for dtype, width in (("float32", 4), ("float64", 8)):
            estimated = estimate_of(runs.run_of_case(case), dtype)
            assert (estimated.parameters, estimated.weight_bytes) == (held, width * held)


def test_kept_bytes_are_those_of_what_a_trace_keeps() -> None:
    for seed in range(0, 200, 5):
        run = runs.run_of_case(runs.case_of(seed))
        kept = sum(values.nbytes for values in trace(run).whole.values())
        estimated = estimate_of(run)
        assert estimated.kept_bytes == kept
        total = estimated.weight_bytes + estimated.kept_bytes + estimated.work_bytes
        assert estimated.bytes == total


# Flops: 2 m k n for each product of (m, k) by (k, n).


def of_block(config: small.Config, n: int) -> Iterator[tuple[int, int, int]]:
    """(m, k, n) of every product of a block, head by head."""
    d = config["d_model"]
    if config["attention"]["kind"] != "none":
        heads = config["attention"]
        k, v = heads["d_head"], heads["d_value"]
        for _ in range(heads["n_heads"]):
            yield n, d, k  # Q
            yield n, k, n  # scores
            yield n, n, v  # mixture
            yield n, v, d  # contribution
        for _ in range(heads["n_kv_heads"]):
            yield n, d, k  # K
            yield n, d, v  # V
    if config["ffn"]["kind"] != "none":
        f = config["ffn"]["d_ff"]
        yield n, d, f  # up
        yield n, f, d  # back
        if config["ffn"]["kind"] == "gated":
            yield n, d, f


def flops_of(products: Iterator[tuple[int, int, int]]) -> int:
    return sum(2 * m * k * n for m, k, n in products)


def cases() -> list[Case]:
    return [runs.case_of(seed) for seed in range(0, 500, 5)]


def counted(case: Case, *names: str) -> int:
    run = runs.run_of_case(case, select=[Selected(name=name) for name in names])
    lengths = stages.dimensions(run.config, run.inputs.positions, run.inputs.batch)
    return cost.flops(run.config, run.selection, lengths)


def test_a_whole_run_costs_its_products() -> None:
    for case in cases():
        *batch, n = runs.shape_of(case)
        b = batch[0] if batch else 1
        blocks = case.config["n_layers"] * flops_of(of_block(case.config, n))
        last = f"blocks.{case.config['n_layers'] - 1}.resid_post"
        assert counted(case, last) == b * blocks, case.seed
        if case.config["vocab"] is not None:
            readout = 2 * n * case.config["d_model"] * case.config["vocab"]
            assert counted(case, "logits") == b * (blocks + readout), case.seed


def test_a_run_costs_the_blocks_it_reaches() -> None:
    for case in cases():
        *batch, n = runs.shape_of(case)
        one = (batch[0] if batch else 1) * flops_of(of_block(case.config, n))
        for layer in range(case.config["n_layers"]):
            assert counted(case, f"blocks.{layer}.resid_post") == (layer + 1) * one
            assert counted(case, "blocks.0.resid_pre", f"blocks.{layer}.*") >= (layer + 1) * one
        if "token_ids" in case.inputs:
            assert counted(case, "embed") == 0


def test_contributions_cost_their_products_too() -> None:
    for case in filter(runs.has_attention, cases()):
        *batch, n = runs.shape_of(case)
        b, heads = batch[0] if batch else 1, case.config["attention"]
        h, d = heads["n_heads"], case.config["d_model"]
        base = counted(case, "blocks.0.attn_out")
        head_out = 2 * b * h * n * heads["d_value"] * d
        assert counted(case, "blocks.0.attn_out", "blocks.0.attn.head_out") == base + head_out
        dots = 2 * b * h * n * n * heads["d_head"]
        assert counted(case, "blocks.0.attn_out", "blocks.0.attn.dots") == base + dots


def source_flops(rows: tuple[int, ...]) -> tuple[int, int]:
    """(what the estimate adds for attn.source_out, what its products cost at least)."""
    config = small.model(11, attention=small.attention(3, 2, d_value=5))
    run = small.run(
        config,
        small.values(config, {}),
        select=[
            Selected(name="attn_out"),
            Selected(name="attn.source_out", where={"position": rows}),
        ],
        tensor=np.zeros((7, 11)),
    )
    base = counted(
        Case(0, config, small.values(config, {}), {"tensor": np.zeros((7, 11))}), "attn_out"
    )
    lengths = stages.dimensions(run.config, 7, None)
    return cost.flops(run.config, run.selection, lengths) - base, 2 * 3 * 7 * 5 * 11


@pytest.mark.parametrize("rows", [(6,), (0, 3, 6)])
def test_what_sources_give_costs_its_product_too(rows: tuple[int, ...]) -> None:
    estimated, products = source_flops(rows)
    assert estimated >= products


# Memory.


def peak(run: Run) -> int:
    """The most bytes alive at once during a run, weights aside."""
    tracemalloc.start()
    try:
        trace(run)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


WIDE = {
    "long": small.model(24, attention=small.attention(4, 6, mask="causal"), ffn=small.mlp(96)),
    "wide ffn": small.model(24, ffn=small.mlp(4096)),
    "rope": small.model(24, attention=small.attention(4, 6), position=small.rope(6)),
    "alibi": small.model(
        24,
        attention=small.attention(4, 6),
        position={"kind": "alibi", "alibi_rule": "bloom"},
    ),
    "alibi, one head": small.model(
        24,
        attention=small.attention(1, 6),
        position={"kind": "alibi", "alibi_rule": "bloom"},
    ),
    "vocabulary": small.model(24, ffn=small.mlp(96)) | {"vocab": 20011},
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("asked", ["default", "last row", "every layer's pattern"])
@pytest.mark.parametrize("name", WIDE)
def test_a_run_stays_within_its_estimated_memory(name: str, asked: str, dtype: DType) -> None:
    config = WIDE[name] | {"n_layers": 2}
    last = "logits" if config["vocab"] else "blocks.1.resid_post"
    select = {
        "default": None,
        "last row": [Selected(name=last, where={"position": (-1,)})],
        "every layer's pattern": [Selected(name="*.pattern"), Selected(name="*.hidden")],
    }[asked]
    rows = np.random.default_rng(0).standard_normal((509, 24))
    run = small.run(config, small.drawn(config, 0), dtype=dtype, select=select, tensor=rows)
    estimated = estimate_of(run, dtype)
    # masks and tables of booleans, ids and small arrays come beside: a tenth, and 1 MB
    assert peak(run) <= 1.1 * (estimated.kept_bytes + estimated.work_bytes) + 1e6


def test_an_estimate_of_a_large_model_allocates_nothing() -> None:
    heads = small.attention(128, 128, mask="causal")
    config = config_json.from_json(small.model(16384, attention=heads, ffn=small.mlp(65536)))
    lengths = stages.dimensions(config, 1 << 20, 1 << 10)
    scene = selection.Scene(config, False, lengths)
    tracemalloc.start()
    estimated = cost.estimate(config, selection.resolve(None, scene), lengths, "float32")
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
    pattern = (1 << 10) * 128 * (1 << 20) ** 2
    assert estimated.by_stage["blocks.0.attn.pattern"] == pattern
    assert type(estimated.flops) is int
    assert estimated.flops > 1 << 63
