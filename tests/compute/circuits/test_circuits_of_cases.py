"""Circuits of random models against whole (d, d) matrices: every kind of block, grouped heads."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from compute import config_json, weights
from compute.circuits import composition, factored, heads, networks, reading, subspace, writing
from compute.circuits.heads import HeadId
from compute.config import ModelConfig
from compute.weights import ModelWeights
from oracle.circuits import Dense, overlap, product_score, rank
from runs import case_of, has_attention

CLOSE = 1e-9  # float64 through products of four matrices
IN_GRAM = 1e-6  # a Gram matrix has the square of a score: half of the digits near 0

SEEDS = [seed for seed in range(60) if has_attention(case_of(seed))][:25]
each_case = pytest.mark.parametrize("seed", SEEDS)
folded_or_not = pytest.mark.parametrize("fold", [False, True])


@dataclass(frozen=True)
class Both:
    """A model and its long-way twin."""

    config: ModelConfig
    weights: ModelWeights
    dense: Dense
    heads: list[HeadId]


@cache
def both(seed: int, fold: bool = False) -> Both:
    case = case_of(seed)
    config = config_json.from_json(case.config)
    made = weights.build(config, lambda tensor: case.weights[tensor.name], "float64")
    dense = Dense(case.config, case.weights, fold)
    return Both(config, made, dense, [HeadId(*head) for head in dense.heads])


def of_block(model: Both, block: int, fold: bool = False) -> heads.Heads:
    chosen = range(model.config.attention.n_heads)
    return heads.heads_of(model.config, model.weights.blocks[block], chosen, fold_norm=fold)


def nothing() -> None:
    """A deadline that never comes."""


def at(head: HeadId) -> tuple[int, int]:
    return head.block, head.head


def test_cases_have_groups_and_later_blocks() -> None:
    models = [both(seed) for seed in SEEDS]
    assert any(m.config.attention.n_kv_heads < m.config.attention.n_heads for m in models)
    assert sum(m.config.n_layers > 1 for m in models) > 5
    assert {m.config.ffn.kind for m in models} == {"mlp", "gated", "moe", "none"}
    assert {m.config.norm.kind for m in models} == {"layernorm", "rmsnorm", "none"}


@folded_or_not
@each_case
def test_matrices_of_a_head_are_its_own_and_those_of_its_group(seed: int, fold: bool) -> None:
    model = both(seed, fold)
    for block in range(model.config.n_layers):
        made = of_block(model, block, fold)
        for r in range(model.config.attention.n_heads):
            dense = model.dense
            assert made.kv_heads[r] == dense.kv(r)
            for name in ("Q", "K", "V", "O"):
                expected = getattr(dense, name)(block, r)
                np.testing.assert_allclose(getattr(made, f"W_{name}")[r], expected, atol=1e-12)


@folded_or_not
@each_case
def test_circuit_has_the_norm_singular_values_and_eigenvalues_of_the_whole_matrix(
    seed: int, fold: bool
) -> None:
    model = both(seed, fold)
    for block in range(model.config.n_layers):
        made = of_block(model, block, fold)
        for kind, circuits in (("QK", factored.qk(made)), ("OV", factored.ov(made))):
            singular, eigen = circuits.singular_values(), circuits.eigenvalues()
            for r in range(model.config.attention.n_heads):
                whole = getattr(model.dense, kind)(block, r)
                full = np.linalg.svd(whole, compute_uv=False)
                size = full[0]
                np.testing.assert_allclose(
                    singular[r], full[: singular.shape[1]], atol=CLOSE * size
                )
                assert np.linalg.norm(singular[r]) == pytest.approx(np.linalg.norm(whole))
                assert_same_spectrum(eigen[r], np.linalg.eigvals(whole), size)
                assert eigen[r].sum() == pytest.approx(np.trace(whole), abs=CLOSE * size)


def assert_same_spectrum(found: np.ndarray, whole: np.ndarray, size: float) -> None:
    """The power sums Σ λ^i of both agree: eigenvalues near 0 are ill-conditioned, these are not."""
    for power in (1, 2, 3):
        ours, theirs = ((values**power).sum() for values in (found, whole))
        assert abs(ours - theirs) < 1e-8 * len(whole) * size**power


@folded_or_not
@each_case
def test_composition_is_that_of_whole_matrices(seed: int, fold: bool) -> None:
    model = both(seed, fold)
    found = composition.composition(
        model.config, model.weights, model.heads, model.heads, fold_norm=fold, check=nothing
    )
    for i, a in enumerate(model.heads):
        for j, b in enumerate(model.heads):
            for kind in composition.KINDS:
                score = found[kind][i, j]
                if a.block >= b.block:
                    assert np.isnan(score)
                else:
                    expected = model.dense.composition(kind, at(a), at(b))
                    assert score == pytest.approx(expected, abs=CLOSE)


@each_case
def test_write_subspaces_have_the_ranks_and_overlaps_of_the_matrices(seed: int) -> None:
    model = both(seed)
    spans = writing.write_spans(model.weights, model.heads, nothing)
    found = writing.overlaps(model.heads, spans, nothing)
    ranks = [x for span in spans for x in span.ranks]
    for i, a in enumerate(model.heads):
        O = model.dense.O(*at(a))  # noqa: E741
        assert ranks[i] == rank(O) <= model.config.attention.d_value
        for j, b in enumerate(model.heads):
            assert found[i, j] == pytest.approx(overlap(O, model.dense.O(*at(b))), abs=CLOSE)


@each_case
def test_basis_is_orthonormal_and_spans_what_the_head_writes(seed: int) -> None:
    model = both(seed)
    for block in range(model.config.n_layers):
        outputs = of_block(model, block).W_O
        spans = subspace.spans_of(outputs)
        for r, O in enumerate(outputs):  # noqa: E741
            basis = spans.basis(r)
            assert basis.shape == (rank(O), model.config.d_model)
            np.testing.assert_allclose(basis @ basis.T, np.eye(len(basis)), atol=1e-12)
            np.testing.assert_allclose(O @ basis.T @ basis, O, atol=CLOSE)


@folded_or_not
@each_case
def test_reads_of_later_blocks_are_those_of_whole_matrices(seed: int, fold: bool) -> None:
    model = both(seed, fold)
    writes = writing.write_spans(model.weights, model.heads, nothing)
    found = reading.reads(
        model.config,
        model.weights,
        model.heads,
        writes,
        model.heads,
        fold_norm=fold,
        with_angles=True,
        check=nothing,
    )
    group = model.config.attention.n_heads // model.config.attention.n_kv_heads
    assert found.degrees is not None
    for j, reader in enumerate(found.readers):
        r = reader.head if reader.head is not None else (reader.kv_head or 0) * group
        N = getattr(model.dense, reader.matrix[-1])(reader.block, r)
        assert found.ranks[j] == rank(N)
        for i, head in enumerate(model.heads):
            if head.block >= reader.block:
                assert np.isnan(found.overlap[i, j])
                assert np.isnan(found.weighted[i, j])
                assert found.degrees[i][j] is None
                continue
            M = model.dense.O(*at(head))
            shared = overlap(M, N.T)
            assert found.overlap[i, j] == pytest.approx(shared, abs=CLOSE)
            assert found.weighted[i, j] == pytest.approx(product_score(M, N), abs=CLOSE)
            angles = found.degrees[i][j]
            assert angles is not None
            cosines = np.cos(np.radians(angles))
            assert np.mean(cosines**2) == pytest.approx(shared, abs=CLOSE)


@folded_or_not
@each_case
def test_networks_are_those_of_whole_matrices(seed: int, fold: bool) -> None:
    model = both(seed, fold)
    if model.config.ffn.kind == "none":
        return
    matrices = (*networks.read_by(model.config), "W_out")
    writes = writing.write_spans(model.weights, model.heads, nothing)
    found = networks.networks(
        model.config,
        model.weights,
        model.heads,
        writes,
        range(model.config.n_layers),
        matrices=matrices,
        fold_norm=fold,
        check=nothing,
    )
    assert len(found) == model.config.n_layers * len(matrices)
    is_sequential = model.config.topology == "sequential"
    for network in found:
        N = model.dense.ffn(network.block, network.matrix)
        assert (network.rank, network.width) == (rank(N), N.shape[1])
        for i, head in enumerate(model.heads):
            before = head.block < network.block or (head.block == network.block and is_sequential)
            if not (before or network.matrix == "W_out"):
                assert np.isnan(network.overlap[i])
                assert np.isnan(network.weighted[i])
                continue
            M = model.dense.O(*at(head))
            assert network.overlap[i] == pytest.approx(overlap(M, N.T), abs=IN_GRAM)
            assert network.weighted[i] == pytest.approx(product_score(M, N), abs=IN_GRAM)


@each_case
def test_some_heads_score_as_they_do_among_all(seed: int) -> None:
    model = both(seed)
    some = model.heads[::-2]
    kept = [model.heads.index(head) for head in some]

    def scores(chosen: list[HeadId]) -> dict[str, np.ndarray]:
        found = composition.composition(
            model.config, model.weights, chosen, chosen, fold_norm=False, check=nothing
        )
        spans = writing.write_spans(model.weights, chosen, nothing)
        return {**found, "overlap": writing.overlaps(chosen, spans, nothing)}

    whole, part = scores(model.heads), scores(some)
    for name, values in part.items():
        np.testing.assert_allclose(values, whole[name][np.ix_(kept, kept)], atol=1e-12)
