"""Composition by hand, and where it must be seen: in the shipped model that copies."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from compute import weights
from compute.checkpoints import folder
from compute.circuits import baseline, composition
from compute.circuits.heads import Float64, HeadId, Heads

MODEL = folder.load(Path(__file__).resolve().parents[3] / "models" / "induction")
PREVIOUS_TOKEN, INDUCTION = 1, 2  # heads of block 0 and of block 1, by the model's card
OTHER_OF_ITS_GROUP = 3
FIRST, SECOND = ([HeadId(block, head) for head in range(4)] for block in (0, 1))


def head(q: list[int], k: list[int], v: list[int], o: list[int]) -> Heads:
    """A head that reads and writes coordinates of a stream of eight."""
    eye = np.eye(8)[None]
    return Heads(W_Q=eye[:, :, q], W_K=eye[:, :, k], W_V=eye[:, :, v], W_O=eye[:, o], kv_heads=(0,))


WRITER = head(q=[6, 7], k=[6, 7], v=[6, 7], o=[0, 1])


@pytest.mark.parametrize(
    ("reader", "kind"),
    [
        (head(q=[0, 1], k=[2, 3], v=[4, 5], o=[6, 7]), "q"),
        (head(q=[2, 3], k=[0, 1], v=[4, 5], o=[6, 7]), "k"),
        (head(q=[2, 3], k=[4, 5], v=[0, 1], o=[6, 7]), "v"),
    ],
    ids=["q", "k", "v"],
)
def test_head_composes_by_what_it_reads_with(reader: Heads, kind: str) -> None:
    writes, reads = composition.written(WRITER), composition.read(reader)
    found = {name: float(composition.scores(writes, reads[name])[0, 0]) for name in reads}
    # W_OV and the read are both of rank 2 with equal singular values: ‖A B‖ / ‖A‖ ‖B‖ = 1 / sqrt(2)
    assert found == {
        name: pytest.approx(0.5**0.5 if name == kind else 0.0, abs=1e-12) for name in "qkv"
    }


def test_head_that_writes_nothing_composes_with_nothing() -> None:
    silent = Heads(
        W_Q=WRITER.W_Q, W_K=WRITER.W_K, W_V=WRITER.W_V, W_O=0 * WRITER.W_O, kv_heads=(0,)
    )
    reads = composition.read(WRITER)
    assert composition.scores(composition.written(silent), reads["q"])[0, 0] == 0.0


@pytest.mark.parametrize("seed", range(8))
def test_turning_the_stream_and_the_inside_of_heads_changes_no_score(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, k, v = (int(x) for x in rng.integers(1, 9, 3))

    def turn(width: int) -> Float64:
        turned, _ = np.linalg.qr(rng.standard_normal((width, width)))
        return np.asarray(turned, np.float64)

    stream, of_scores, of_values = turn(d), turn(k), turn(v)

    def turned(one: Heads) -> Heads:
        return Heads(
            W_Q=stream.T @ one.W_Q @ of_scores,
            W_K=stream.T @ one.W_K @ of_scores,
            W_V=stream.T @ one.W_V @ of_values,
            W_O=of_values.T @ one.W_O @ stream,
            kv_heads=one.kv_heads,
        )

    a, b = (
        Heads(
            W_Q=rng.standard_normal((3, d, k)),
            W_K=rng.standard_normal((3, d, k)),
            W_V=rng.standard_normal((3, d, v)),
            W_O=rng.standard_normal((3, v, d)),
            kv_heads=(0, 1, 2),
        )
        for _ in range(2)
    )
    before, after = composition.read(b), composition.read(turned(b))
    writes = composition.written(a), composition.written(turned(a))
    for kind in composition.KINDS:
        expected = composition.scores(writes[0], before[kind])
        assert ((expected >= 0) & (expected <= 1 + 1e-12)).all()
        np.testing.assert_allclose(composition.scores(writes[1], after[kind]), expected, atol=1e-12)


@pytest.mark.parametrize("fold_norm", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_previous_token_head_and_induction_head_compose_most_by_keys(
    fold_norm: bool, dtype: str
) -> None:
    made = weights.build(MODEL.config, MODEL.source(), dtype)  # type: ignore[arg-type]
    found = composition.composition(
        MODEL.config, made, FIRST, SECOND, fold_norm=fold_norm, check=lambda: None
    )
    scores = found["k"]
    best = scores[PREVIOUS_TOKEN, INDUCTION]
    pairs = set(product(range(4), range(4)))
    chance = baseline.of_composition(64, 16, 16)
    print(f"fold_norm {fold_norm}: {best:.4f}, chance {chance.mean:.4f} ± {chance.std:.4f}")
    for pair in pairs - {(PREVIOUS_TOKEN, INDUCTION)}:
        assert scores[pair] < best
    outside = pairs - {(PREVIOUS_TOKEN, INDUCTION), (PREVIOUS_TOKEN, OTHER_OF_ITS_GROUP)}
    assert max(scores[pair] for pair in outside) < 0.6 * best
    assert best > chance.mean + 20 * chance.std


def test_check_is_asked_between_blocks() -> None:
    made = weights.build(MODEL.config, MODEL.source(), "float32")
    asked = []
    composition.composition(
        MODEL.config, made, FIRST, SECOND, fold_norm=False, check=lambda: asked.append(1)
    )
    assert len(asked) >= 2
