"""The article's toy through the shipped model and edits of its weights, in closed form."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import runs
from cases import small
from compute import edits, selection, stages, weights
from compute.checkpoints import folder
from compute.selection import Scene
from compute.trace import Run, identities_of, trace
from compute.types import Edit, Inputs

TOY = folder.load(Path(__file__).resolve().parents[2] / "models" / "eiffel-toy")
THE, EIFFEL, TOWER = range(3)
GREAT = math.exp(1 / math.sqrt(2))  # e^(1/√2): the weight of a key that agrees, before the sum
LOW, HIGH = 1 / (2 + GREAT), GREAT / (2 + GREAT)
IDENTITY, SWAP = np.eye(2), np.eye(2)[::-1]
PREFIX = "blocks.0."


def whole(tensor: str, matrix: np.ndarray) -> Edit:
    return Edit(tensor=f"blocks.0.attn.{tensor}", op="set", value=matrix[None])


def negated() -> Edit:
    """W_O = diag(-1, 1): the structure coordinate of what the head writes."""
    return Edit(tensor="blocks.0.attn.W_O", op="scale", where={"d_model": (0,)}, value=-1.0)


def run_of(*made: Edit) -> Run:
    edits.check(TOY.config, {}, made)
    source = edits.changed(TOY.source(), {}, made)
    inputs = Inputs(token_ids=TOY.text.encode(["the Eiffel tower"], False).ids[0])
    scene = Scene(TOY.config, True, stages.dimensions(TOY.config, inputs.positions, None))
    return Run(
        config=TOY.config,
        weights=weights.build(TOY.config, source, "float64"),
        inputs=inputs,
        selection=selection.resolve(None, scene),
    )


def traced(*made: Edit) -> dict[str, np.ndarray]:
    states = runs.states(run_of(*made))
    return {name.removeprefix(PREFIX): values for name, values in states.items()}


def test_the_text_is_the_articles_three_tokens() -> None:
    tokens = TOY.text.encode(["the Eiffel tower"], False)
    assert tokens.ids.tolist() == [[THE, EIFFEL, TOWER]]
    small.close(traced()["resid_pre"], [[0, 0], [0, 1], [1, 0]], atol=0)


def test_every_stage_has_its_closed_form() -> None:
    states = traced()
    third, far = 1 / 3, 1 / math.sqrt(2)
    pattern = [[third, third, third], [LOW, LOW, HIGH], [LOW, HIGH, LOW]]
    mixtures = [[third, third], [HIGH, LOW], [LOW, HIGH]]
    results = [[third, third], [HIGH, 1 + LOW], [1 + LOW, HIGH]]
    small.close(states["attn.q"], [[[0, 0], [1, 0], [0, 1]]], atol=0)
    small.close(states["attn.scores"], [[[0, 0, 0], [0, 0, far], [0, far, 0]]], atol=1e-12)
    small.close(states["attn.pattern"], [pattern], atol=1e-12)
    small.close(states["attn.z"], [mixtures], atol=1e-12)
    small.close(states["attn.head_out"], [mixtures], atol=1e-12)
    small.close(states["attn_out"], mixtures, atol=1e-12)
    small.close(states["resid_post"], results, atol=1e-12)


def test_e_to_one_over_root_two_is_the_articles_ratio() -> None:
    A = traced()["attn.pattern"][0, TOWER]
    assert A[EIFFEL] / A[THE] == pytest.approx(GREAT, rel=1e-12)
    assert pytest.approx(2.028114981647472451, rel=1e-15) == GREAT


def test_the_article_prints_these_numbers() -> None:
    states = traced()
    assert np.round(states["attn.pattern"][0, TOWER], 4).tolist() == [0.2483, 0.5035, 0.2483]
    assert np.round(states["attn.z"][0, TOWER], 4).tolist() == [0.2483, 0.5035]
    assert np.round(states["resid_post"][TOWER], 4).tolist() == [1.2483, 0.5035]
    states = traced(negated())
    assert np.round(states["attn_out"][TOWER], 4).tolist() == [-0.2483, 0.5035]
    assert np.round(states["resid_post"][TOWER], 4).tolist() == [0.7517, 0.5035]


@dataclass(frozen=True)
class State:
    """What the calculator shows for the receiving position: weights in %, three vectors."""

    query: np.ndarray
    value: np.ndarray
    is_negated: bool
    weights: list[float]
    mixture: list[float]
    update: list[float]
    result: list[float]

    def edits(self) -> list[Edit]:
        made = [whole("W_Q", self.query), whole("W_V", self.value)]
        return [*made, negated()] if self.is_negated else made


EIFFELS, ITS_OWN = [24.83, 50.35, 24.83], [24.83, 24.83, 50.35]
STATES = [
    State(SWAP, IDENTITY, False, EIFFELS, [0.2483, 0.5035], [0.2483, 0.5035], [1.2483, 0.5035]),
    State(SWAP, IDENTITY, True, EIFFELS, [0.2483, 0.5035], [-0.2483, 0.5035], [0.7517, 0.5035]),
    State(IDENTITY, IDENTITY, False, ITS_OWN, [0.5035, 0.2483], [0.5035, 0.2483], [1.5035, 0.2483]),
    State(IDENTITY, IDENTITY, True, ITS_OWN, [0.5035, 0.2483], [-0.5035, 0.2483], [0.4965, 0.2483]),
    State(SWAP, SWAP, False, EIFFELS, [0.5035, 0.2483], [0.5035, 0.2483], [1.5035, 0.2483]),
    State(SWAP, SWAP, True, EIFFELS, [0.5035, 0.2483], [-0.5035, 0.2483], [0.4965, 0.2483]),
    State(IDENTITY, SWAP, False, ITS_OWN, [0.2483, 0.5035], [0.2483, 0.5035], [1.2483, 0.5035]),
    State(IDENTITY, SWAP, True, ITS_OWN, [0.2483, 0.5035], [-0.2483, 0.5035], [0.7517, 0.5035]),
]


@pytest.mark.parametrize("state", STATES)
def test_each_state_of_the_calculator_has_its_printed_digits(state: State) -> None:
    states = traced(*state.edits())
    assert np.round(100 * states["attn.pattern"][0, TOWER], 2).tolist() == state.weights
    assert np.round(states["attn.z"][0, TOWER], 4).tolist() == state.mixture
    assert np.round(states["attn.head_out"][0, TOWER], 4).tolist() == state.update
    assert np.round(states["attn_out"][TOWER], 4).tolist() == state.update
    assert np.round(states["resid_post"][TOWER], 4).tolist() == state.result


@pytest.mark.parametrize("state", STATES)
def test_the_identities_of_the_toy_hold_in_every_state(state: State) -> None:
    identities = identities_of(trace(run_of(*state.edits())))
    holds = {identity.name.removeprefix(PREFIX): identity.holds for identity in identities}
    assert False not in holds.values()
    assert holds["head_sum"] is holds["mixture"] is holds["expansion"] is True


def test_a_causal_mask_leaves_the_last_position_as_it_is() -> None:
    heads = small.attention(1, 2, mask="causal")
    eye = [IDENTITY]
    given = {"attn.W_Q": [SWAP], "attn.W_K": eye, "attn.W_V": eye, "attn.W_O": eye}
    rows = [[0, 0], [0, 1], [1, 0]]
    states = small.block(small.model(2, attention=heads), given, tensor=rows)
    small.close(states["attn.pattern"][0, TOWER], [LOW, HIGH, LOW], atol=1e-12)
    small.close(states["resid_post"][TOWER], [1 + LOW, HIGH], atol=1e-12)
