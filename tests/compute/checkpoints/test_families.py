"""Options of GPT-2, Llama, Mistral, BERT, RoBERTa and DistilBERT: computed, or refused by key."""

from collections.abc import Callable, Mapping
from contextlib import suppress

import pytest

from checkpoint_files import LLAMA
from compute.checkpoints import fitting, resolving
from compute.checkpoints.fields import Fields
from compute.checkpoints.header import Entry
from compute.checkpoints.registry import FAMILIES, family_for
from compute.config import AttentionBias, FfnBias, ModelConfig
from compute.errors import ModelError
from compute.tensors import tensors

GPT2: Mapping[str, object] = {
    "model_type": "gpt2",
    "n_embd": 12,
    "n_head": 3,
    "n_layer": 2,
    "n_positions": 5,
    "vocab_size": 7,
}
BERT: Mapping[str, object] = {
    "model_type": "bert",
    "hidden_size": 6,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "intermediate_size": 5,
    "max_position_embeddings": 9,
    "type_vocab_size": 2,
    "vocab_size": 7,
}
ROBERTA = {**BERT, "model_type": "roberta", "type_vocab_size": 1}
MISTRAL = {**LLAMA, "model_type": "mistral"}
DISTILBERT: Mapping[str, object] = {
    "model_type": "distilbert",
    "dim": 6,
    "n_heads": 2,
    "n_layers": 2,
    "hidden_dim": 5,
    "max_position_embeddings": 9,
    "vocab_size": 7,
}
HEADS = {
    "bert": "cls.predictions.transform.dense.weight",
    "roberta": "lm_head.dense.weight",
    "distilbert": "vocab_transform.weight",
}


def config_of(raw: Mapping[str, object], head: bool = True) -> ModelConfig:
    """The config of a config.json beside a file of a hundred tensors."""
    family = family_for(raw["model_type"])
    names = {f"tensor.{i}" for i in range(100)}
    names |= {HEADS[family.name]} if head and family.name in HEADS else set()
    return resolving.config_of(family, Fields(raw), names)


Seen = Callable[[ModelConfig], object]
MEANT: dict[str, tuple[Mapping[str, object], Seen, object]] = {
    "gpt2 activation": (GPT2, lambda c: c.ffn.activation, "gelu_tanh"),
    "gpt2 width": (GPT2, lambda c: c.ffn.d_ff, 48),
    "gpt2 width given": ({**GPT2, "n_inner": 10}, lambda c: c.ffn.d_ff, 10),
    "gpt2 tied": (GPT2, lambda c: (c.tied, c.readout, c.final_norm), (True, True, True)),
    "gpt2 scale": (GPT2, lambda c: c.attention.scale, 0.5),
    "gpt2 no scale": ({**GPT2, "scale_attn_weights": False}, lambda c: c.attention.scale, 1.0),
    "gpt2 scale by block": (
        {**GPT2, "scale_attn_by_inverse_layer_idx": True},
        lambda c: [layer.scale for layer in c.layers],
        [0.5, 0.25],
    ),
    "llama heads": (
        LLAMA,
        lambda c: (c.attention.n_kv_heads, c.attention.d_head, c.position.rotary_dim),
        (1, 4, 4),
    ),
    "llama kv heads": (
        {**LLAMA, "hidden_size": 8, "num_key_value_heads": None, "head_dim": None},
        lambda c: (c.attention.n_kv_heads, c.attention.d_head),
        (2, 4),
    ),
    "llama no bias": (
        LLAMA,
        lambda c: (c.attention.bias, c.ffn.bias.in_),
        (AttentionBias(), False),
    ),
    "llama biases": (
        {**LLAMA, "attention_bias": True, "mlp_bias": True},
        lambda c: (c.attention.bias, c.ffn.bias),
        (AttentionBias(q=True, k=True, v=True, o=True), FfnBias(gate=True)),
    ),
    "llama norm": (LLAMA, lambda c: (c.norm.kind, c.norm.eps, c.tied), ("rmsnorm", 1e-5, False)),
    "mistral window": ({**MISTRAL, "sliding_window": 3}, lambda c: c.attention.window, 3),
    "mistral no window": ({**MISTRAL, "sliding_window": None}, lambda c: c.attention.window, None),
    "bert places": (
        BERT,
        lambda c: (c.norm.placement, c.embed_norm, c.final_norm, c.attention.mask),
        ("post", True, False, "full"),
    ),
    "bert head": (
        BERT,
        lambda c: (c.mlm_head, c.readout, c.tied, c.unembed_bias),
        (True, True, True, True),
    ),
    "bert as a decoder": ({**BERT, "is_decoder": True}, lambda c: c.attention.mask, "causal"),
    "bert epsilon": (BERT, lambda c: c.norm.eps, 1e-12),
    "bert types": (BERT, lambda c: c.token_types, 2),
    "roberta positions": (ROBERTA, lambda c: (c.position.n_positions, c.token_types), (7, 1)),
    "distilbert": (
        {**DISTILBERT, "sinusoidal_pos_embds": True},
        lambda c: (c.position.kind, c.position.n_positions, c.token_types, c.norm.eps),
        ("learned", 9, 0, 1e-12),
    ),
}


@pytest.mark.parametrize("name", sorted(MEANT))
def test_config_means_what_its_family_does(name: str) -> None:
    raw, seen, expected = MEANT[name]
    assert seen(config_of(raw)) == expected


@pytest.mark.parametrize("raw", [BERT, ROBERTA, DISTILBERT], ids=["bert", "roberta", "distilbert"])
def test_encoder_without_head_has_an_embedding_and_no_readout(raw: Mapping[str, object]) -> None:
    config = config_of(raw, head=False)
    assert (config.vocab, config.readout, config.mlm_head) == (7, False, False)
    assert not {"mlm_head.W", "unembed.W_U", "unembed.b_U"} & set(tensors(config))


REFUSED: dict[str, tuple[Mapping[str, object], list[str]]] = {
    "gpt2 cross-attention": ({**GPT2, "add_cross_attention": True}, ["add_cross_attention"]),
    "gpt2 sizes": (
        {"model_type": "gpt2"},
        ["n_embd", "n_head", "n_layer", "n_positions", "vocab_size"],
    ),
    "gpt2 activation": ({**GPT2, "activation_function": "tanh"}, ["activation_function"]),
    "llama looks ahead": ({**LLAMA, "is_causal": False}, ["is_causal"]),
    "llama rope": ({**LLAMA, "rope_scaling": {"type": "longrope"}}, ["type"]),
    "mistral window": ({**MISTRAL, "sliding_window": 0}, ["sliding_window"]),
    "bert relative positions": (
        {**BERT, "position_embedding_type": "relative_key"},
        ["position_embedding_type"],
    ),
    "bert cross-attention": ({**BERT, "add_cross_attention": True}, ["add_cross_attention"]),
    "roberta padding": ({**ROBERTA, "pad_token_id": 3}, ["pad_token_id"]),
    "roberta activation": ({**ROBERTA, "hidden_act": "relu"}, ["hidden_act"]),
    "roberta positions": ({**ROBERTA, "max_position_embeddings": 2}, ["max_position_embeddings"]),
    "distilbert sizes": ({**DISTILBERT, "dim": None, "n_layers": -1}, ["dim", "n_layers"]),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_option_that_is_not_computed_is_refused_by_its_key(name: str) -> None:
    raw, keys = REFUSED[name]
    with pytest.raises(ModelError) as refused:
        config_of(raw)
    assert sorted(str(fault.place[-1]) for fault in refused.value.faults) == keys


NASTY: list[object] = [
    *[None, True, False, 0, -1, 1, 3, 1 << 20, 10**400, 0.5, 1e308, float("nan"), "", "relu"],
    *[[], [1], ["x"], [["x"]], [{}], {}, {"a": 1}, {"rope_type": "yarn"}, {"type": "linear"}],
]


@pytest.mark.parametrize(
    "raw", [GPT2, LLAMA, MISTRAL, BERT, ROBERTA, DISTILBERT], ids=lambda raw: str(raw["model_type"])
)
def test_any_value_of_a_key_gives_a_config_or_a_model_error(raw: Mapping[str, object]) -> None:
    keys = {*raw, "rope_scaling", "rope_parameters", "rope_theta", "architectures", "hidden_act"}
    for key in keys - {"model_type"}:
        for value in NASTY:
            with suppress(ModelError):
                assert config_of({**raw, key: value}).d_model


WHOLE = [
    *[{**GPT2, "tie_word_embeddings": tied} for tied in (True, False)],
    *[{**LLAMA, "attention_bias": bias, "mlp_bias": bias} for bias in (True, False)],
    MISTRAL,
    *[
        {**raw, "tie_word_embeddings": tied}
        for raw in (BERT, ROBERTA, DISTILBERT)
        for tied in (0, 1)
    ],
]


@pytest.mark.parametrize("at", range(len(WHOLE)))
def test_every_tensor_of_a_config_lies_somewhere(at: int) -> None:
    raw = {k: bool(x) if k == "tie_word_embeddings" else x for k, x in WHOLE[at].items()}
    config = config_of(raw)
    stored = family_for(raw["model_type"]).stored(config)
    assert set(stored) == set(tensors(config))


def test_old_names_of_norms_are_those_of_today() -> None:
    entries = {
        f"bert.{name}": Entry("F32", (6,), 0)
        for name in ("embeddings.LayerNorm.gamma", "embeddings.LayerNorm.beta")
    }
    assert fitting.known_names(family_for("bert"), entries) == {
        "embeddings.LayerNorm.weight": "bert.embeddings.LayerNorm.gamma",
        "embeddings.LayerNorm.bias": "bert.embeddings.LayerNorm.beta",
    }


def test_variant_is_taken_by_its_mark() -> None:
    mixtral = family_for("mixtral")
    (fused,) = mixtral.variants
    entry = Entry("F32", (1,), 0)
    marked = {"model.layers.0.mlp.experts.gate_up_proj": entry}
    assert fitting.variant(mixtral, marked) is fused
    assert fitting.variant(mixtral, {"model.norm.weight": entry}) is mixtral


def test_no_family_ignores_what_another_tensor_is_read_from() -> None:
    for family in FAMILIES:
        assert not family.ignored.fullmatch("")
        assert not family.ignored.fullmatch("layers.0.self_attn.q_proj.weight")
