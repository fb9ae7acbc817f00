"""Observing changes nothing, what is captured stays as it is, and slices are slices."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

import runs
from cases import small
from compute import driver, selection, stages
from compute.model import model
from compute.selection import Wanted
from compute.trace import Run, trace
from compute.types import DType, Selected
from oracle.configs import Case

Array = npt.NDArray[np.generic]
DTYPES = pytest.mark.parametrize("dtype", ["float64", "float32"])
SELECTIONS = 3


def cut(whole: Array, wanted: Wanted) -> Array:
    """The wanted indices of a whole stage, axis by axis."""
    batched = whole.ndim > len(wanted.stage.axes)
    for at, letter in enumerate(stages.axes_of(wanted.stage, batched)):
        if letter in wanted.where:
            whole = np.stack([whole.take(i, axis=at) for i in wanted.where[letter]], axis=at)
    return whole


def differences(case: Case, dtype: DType, rng: np.random.Generator) -> list[str]:
    """The stages of a random selection that are not those of the full trace."""
    full = runs.states(runs.run_of_case(case, dtype=dtype, select=runs.every_stage(case)))
    select = runs.random_selection(rng, case)
    return [
        f"{case.seed} {made.wanted.name} of {[item.name for item in select]}"
        for made in trace(runs.run_of_case(case, dtype=dtype, select=select)).made
        if not same(made.values, cut(full[made.wanted.name], made.wanted), made.wanted)
    ]


def same(values: Array, whole: Array, wanted: Wanted) -> bool:
    if not wanted.stage.derived:
        return values.shape == whole.shape and values.tobytes() == whole.tobytes()
    # a product of a slice may round its sums of at most 11 terms in another order
    return runs.relative_error(values, whole) <= 16 * np.finfo(values.dtype).eps


@DTYPES
@pytest.mark.parametrize("first", range(0, 200, 50))
def test_a_stage_has_the_same_bits_whatever_else_is_kept(first: int, dtype: DType) -> None:
    rng = np.random.default_rng(first)
    cases = [runs.case_of(seed) for seed in range(first, first + 50)]
    found = [
        difference
        for case in cases
        for _ in range(SELECTIONS)
        for difference in differences(case, dtype, rng)
    ]
    assert found == []


HEADS = small.attention(8, 16, n_kv_heads=2, mask="causal", bias=small.biases("q", "o"))
ALONE = small.attention(1, 16, mask="causal")
GATED = small.mlp(257, kind="gated", bias={"in": True, "gate": False, "out": True})
EXPERTS = small.moe(257, 7, 3, expert="gated", d_shared=131, shared_gate=True)
BIASED = small.moe(257, 7, 3, bias={"in": True, "gate": False, "out": True})
CAPPED = HEADS | {"softcap": 5.0, "qk_norm": "full", "sinks": True}
T5 = {"kind": "t5_bias", "n_buckets": 16, "max_distance": 64, "bidirectional": False}


def of_width(**given: object) -> small.Config:
    """Wide enough for the blocked products and slabs that small models do not reach."""
    parts = {"attention": HEADS, "ffn": GATED, "norm": small.norm("rmsnorm")}
    return small.model(96, **(parts | given)) | {"n_layers": 2}


CROSSING = {"cross_attention": True, "residual_multiplier": 0.5}
LARGER = {
    "grouped heads": of_width(position=small.rope(16)),
    "one head": of_width(attention=ALONE, position=small.rope(16)),
    "experts": of_width(ffn=EXPERTS),
    "experts with biases, parallel": of_width(ffn=BIASED) | {"topology": "parallel"},
    "sandwich": of_width(attention=CAPPED, norm=small.norm("layernorm", placement="sandwich")),
    "output": of_width(norm=small.norm("layernorm", placement="output"), position=T5),
    "crossing": of_width() | CROSSING,
    "encoder": of_width() | CROSSING | {"encoder": of_width(ffn=EXPERTS, position=T5)},
}


@DTYPES
@pytest.mark.parametrize("name", LARGER)
def test_a_wider_model_has_the_same_bits_whatever_else_is_kept(name: str, dtype: DType) -> None:
    rng, config = np.random.default_rng(0), LARGER[name]
    inputs = {"tensor": np.random.default_rng(5).standard_normal((131, 96))}
    if config.get("cross_attention"):
        inputs["memory"] = {"tensor": np.random.default_rng(6).standard_normal((137, 96))}
    case = Case(0, config, small.drawn(config, 3), inputs)
    full = runs.states(runs.run_of_case(case, dtype=dtype))
    for _ in range(12):
        names = [name for name in full if rng.random() < 0.15 and "head_out" not in name]
        select = [Selected(name=name) for name in names]
        made = runs.states(runs.run_of_case(case, dtype=dtype, select=select))
        assert [name for name in made if made[name].tobytes() != full[name].tobytes()] == []


def wide(dtype: DType, rows: int = 200, **given: object) -> Run:
    """A causal model on more rows than a block of them has, by default with a window and RoPE."""
    windowed = HEADS | {"window": 90}
    parts = {"attention": windowed, "position": small.rope(16)} | given
    config = of_width(**parts)
    inputs = {"tensor": np.random.default_rng(5).standard_normal((rows, 96))}
    return runs.run_of(config, small.drawn(config, 3), inputs, dtype=dtype)


@DTYPES
@pytest.mark.parametrize("attention", [HEADS, HEADS | {"window": 90}, CAPPED])
def test_a_stage_changed_into_itself_changes_no_bit(attention: small.Config, dtype: DType) -> None:
    run = wide(dtype, attention=attention)
    full = runs.states(run)
    primary = [made.wanted.name for made in trace(run).made if not made.wanted.stage.derived]
    for name in primary:
        if name.startswith("blocks.0.") and not name.endswith("attn.sink"):
            made = runs.states(replace(run, patches={name: np.array}))
            assert [x for x in full if made[x].tobytes() != full[x].tobytes()] == [], name


@DTYPES
@pytest.mark.parametrize("stage", ["attn.scores", "attn.pattern"])
def test_what_a_patch_lets_through_the_mask_is_used(stage: str, dtype: DType) -> None:
    run, name = wide(dtype), "blocks.0." + stage

    def change(x: Array) -> Array:
        changed = np.array(x)
        changed[2, 10, 150] = 3.0  # a key after the query, blocks away
        return changed

    clean, made = runs.states(run), runs.states(replace(run, patches={name: change}))
    S, A, z = (made[f"blocks.0.attn.{x}"][2] for x in ("scores", "pattern", "z"))
    V = made["blocks.0.attn.v"][0]
    raised = np.exp(S.astype(np.float64) - S.max(axis=-1, keepdims=True))
    weights = raised / raised.sum(axis=-1, keepdims=True) if stage == "attn.scores" else A
    tolerance = 4e-6 if dtype == "float32" else 1e-13
    assert made[name][2, 10, 150] == 3.0
    assert A[10, 150] > 0
    np.testing.assert_allclose(A, weights, rtol=0, atol=tolerance)
    np.testing.assert_allclose(z, A.astype(np.float64) @ V, rtol=0, atol=tolerance)
    untouched = np.arange(200) >= 64  # the other blocks of rows keep their bits
    for x in ("pattern", "z"):
        one, other = clean[f"blocks.0.attn.{x}"], made[f"blocks.0.attn.{x}"]
        assert one[:, untouched].tobytes() == other[:, untouched].tobytes()


def test_the_same_run_gives_the_same_bits_again() -> None:
    for seed in range(0, 100, 7):
        run = runs.run_of_case(runs.case_of(seed))
        one, again = runs.states(run), runs.states(run)
        assert all(one[name].tobytes() == again[name].tobytes() for name in one)


# What is captured stays as it is.


def test_what_is_captured_does_not_change_while_the_run_goes_on() -> None:
    for seed in range(0, 200, 2):
        case = runs.case_of(seed)
        run = runs.run_of_case(case)
        equations = model(run.config, run.weights, run.inputs)
        names = selection.kept_stages(run.selection, run.config)
        at_once = [
            (name, values, values.tobytes()) for name, values in driver.stream(equations, names)
        ]
        assert len(at_once) == len(names)
        assert [name for name, values, bits in at_once if values.tobytes() != bits] == [], seed


@DTYPES
def test_every_array_of_a_trace_is_frozen(dtype: DType) -> None:
    rng = np.random.default_rng(11)
    for seed in range(0, 100, 3):
        case = runs.case_of(seed)
        traced = trace(runs.run_of_case(case, dtype=dtype, select=runs.random_selection(rng, case)))
        writeable = [made.wanted.name for made in traced.made if made.values.flags.writeable]
        assert writeable == []
        assert not any(values.flags.writeable for values in traced.whole.values())


@DTYPES
@pytest.mark.parametrize("kind", ["none", "layernorm", "rmsnorm"])
def test_the_posted_array_stays_its_owners(kind: str, dtype: DType) -> None:
    norm = small.NONE if kind == "none" else small.norm(kind)
    config = small.model(5, attention=small.attention(2, 3), ffn=small.mlp(7), norm=norm)
    rows = np.random.default_rng(0).standard_normal((3, 5)).astype(dtype)
    bits = rows.tobytes()
    for names in (["resid_pre"], ["resid_post"], ["*"]):
        select = [Selected(name=name) for name in names]
        run = runs.run_of(
            config, small.drawn(config, 0), {"tensor": rows}, dtype=dtype, select=select
        )
        made = runs.states(run)
        assert rows.tobytes() == bits
        assert rows.flags.writeable, names
        assert made.get("blocks.0.resid_pre", rows).tobytes() == bits


@DTYPES
@pytest.mark.parametrize("encodes", [False, True])
def test_the_posted_memory_stays_its_owners(encodes: bool, dtype: DType) -> None:
    encoder = small.model(5, ffn=small.mlp(7)) if encodes else None
    config = small.model(5, attention=small.attention(2, 3), ffn=small.mlp(7))
    config |= {"cross_attention": True, "encoder": encoder}
    rows = np.random.default_rng(0).standard_normal((3, 5)).astype(dtype)
    bits, inputs = rows.tobytes(), {"tensor": rows, "memory": {"tensor": rows}}
    for name in ("cross.k", "resid_post", "*"):
        select = [Selected(name=name)]
        runs.states(runs.run_of(config, small.drawn(config, 0), inputs, dtype=dtype, select=select))
        assert rows.tobytes() == bits
        assert rows.flags.writeable


def test_a_trace_does_not_follow_later_changes_of_the_posted_array() -> None:
    config = small.model(5, ffn=small.mlp(7))
    rows = np.ones((3, 5))
    made = runs.states(runs.run_of(config, small.drawn(config, 0), {"tensor": rows}))
    rows[:] = 2.0
    assert made["blocks.0.resid_pre"].tolist() == [[1.0] * 5] * 3
