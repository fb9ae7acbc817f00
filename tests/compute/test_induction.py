"""The shipped induction model copies, by one previous-token head and one induction head.

A sequence is a half twice, L letters each; the halves are held out. The prediction made at
position p, for p from L to 2 L - 2, is the letter at p + 1. `-s` prints what is measured.
"""

import random
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from compute import edits, selection, stages, weights
from compute.checkpoints import folder
from compute.selection import Scene
from compute.trace import Run, trace
from compute.types import Array, DType, Edit, Inputs, Ints, Selected
from models.induction import sequences

FOLDER = Path(__file__).resolve().parents[2] / "models" / "induction"
MODEL = folder.load(FOLDER)
LENGTH = 10
PREVIOUS_TOKEN, INDUCTION = (0, 1), (1, 2)
"""(block, head) of the two heads that carry the task."""

HEADS = list(product(range(MODEL.config.n_layers), range(MODEL.config.attention.n_heads)))
OTHERS = [head for head in HEADS if head not in (PREVIOUS_TOKEN, INDUCTION)]


def held_out(length: int = LENGTH, count: int = 1000) -> Ints:
    """(b, 2 L): the ids of held-out sequences."""
    texts = [half * 2 for half in sequences.held_out_halves(length, count)]
    return MODEL.text.encode(texts, False).ids


def traced(ids: Ints, stage: str, dtype: DType, made: Sequence[Edit] = ()) -> Array:
    """One stage of a run, its weights edited."""
    lengths = stages.dimensions(MODEL.config, ids.shape[1], len(ids))
    scene = Scene(MODEL.config, True, lengths)
    run = Run(
        config=MODEL.config,
        weights=weights.build(MODEL.config, edits.changed(MODEL.source(), {}, made), dtype),
        inputs=Inputs(token_ids=ids),
        selection=selection.resolve([Selected(name=stage)], scene),
    )
    (only,) = trace(run).made
    return only.values


def copy_probabilities(ids: Ints, dtype: DType = "float32", made: Sequence[Edit] = ()) -> Array:
    """The probability of each right letter: (b, 2 L) -> (b, L - 1)."""
    length = ids.shape[1] // 2
    logits = traced(ids, "logits", dtype, made)[:, length:-1]  # (b, L - 1, V)
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    probabilities = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return np.take_along_axis(probabilities, ids[:, length + 1 :, None], axis=-1)[..., 0]


def without(*heads: tuple[int, int]) -> list[Edit]:
    """The edits that silence some heads: their W_O is zero."""
    return [
        Edit(tensor=f"blocks.{block}.attn.W_O", op="zero", where={"head": (head,)})
        for block, head in heads
    ]


def masses(ids: Ints, head: tuple[int, int]) -> tuple[float, float]:
    """A head's mean weight on p - 1 (p >= 1), and on p - L + 1 (p from L to 2 L - 2)."""
    pattern = traced(ids, f"blocks.{head[0]}.attn.pattern", "float32")[:, head[1]]  # (b, n, m)
    length, every = ids.shape[1] // 2, np.arange(1, ids.shape[1])
    second = np.arange(length, 2 * length - 1)
    after_match = pattern[:, second, second - length + 1]
    return float(pattern[:, every, every - 1].mean()), float(after_match.mean())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_held_out_halves_are_copied(dtype: DType) -> None:
    right = copy_probabilities(held_out(), dtype)
    print(f"{dtype}: mean {right.mean():.4f}, least {right.min():.4f}")
    assert right.shape == (1000, LENGTH - 1)
    assert right.mean() > 0.98


@pytest.mark.parametrize("length", [2, 4, 7, 13, 20, 26])
def test_halves_of_other_lengths_are_copied(length: int) -> None:
    ids = held_out(length, 50)
    right = copy_probabilities(ids)
    previous, after_match = masses(ids, PREVIOUS_TOKEN)[0], masses(ids, INDUCTION)[1]
    print(f"L {length}: {right.mean():.4f}, heads {previous:.4f} and {after_match:.4f}")
    assert right.mean() > 0.98
    assert previous > 0.8
    assert after_match > 0.9


def test_two_heads_look_where_they_should_and_no_other_does() -> None:
    ids = held_out()
    measured = {head: masses(ids, head) for head in HEADS}
    for (block, head), (previous, after_match) in measured.items():
        print(f"block {block} head {head}: p - 1 {previous:.4f}, p - L + 1 {after_match:.4f}")
    assert measured[PREVIOUS_TOKEN][0] > 0.95
    assert measured[INDUCTION][1] > 0.95
    assert max(max(measured[head]) for head in OTHERS) < 0.5


@pytest.mark.parametrize("head", [PREVIOUS_TOKEN, INDUCTION])
def test_copying_ends_without_either_of_the_two_heads(head: tuple[int, int]) -> None:
    right = copy_probabilities(held_out(), made=without(head))
    print(f"without block {head[0]} head {head[1]}: {right.mean():.4f}")
    assert right.mean() < 0.15


@pytest.mark.parametrize("head", OTHERS)
def test_copying_goes_on_without_any_other_head(head: tuple[int, int]) -> None:
    right = copy_probabilities(held_out(), made=without(head))
    print(f"without block {head[0]} head {head[1]}: {right.mean():.4f}")
    assert right.mean() > 0.95


def test_the_two_heads_copy_alone() -> None:
    right = copy_probabilities(held_out(), made=without(*OTHERS))
    silent = [Edit(tensor=f"blocks.{block}.ffn.W_out", op="zero") for block in (0, 1)]
    bare = copy_probabilities(held_out(), made=without(*OTHERS) + silent)
    print(f"two heads {right.mean():.4f}, and without feed-forward networks {bare.mean():.4f}")
    assert right.mean() > 0.98
    assert bare.mean() > 0.98


def test_held_out_halves_are_never_trained_on() -> None:
    trained_on = sequences.training_halves(5000, random.Random(0))
    assert not any(sequences.is_held_out(half) for half in trained_on)
    assert {len(half) for half in trained_on} == set(sequences.TRAINED_LENGTHS)
    measured_on = sequences.held_out_halves(LENGTH, 1000)
    assert all(sequences.is_held_out(half) for half in measured_on)
    assert len(set(measured_on)) == 1000


def test_no_letter_stands_twice_in_a_half() -> None:
    halves = sequences.held_out_halves(26, 20) + sequences.training_halves(100, random.Random(0))
    assert all(len(set(half)) == len(half) for half in halves)


def test_one_sequence_alone_is_copied_as_in_the_batch() -> None:
    ids = held_out(count=7)
    alone = np.concatenate([copy_probabilities(row[None]) for row in ids])
    np.testing.assert_allclose(alone, copy_probabilities(ids), rtol=1e-4)  # sums in another order


def test_repeated_text_is_continued() -> None:
    ids = MODEL.text.encode(["QWERTYQWERT"], False).ids
    following = traced(ids, "logits", "float32")[0, -1].argmax()
    assert MODEL.text.piece(int(following)) == "Y"
