"""Two models part by part, and the ladder of fields between them."""

from dataclasses import fields, is_dataclass, replace

import pytest

import sized
from compute.config import ModelConfig
from compute.sizing import compared, parameters
from compute.sizing.ledger import Ledger
from compute.sizing.operations import flops
from compute.sizing.vocabulary import Conventions, Workload

PAIRS = [
    ("gpt2-small", "gpt2-medium"),
    ("gpt2-small", "bert-base-uncased"),
    ("llama-1/2-7b", "mixtral-8x7b"),
    ("llama-2-70b", "deepseek-v3 (main model, no MTP)"),
    ("gemma-3-4b (text)", "gemma-3-27b (text)"),
    ("t5-small", "gpt2-small"),
    ("albert-base-v2 (1 shared layer x12)", "vit-b/16 @224 1000cls"),
]


def sizes(config: ModelConfig) -> dict[str, Ledger]:
    run = Workload(tokens=7, source=7 if config.cross_attention else 0)
    return {
        "parameters": parameters.ledger(config),
        "flops": flops.forward(config, run, Conventions()),
    }


@pytest.mark.parametrize("name", sized.truths())
def test_a_model_compared_with_itself_differs_in_nothing(name: str) -> None:
    config = sized.config_of(name)
    ledger = parameters.ledger(config)
    found = compared.lines(ledger, ledger)
    assert [(line.difference, line.ratio) for line in found] == [(0, 1.0)] * len(found)
    assert list(compared.changes(config, config, sizes)) == []


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_parts_sum_to_both_known_totals_and_to_their_difference(a: str, b: str) -> None:
    known = [sized.truths()[name]["params_total"] for name in (a, b)]
    ledgers = [parameters.ledger(sized.config_of(name)) for name in (a, b)]
    found = compared.lines(*ledgers)
    assert [sum(x.first for x in found), sum(x.second for x in found)] == known
    assert sum(x.difference for x in found) == known[1] - known[0]
    assert compared.total(*ledgers).difference == known[1] - known[0]
    assert len({x.id for x in found}) == len(found)


@pytest.mark.parametrize(("a", "b"), [*PAIRS, *((b, a) for a, b in PAIRS)])
def test_what_the_fields_move_sums_to_the_difference(a: str, b: str) -> None:
    first, second = sized.config_of(a), sized.config_of(b)
    found = list(compared.changes(first, second, sizes))
    for name in ("parameters", "flops"):
        moved = sum(change.moves[name].difference for change in found)
        assert moved == sizes(second)[name].total - sizes(first)[name].total
    known = [sized.truths()[name]["params_total"] for name in (a, b)]
    assert sum(x.moves["parameters"].difference for x in found) == known[1] - known[0]


def _leaves(part: object, prefix: str = "") -> dict[str, object]:
    """Dotted field -> value, of every part that is one."""
    found: dict[str, object] = {}
    for field in fields(part):  # type: ignore[arg-type]
        value, name = getattr(part, field.name), f"{prefix}{field.name.rstrip('_')}"
        found |= _leaves(value, f"{name}.") if is_dataclass(value) else {name: value}
    return found


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_every_field_that_differs_is_named_and_no_other(a: str, b: str) -> None:
    first, second = sized.config_of(a), sized.config_of(b)
    left, right = _leaves(first), _leaves(second)
    differing = {x for x in {*left, *right} if left.get(x) != right.get(x)}
    named = [change.field for change in compared.changes(first, second, sizes)]
    assert len({*named}) == len(named)
    covered = {leaf for leaf in differing if any(_is_in(leaf, field) for field in named)}
    assert covered == differing
    assert all(any(_is_in(leaf, field) for leaf in differing) for field in named)


def _is_in(leaf: str, field: str) -> bool:
    return leaf == field or leaf.startswith(f"{field}.") or field.startswith(f"{leaf}.")


def test_kv_heads_move_keys_and_values_and_no_score() -> None:
    first = sized.config_of("llama-1/2-7b")
    second = replace(first, attention=replace(first.attention, n_kv_heads=8))
    (change,) = compared.changes(first, second, sizes)
    assert (change.field, change.before, change.after) == ("attention.n_kv_heads", 32, 8)
    moved = {"blocks.attn.W_K", "blocks.attn.W_V"}
    assert {*change.moves["parameters"].parts} == {*change.moves["flops"].parts} == moved
    assert change.moves["parameters"].difference == -2 * 32 * 24 * 128 * 4096


def test_tying_moves_the_readout_and_no_operation() -> None:
    first = sized.config_of("llama-1/2-7b")
    (change,) = compared.changes(first, replace(first, tied=True), sizes)
    assert change.moves["parameters"].difference == -32000 * 4096
    assert change.moves["flops"].difference == 0


def test_steps_lie_between_the_models_in_the_order_of_the_config() -> None:
    first, second = sized.config_of("gpt2-small"), sized.config_of("gpt2-medium")
    found = list(compared.changes(first, second, sizes))
    names = ["d_model", "n_layers", "attention.n_heads", "attention.n_kv_heads", "ffn.d_ff"]
    assert [x.field for x in found] == names
    # n_layers 12 -> 24 comes second: a block of 12 heads of 64, d = 1024, d_ff = 3072
    a_block = 4 * 1024 * 768 + 3 * 768 + 1024 + 2 * 1024 * 3072 + 3072 + 1024 + 4 * 1024
    assert found[1].moves["parameters"].difference == 12 * a_block


def test_fields_that_are_not_counted_again_move_nothing() -> None:
    seen = set()
    for pair in PAIRS:
        first, second = map(sized.config_of, pair)
        for path, _, new in compared.differing(first, second):
            if path[-1] in compared.WEIGHTLESS:
                changed = compared._with(first, path, new)
                assert sizes(changed) == sizes(first), path
                seen.add(path[-1])
    assert {"scale", "eps"} & seen
