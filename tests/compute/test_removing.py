"""A model without its positions, its masks, or both: what goes, and that all else stays."""

from dataclasses import replace

import pytest

from compute import config_json, config_rules, removing
from compute.config import ModelConfig
from runs import case_of


def config_of(seed: int) -> ModelConfig:
    return config_json.from_json(case_of(seed).config)


@pytest.mark.parametrize("seed", range(80))
def test_what_is_left_of_a_random_model_is_a_model(seed: int) -> None:
    config = config_of(seed)
    for variant in removing.variants(config):
        config_rules.check(variant.config)
        assert variant.case.positions or not removing.has_positions(variant.config)
        assert variant.case.mask or not removing.has_masks(variant.config)


@pytest.mark.parametrize("seed", range(80))
def test_nothing_but_positions_and_masks_goes(seed: int) -> None:
    config = config_of(seed)
    bare = removing.without(config, positions=True, mask=True)
    attention = replace(bare.attention, mask=config.attention.mask, window=config.attention.window)
    layers = tuple(
        replace(left, window=own.window, theta=own.theta)
        for left, own in zip(bare.layers, config.layers, strict=True)
    )
    assert replace(bare, position=config.position, attention=attention, layers=layers) == config


def test_a_case_that_takes_nothing_away_is_an_earlier_one() -> None:
    seen = set()
    for seed in range(80):
        config = config_of(seed)
        positions, mask = removing.has_positions(config), removing.has_masks(config)
        same = [variant.same_as for variant in removing.variants(config)]
        expected = {
            (True, True): [None] * 4,
            (True, False): [None, None, "as_it_is", "without_positions"],
            (False, True): [None, "as_it_is", None, "without_mask"],
            (False, False): [None, "as_it_is", "as_it_is", "as_it_is"],
        }
        assert same == expected[positions, mask]
        seen.add((positions, mask))
    assert len(seen) == 4
