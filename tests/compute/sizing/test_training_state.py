"""What training holds beside activations, against the ZeRO paper and sums rank by rank."""

from math import ceil

import pytest

import sized
from compute.sizing.memory import training_state
from compute.sizing.memory.training_state import PRESETS, TrainingState
from compute.sizing.quantity import q
from compute.sizing.vocabulary import ZeroStage
from evaluating import evaluated

STAGES: tuple[ZeroStage, ...] = (0, 1, 2, 3)


@pytest.mark.parametrize("stage", STAGES)
def test_a_rank_of_64_holds_the_published_bytes_of_a_model_of_7_5_billion(
    stage: ZeroStage,
) -> None:
    said = sized.extra_truths()["ZeRO 7.5B params, K=12, 64 GPUs: stage 0/1/2/3"]
    held = q("P", int(said["input"]["P"]))
    ranks = said["input"]["dp"]
    found = training_state.of_parameters(held, PRESETS["mixed_adam"], stage, ranks)
    assert found.total == said["expected"][stage] * 10**9


BYTES = {
    "mixed_adam": 16,
    "mixed_adam_fp32_grads": 18,
    "mixed_adam_8bit": 10,
    "fp32_adam": 16,
    "fp32_momentum": 12,
    "fp32_sgd": 8,
}


@pytest.mark.parametrize("name", PRESETS)
def test_a_named_optimizer_takes_its_bytes_of_each_parameter(name: str) -> None:
    config = sized.config_of("gpt2-small")
    state = {str(key): value for key, value in PRESETS.items()}[name]
    assert training_state.size(config, state).total == BYTES[name] * 124439808
    assert state.total == BYTES[name]


@pytest.mark.parametrize("ranks", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("stage", STAGES)
def test_each_part_is_divided_from_its_stage_on_and_rounded_up(
    stage: ZeroStage, ranks: int
) -> None:
    state = TrainingState(weights=1, gradients=2, master=3, first_moment=4, second_moment=5)
    first = {"weights": 3, "gradients": 2, "master": 1, "first_moment": 1, "second_moment": 1}
    found = training_state.of_parameters(q("P", 101), state, stage, ranks)
    for part in found.parts:
        whole = 101 * state.by_name()[part.id]
        assert part.value == (ceil(whole / ranks) if stage >= first[part.id] else whole)
        assert evaluated(part.quantity.substituted) == part.value
    assert found.total == sum(part.value for part in found.parts)


def test_a_later_stage_never_holds_more() -> None:
    config = sized.config_of("gpt2-small")
    held = [training_state.size(config, PRESETS["mixed_adam"], x, 8).total for x in STAGES]
    assert held == sorted(held, reverse=True)
    assert len({*held}) == len(STAGES)
