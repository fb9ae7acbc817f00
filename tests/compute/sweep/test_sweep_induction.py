"""Sweeps of the shipped induction model find the head that copies."""

from pathlib import Path

import numpy as np
import pytest

from compute import selection, sweep, weights
from compute.checkpoints import folder
from compute.measures import Measure
from compute.sweep import Swept, plans
from compute.types import Inputs, Intervened, Ints
from models.induction import sequences
from sweeps import never

INDUCTION = folder.load(Path(__file__).resolve().parents[3] / "models" / "induction")
INDUCTION_HEAD, PREVIOUS_TOKEN_HEAD = (1, 2), (0, 1)


def token_ids(text: str) -> Ints:
    assert INDUCTION.text is not None
    return INDUCTION.text.encode([text], False).ids[0]


@pytest.fixture(scope="module")
def copied() -> tuple[Inputs, Inputs, Measure]:
    """A half and most of it again; the same with the first half changed where it answers; the
    right next letter's logit less the other's."""
    (half,) = sequences.held_out_halves(8, 1)
    right, wrong = half[4], next(x for x in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if x not in half)
    clean, corrupted = half + half[:4], half[:4] + wrong + half[5:] + half[:4]
    direction = np.zeros(26)
    direction[token_ids(right + wrong)] = 1.0, -1.0
    inputs = [Inputs(token_ids=token_ids(text)) for text in (clean, corrupted)]
    return inputs[0], inputs[1], Measure("logits", 11, None, direction)


def table(
    copied: tuple[Inputs, Inputs, Measure], asked: Intervened, *, direct: bool = False
) -> Swept:
    clean, corrupted, measure = copied
    scene = selection.scene_for(INDUCTION.config, clean)
    planned = plans.plan(asked, ["block", "head"], scene, measure, direct=direct)
    made = weights.build(INDUCTION.config, INDUCTION.source(), "float32")
    donor = clean if asked.op == "patch" else None
    return sweep.run(planned, made, corrupted if donor else clean, donor, never)


def at(head: np.intp) -> tuple[int, int]:
    """(block, head) of a place in a table of four heads a block."""
    return divmod(int(head), 4)


@pytest.mark.parametrize("direct", [False, True])
def test_patching_finds_the_induction_head(
    copied: tuple[Inputs, Inputs, Measure], direct: bool
) -> None:
    found = table(copied, Intervened(stage="attn.z", op="patch", source=0), direct=direct)
    assert found.donor is not None
    normalized = (found.values - found.base) / (found.donor - found.base)
    assert at(normalized.argmax()) == INDUCTION_HEAD
    assert normalized[INDUCTION_HEAD] > 0.8
    others = np.delete(normalized.reshape(-1), 4 * INDUCTION_HEAD[0] + INDUCTION_HEAD[1])
    assert np.abs(others).max() < 0.2


@pytest.mark.parametrize("direct", [False, True])
def test_ablation_finds_the_induction_head(
    copied: tuple[Inputs, Inputs, Measure], direct: bool
) -> None:
    found = table(copied, Intervened(stage="attn.z", op="zero"), direct=direct)
    lost = found.base - found.values
    if direct:
        assert at(lost.argmax()) == INDUCTION_HEAD
    else:  # both heads are needed: without either the letter is lost
        largest = np.argsort(lost.reshape(-1))[-2:]
        needed = {PREVIOUS_TOKEN_HEAD, INDUCTION_HEAD}
        assert set(map(at, largest)) == needed
