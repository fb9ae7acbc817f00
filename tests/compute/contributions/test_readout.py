"""What each part gives a logit: with the scale held they add up to it, with it recomputed the
last state's reading is it."""

import numpy as np
import pytest

import asking
import runs
from asking import SPLITS
from cases import small
from compute import selection
from compute.config import reads_out
from compute.contributions.readout import Direction
from compute.trace import Run
from compute.types import Selected
from oracle.configs import Case
from oracle.parts import Drawn

TOLERANCE = 1e-11
"""Hundreds of roundings of 1.1e-16, of terms up to a hundred times what is left of them."""


def reading_cases(count: int) -> list[int]:
    """Seeds of models whose logits are linear in the last sum."""
    found = [seed for seed in range(6 * count) if reads(runs.case_of(seed).config)]
    return found[:count]


def reads(config: Drawn) -> bool:
    return reads_out_of(config) and not config["mlm_head"]


def logits_of(run: Run) -> np.ndarray:
    logits = runs.states(with_stages(run, [Selected(name="logits")]))["logits"]
    return logits if run.inputs.batch else logits[None]


def uncapped_logits_of(case: Case) -> np.ndarray:
    """The logits of the same model without its cap."""
    config = {**case.config, "logit_softcap": None}
    return logits_of(runs.run_of(config, case.weights, case.inputs, select=[]))


@pytest.mark.parametrize("by", SPLITS)
def test_with_the_scale_held_all_parts_add_up_to_the_logit(by: str) -> None:
    for seed in reading_cases(60):
        run = runs.run_of_case(runs.case_of(seed), select=[])
        logits = uncapped_logits_of(runs.case_of(seed))
        for direction in (Direction(token=1), Direction(token=2, minus=0)):
            found = asking.ask(run, by=by, positions=(-1,), direction=direction)
            for row, at in enumerate(found):
                minus = logits[row, -1, direction.minus] if direction.minus is not None else 0.0
                wanted = logits[row, -1, direction.token] - minus
                size = sum(abs(part.along or 0.0) for part in at.parts)
                assert at.logit is not None
                assert at.logit.check.holds
                assert abs(at.logit.value - wanted) <= TOLERANCE * size
                total = sum(part.along or 0.0 for part in at.parts)
                assert abs(total - wanted) <= TOLERANCE * size, (seed, by)


def test_in_float32_they_add_up_as_far_as_it_knows() -> None:
    for seed in reading_cases(60):
        run = runs.run_of_case(runs.case_of(seed), dtype="float32", select=[])
        for at in asking.ask(run, by="head", positions=(0, -1), direction=Direction(token=1)):
            assert at.logit is not None
            assert at.logit.check.holds


@pytest.mark.parametrize("kind", ["layernorm", "rmsnorm"])
def test_a_part_is_read_with_the_last_scale_by_hand(kind: str) -> None:
    run, weights = small_run(kind)
    asked = [Selected(name=name) for name in ("final_norm.scale", "blocks.0.attn.head_out")]
    got = runs.states(with_stages(run, asked))
    head = got["blocks.0.attn.head_out"][1, -1]
    centred = head - head.mean() if kind == "layernorm" else head
    behind = centred / got["final_norm.scale"][-1] * weights["final_norm.weight"]
    wanted = behind @ (weights["unembed.W_U"][:, 3] - weights["unembed.W_U"][:, 5])
    for of in (None, "logits", "blocks.0.resid_post", "blocks.0.attn_out"):
        (at,) = asking.ask(run, of=of, by="head", direction=Direction(token=3, minus=5))
        (part,) = [part for part in at.parts if part.id == "blocks.0.head.1"]
        assert part.along == pytest.approx(wanted, rel=1e-12)


def small_run(kind: str) -> tuple[Run, dict[str, np.ndarray]]:
    config = small.model(
        8,
        n_layers=2,
        attention=small.attention(2, 4, mask="causal"),
        ffn=small.mlp(7),
        norm=small.norm(kind),
        vocab=11,
        unembed_bias=True,
        final_norm=True,
    )
    weights = small.drawn(config, 0)
    tokens = np.random.default_rng(1).integers(0, 11, 5)
    return small.run(config, weights, token_ids=tokens), weights


def with_stages(run: Run, asked: list[Selected]) -> Run:
    selected = selection.resolve(asked, asking.scene_of(run))
    return Run(config=run.config, weights=run.weights, inputs=run.inputs, selection=selected)


def test_a_vector_of_the_stream_is_a_plain_dot_product() -> None:
    for seed in range(20):
        run = runs.run_of_case(runs.case_of(seed), select=[])
        vector = np.random.default_rng(seed).normal(size=run.config.d_model)
        direction = Direction(vector=vector)
        for at in asking.ask(run, by="bias", vectors=True, direction=direction):
            assert at.logit is None
            for part in at.parts:
                assert part.vector is not None
                assert part.along == pytest.approx(float(part.vector @ vector), abs=1e-12)


def test_a_vector_behind_the_final_norm_is_a_column_of_the_readout() -> None:
    for seed in reading_cases(40):
        case = runs.case_of(seed)
        run = runs.run_of_case(case, select=[])
        W_U = case.weights["embed.W_E"].T if case.config["tied"] else case.weights["unembed.W_U"]
        vector = case.config["logit_multiplier"] * W_U[:, 2]
        by_vector = asking.ask(run, direction=Direction(vector=vector, after_norm=True))
        by_token = asking.ask(run, direction=Direction(token=2))
        for one, other in zip(by_vector, by_token, strict=True):
            parts = {part.id: part.along for part in other.parts}
            for part in one.parts:
                assert part.along == pytest.approx(parts[part.id], rel=1e-9, abs=1e-12)


def lens_cases() -> list[int]:
    return [seed for seed in range(60) if reads_out_of(runs.case_of(seed).config)]


def reads_out_of(config: Drawn) -> bool:
    return config["vocab"] is not None and bool(config["readout"])


def test_last_state_read_with_its_own_norm_is_the_logits() -> None:
    for seed in lens_cases():
        run = runs.run_of_case(runs.case_of(seed), select=[])
        assert reads_out(run.config)
        logits = logits_of(run)
        direction = Direction(token=1, minus=0)
        found = asking.ask(run, by="block", norm_scale="recomputed", direction=direction)
        for row, at in enumerate(found):
            wanted = logits[row, -1, 1] - logits[row, -1, 0]
            size = np.abs(logits[row, -1]).max()
            assert at.lens is not None
            last = at.lens[-1]
            assert abs((last.value or 0.0) - wanted) <= 1e-12 * size
            order = np.argsort(-logits[row, -1], kind="stable")[: len(last.top)]
            assert [shown.token for shown in last.top] == order.tolist()
            powers = np.exp(logits[row, -1] - logits[row, -1].max())
            shares = powers / powers.sum()
            for shown in last.top:
                assert shown.probability == pytest.approx(shares[shown.token], rel=1e-9)


def test_changes_of_a_lens_telescope() -> None:
    for seed in lens_cases():
        run = runs.run_of_case(runs.case_of(seed), select=[])
        for by in ("block", "sublayer")[: 1 if run.config.topology == "parallel" else 2]:
            asked = {"by": by, "norm_scale": "recomputed", "direction": Direction(token=1)}
            for at in asking.ask(run, **asked):
                assert at.lens is not None
                values = [step.value or 0.0 for step in at.lens]
                total = sum(part.along or 0.0 for part in at.parts)
                if run.config.norm.placement == "post":
                    assert (at.parts, at.sum, at.state) == ((), None, None)
                else:
                    assert total == pytest.approx(values[-1], rel=1e-9, abs=1e-12)
                changes = [step.change or 0.0 for step in at.lens]
                assert values[0] + sum(changes) == pytest.approx(values[-1], rel=1e-9, abs=1e-12)


def test_lens_of_an_early_state_is_another_reading_than_the_held_scale() -> None:
    run, _ = small_run("layernorm")
    direction = Direction(token=1)
    (lens,) = asking.ask(run, norm_scale="recomputed", direction=direction)
    (held,) = asking.ask(run, of="blocks.0.resid_pre", direction=direction)
    assert lens.lens is not None
    assert held.state is not None
    assert held.state.along is not None
    assert abs((lens.lens[0].value or 0.0) - held.state.along) > 1e-3
