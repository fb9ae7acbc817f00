"""A selection is paid for, and nothing else: what is not selected is not kept, not computed, and
not made before it is cut."""

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from cases import small
from compute import config_json, derived, selection, weights
from compute.block_weights import AttentionWeights
from compute.tensors import Tensor
from compute.trace import Run, trace
from compute.types import Selected

N, D, HEADS = 256, 64, 4
DEEP = 12


def peak(made: Callable[[], object]) -> int:
    """The most bytes alive at once while something is made."""
    made()  # caches are there now
    tracemalloc.start()
    try:
        made()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def run_of(blocks: int, select: list[Selected] | None) -> Run:
    heads = small.attention(HEADS, D // HEADS, mask="causal")
    config = small.model(D, n_layers=blocks, attention=heads, ffn=small.mlp(4 * D))
    rows = np.random.default_rng(0).standard_normal((N, D))
    return small.run(config, small.drawn(config, 0), dtype="float32", select=select, tensor=rows)


def last_of(blocks: int) -> list[Selected]:
    return [Selected(name=f"blocks.{blocks - 1}.resid_post")]


def test_what_is_not_selected_is_not_kept() -> None:
    everything, last = run_of(DEEP, None), run_of(DEEP, last_of(DEEP))
    kept = sum(made.values.nbytes for made in trace(everything).made)
    assert peak(lambda: trace(everything)) > kept
    alone = peak(lambda: trace(last))
    assert alone < kept / DEEP
    # as much as of two blocks: nothing is held from block to block but the stream
    two = run_of(2, last_of(2))
    assert alone <= 1.05 * peak(lambda: trace(two)) + 20_000


def test_a_run_stops_after_the_last_stage_needed() -> None:
    asked: list[str] = []
    config = small.model(D, n_layers=DEEP, attention=small.attention(HEADS, 16), ffn=small.mlp(D))
    drawn, resolved = small.drawn(config, 0), config_json.from_json(config)

    def source(tensor: Tensor) -> np.ndarray:
        asked.append(tensor.name)
        return np.asarray(drawn[tensor.name])

    base = small.run(config, drawn, tensor=np.ones((5, D)))
    chosen = [Selected(name="blocks.1.attn.pattern"), Selected(name="blocks.0.*")]
    checks: list[None] = []
    run = Run(
        config=resolved,
        weights=weights.build(resolved, source, "float64"),
        inputs=base.inputs,
        selection=selection.resolve(chosen, selection.scene_for(resolved, base.inputs)),
        check=lambda: checks.append(None),
    )
    made = [made.wanted.name for made in trace(run).made]
    assert {name.split(".")[1] for name in asked} == {"0", "1"}
    # a check stands before each stage: all of block 0, and of block 1 no stage after the pattern
    whole = len({name for name in made if name.startswith("blocks.0.")} - {HEAD_OUT})
    assert len(checks) == whole + len(("resid_pre", "q", "k", "v", "scores", "pattern"))


HEAD_OUT = "blocks.0.attn.head_out"


@pytest.mark.parametrize("where", [{"h": (1,)}, {"n": (3, -1)}, {"h": (2,), "n": (0,), "d": (5,)}])
def test_contributions_are_cut_before_they_are_made(where: dict[str, tuple[int, ...]]) -> None:
    H = np.ones((HEADS, N, 16), np.float32)
    w = AttentionWeights(W_O=np.ones((HEADS, 16, D), np.float32), n_heads=HEADS, n_kv_heads=HEADS)
    found = derived.head_out((H,), w, where)
    whole = derived.head_out((H,), w, {})
    assert np.array_equal(found, derived.cut(whole, "hnd", where))
    assert found.base is None or found.base.nbytes == found.nbytes  # no view that holds more
    assert peak(lambda: derived.head_out((H,), w, where)) < 0.6 * whole.nbytes


def test_what_sources_give_is_cut_before_it_is_made() -> None:
    A, V = np.ones((HEADS, N, N), np.float32), np.ones((HEADS, N, 16), np.float32)
    w = AttentionWeights(W_O=np.ones((HEADS, 16, D), np.float32), n_heads=HEADS, n_kv_heads=HEADS)
    whole = HEADS * N * N * D * 4
    assert peak(lambda: derived.source_out((A, V), w, {"n": (5,)})) < whole / 50


def test_a_slice_does_not_keep_the_whole_stage_in_the_answer() -> None:
    select = [Selected(name="blocks.0.attn.pattern", where={"position": (-1,)})]
    (made,) = trace(run_of(1, select)).made
    assert made.values.shape == (HEADS, 1, N)
    owner = made.values if made.values.base is None else made.values.base
    assert owner.nbytes == made.values.nbytes
