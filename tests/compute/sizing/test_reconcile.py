"""Published counts are explained by the reason that is known."""

import time
from dataclasses import replace

import pytest

import sized
from compute.config import ModelConfig
from compute.sizing import parameters
from compute.sizing.reconciling import explanations, reconcile
from compute.sizing.reconciling.reconcile import Explanation, Published

REASONS = {
    "pythia-1.4b": "without_readout",
    "pythia-12b": "without_readout",
    "opt-125m": "rows_less_2",
    "opt-1.3b": "rows_less_2",
    "llama-1/2-7b": "rotary_buffers",
    "llama-1/2-13b": "rotary_buffers",
    "llama-2-70b": "rotary_buffers",
    "llama-3.2-1b": "tied_head_again",
    "llama-3.2-3b": "tied_head_again",
    "smollm3-3b": "rotary_buffers",
    "gemma-3-4b (text)": "vision_tower",
    "gemma-3-27b (text)": "vision_tower",
    "qwen3-0.6b": "tied_head_again",
    "falcon-7b (tied)": "tied_head_again",
    "llama2.c stories15M": "tied_head_again",
    "llama2.c stories110M": "tied_head_again",
    "bert-base-uncased": "position_ids",
    "xlm-roberta-base (with pooler)": "position_ids",
    "all-MiniLM-L6-v2": "position_ids",
    "bge-small-en-v1.5 / MiniLM-L12": "position_ids",
    "electra-small": "with_pooler",
    "deepseek-v3 (main model, no MTP)": "mtp_layer+fp8_scales_with_mtp",
}
"""Truth -> why its other published number is another, as the truth's own reason says."""

WRONG = {"qwen2.5-7b": "keras-hub's number is short by 622,196,224 for no reason"}

OTHERS = [
    ("gpt2-small", 137022720, "causal_mask_buffers"),  # the hub's count with 12 masks of 1024²
    ("gpt2-small", 163037184, "tied_head_again"),  # 124,439,808 + 50257 · 768
    ("gpt2-small", 123653376, "without_position_table"),  # nanoGPT prints 123.65M
    ("gpt2-small", 84934656, "article_ledger"),  # TransformerLens' n_params, 12 · 12 · 768²
    ("bert-base-uncased", 109514298, "without_pooler+with_mlm_head"),  # BertForMaskedLM
    ("bert-base-uncased", 110106428, "with_mlm_head+with_two_classes"),  # BertForPreTraining
    ("distilbert-base-uncased", 66955010, "with_pooler+with_two_classes"),  # a classifier of two
    ("vit-b/16 @224 1000cls", 85798656, "without_classes"),
    ("vit-b/16 backbone (no head)", 86567656, "with_1000_classes"),
    ("t5-small", 35330816, "encoder_alone"),  # T5EncoderModel
    # TransformerLens#448: LLaMA-7B's blocks, an ffn of two matrices
    ("llama-1/2-7b", 5033164800, "non_embedding+two_matrices_assumed+norms_left_out"),
]


def at(value: int) -> Published:
    return Published(value, value, value)


def first(config: ModelConfig, published: Published) -> Explanation:
    return reconcile.explain(config, published, 5)[0]


def named(found: Explanation) -> str:
    return "+".join(x.id for x in found.differences)


def test_every_truth_with_another_number_is_in_one_of_the_tables() -> None:
    others = {name for name, truth in sized.truths().items() if truth.get("published_other")}
    assert others == REASONS.keys() | WRONG.keys()


@pytest.mark.parametrize(("name", "reason"), REASONS.items())
def test_the_known_reason_comes_first_and_explains_all(name: str, reason: str) -> None:
    published = sized.truths()[name]["published_other"]
    found = first(sized.config_of(name), at(published))
    assert (named(found), found.exact, found.remaining) == (reason, True, 0)
    assert found.number == published


@pytest.mark.parametrize(("name", "published", "reason"), OTHERS)
def test_counts_of_libraries_are_explained(name: str, published: int, reason: str) -> None:
    found = first(sized.config_of(name), at(published))
    assert (named(found), found.number, found.exact) == (reason, published, True)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_number_is_not_explained(name: str) -> None:
    published = sized.truths()[name]["published_other"]
    found = reconcile.explain(sized.config_of(name), at(published), 20)
    assert not any(made.exact for made in found)
    assert all(made.number + made.remaining == published for made in found)


@pytest.mark.parametrize("off", [-1, 1])
@pytest.mark.parametrize("name", REASONS)
def test_a_disturbed_number_loses_exact_and_keeps_the_reason(name: str, off: int) -> None:
    published = sized.truths()[name]["published_other"] + off
    found = reconcile.explain(sized.config_of(name), at(published), 20)
    assert not any(made.exact for made in found)
    (near,) = [made for made in found if named(made) == REASONS[name]]
    assert near.remaining == off


@pytest.mark.parametrize("name", sized.truths())
def test_our_own_number_is_as_counted(name: str) -> None:
    config = sized.config_of(name)
    (found,) = reconcile.explain(config, at(sized.truths()[name]["params_total"]), 20)
    assert (found.differences, found.remaining, found.exact) == ((), 0, True)


def test_deepseeks_layer_and_scales_are_what_its_checkpoint_holds() -> None:
    found = first(sized.config_of("deepseek-v3 (main model, no MTP)"), at(684531386000))
    layer, scales = found.differences
    assert layer.value == 13_463_426_304 == 11_610_068_224 + 2 * 129280 * 7168
    assert scales.value == 41_540_496


def test_active_numbers_of_deepseek_without_one_table_are_37_billion() -> None:
    config = sized.config_of("deepseek-v3 (main model, no MTP)")
    found = reconcile.explain(config, at(36_625_618_432), 5)
    exact = {frozenset(x.id for x in made.differences) for made in found if made.exact}
    assert {"active_experts", "without_input_table"} in exact


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("llama-2-70b", (77_500_000_000, 78_500_000_000), "mha_assumed"),  # meta-llama#1111
        ("mixtral-8x7b", (12_850_000_000, 12_950_000_000), "active_experts"),
        ("gpt2-small", (136_500_000, 137_500_000), "causal_mask_buffers"),
        ("gpt2-small", (124_350_000, 124_450_000), ""),
    ],
)
def test_a_rounded_number_is_explained_by_what_lies_within(
    name: str, text: tuple[int, int], reason: str
) -> None:
    lowest, highest = text
    published = Published((lowest + highest) // 2, lowest, highest)
    found = first(sized.config_of(name), published)
    assert (named(found), found.exact) == (reason, True)
    assert lowest <= found.number <= highest


def test_heads_of_gpt3_xl_as_its_table_prints_them_hold_1517_million() -> None:
    published = Published(1_517_000_000, 1_516_500_000, 1_517_500_000)
    found = reconcile.explain(sized.config_of("gpt3-xl"), published, 5)
    assert named(found[0]) == "other_heads"
    assert found[0].differences[0].words.startswith("There are 24 heads")


@pytest.mark.parametrize("name", ["gpt2-small", "bert-base-uncased", "qwen3-0.6b", "mixtral-8x7b"])
def test_no_sum_of_up_to_three_is_missed(name: str) -> None:
    """Each sum that a literal loop finds is exact, or holds one that is."""
    config = sized.config_of(name)
    ours, listed = parameters.count(config), explanations.differences(config)
    for i, one in enumerate(listed):
        for j, two in enumerate(listed[i + 1 :], i + 1):
            for three in listed[j + 1 :: 7]:
                members = (one, two, three)
                pairs = ((one, two), (one, three), (two, three))
                if not all(x.goes_with(y) for x, y in pairs) or any(x.needs for x in members):
                    continue
                published = ours + sum(x.value for x in members)
                if published > 0:
                    assert first(config, at(published)).exact


@pytest.mark.parametrize("name", sized.truths())
def test_explanations_are_of_compatible_differences_exact_ones_first(name: str) -> None:
    config = sized.config_of(name)
    published = parameters.count(config) * 21 // 20
    found = reconcile.explain(config, Published(published, published - 9999, published + 9999), 20)
    assert found
    assert [x.exact for x in found] == sorted((x.exact for x in found), reverse=True)
    for made in found:
        groups = [x.group for x in made.differences]
        parts = [change.id for x in made.differences for change in x.changes]
        assert len(groups) == len(set(groups)) <= 3
        assert len(parts) == len(set(parts))
        assert made.number == parameters.count(config) + sum(x.value for x in made.differences)
        assert made.number + made.remaining == published


def test_a_call_does_not_cost_more_for_more_blocks() -> None:
    base = sized.config_of("gpt2-small")
    seconds = []
    for blocks in (12, 1 << 20):
        config = replace(base, n_layers=blocks)
        start = time.perf_counter()
        first(config, at(10**12))
        seconds.append(time.perf_counter() - start)
    assert seconds[1] < 0.1  # a loop over a million blocks takes longer
