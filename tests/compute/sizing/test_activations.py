"""Activations, against published bytes, counts by hand and numbers counted one by one."""

import random
from dataclasses import replace
from itertools import product
from typing import get_args

import pytest

import sized
from compute.config import ModelConfig
from compute.sizing.formats import ActivationFormat
from compute.sizing.memory import activations
from compute.sizing.vocabulary import Kernel, Recompute, Workload
from evaluating import evaluated
from schemas.config import ConfigAsked

SEEDS = range(80)
KERNELS: tuple[Kernel, ...] = get_args(Kernel)
RECOMPUTED: tuple[Recompute, ...] = get_args(Recompute)

PUBLISHED: dict[str, Recompute] = {
    "per layer, nothing recomputed, b=1": "none",
    "selective (attention core recomputed)": "selective",
    "full recomputation (layer input only)": "full",
}
MEGATRON = {"22B": (6144, 64), "175B": (12288, 96), "530B": (20480, 128), "1T": (25600, 160)}


def made(**config: object) -> ModelConfig:
    return ConfigAsked.model_validate(config).to_compute()


def block_bytes(config: ModelConfig, form: ActivationFormat, **workload: int) -> int:
    """Bytes that the one kind of block keeps."""
    (block,) = activations.training(config, Workload(**workload), form).per_block
    return int(block.ledger.total)


def total(config: ModelConfig, form: ActivationFormat, **workload: int) -> int:
    return int(activations.training(config, Workload(**workload), form).ledger.total)


def drawn(seed: int) -> ModelConfig:
    """A small decoder with norms in front of its sublayers; its widths all differ."""
    draw = random.Random(seed)
    kv_heads = draw.randint(1, 3)
    return made(
        d_model=20,
        n_layers=draw.randint(1, 4),
        attention={
            "n_heads": kv_heads * draw.randint(1, 3),
            "n_kv_heads": kv_heads,
            "d_head": draw.randint(1, 7),
            "d_value": draw.randint(1, 7),
        },
        ffn={"kind": draw.choice(["mlp", "gated"]), "d_ff": draw.randint(8, 30)},
        vocab=draw.choice([None, 97]),
        final_norm=False,
    )


@pytest.mark.parametrize(("model", "said"), [*product(MEGATRON, PUBLISHED)])
def test_a_block_keeps_the_published_bytes(model: str, said: str) -> None:
    width, heads = MEGATRON[model]
    truths = sized.extra_truths()
    expected = truths[f"{model} {said}"]["expected"]
    config = made(d_model=width, n_layers=2, attention={"n_heads": heads})
    form = ActivationFormat(dropout=True, recompute=PUBLISHED[said])
    assert block_bytes(config, form, tokens=2048) == expected


@pytest.mark.parametrize(("heads", "batch", "n"), [*product((1, 2, 6), (1, 3), (1, 5, 16))])
def test_the_article_block_keeps_34sbh_and_5asb(heads: int, batch: int, n: int) -> None:
    config = made(d_model=12, attention={"n_heads": heads})
    form = ActivationFormat(dropout=True)
    kept = 34 * n * batch * 12 + 5 * heads * n * n * batch
    assert block_bytes(config, form, tokens=n, batch=batch) == kept
    flash = replace(form, kernel="flash")
    assert block_bytes(config, flash, tokens=n, batch=batch) == (
        34 * n * batch * 12 + 4 * heads * n * batch
    )


def test_beside_its_blocks_a_model_keeps_what_the_paper_lists() -> None:
    """5sbh of the embedding's mask, the final norm and the readout, 4sbv of logits in float32."""
    config = made(d_model=12, n_layers=3, attention={"n_heads": 2}, vocab=31)
    form = ActivationFormat(dropout=True)
    inside = 3 * block_bytes(config, form, tokens=7, batch=2)
    assert total(config, form, tokens=7, batch=2) - inside == 5 * 14 * 12 + 4 * 14 * 31


@pytest.mark.parametrize("seed", SEEDS)
def test_a_block_keeps_what_a_loop_over_rows_heads_and_keys_counts(seed: int) -> None:
    draw, config = random.Random(-seed), drawn(seed)
    batch, n, a = draw.randint(1, 3), draw.randint(1, 6), draw.choice([1, 2, 4])
    dropout, kernel = draw.random() < 0.5, draw.choice(KERNELS)
    attention, ffn, d, counted = config.attention, config.ffn, config.d_model, 0
    for _layer in range(config.n_layers):
        for _row in range(batch * n):
            counted += a * (d + d)  # what the two norms read
            counted += a * (d + d)  # what the two sublayers read
            for _head in range(attention.n_heads):
                counted += a * (attention.d_head + attention.d_value)  # its query, its mixture
                if kernel == "flash":
                    counted += 4
                    continue
                for _key in range(n):
                    counted += (a + 1 + a) if dropout else a
            for _head in range(attention.n_kv_heads):
                counted += a * (attention.d_head + attention.d_value)
            counted += a * ffn.d_ff * (3 if ffn.kind == "gated" else 2)
            counted += 2 * d if dropout else 0
    form = ActivationFormat(bytes=a, dropout=dropout, kernel=kernel)
    found = activations.training(config, Workload(tokens=n, batch=batch), form)
    in_blocks = [part for part in found.ledger.parts if part.id.startswith("blocks.")]
    assert sum(part.value for part in in_blocks) == counted
    assert config.n_layers * found.per_block[0].ledger.total == counted


T, D, A = 2 * 5, 12, 2  # rows of two sequences, a width, bytes of a number
PLAIN = 32 * T * D + 2 * 3 * 5 * 5 * A  # 34 less the masks; three heads, a pattern each

ARRANGED: dict[str, tuple[dict[str, object], int]] = {
    "post": ({"norm": {"placement": "post"}}, 0),
    "output": ({"norm": {"placement": "output"}}, 0),
    "sandwich": ({"norm": {"placement": "sandwich"}}, 2 * T * D * A),
    "no norms": ({"norm": {"kind": "none"}}, -2 * T * D * A),
    "parallel, one stream for both norms": ({"topology": "parallel"}, -T * D * A),
    "parallel, one norm": ({"topology": "parallel", "norm": {"shared": True}}, -2 * T * D * A),
    "no ffn": ({"ffn": {"kind": "none"}}, -2 * T * D * A - 2 * T * 4 * D * A),
    "queries and keys normed": (
        {"attention": {"n_heads": 3, "qk_norm": "head"}},
        2 * T * D * A,
    ),
    "capped scores": ({"attention": {"n_heads": 3, "softcap": 5.0}}, 2 * 3 * 5 * 5 * A),
    "one kv head of four numbers": (
        {"attention": {"n_heads": 3, "n_kv_heads": 1}},
        -T * (24 - 8) * A,
    ),
    "cross-attention to seven positions": (
        {"cross_attention": True},
        # stream between, its norm, queries and mixtures; keys and values; a pattern
        4 * T * D * A + 2 * 2 * 7 * D * A + 2 * 3 * 5 * 7 * A,
    ),
    "two of four experts": (
        {"ffn": {"kind": "moe", "n_experts": 4, "top_k": 2, "d_ff": 10}},
        T * A * (4 + 2 * 3 * 10 + 2 * D) - 2 * T * 4 * D * A,
    ),
    "and a shared one, weighed": (
        {
            "ffn": {
                "kind": "moe",
                "n_experts": 4,
                "top_k": 2,
                "d_ff": 10,
                "d_shared": 7,
                "shared_gate": True,
            }
        },
        T * A * (4 + 2 * 3 * 10 + 2 * D + 3 * 7 + D + 1) - 2 * T * 4 * D * A,
    ),
    "latent attention": (
        {
            "attention": {
                "n_heads": 3,
                "mla": {"q_lora_rank": 6, "kv_lora_rank": 5, "d_nope": 4, "d_rope": 2},
            },
            "position": {"kind": "rope"},
        },
        # latent numbers before and after norms; queries and keys of 6 for 4
        T * A * (2 * 6 + 2 * 5 + 2 * 3 * 2),
    ),
}


@pytest.mark.parametrize("name", ARRANGED)
def test_another_arrangement_keeps_so_much_more(name: str) -> None:
    changed, more = ARRANGED[name]
    config = made(**{"d_model": D, "attention": {"n_heads": 3}, **changed})
    source = 7 if config.cross_attention else 0
    kept = block_bytes(config, ActivationFormat(), tokens=5, batch=2, source=source)
    assert kept == PLAIN + more


@pytest.mark.parametrize("name", sized.truths())
def test_more_recomputation_and_flash_never_take_more(name: str) -> None:
    config = sized.config_of(name)
    workload = {"tokens": 64, "batch": 2, "source": 48 if config.cross_attention else 0}
    for dropout in (False, True):
        taken = {
            (kernel, recompute): total(
                config,
                ActivationFormat(kernel=kernel, recompute=recompute, dropout=dropout),
                **workload,
            )
            for kernel in KERNELS
            for recompute in RECOMPUTED
        }
        for kernel in KERNELS:
            assert taken[kernel, "none"] >= taken[kernel, "selective"] >= taken[kernel, "full"]
        for recompute in RECOMPUTED:
            assert taken["flash", recompute] <= taken["materialised", recompute]


@pytest.mark.parametrize("name", sized.truths())
def test_parts_sum_to_totals_and_formulas_give_the_values(name: str) -> None:
    config = sized.config_of(name)
    workload = Workload(tokens=64, batch=2, cached=3, source=48 if config.cross_attention else 0)
    form = ActivationFormat(dropout=True, recompute="selective")
    trained = activations.training(config, workload, form)
    peak = activations.inference_peak(config, workload, form)
    for part in (*trained.ledger.parts, *peak.ledger.parts):
        assert evaluated(part.quantity.substituted) == part.value
    names = [part.id for part in trained.ledger.parts]
    assert len(names) == len(set(names))
    assert peak.ledger.total == max(moment.ledger.total for moment in peak.moments)


@pytest.mark.parametrize("seed", SEEDS)
def test_bytes_grow_with_the_batch_in_a_straight_line(seed: int) -> None:
    config, form = drawn(seed), ActivationFormat(dropout=True, recompute="full")
    assert total(config, form, tokens=5, batch=7) == 7 * total(config, form, tokens=5)
    one, seven = (
        activations.inference_peak(config, Workload(tokens=5, batch=b), form).ledger.total
        for b in (1, 7)
    )
    assert seven == 7 * one


def test_full_recomputation_keeps_inputs_and_makes_one_block_again() -> None:
    config = made(d_model=D, n_layers=4, attention={"n_heads": 3}, final_norm=False)
    found = total(config, ActivationFormat(recompute="full"), tokens=5, batch=2)
    assert found == 4 * T * D * A + (PLAIN - T * D * A)


def test_selective_recomputation_makes_the_core_of_one_block_again() -> None:
    config = made(d_model=D, n_layers=4, attention={"n_heads": 3}, final_norm=False)
    core = 2 * 3 * 5 * 5 * A
    found = total(config, ActivationFormat(recompute="selective"), tokens=5, batch=2)
    assert found == 4 * (PLAIN - core) + core


def test_training_takes_no_notice_of_a_cache() -> None:
    config = sized.config_of("gpt2-small")
    form = ActivationFormat()
    assert total(config, form, tokens=9) == total(config, form, tokens=9, cached=50, new=3)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_peak_is_the_largest_of_three_live_sets_and_the_stream(seed: int) -> None:
    config, draw = drawn(seed), random.Random(-seed)
    batch, n, past, a = (draw.randint(1, 5) for _ in range(4))
    kernel = draw.choice(KERNELS)
    attention, ffn, d = config.attention, config.ffn, config.d_model
    attending = feeding = stream = 0
    for _row in range(batch * n):
        stream += d
        attending += d
        for _head in range(attention.n_heads):
            attending += attention.d_head + attention.d_value
            attending += n + past if kernel == "materialised" else 0
        for _head in range(attention.n_kv_heads):
            attending += attention.d_head + attention.d_value
        feeding += d + ffn.d_ff * (2 if ffn.kind == "gated" else 1)
    form = ActivationFormat(bytes=a, kernel=kernel, head="all")
    workload = Workload(tokens=n, batch=batch, cached=past)
    found = activations.inference_peak(config, workload, form)
    logits = batch * n * (config.vocab or 0)
    assert found.ledger.total == a * (stream + max(attending, feeding, logits))
    assert found.ledger.kind == "estimate"


def test_a_causal_model_reads_out_the_last_position_and_others_all() -> None:
    config = made(d_model=4, attention={"n_heads": 1}, vocab=10**6)
    full = replace(config, attention=replace(config.attention, mask="full"))
    workload, form = Workload(tokens=9, batch=2), ActivationFormat()
    for own, positions in ((config, 1), (full, 9)):
        found = activations.inference_peak(own, workload, form)
        assert found.moment.id == "unembed"
        assert found.ledger.total == 2 * (2 * 9 * 4 + 2 * positions * 10**6)


@pytest.mark.parametrize("name", ["gpt2-small", "t5-small", "deepseek-v3 (main model, no MTP)"])
def test_a_decode_step_is_a_pass_of_one_position_behind_the_others(name: str) -> None:
    config = sized.config_of(name)
    source = 6 if config.cross_attention else 0
    workload = Workload(tokens=9, cached=4, new=3, batch=2, source=source)
    alone = replace(workload, tokens=1, cached=16, new=0)
    for kernel in KERNELS:
        form = ActivationFormat(kernel=kernel)
        step = activations.decode_step(config, workload, form).ledger
        assert step.total == activations.inference_peak(config, alone, form).ledger.total
        for part in step.parts:
            assert evaluated(part.quantity.substituted) == part.value


OUTSIDE: dict[str, tuple[dict[str, object], dict[str, int]]] = {
    "a narrower embedding, normed, and its readout": (
        {"d_embed": 6, "embed_norm": True, "vocab": 31},
        {
            "embed_norm.in": T * 6 * A,
            "embed_projection.in": T * 6 * A,
            "final_norm.in": T * D * A,
            "unembed_projection.in": T * D * A,
            "unembed.in": T * 6 * A,
            "logits": T * 31 * 4,
        },
    ),
    "a head of a masked language model": (
        {"mlm_head": True, "vocab": 31, "final_norm": False},
        {
            "mlm_head.in": T * D * A,
            "mlm_head.up": T * D * A,
            "mlm_norm.in": T * D * A,
            "unembed.in": T * D * A,
            "logits": T * 31 * 4,
        },
    ),
    "a memory": (
        {"cross_attention": True, "final_norm": False},
        {"memory": 2 * 7 * D * A},
    ),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_outside_its_blocks_a_model_keeps_what_is_counted_by_hand(name: str) -> None:
    changed, expected = OUTSIDE[name]
    config = made(**{"d_model": D, "attention": {"n_heads": 3}, **changed})
    workload = Workload(tokens=5, batch=2, source=7 if config.cross_attention else 0)
    found = activations.training(config, workload, ActivationFormat()).ledger
    held = {part.id: part.value for part in found.parts if not part.id.startswith("blocks.")}
    assert held == expected


MOE = {"kind": "moe", "n_experts": 4, "top_k": 2, "d_ff": 10, "d_shared": 7}
MLA = {"q_lora_rank": 6, "kv_lora_rank": 5, "d_nope": 4, "d_rope": 2}
FLOWING = T * D  # the stream

LIVE: dict[str, tuple[dict[str, object], str, int]] = {
    "parallel": ({"topology": "parallel"}, "blocks.ffn", T * (D + D + 48)),
    "parallel with one norm": (
        {"topology": "parallel", "norm": {"shared": True}},
        "blocks.attn",
        T * (D + D + 4 * D) + 2 * 3 * 5 * 5,
    ),
    "experts": ({"ffn": MOE}, "blocks.ffn", T * (D + 4 + 2 * D + 2 * 2 * 10 + 2 * 7)),
    "dense blocks among experts": (
        {"n_layers": 2, "ffn": {**MOE, "first_dense": 1, "d_dense": 31}},
        "blocks.ffn.dense",
        T * (D + 2 * 31),
    ),
    "latent": (
        {"attention": {"n_heads": 3, "mla": MLA}, "position": {"kind": "rope"}},
        "blocks.attn",
        T * (D + 18 + 6 + 5 + 2 + 18 + 12 + 12) + 2 * 3 * 5 * 5,
    ),
    "cross": (
        {"cross_attention": True},
        "blocks.cross",
        T * (D + D + D) + 2 * 7 * 2 * D + 2 * 3 * 5 * 7 + 2 * 7 * D,
    ),
}


@pytest.mark.parametrize("name", LIVE)
def test_a_moment_holds_what_is_counted_by_hand(name: str) -> None:
    changed, moment, numbers = LIVE[name]
    config = made(**{"d_model": D, "attention": {"n_heads": 3}, **changed})
    workload = Workload(tokens=5, batch=2, source=7 if config.cross_attention else 0)
    found = activations.inference_peak(config, workload, ActivationFormat())
    held = {each.id: each.ledger.total for each in found.moments}
    assert held[moment] == A * (FLOWING + numbers)


def test_behind_a_cache_no_encoder_runs_and_no_source_is_projected() -> None:
    config = made(d_model=D, attention={"n_heads": 3}, cross_attention=True)
    workload = Workload(tokens=5, batch=2, source=7, cached=4)
    found = activations.inference_peak(config, workload, ActivationFormat())
    held = {each.id: each.ledger.total for each in found.moments}
    assert held["blocks.cross"] == A * (FLOWING + T * 3 * D + 2 * 3 * 5 * 7)
    t5 = activations.inference_peak(sized.config_of("t5-small"), workload, ActivationFormat())
    assert not any(each.id.startswith("encoder.") for each in t5.moments)


def test_flash_writes_no_pairs() -> None:
    """Twice the positions take twice the bytes; with pairs written out they take more."""
    config = sized.config_of("gpt2-small")
    for kernel in KERNELS:
        form = ActivationFormat(kernel=kernel, head="none")
        one, two = (
            activations.inference_peak(config, Workload(tokens=n), form).ledger.total
            for n in (4096, 8192)
        )
        assert (two == 2 * one) is (kernel == "flash")
