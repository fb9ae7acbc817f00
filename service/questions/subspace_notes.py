"""What a model does between its weights that circuits and scores do not see, said in words."""

from collections.abc import Iterator, Sequence

from compute.circuits.asked import Question
from compute.circuits.heads import reads_normed
from compute.config import AttentionConfig, ModelConfig


def notes(question: Question) -> Sequence[str]:
    """A sentence for each thing this model has that was left out of what was asked."""
    config = question.config
    return [
        *_of_readers(question),
        *_of_norms(config, question.fold_norm),
        *(_of_scores(config) if question.ask & {"qk", "composition"} else ()),
        *(_of_biases(config.attention) if question.ask & {"qk", "ov", "token_copying"} else ()),
        *(_of_networks(config) if question.ask & {"reads", "ffn"} else ()),
        *(_of_tokens(config) if question.tokens or "token_copying" in question.ask else ()),
        *_of_others(config),
    ]


def _of_readers(question: Question) -> Iterator[str]:
    last = max(head.block for head in question.readers)
    if "composition" in question.ask and all(head.block >= last for head in question.heads):
        yield "No reader is in a later block than these heads, so none composes with them."


def _of_norms(config: ModelConfig, fold_norm: bool) -> Iterator[str]:
    norm = config.norm
    if norm.kind == "none":
        return
    if reads_normed(norm):
        yield (
            "The norm before a read is folded in, but for its scale, which depends on the input."
            if fold_norm
            else "A norm stands before each read; fold_norm folds its gain in."
        )
    if norm.placement == "post":
        yield "Norms stand on the stream itself, after each addition; they are left out."
    if norm.placement in ("sandwich", "output"):
        yield "A norm stands after each sublayer, before its output is added; it is left out."


def _of_scores(config: ModelConfig) -> Iterator[str]:
    attention = config.attention
    if config.position.kind == "rope":
        yield "QK is the circuit before RoPE: that of a query and a key at the same position."
    if config.position.kind in ("alibi", "t5_bias"):
        yield "What positions add to the scores is left out."
    if attention.qk_norm != "none":
        yield "Queries and keys are normalized in a run; QK leaves that out."
    if attention.softcap is not None:
        yield "Scores are capped in a run; QK leaves that out."


def _of_biases(attention: AttentionConfig) -> Iterator[str]:
    bias = attention.bias
    if bias.q or bias.k or bias.v or bias.o:
        yield "Circuits are of the matrices; biases of queries, keys, values and output stay out."


def _of_networks(config: ModelConfig) -> Iterator[str]:
    ffn = config.ffn
    if ffn.kind == "none":
        return
    if ffn.d_ff * max(ffn.n_experts, 1) >= config.d_model:
        yield (
            "A network is as wide as the stream or wider: it can reach all of it, and an overlap "
            "of 1 with it says nothing. Read the weighted score."
        )
    if ffn.kind == "moe":
        yield "The experts of a mixture stand side by side, without router and shared expert."


def _of_tokens(config: ModelConfig) -> Iterator[str]:
    if config.embed_multiplier != 1.0:
        yield "Rows of tokens are those of W_E, without embed_multiplier."
    if config.mlm_head:
        yield "Tokens are read out by W_U directly, past the layer below it."
    if config.final_norm:
        yield "The norm before the readout is left out."


def _of_others(config: ModelConfig) -> Iterator[str]:
    if config.cross_attention:
        yield "The heads of cross-attention are left out."
    if config.encoder is not None:
        yield "The encoder's heads are left out."
