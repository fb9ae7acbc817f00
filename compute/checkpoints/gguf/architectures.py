"""The architectures of GGUF files: each by the fields its family's config.json would have.

What a file does not say is as the family was published: activations, the scale of attention,
where the windows are. `unsaid` names what may differ and cannot be told from the file.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from compute.checkpoints.families.bert import BERT
from compute.checkpoints.families.gemma2 import GEMMA2
from compute.checkpoints.families.gemma3 import GEMMA3
from compute.checkpoints.families.gpt2 import GPT2
from compute.checkpoints.families.gpt_neox import GPT_NEOX
from compute.checkpoints.families.llama import LLAMA, MISTRAL
from compute.checkpoints.families.mixtral import MIXTRAL
from compute.checkpoints.families.olmo2 import OLMO2
from compute.checkpoints.families.phi import PHI
from compute.checkpoints.families.qwen2 import QWEN2
from compute.checkpoints.families.qwen3 import QWEN3
from compute.checkpoints.families.t5 import T5
from compute.checkpoints.family import Family
from compute.checkpoints.faults import nearest, refused, shown
from compute.checkpoints.gguf import names
from compute.checkpoints.gguf.gemma import GEMMA2_KEYS, GEMMA3_KEYS, gemma2, gemma3
from compute.checkpoints.gguf.keys import (
    ALWAYS,
    LAYERNORM,
    RMS_NORM,
    ROPE,
    Keys,
    Raw,
    layernorm,
    rms_norm,
    rope,
    shared,
)
from compute.checkpoints.stored import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """One architecture.

    fields: of its family's config.json. known: its keys besides those that all have. turned: Q and
    K lie interleaved. other: names of its own. ignored: names (a pattern) that hold no weight we
    read. unsaid: what the file cannot say, as sentences.
    """

    family: Family
    fields: Callable[[Keys], Raw]
    known: frozenset[str]
    turned: bool = False
    other: Table | None = None
    ignored: str = ""
    unsaid: str = ""


def _llama(keys: Keys) -> Raw:
    raw = {**shared(keys), **rms_norm(keys), **rope(keys)}
    if keys.has("attention.sliding_window"):
        raw["sliding_window"] = keys.size("attention.sliding_window")
    return raw


def _mixtral(keys: Keys) -> Raw:
    raw = _llama(keys)
    raw["num_local_experts"] = keys.size("expert_count")
    raw["num_experts_per_tok"] = keys.size("expert_used_count")
    if keys.has("expert_feed_forward_length"):
        raw["intermediate_size"] = keys.size("expert_feed_forward_length")
    return raw


def _rms_and_rope(keys: Keys) -> Raw:
    return {**shared(keys), **rms_norm(keys), **rope(keys)}


def _layernorm_and_rope(keys: Keys) -> Raw:
    return {**shared(keys), **layernorm(keys), **rope(keys)}


def _gpt_neox(keys: Keys) -> Raw:
    side_by_side = keys.fields.flag(keys.key("use_parallel_residual"), True)
    return {**_layernorm_and_rope(keys), "use_parallel_residual": side_by_side}


def _gpt2(keys: Keys) -> Raw:
    raw = shared(keys)
    return {
        "n_embd": raw["hidden_size"],
        "n_layer": raw["num_hidden_layers"],
        "n_head": raw["num_attention_heads"],
        "n_inner": raw["intermediate_size"],
        "n_positions": keys.rows("position_embd.weight"),
        "vocab_size": raw["vocab_size"],
        "tie_word_embeddings": raw["tie_word_embeddings"],
        "layer_norm_epsilon": keys.number("attention.layer_norm_epsilon"),
    }


def _bert(keys: Keys) -> Raw:
    return {
        **shared(keys),
        **layernorm(keys),
        "max_position_embeddings": keys.rows("position_embd.weight"),
        "type_vocab_size": keys.rows("token_types.weight"),
    }


def _t5(keys: Keys) -> Raw:
    raw = shared(keys)
    gated = bool(keys.rows("enc.blk.0.ffn_gate.weight"))
    return {
        "d_model": raw["hidden_size"],
        "d_kv": raw["head_dim"],
        "num_heads": raw["num_attention_heads"],
        "num_layers": raw["num_hidden_layers"],
        "num_decoder_layers": keys.size_or("decoder_block_count", keys.size("block_count")),
        "d_ff": raw["intermediate_size"],
        "vocab_size": raw["vocab_size"],
        "tie_word_embeddings": raw["tie_word_embeddings"],
        "feed_forward_proj": "gated-gelu" if gated else "relu",
        "layer_norm_epsilon": keys.number("attention.layer_norm_rms_epsilon"),
        "relative_attention_num_buckets": keys.size("attention.relative_buckets_count"),
    }


_EXPERTS = frozenset({"expert_count", "expert_used_count", "expert_feed_forward_length"})
_ROTATED = ALWAYS | RMS_NORM | ROPE
_NO_WINDOW = "Whether attention has a window is not said; it has none here."
_ACTIVATION = "The activation is not said: {} is the one the family was published with."
_BASE = "RoPE's base is 10000 unless a key says it."
_SCALE = "The scale of attention is not said: it is that of the published models."

_LLAMA = Architecture(
    family=LLAMA,
    fields=_llama,
    known=_ROTATED | {"attention.sliding_window", "expert_count", "expert_used_count"},
    turned=True,
    ignored=r"rope_freqs\.weight",
    unsaid=_NO_WINDOW,
)
_MIXTRAL = replace(_LLAMA, family=MIXTRAL, fields=_mixtral, known=_LLAMA.known | _EXPERTS)
_MISTRAL = replace(_LLAMA, family=MISTRAL, unsaid="")
ARCHITECTURES: Mapping[str, Architecture] = {
    "llama": _LLAMA,
    "qwen2": Architecture(family=QWEN2, fields=_rms_and_rope, known=_ROTATED, unsaid=_NO_WINDOW),
    "qwen3": Architecture(family=QWEN3, fields=_rms_and_rope, known=_ROTATED, unsaid=_NO_WINDOW),
    "olmo2": Architecture(family=OLMO2, fields=_rms_and_rope, known=_ROTATED),
    "gemma2": Architecture(
        family=GEMMA2, fields=gemma2, known=_ROTATED | GEMMA2_KEYS, unsaid=_SCALE
    ),
    "gemma3": Architecture(
        family=GEMMA3, fields=gemma3, known=_ROTATED | GEMMA3_KEYS, unsaid=_SCALE
    ),
    "gptneox": Architecture(
        family=GPT_NEOX,
        fields=_gpt_neox,
        known=ALWAYS | LAYERNORM | ROPE | {"use_parallel_residual"},
        unsaid=f"{_ACTIVATION.format('gelu')} {_BASE}",
    ),
    "phi2": Architecture(
        family=PHI,
        fields=_layernorm_and_rope,
        known=ALWAYS | LAYERNORM | ROPE,
        unsaid=f"{_ACTIVATION.format('gelu_tanh')} {_BASE}",
    ),
    "gpt2": Architecture(
        family=GPT2,
        fields=_gpt2,
        known=ALWAYS | LAYERNORM,
        unsaid=_ACTIVATION.format("gelu_tanh"),
    ),
    "bert": Architecture(
        family=BERT,
        fields=_bert,
        known=ALWAYS | LAYERNORM | {"classifier.output_labels", "token_type_count"},
        other=names.POST_NORM,
        ignored=r"cls\.(output\.)?(weight|bias)",
        unsaid=_ACTIVATION.format("gelu"),
    ),
    "t5": Architecture(
        family=T5,
        fields=_t5,
        known=ALWAYS
        | LAYERNORM
        | RMS_NORM
        | {"attention.relative_buckets_count", "decoder_block_count", "decoder_start_token_id"},
        other=names.T5,
        ignored=r"dec\.blk\.0\.cross_attn_rel_b\.weight",
        unsaid="How far positions are told apart is not said; 128 is what the family has.",
    ),
}
"""general.architecture -> how its files are read."""


def architecture_of(keys: Keys) -> Architecture:
    """The architecture of a file, or a ModelError with those there are."""
    name = keys.architecture
    there = sorted(ARCHITECTURES)
    if name not in ARCHITECTURES:
        told = f"general.architecture {shown(name)} is not read: {', '.join(there)}."
        detail = told + nearest(name, there)
        raise refused((keys.file, "general.architecture"), detail, there, shown(name))
    if name == "llama" and keys.fields.count_or("llama.expert_count", 0):
        return _MIXTRAL
    if name == "llama" and keys.has("attention.sliding_window"):
        return _MISTRAL
    return ARCHITECTURES[name]
