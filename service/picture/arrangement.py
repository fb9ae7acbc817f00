"""A config in a line: how a stack is arranged, and what is unlike the article's block."""

from collections.abc import Iterator

from schemas.resolved import (
    AttentionAnswer,
    FfnAnswer,
    LayerAnswer,
    NormAnswer,
    PositionAnswer,
    StackAnswer,
)
from service.picture import words

_QK_NORMS = {"head": "queries and keys normed", "full": "queries and keys normed over all heads"}


def config(told: StackAnswer) -> str:
    """Blocks, width, heads, norm, position, ffn, what stands below and above."""
    return " · ".join(
        [
            words.counted(told["n_layers"], "parallel block" if _parallel(told) else "block"),
            f"d_model {told['d_model']:,}",
            *_attention(told["attention"]),
            *(["cross-attention"] if told["cross_attention"] else []),
            _norm(told["norm"]),
            _position(told["position"]),
            _ffn(told["ffn"]),
            *_below(told),
            *_above(told),
        ]
    )


def layers(told: list[LayerAnswer]) -> str:
    """`window 4 (0, 2), no window (1, 3); theta 10,000 (0)`: what differs, and in which blocks."""
    said = []
    for name, words_of in (("window", _window), ("scale", _scale), ("rope", _turn)):
        blocks: dict[str, list[int]] = {}
        for at, layer in enumerate(told):
            blocks.setdefault(words_of(layer), []).append(at)
        if len(blocks) > 1:
            said += [f"{one} ({words.listed(ats, 12)})" for one, ats in blocks.items()]
        elif name == "window":
            said += [one for one in blocks if one != "no window"]
    return ", ".join(said)


def _parallel(told: StackAnswer) -> bool:
    return told["topology"] == "parallel"


def _attention(told: AttentionAnswer) -> Iterator[str]:
    if told["kind"] == "none":
        yield "no attention"
        return
    heads, groups = told["n_heads"], told["n_kv_heads"]
    shared = f" on {words.counted(groups, 'kv_head')}" if groups != heads else ""
    values = f", values {told['d_value']}" if told["d_value"] != told["d_head"] else ""
    yield f"{words.counted(heads, 'head')} of {told['d_head']}{values}{shared}"
    window = f", window {told['window']}" if told["window"] is not None else ""
    yield f"{told['mask']} mask{window}"
    if told["qk_norm"] != "none":
        yield _QK_NORMS[told["qk_norm"]]
    if told["softcap"] is not None:
        yield f"scores capped at {told['softcap']:g}"
    if told["sinks"]:
        yield "sinks"


def _norm(told: NormAnswer) -> str:
    if told["kind"] == "none":
        return "no norm"
    return f"{told['kind']} ({told['placement']}{', shared' if told['shared'] else ''})"


def _position(told: PositionAnswer) -> str:
    if told["kind"] == "none":
        return "no positions"
    scaling = told.get("scaling", {"kind": "none"})
    kind = scaling["kind"]
    stretched = "" if kind == "none" else f", {kind} scaling by {scaling['factor']:g}"
    return f"{told['kind']} positions{stretched}"


def _ffn(told: FfnAnswer) -> str:
    if told["kind"] == "none":
        return "no ffn"
    said = f"ffn {told['d_ff']:,} {told['activation']}"
    if told["kind"] != "moe":
        return f"{told['kind']} {said}"
    shared = f" and a shared one of {told['d_shared']:,}" if told["d_shared"] else ""
    return f"{told['top_k']} of {told['n_experts']} experts ({told['expert']}){shared}, {said}"


def _below(told: StackAnswer) -> Iterator[str]:
    if told["token_types"]:
        yield words.counted(told["token_types"], "token type")
    if told["embed_norm"]:
        yield "embedding normed"
    if told["embed_multiplier"] != 1:
        yield f"embedding times {told['embed_multiplier']:.4g}"
    if told["residual_multiplier"] != 1:
        yield f"updates times {told['residual_multiplier']:.4g}"


def _above(told: StackAnswer) -> Iterator[str]:
    yield "no vocab" if told["vocab"] is None else f"vocab {told['vocab']:,}"
    if not told["readout"]:
        yield "no readout"
    if told["mlm_head"]:
        yield "mlm head"
    if told["logit_multiplier"] != 1:
        yield f"logits times {told['logit_multiplier']:.4g}"
    if told["logit_softcap"] is not None:
        yield f"logits capped at {told['logit_softcap']:g}"


def _window(layer: LayerAnswer) -> str:
    return "no window" if layer["window"] is None else f"window {layer['window']}"


def _scale(layer: LayerAnswer) -> str:
    return f"scale {layer['scale']:.4g}"


def _turn(layer: LayerAnswer) -> str:
    if layer["theta"] is None:
        return "nothing turns"
    kind = layer["scaling"]["kind"]
    stretched = "" if kind == "none" else f" with {kind} scaling by {layer['scaling']['factor']:g}"
    return f"theta {layer['theta']:g}{stretched}"
