"""The models of which references are kept: one folder, one configuration, some runs.

Sizes are tiny and differ from one another where the family lets them, so that no two axes can be
exchanged unseen. The epsilons of the norms are large enough to be seen in the values.
"""

from dataclasses import dataclass, field
from typing import Any

import transformers as hf

PLAIN = ("plain",)
ALL = ("plain", "right", "left", "offset")
MOVED = ("plain", "offset")

Sizes = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Family:
    """One folder of references."""

    folder: str
    config: type[hf.PreTrainedConfig]
    model: type[hf.PreTrainedModel]
    sizes: Sizes
    runs: tuple[str, ...] = ALL
    layers: str = "model.layers"
    final: str | None = "model.norm"
    positions: bool = True  # takes position_ids
    types: bool = False  # takes token_type_ids
    casts: bool = True  # converts to float32 inside
    untied: bool = False  # a head of its own although upstream shares it by default
    weights: str | None = None  # the folder whose weights it shares
    dtype: str = "float32"
    sinusoids: str | None = None  # the table of positions that upstream makes of sines
    saved: Sizes = field(default_factory=dict)  # further arguments of save_pretrained


GPT2 = {"n_embd": 8, "n_head": 2, "n_layer": 2, "n_inner": 12, "n_positions": 16}
GPT2 |= {"vocab_size": 23, "layer_norm_epsilon": 1e-3, "bos_token_id": 1, "eos_token_id": 2}

BERT = {"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2}
BERT |= {"intermediate_size": 12, "max_position_embeddings": 16, "vocab_size": 23}
BERT |= {"layer_norm_eps": 1e-3, "type_vocab_size": 2, "pad_token_id": 0}

DISTILBERT = {"dim": 8, "n_heads": 2, "n_layers": 2, "hidden_dim": 12, "vocab_size": 23}
DISTILBERT |= {"max_position_embeddings": 16, "pad_token_id": 0}

SHARED = {"num_hidden_layers": 2, "vocab_size": 23, "max_position_embeddings": 32}
SHARED |= {"bos_token_id": 1, "eos_token_id": 2}

ONE = {"num_hidden_layers": 1}

LLAMA = {**SHARED, "hidden_size": 8, "num_attention_heads": 2, "num_key_value_heads": 1}
LLAMA |= {"intermediate_size": 12, "rms_norm_eps": 1e-3}

# Two heads of width 8 on one key head: four pairs of features, enough for a scaling to differ.
ROPED = {**LLAMA, **ONE, "hidden_size": 16}

# Heads wider than the model's width divided by their number, in two groups of two.
WIDE = {**LLAMA, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4}

NEOX = {**SHARED, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 12}
NEOX |= {"layer_norm_eps": 1e-3}

GEMMA2 = {**WIDE, "query_pre_attn_scalar": 7, "sliding_window": 3, "pad_token_id": 0}
GEMMA2 |= {"attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0}

GEMMA3 = {**WIDE, "query_pre_attn_scalar": 7, "sliding_window": 3, "pad_token_id": 0}
GEMMA3 |= {"num_hidden_layers": 3, "sliding_window_pattern": 2}

OPT = {**SHARED, "hidden_size": 8, "word_embed_proj_dim": 8, "num_attention_heads": 2}
OPT |= {"ffn_dim": 12, "max_position_embeddings": 16, "pad_token_id": 1}

PHI = {**NEOX, "num_key_value_heads": 2}

T5 = {"d_model": 8, "d_kv": 3, "d_ff": 12, "num_layers": 2, "num_heads": 2, "vocab_size": 23}
T5 |= {"relative_attention_num_buckets": 8, "relative_attention_max_distance": 12}
T5 |= {"layer_norm_epsilon": 1e-3, "pad_token_id": 0}

MIXTRAL = {**WIDE, "num_local_experts": 3, "num_experts_per_tok": 2}

BLOOM = {"hidden_size": 12, "n_head": 6, "n_layer": 1, "vocab_size": 23}
BLOOM |= {"layer_norm_epsilon": 1e-3, "bos_token_id": 1, "eos_token_id": 2}

GPTJ = {"n_embd": 16, "n_head": 2, "n_layer": 1, "n_inner": 12, "rotary_dim": 4}
GPTJ |= {"n_positions": 16, "vocab_size": 23, "layer_norm_epsilon": 1e-3}
GPTJ |= {"bos_token_id": 1, "eos_token_id": 2}

OSS = {**WIDE, **ONE, "num_local_experts": 3, "num_experts_per_tok": 2, "sliding_window": 3}
OSS |= {"layer_types": ["sliding_attention"]}

QWEN_MOE = {**LLAMA, **ONE, "num_experts": 3, "num_experts_per_tok": 2}
QWEN_MOE |= {"moe_intermediate_size": 5, "shared_expert_intermediate_size": 6}
QWEN_MOE |= {"norm_topk_prob": False}

COHERE2 = {**LLAMA, "hidden_size": 16, "num_attention_heads": 4, "num_key_value_heads": 2}
COHERE2 |= {"layer_norm_eps": 1e-3, "logit_scale": 0.4, "pad_token_id": 0, "sliding_window": 3}
COHERE2 |= {"layer_types": ["sliding_attention", "full_attention"]}
COHERE2.pop("rms_norm_eps")

NEMOTRON = {**SHARED, **ONE, "hidden_size": 16, "num_attention_heads": 2, "norm_eps": 1e-3}
NEMOTRON |= {"num_key_value_heads": 1, "intermediate_size": 12, "hidden_act": "relu2"}

GRANITE = {**LLAMA, **ONE, "embedding_multiplier": 1.5, "logits_scaling": 2.5}
GRANITE |= {"residual_multiplier": 0.6, "attention_multiplier": 0.3}

GRANITE_MOE = {**LLAMA, **ONE, "num_local_experts": 3, "num_experts_per_tok": 2}
GRANITE_MOE |= {"intermediate_size": 5, "shared_intermediate_size": 6}

SWITCH = {**T5, "num_layers": 1, "num_decoder_layers": 1, "num_experts": 3}
SWITCH |= {"num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1}


def rope(kind: str, **more: float) -> Sizes:
    """The entry of a configuration for rotary positions."""
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 100.0, **more}}


def llama(folder: str, sizes: Sizes, **more: Any) -> Family:  # noqa: ANN401 - fields of Family
    """A folder of the Llama family."""
    return Family(folder, hf.LlamaConfig, hf.LlamaForCausalLM, sizes, **more)


LLAMAS = [
    llama("llama", WIDE),
    llama(
        "llama-biased-tied",
        {**WIDE, **ONE, "tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True},
        runs=PLAIN,
    ),
    llama(
        "llama-rope-llama3",
        {**ROPED, "max_position_embeddings": 128}
        | rope(
            "llama3",
            factor=8.0,
            low_freq_factor=1.0,
            high_freq_factor=4.0,
            original_max_position_embeddings=40,
        ),
        runs=PLAIN,
    ),
    llama("llama-rope-linear", ROPED | rope("linear", factor=4.0), runs=PLAIN),
    llama(
        "llama-rope-dynamic",
        {**ROPED, "max_position_embeddings": 4} | rope("dynamic", factor=2.0),
        runs=MOVED,
    ),
    llama(
        "llama-rope-yarn",
        {**ROPED, "max_position_embeddings": 128}
        | rope("yarn", factor=4.0, original_max_position_embeddings=32),
        runs=PLAIN,
    ),
    llama("llama-float16", {**WIDE, **ONE}, runs=PLAIN, dtype="float16"),
    llama("llama-bfloat16", {**WIDE, **ONE}, runs=PLAIN, dtype="bfloat16"),
    llama("llama-reglu", {**LLAMA, **ONE, "hidden_act": "relu"}, runs=PLAIN),
    llama("llama-sharded", WIDE, runs=(), weights="llama", saved={"max_shard_size": 4000}),
]

ENCODERS = [
    Family(
        "bert",
        hf.BertConfig,
        hf.BertForMaskedLM,
        BERT,
        layers="bert.encoder.layer",
        final=None,
        types=True,
        casts=False,
    ),
    Family(
        "roberta",
        hf.RobertaConfig,
        hf.RobertaForMaskedLM,
        {**BERT, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "type_vocab_size": 1},
        layers="roberta.encoder.layer",
        final=None,
        casts=False,
    ),
    Family(
        "distilbert",
        hf.DistilBertConfig,
        hf.DistilBertForMaskedLM,
        DISTILBERT,
        layers="distilbert.transformer.layer",
        final=None,
        casts=False,
    ),
    Family(
        "minilm",
        hf.BertConfig,
        hf.BertModel,
        BERT,
        runs=("plain", "right"),
        layers="encoder.layer",
        final=None,
        types=True,
        casts=False,
    ),
]

DECODERS = [
    Family(
        "gpt2",
        hf.GPT2Config,
        hf.GPT2LMHeadModel,
        GPT2,
        layers="transformer.h",
        final="transformer.ln_f",
        casts=False,
    ),
    Family(
        "gpt2-inverse-layer",
        hf.GPT2Config,
        hf.GPT2LMHeadModel,
        {**GPT2, "scale_attn_by_inverse_layer_idx": True},
        runs=PLAIN,
        layers="transformer.h",
        final="transformer.ln_f",
        casts=False,
    ),
    Family("mistral", hf.MistralConfig, hf.MistralForCausalLM, {**WIDE, "sliding_window": 3}),
    Family("qwen2", hf.Qwen2Config, hf.Qwen2ForCausalLM, LLAMA | rope("default")),
    Family(
        "qwen2-sliding",
        hf.Qwen2Config,
        hf.Qwen2ForCausalLM,
        {**LLAMA, "use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1},
        runs=PLAIN,
    ),
    Family("qwen3", hf.Qwen3Config, hf.Qwen3ForCausalLM, WIDE | rope("default")),
    *(
        Family(
            folder,
            hf.GPTNeoXConfig,
            hf.GPTNeoXForCausalLM,
            {**NEOX, **layers, "use_parallel_residual": parallel, "rotary_pct": part},
            runs=runs,
            layers="gpt_neox.layers",
            final="gpt_neox.final_layer_norm",
        )
        for folder, layers, parallel, part, runs in [
            ("gpt-neox", {}, True, 0.5, ALL),
            ("gpt-neox-sequential", ONE, False, 0.25, PLAIN),
        ]
    ),
    Family("gemma2", hf.Gemma2Config, hf.Gemma2ForCausalLM, GEMMA2),
    Family(
        "gemma3",
        hf.Gemma3TextConfig,
        hf.Gemma3ForCausalLM,
        {
            **GEMMA3,
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "rope_theta": 1000.0, "factor": 8.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
            },
        },
    ),
    *(
        Family(
            folder,
            hf.OPTConfig,
            hf.OPTForCausalLM,
            {**OPT, **layers, "do_layer_norm_before": before},
            runs=runs,
            layers="model.decoder.layers",
            final="model.decoder.final_layer_norm" if before else None,
        )
        for folder, layers, before, runs in [
            ("opt", {}, True, ALL),
            ("opt-post-norm", ONE, False, PLAIN),
        ]
    ),
    Family(
        "phi",
        hf.PhiConfig,
        hf.PhiForCausalLM,
        {**PHI, "partial_rotary_factor": 0.5},
        final="model.final_layernorm",
    ),
    Family(
        "phi-qk-norm",
        hf.PhiConfig,
        hf.PhiForCausalLM,
        {
            **PHI,
            **ONE,
            "partial_rotary_factor": 0.5,
            "qk_layernorm": True,
            "num_key_value_heads": 1,
        },
        runs=PLAIN,
        final="model.final_layernorm",
    ),
    Family("olmo2", hf.Olmo2Config, hf.Olmo2ForCausalLM, {**LLAMA, "pad_token_id": 0}),
    Family("mixtral", hf.MixtralConfig, hf.MixtralForCausalLM, MIXTRAL),
    Family(
        "mixtral-fused",
        hf.MixtralConfig,
        hf.MixtralForCausalLM,
        MIXTRAL,
        runs=(),
        weights="mixtral",
        saved={"save_original_format": False},
    ),
]

PAIRS = [
    Family(
        "t5",
        hf.T5Config,
        hf.T5ForConditionalGeneration,
        {**T5, "feed_forward_proj": "relu", "tie_word_embeddings": True},
        runs=("plain", "right"),
        positions=False,
    ),
    Family(
        "t5-gated",
        hf.T5Config,
        hf.T5ForConditionalGeneration,
        {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
        runs=("plain", "right"),
        positions=False,
        untied=True,
    ),
]

# Known for one option each; nothing reads their folders as a family.
OPTIONS = [
    Family(
        "option-bloom",
        hf.BloomConfig,
        hf.BloomForCausalLM,
        BLOOM,
        runs=("plain", "left"),
        layers="transformer.h",
        final="transformer.ln_f",
        positions=False,
    ),
    Family("option-granite", hf.GraniteConfig, hf.GraniteForCausalLM, GRANITE, runs=PLAIN),
    Family(
        "option-gpt-oss", hf.GptOssConfig, hf.GptOssForCausalLM, OSS | rope("default"), runs=PLAIN
    ),
    Family("option-qwen2-moe", hf.Qwen2MoeConfig, hf.Qwen2MoeForCausalLM, QWEN_MOE, runs=PLAIN),
    Family(
        "option-granite-moe-shared",
        hf.GraniteMoeSharedConfig,
        hf.GraniteMoeSharedForCausalLM,
        GRANITE_MOE | rope("default"),
        runs=PLAIN,
    ),
    Family(
        "option-switch",
        hf.SwitchTransformersConfig,
        hf.SwitchTransformersForConditionalGeneration,
        SWITCH,
        runs=PLAIN,
        positions=False,
    ),
    Family(
        "option-gptj",
        hf.GPTJConfig,
        hf.GPTJForCausalLM,
        GPTJ,
        runs=MOVED,
        layers="transformer.h",
        final="transformer.ln_f",
    ),
    Family(
        "option-cohere2",
        hf.Cohere2Config,
        hf.Cohere2ForCausalLM,
        COHERE2 | rope("default"),
        runs=MOVED,
    ),
    Family(
        "option-nemotron",
        hf.NemotronConfig,
        hf.NemotronForCausalLM,
        NEMOTRON | rope("default", partial_rotary_factor=0.5),
        runs=PLAIN,
    ),
    Family(
        "option-sinusoidal",
        hf.DistilBertConfig,
        hf.DistilBertForMaskedLM,
        {**DISTILBERT, "n_layers": 1, "sinusoidal_pos_embds": True},
        runs=MOVED,
        layers="distilbert.transformer.layer",
        final=None,
        sinusoids="distilbert.embeddings.position_embeddings.weight",
    ),
]

FAMILIES = [*ENCODERS, *LLAMAS, *DECODERS, *PAIRS, *OPTIONS]
