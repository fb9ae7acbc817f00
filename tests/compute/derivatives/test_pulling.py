"""Of 102 random configs, every stage's gradient is that of central differences in float64."""

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest

from compute import stages
from compute.derivatives.pulling import pull_back
from compute.derivatives.routes import route
from differences import NEAR, NOISE, Array, apart, moved, point_of, primary
from oracle.options import OPTIONS, options_of
from runs import case_of

SEEDS = (*range(100), 176, 181)
"""The last two meet what the first 100 do not."""

STAGES_OF_A_CASE = 12

MET = ("norm ", "parallel ", "cross ", "encoder ", "experts ", "ffn ", "position ", "parts ")


def functional(seed: int) -> tuple[str, Array, Mapping[str, Array], Mapping[str, Array]]:
    """The last stage of a case, weights of its numbers, their sum's gradients, all values."""
    point, scene = point_of(case_of(seed))
    names = primary(scene)
    values = point.run(names)
    last = list(values)[-1]
    weights = np.random.default_rng(seed).standard_normal(values[last].shape)
    found = pull_back(point, route(scene, last, names), weights, values)
    return last, weights, {name: each.total() for name, each in found.items()}, values


def chosen(seed: int, values: Mapping[str, Array], last: str) -> list[str]:
    """Some of the stages below the last one, drawn."""
    names = [name for name in values if name != last and not name.endswith("ffn.experts")]
    rng = np.random.default_rng(seed)
    return [names[at] for at in rng.permutation(len(names))[:STAGES_OF_A_CASE]]


@pytest.mark.parametrize("seed", SEEDS)
def test_gradient_along_any_direction_is_the_differences(seed: int) -> None:
    last, weights, gradients, values = functional(seed)
    point, _ = point_of(case_of(seed))
    size = NOISE * float(np.abs(weights * values[last]).sum())
    for name in chosen(seed, values, last):
        gradient = gradients.get(name, np.zeros_like(values[name]))
        direction = np.random.default_rng(seed).standard_normal(gradient.shape)
        terms = gradient * direction

        def f(h: float, name: str = name, direction: Array = direction) -> Array:
            return np.asarray((weights * moved(point, last, name, h * direction)).sum())

        off = apart(np.asarray(terms.sum()), f, max(size, float(np.abs(terms).sum())))
        assert off <= NEAR, (name, off)


def test_cases_meet_every_kind_of_norm_activation_position_and_placement() -> None:
    met = {option for seed in SEEDS for option in options_of(case_of(seed))}
    kinds = {option for option in OPTIONS if option.startswith(MET)}
    assert kinds - met == set()
    others = {"heads sinks", "heads softcap", "heads qk_norm head", "heads qk_norm full"}
    others |= {"heads grouped", "mask narrow window", "mask padding", "rope interleaved"}
    others |= {"mask rows without a key", "readout mlm head", "readout softcap"}
    assert others - met == set()


def test_every_stage_is_among_those_that_are_compared() -> None:
    met: Counter[str] = Counter()
    for seed in SEEDS:
        last, _, _, values = functional(seed)
        met.update(stages.local_name(name) for name in chosen(seed, values, last))
    computed = {stage.name for stage in stages.STAGES if not stage.derived}
    assert computed - met.keys() == {"ffn.experts", "logits"}


@pytest.mark.parametrize("seed", range(10))
def test_gradients_are_the_same_bits_again(seed: int) -> None:
    one, again = functional(seed)[2], functional(seed)[2]
    assert one.keys() == again.keys()
    assert all(np.array_equal(one[name], again[name]) for name in one)


def test_masked_scores_and_what_is_read_by_nothing_have_gradients_of_0() -> None:
    seen: set[str] = set()
    for seed in SEEDS:
        _, _, gradients, values = functional(seed)
        for name, x in values.items():
            if name.endswith("scores") and np.isneginf(x).any() and name in gradients:
                assert np.all(gradients[name][np.isneginf(x)] == 0.0)
                seen.add("masked")
            if name.endswith("attn.sink"):
                assert name not in gradients
                seen.add("sink")
    assert seen == {"masked", "sink"}
