"""When a stage exists and when an alias means it, as functions with their words."""

from collections.abc import Mapping

from compute._stage import Absence, Condition
from compute.config import ModelConfig

CONDITIONS: Mapping[str, Condition] = {
    "always": lambda config: True,
    "layernorm": lambda config: config.norm.kind == "layernorm",
    "rmsnorm": lambda config: config.norm.kind == "rmsnorm",
    "pre-norm": lambda config: config.norm.placement == "pre",
    "post-norm": lambda config: config.norm.placement == "post",
    "gated ffn": lambda config: config.ffn.kind == "gated",
    "mlp": lambda config: config.ffn.kind == "mlp",
    "ungrouped heads": lambda config: config.attention.n_heads == config.attention.n_kv_heads,
}


def exists_always(config: ModelConfig, tokens: bool) -> str | None:
    return None


def needs_tokens(config: ModelConfig, tokens: bool) -> str | None:
    return None if tokens else "the input is a tensor, so nothing is embedded"


def needs_absolute(config: ModelConfig, tokens: bool) -> str | None:
    kind = config.position.kind
    added = kind in ("sinusoidal", "learned")
    return None if added else f"position.kind = {kind} adds nothing to the stream"


def needs_attention(config: ModelConfig, tokens: bool) -> str | None:
    return "attention.kind = none" if config.attention.kind == "none" else None


def needs_ffn(config: ModelConfig, tokens: bool) -> str | None:
    return "ffn.kind = none" if config.ffn.kind == "none" else None


def needs_gate(config: ModelConfig, tokens: bool) -> str | None:
    kind = config.ffn.kind
    return None if kind == "gated" else f"ffn.kind = {kind} has no gate"


def needs_norm(config: ModelConfig, tokens: bool) -> str | None:
    return "norm.kind = none" if config.norm.kind == "none" else None


def needs_norm1(config: ModelConfig, tokens: bool) -> str | None:
    return needs_attention(config, tokens) or needs_norm(config, tokens)


def needs_norm2(config: ModelConfig, tokens: bool) -> str | None:
    return needs_ffn(config, tokens) or needs_norm(config, tokens)


def needs_rope(config: ModelConfig, tokens: bool) -> str | None:
    rotates = config.position.kind == "rope"
    return needs_attention(config, tokens) or (
        None if rotates else f"position.kind = {config.position.kind} rotates nothing"
    )


def needs_both(config: ModelConfig, tokens: bool) -> str | None:
    if config.attention.kind == "none":
        return "attention.kind = none: the ffn reads resid_pre"
    if config.ffn.kind == "none":
        return "ffn.kind = none: resid_post is the stream after attention"
    return None


def _post_sum(config: ModelConfig) -> str | None:
    if config.norm.kind == "none":
        return "norm.kind = none: the sum is the stream itself"
    placed = config.norm.placement == "post"
    return None if placed else "norm.placement = pre: the sum is the stream itself"


def needs_attn_sum(config: ModelConfig, tokens: bool) -> str | None:
    return needs_attention(config, tokens) or _post_sum(config)


def needs_ffn_sum(config: ModelConfig, tokens: bool) -> str | None:
    return needs_ffn(config, tokens) or _post_sum(config)


def needs_final_norm(config: ModelConfig, tokens: bool) -> str | None:
    return None if config.final_norm else "final_norm = false"


def needs_vocab(config: ModelConfig, tokens: bool) -> str | None:
    return None if config.vocab else "the model has no vocab, so no readout"


WORDS: Mapping[Absence, str] = {
    exists_always: "always",
    needs_tokens: "the input is token_ids or text",
    needs_absolute: "position.kind is sinusoidal or learned",
    needs_attention: "attention.kind is softmax",
    needs_ffn: "ffn.kind is mlp or gated",
    needs_gate: "ffn.kind is gated",
    needs_norm1: "the block has attention and a norm",
    needs_norm2: "the block has an ffn and a norm",
    needs_rope: "position.kind is rope",
    needs_both: "the block has attention and an ffn",
    needs_attn_sum: "norm.placement is post, and the block has attention",
    needs_ffn_sum: "norm.placement is post, and the block has an ffn",
    needs_final_norm: "final_norm is true",
    needs_vocab: "the model has a vocab",
}
