"""Settings that are held from run to run are those that a run would make."""

import numpy as np
import pytest

import runs
from cases import small
from compute import config_json, initial, setting, weights
from compute.types import Inputs

OWN = {"scale": 0.5, "theta": None, "scaling": {"kind": "none"}}
MODELS = {
    "plain": {},
    "rope": {"position": small.rope(4)},
    "layers": {"layers": [{**OWN, "window": window} for window in (None, 2)]},
}


def model_of(**given: object) -> small.Config:
    attention = small.attention(2, 4, mask="causal")
    return small.model(8, attention=attention, ffn=small.mlp(16)) | {"n_layers": 2} | given


@pytest.mark.parametrize("name", MODELS)
def test_a_held_setting_gives_the_bits_of_one_made_for_the_run(name: str) -> None:
    config = model_of(**MODELS[name])
    rows = np.random.default_rng(0).standard_normal((7, 8))
    values = small.drawn(config, 1)
    held = runs.states(runs.run_of(config, values, {"tensor": rows}))
    mine = {"tensor": rows, "position_ids": np.arange(7), "key_mask": np.ones(7, bool)}
    made = runs.states(runs.run_of(config, values, mine))
    assert [x for x in held if held[x].tobytes() != made[x].tobytes()] == []


def settings(config: small.Config, inputs: Inputs) -> list[setting.Setting]:
    read = config_json.from_json(config)
    w = weights.build(read, initial.seeded(0, "float64", 0.0), "float64")
    return list(setting.settings_for(read, inputs, w))


def test_rows_with_nothing_of_their_own_share_the_settings_of_the_last_run() -> None:
    one, again, longer = (settings(model_of(), Inputs(tensor=np.zeros((n, 8)))) for n in (7, 7, 9))
    assert one[0] is one[1] is again[0]
    assert longer[0] is not one[0]


def test_what_is_large_or_has_two_zeros_is_not_held() -> None:
    wide = model_of(attention=small.attention(2, 4096, mask="causal"), position=small.rope(4096))
    zero = model_of(residual_multiplier=0.0)
    for config, rows in ((wide, 20), (zero, 7)):
        one, again = (settings(config, Inputs(tensor=np.zeros((rows, 8)))) for _ in range(2))
        assert one[0] is one[1]
        assert one[0] is not again[0]


@pytest.mark.parametrize(
    "own",
    [
        {"position_ids": np.arange(7)},
        {"key_mask": np.ones(7, bool)},
        {"attention_mask": np.ones((7, 7), bool)},
    ],
)
def test_rows_with_something_of_their_own_have_settings_of_their_own(own: object) -> None:
    tensor = np.zeros((7, 8))
    plain = settings(model_of(), Inputs(tensor=tensor))
    made = settings(model_of(), Inputs(tensor=tensor, **own))
    assert made[0] is made[1]
    assert made[0] is not plain[0]


def test_long_inputs_are_not_held() -> None:
    tensor = np.zeros((300, 8))
    one, again = (settings(model_of(), Inputs(tensor=tensor)) for _ in range(2))
    assert one[0] is not again[0]
