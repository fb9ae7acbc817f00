"""Parameters of 122 published architectures: totals, parts, blocks, active ones, to the unit."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import sized
from compute.sizing import parameters
from compute.sizing.ledger import Part

EXCEPTIONS: dict[str, dict[str, str]] = json.loads(
    (Path(__file__).parent / "exceptions.json").read_bytes()
)
"""Truth -> field -> why ours is another number."""
MOST_EXCEPTIONS = 0

TRUTHS = sized.truths()
SPLIT = [name for name, truth in TRUTHS.items() if truth.get("params_by_part")]
ACTIVE = [name for name, truth in TRUTHS.items() if "params_active" in truth]
NON_EMBEDDING = [name for name in TRUTHS if TRUTHS[name].get("params_non_embedding") is not None]

PARTS = {
    "embed": "token_embedding",
    "pos_embed": "position_embedding",
    "type_embed": "token_type_embedding",
    "embed_norm": "embed_norm",
    "embed_projection": "embedding_projection",
    "patch_embed": "patch_embed",
    "class_token": "cls_token",
    "rel_bias": "rel_bias",
    "blocks": "blocks",
    "final_norm": "final_norm",
    "unembed": "lm_head",
    "mlm_head": "mlm_transform",
    "mlm_norm": "mlm_transform",
    "pooler": "pooler",
    "classifier": "classifier",
}
"""The first word of our ids -> the truths' part."""


def split(name: str) -> dict[str, int]:
    """Our parts summed by the truths' names."""
    found: Counter[str] = Counter()
    for part in parameters.ledger(sized.config_of(name)).parts:
        found[part_of(name, part)] += int(part.value)
    return dict(found)


def part_of(name: str, part: Part) -> str:
    """Which of the truth's parts one of ours is in: a stack of T5 with its final norm is one."""
    theirs = TRUTHS[name]["params_by_part"]
    local = part.id.removeprefix("encoder.")
    found = PARTS[local.partition(".")[0]]
    if "decoder" in theirs and found in ("blocks", "final_norm"):
        return "encoder" if part.id.startswith("encoder.") else "decoder"
    if part.id == "unembed.b_U" and "mlm_bias" in theirs:
        return "mlm_bias"
    return "nsp" if found == "classifier" and "nsp" in theirs else found


def blocks(name: str) -> dict[str, int]:
    """One block of each kind, by our id."""
    return {each.id: each.parameters for each in parameters.per_block(sized.config_of(name))}


def blocks_of(truth: dict[str, Any]) -> dict[str, int]:
    """The same by the truth: its first number is the dense block's, or the encoder's."""
    first, experts = truth["params_per_block"], truth.get("params_per_block_moe")
    if "params_per_decoder_block" in truth:
        return {"encoder.blocks": first, "blocks": truth["params_per_decoder_block"]}
    return {"blocks": first} if experts is None else {"blocks.dense": first, "blocks": experts}


def differing(name: str) -> dict[str, tuple[object, object]]:
    """Field -> (ours, the truth's), where they are not the same."""
    truth, config = TRUTHS[name], sized.config_of(name)
    theirs = {part: value for part, value in (truth.get("params_by_part") or {}).items() if value}
    pairs: dict[str, tuple[object, object]] = {
        "params_total": (parameters.count(config), truth["params_total"]),
        "params_per_block": (blocks(name), blocks_of(truth)),
    }
    if name in SPLIT:
        pairs["params_by_part"] = (split(name), theirs)
    if name in ACTIVE:
        pairs["params_active"] = (parameters.active(config), truth["params_active"])
    if name in NON_EMBEDDING:
        ours = int(parameters.ledger(config).view("non_embedding"))
        pairs["params_non_embedding"] = (ours, truth["params_non_embedding"])
    return {field: pair for field, pair in pairs.items() if pair[0] != pair[1]}


def test_so_many_truths_are_there() -> None:
    caches = [x for x in TRUTHS.values() if x.get("kv_bytes_per_token_fp16") is not None]
    flops = [x for x in TRUTHS.values() if "flops" in x]
    found = [len(x) for x in (TRUTHS, SPLIT, ACTIVE, NON_EMBEDDING, caches, flops)]
    assert found == [122, 111, 8, 100, 106, 86]


def test_a_truth_says_the_sum_of_its_parts() -> None:
    for name in SPLIT:
        truth = TRUTHS[name]
        assert sum(truth["params_by_part"].values()) == truth["params_total"], name


@pytest.mark.parametrize("name", TRUTHS)
def test_parameters_are_the_truths_but_for_the_exceptions(name: str) -> None:
    found = differing(name)
    assert {key: found[key] for key in found if key not in EXCEPTIONS.get(name, {})} == {}


def test_exceptions_only_become_fewer() -> None:
    listed = {(name, field) for name, fields in EXCEPTIONS.items() for field in fields}
    still = {(name, field) for name in EXCEPTIONS for field in differing(name)}
    assert listed <= still, "no longer an exception: take it from exceptions.json"
    assert len(listed) <= MOST_EXCEPTIONS
    assert all(reason for fields in EXCEPTIONS.values() for reason in fields.values())


@pytest.mark.parametrize("name", TRUTHS)
def test_parts_and_blocks_sum_to_the_total(name: str) -> None:
    config = sized.config_of(name)
    ledger = parameters.ledger(config)
    total = TRUTHS[name]["params_total"]
    assert ledger.total == total
    held = sum(
        each.parameters * (config.distinct_blocks or each.count)
        for each in parameters.per_block(config)
    )
    assert ledger.view("blocks") == held
