"""When a stage exists and when an alias means it, as functions with their words."""

from collections.abc import Mapping

from compute._stage import Absence, Condition
from compute.config import ModelConfig

CONDITIONS: Mapping[str, Condition] = {
    "always": lambda config: True,
    "layernorm": lambda config: config.norm.kind == "layernorm",
    "rmsnorm": lambda config: config.norm.kind == "rmsnorm",
    "pre-norm": lambda config: config.norm.placement in ("pre", "sandwich"),
    "not post-norm": lambda config: config.norm.placement != "post",
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


def needs_types(config: ModelConfig, tokens: bool) -> str | None:
    return None if config.token_types else "the model has no token types"


def needs_embed_norm(config: ModelConfig, tokens: bool) -> str | None:
    return None if config.embed_norm else "embed_norm = false"


def needs_attention(config: ModelConfig, tokens: bool) -> str | None:
    return "attention.kind = none" if config.attention.kind == "none" else None


def needs_ffn(config: ModelConfig, tokens: bool) -> str | None:
    return "ffn.kind = none" if config.ffn.kind == "none" else None


def needs_hidden(config: ModelConfig, tokens: bool) -> str | None:
    experts = "ffn.kind = moe: each expert has its own, ffn.expert_hidden"
    return needs_ffn(config, tokens) or (experts if config.ffn.kind == "moe" else None)


def needs_gate(config: ModelConfig, tokens: bool) -> str | None:
    kind = config.ffn.kind
    return None if kind == "gated" else f"ffn.kind = {kind} has no gate"


def needs_experts(config: ModelConfig, tokens: bool) -> str | None:
    kind = config.ffn.kind
    return None if kind == "moe" else f"ffn.kind = {kind} has no experts"


def needs_shared(config: ModelConfig, tokens: bool) -> str | None:
    shared = None if config.ffn.d_shared else "no expert is shared: ffn.d_shared = 0"
    return needs_experts(config, tokens) or shared


def needs_shared_gate(config: ModelConfig, tokens: bool) -> str | None:
    gate = None if config.ffn.shared_gate else "ffn.shared_gate = false"
    return needs_shared(config, tokens) or gate


def needs_norm(config: ModelConfig, tokens: bool) -> str | None:
    return "norm.kind = none" if config.norm.kind == "none" else None


def _needs_norm_before(config: ModelConfig, tokens: bool) -> str | None:
    outputs = "norm.placement = output: only what the sublayers give is normalized"
    return needs_norm(config, tokens) or (outputs if config.norm.placement == "output" else None)


def _needs_norm_after(config: ModelConfig, tokens: bool) -> str | None:
    placement = config.norm.placement
    after = placement in ("sandwich", "output")
    reason = None if after else f"norm.placement = {placement} normalizes no sublayer's output"
    return needs_norm(config, tokens) or reason


def needs_norm1(config: ModelConfig, tokens: bool) -> str | None:
    return needs_attention(config, tokens) or _needs_norm_before(config, tokens)


def needs_norm2(config: ModelConfig, tokens: bool) -> str | None:
    shared = "norm.shared = true: the ffn reads norm1.out too" if config.norm.shared else None
    return needs_ffn(config, tokens) or _needs_norm_before(config, tokens) or shared


def needs_norm1_post(config: ModelConfig, tokens: bool) -> str | None:
    return needs_attention(config, tokens) or _needs_norm_after(config, tokens)


def needs_norm2_post(config: ModelConfig, tokens: bool) -> str | None:
    return needs_ffn(config, tokens) or _needs_norm_after(config, tokens)


def needs_qk_norm(config: ModelConfig, tokens: bool) -> str | None:
    normed = config.attention.qk_norm != "none"
    return needs_attention(config, tokens) or (None if normed else "attention.qk_norm = none")


def needs_rope(config: ModelConfig, tokens: bool) -> str | None:
    rotates = config.position.kind == "rope"
    return needs_attention(config, tokens) or (
        None if rotates else f"position.kind = {config.position.kind} rotates nothing"
    )


def needs_sinks(config: ModelConfig, tokens: bool) -> str | None:
    sinks = None if config.attention.sinks else "attention.sinks = false"
    return needs_attention(config, tokens) or sinks


def _raw(config: ModelConfig, update: str) -> str | None:
    normed = config.norm.placement in ("sandwich", "output")
    if normed or config.residual_multiplier != 1.0:
        return None
    return f"nothing follows the sublayer's output: it is {update}"


def needs_attn_raw(config: ModelConfig, tokens: bool) -> str | None:
    return needs_attention(config, tokens) or _raw(config, "attn_out")


def needs_ffn_raw(config: ModelConfig, tokens: bool) -> str | None:
    return needs_ffn(config, tokens) or _raw(config, "ffn_out")


def needs_both(config: ModelConfig, tokens: bool) -> str | None:
    if config.attention.kind == "none":
        return "attention.kind = none: the ffn reads resid_pre"
    if config.ffn.kind == "none":
        return "ffn.kind = none: resid_post is the stream after attention"
    if config.topology == "parallel":
        return "topology = parallel: attention and ffn both read resid_pre"
    return None


def _post_sum(config: ModelConfig) -> str | None:
    if config.norm.kind == "none":
        return "norm.kind = none: the sum is the stream itself"
    placement = config.norm.placement
    after = placement == "post"
    return None if after else f"norm.placement = {placement}: the sum is the stream itself"


def needs_attn_sum(config: ModelConfig, tokens: bool) -> str | None:
    return needs_attention(config, tokens) or _post_sum(config)


def needs_ffn_sum(config: ModelConfig, tokens: bool) -> str | None:
    return needs_ffn(config, tokens) or _post_sum(config)


def needs_cross(config: ModelConfig, tokens: bool) -> str | None:
    return None if config.cross_attention else "cross_attention = false"


def needs_norm_cross(config: ModelConfig, tokens: bool) -> str | None:
    return needs_cross(config, tokens) or needs_norm(config, tokens)


def needs_cross_raw(config: ModelConfig, tokens: bool) -> str | None:
    return needs_cross(config, tokens) or _raw(config, "cross_out")


def needs_cross_sum(config: ModelConfig, tokens: bool) -> str | None:
    return needs_cross(config, tokens) or _post_sum(config)


def needs_final_norm(config: ModelConfig, tokens: bool) -> str | None:
    return None if config.final_norm else "final_norm = false"


def needs_mlm_head(config: ModelConfig, tokens: bool) -> str | None:
    return None if config.mlm_head else "mlm_head = false"


def needs_readout(config: ModelConfig, tokens: bool) -> str | None:
    if config.vocab is None:
        return "the model has no vocab, so no readout"
    return None if config.readout else "readout = false: the model ends with its stream"


WORDS: Mapping[Absence, str] = {
    exists_always: "always",
    needs_tokens: "the input is token_ids or text",
    needs_absolute: "position.kind is sinusoidal or learned",
    needs_types: "token_types is given",
    needs_embed_norm: "embed_norm is true",
    needs_attention: "attention.kind is softmax",
    needs_ffn: "ffn.kind is not none",
    needs_hidden: "ffn.kind is mlp or gated",
    needs_gate: "ffn.kind is gated",
    needs_experts: "ffn.kind is moe",
    needs_shared: "ffn.kind is moe and ffn.d_shared is given",
    needs_shared_gate: "ffn.kind is moe and ffn.shared_gate is true",
    needs_norm1: "the block has attention and a norm before it or after its addition",
    needs_norm2: "the block has an ffn and a norm of its own before it or after its addition",
    needs_norm1_post: "norm.placement is sandwich or output, and the block has attention",
    needs_norm2_post: "norm.placement is sandwich or output, and the block has an ffn",
    needs_qk_norm: "attention.qk_norm is not none",
    needs_rope: "position.kind is rope and the block turns (its theta is a number)",
    needs_sinks: "attention.sinks is true",
    needs_attn_raw: "a norm or a multiplier follows attention's output",
    needs_ffn_raw: "a norm or a multiplier follows the ffn's output",
    needs_both: "the block has attention and an ffn, one after the other",
    needs_attn_sum: "norm.placement is post, and the block has attention",
    needs_ffn_sum: "norm.placement is post, and the block has an ffn",
    needs_cross: "cross_attention is true",
    needs_norm_cross: "cross_attention is true and the block has norms",
    needs_cross_raw: "cross_attention is true and residual_multiplier is not 1",
    needs_cross_sum: "cross_attention is true and norm.placement is post",
    needs_final_norm: "final_norm is true",
    needs_mlm_head: "mlm_head is true",
    needs_readout: "the model has a vocab and reads it out",
}
