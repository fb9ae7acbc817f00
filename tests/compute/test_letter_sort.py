"""The shipped letter-sort model sorts: greedy decoding of every input, in both dtypes."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from compute import selection, weights
from compute.checkpoints import folder
from compute.trace import Run, trace
from compute.types import DType, Inputs, Selected
from compute.weights import ModelWeights

FOLDER = Path(__file__).resolve().parents[2] / "models" / "letter-sort"
MODEL = folder.load(FOLDER)
SPLIT = json.loads((FOLDER / "split.json").read_text("utf-8"))
WEIGHTS: dict[DType, ModelWeights] = {
    dtype: weights.build(MODEL.config, MODEL.source(), dtype) for dtype in ("float32", "float64")
}
LAST = [Selected(name="logits", where={"position": (-1,)})]


def logits(ids: np.ndarray, dtype: DType) -> np.ndarray:
    """(b, V): what the model says after the last letter of each row."""
    inputs = Inputs(token_ids=ids)
    run = Run(
        config=MODEL.config,
        weights=WEIGHTS[dtype],
        inputs=inputs,
        selection=selection.resolve(LAST, selection.scene_for(MODEL.config, inputs)),
    )
    (made,) = trace(run).made
    return made.values[:, 0]


def decoded(texts: Sequence[str], dtype: DType) -> list[str]:
    """The likeliest letter again and again, six for each text."""
    ids = MODEL.text.encode(texts, False).ids
    for _ in range(6):
        ids = np.concatenate([ids, logits(ids, dtype).argmax(axis=1)[:, None]], axis=1)
    return ["".join(MODEL.text.piece(int(i)) for i in row[6:]) for row in ids]


def share_sorted(texts: Sequence[str], dtype: DType) -> float:
    """How many of the texts come out sorted, in per cent."""
    answers = zip(texts, decoded(texts, dtype), strict=True)
    right = sum(answer == "".join(sorted(text)) for text, answer in answers)
    return 100 * right / len(texts)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_held_out_inputs_are_sorted(dtype: DType) -> None:
    held_out = share_sorted(SPLIT["held_out"], dtype)
    train = share_sorted(SPLIT["train"], dtype)
    print(f"{dtype}: sorted right, held out {held_out:.1f} %, trained on {train:.1f} %")
    assert held_out >= 99.5
    assert train >= 99.5


def test_held_out_inputs_are_not_among_those_trained_on() -> None:
    assert not set(SPLIT["held_out"]) & set(SPLIT["train"])
    assert len(SPLIT["held_out"]) + len(SPLIT["train"]) == 3**6


def test_one_input_alone_is_decoded_as_in_the_batch() -> None:
    texts = SPLIT["held_out"][:7]
    assert [decoded([text], "float32")[0] for text in texts] == decoded(texts, "float32")
