"""Parameters part by part, against tensors listed by hand and the article's ledger."""

from math import prod

import pytest

import runs
import sized
from compute import config_json
from compute.sizing import architecture, parameters
from compute.sizing.holdings import holdings
from compute.tensors import ENCODER
from evaluating import evaluated
from oracle import weights as reference
from schemas.config import ConfigAsked
from schemas.presets import PRESETS

SEEDS = range(300)
WRITTEN = {name: sized.asked(truth["config"]) for name, truth in sized.truths().items()}
ALIKE = {
    name: written
    for name, written in WRITTEN.items()
    if not written["layers"] and not written.get("distinct_blocks")
}
"""Truths whose blocks are neither listed nor share their weights."""


def made(**config: object) -> object:
    return ConfigAsked.model_validate(config).to_compute()


@pytest.mark.parametrize("seed", SEEDS)
def test_every_kind_of_tensor_holds_what_the_reference_lists(seed: int) -> None:
    drawn = runs.case_of(seed).config
    found = {held.id: held.parameters for held in holdings(config_json.from_json(drawn))}
    listed: dict[str, int] = {}
    for name, shape in reference.shapes(drawn).items():
        parts = name.split(".")
        if "blocks" in parts:
            del parts[parts.index("blocks") + 1]
        kind = ".".join(parts)
        listed[kind] = listed.get(kind, 0) + prod(shape)
    assert {name: count for name, count in found.items() if count} == {
        name: count for name, count in listed.items() if count
    }


@pytest.mark.parametrize("name", sized.truths())
def test_parts_sum_to_the_total_and_their_formulas_say_so(name: str) -> None:
    config = sized.config_of(name)
    found = parameters.ledger(config)
    assert sum(part.value for part in found.parts) == found.total == parameters.count(config)
    letters = {x.formula: x.value for x in architecture.letters(config).values()}
    letters |= {"f_dense": config.ffn.d_dense, "1": 1}
    for part in found.parts:
        assert evaluated(part.quantity.substituted) == part.value
        assert evaluated(part.quantity.formula, letters | {part.letter: part.count}) == part.value


def test_article_ledger_of_gpt2_leaves_out_what_it_says() -> None:
    found = parameters.article_ledger(PRESETS["gpt2"].config.to_compute())
    assert [part.value for part in found.parts] == [12 * x * 768**2 for x in (3, 1, 8)]
    assert found.total.value == 84934656 == 12 * 12 * 768**2
    assert found.gap_total == 124439808 - 84934656
    assert {part.id: part.value for part in found.gap} == {
        "embed": 50257 * 768,
        "pos_embed": 1024 * 768,
        "blocks.norms": 12 * 4 * 768,
        "blocks.biases": 12 * 9 * 768,
        "final_norm": 2 * 768,
    }


@pytest.mark.parametrize("name", sized.truths())
def test_article_ledger_and_its_gap_make_the_exact_count(name: str) -> None:
    config = sized.config_of(name)
    found = parameters.article_ledger(config)
    assert found.total.value == sum(part.value for part in found.parts)
    assert found.total.value + found.gap_total == parameters.count(config)


def test_the_article_block_is_twelve_d_squared_and_no_more() -> None:
    config = made(
        d_model=96,
        n_layers=5,
        attention={"n_heads": 4},
        ffn={"bias": False},
        norm={"kind": "none"},
    )
    assert parameters.count(config) == 5 * 12 * 96**2
    assert parameters.article_ledger(config).gap == ()


@pytest.mark.parametrize("name", sorted(ALIKE))
def test_one_more_block_adds_one_block(name: str) -> None:
    written = ALIKE[name]
    more = written | {"n_layers": written["n_layers"] + 1}
    before, after = made(**written), made(**more)
    added = parameters.count(after) - parameters.count(before)
    assert added == parameters.per_block(before)[-1].parameters


@pytest.mark.parametrize("name", [x for x, written in WRITTEN.items() if written["tied"]])
def test_untying_adds_a_table(name: str) -> None:
    written = WRITTEN[name]
    tied, untied = made(**written), made(**written | {"tied": False})
    width = written.get("d_embed", written["d_model"])
    assert parameters.count(untied) - parameters.count(tied) == written["vocab"] * width
    assert parameters.counts(tied)["untied"][0] == parameters.count(untied)


def test_one_expert_that_all_go_to_is_a_dense_ffn_and_a_router() -> None:
    dense = {"kind": "gated", "d_ff": 160, "bias": False}
    moe = {"kind": "moe", "d_ff": 160, "n_experts": 1, "top_k": 1}
    base = {"d_model": 48, "n_layers": 3, "attention": {"n_heads": 4}}
    one, other = made(**base, ffn=dense), made(**base, ffn=moe)
    assert parameters.count(other) - parameters.count(one) == 3 * 48
    assert parameters.active(other) == parameters.count(other)


@pytest.mark.parametrize(("first", "every"), [(0, 1), (0, 2), (3, 1), (3, 2), (2, 3), (7, 4)])
def test_dense_blocks_of_a_mixture_are_counted_as_a_loop_finds_them(first: int, every: int) -> None:
    n_layers = 7
    ffn = {"kind": "moe", "n_experts": 5, "top_k": 2, "d_ff": 11, "first_dense": first}
    dense = {"d_dense": 13} if first or every > 1 else {}
    config = made(
        d_model=8,
        n_layers=n_layers,
        attention={"n_heads": 2},
        ffn={**ffn, "every": every, **dense},
    )
    experts = [x for x in range(n_layers) if x >= first and (x + 1) % every == 0]
    assert architecture.n_dense(config) == n_layers - len(experts)
    by_id = {held.id: held.parameters for held in holdings(config)}
    assert by_id.get("blocks.ffn.W_in", 0) == len(experts) * 5 * 8 * 11
    assert by_id.get("blocks.ffn.dense.W_in", 0) == (n_layers - len(experts)) * 8 * 13


def test_shared_blocks_are_counted_once_and_run_as_often_as_there_are_blocks() -> None:
    albert = sized.config_of("albert-base-v2 (1 shared layer x12)")
    query = next(held for held in holdings(albert) if held.id == "blocks.attn.W_Q")
    assert (query.count, query.runs, query.parameters) == (1, 12, 768 * 768)


def test_an_encoder_has_ids_of_its_own() -> None:
    ids = [held.id for held in holdings(sized.config_of("t5-small"))]
    assert f"{ENCODER}blocks.attn.W_Q" in ids
    assert f"{ENCODER}rel_bias.W_rel" in ids
    assert len(ids) == len(set(ids))
