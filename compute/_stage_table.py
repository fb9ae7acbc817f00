"""The rows of the catalogue. Read through `compute.stages`.

Order of computation in a pre-norm block; a post-norm block computes `norm1.*` after `attn_sum`
and `norm2.*` after `ffn_sum`, and a trace always comes in the order it was computed in.
"""

from collections.abc import Mapping

from compute import _stage_conditions as when
from compute._stage import LIBRARIES, Absence, Alias, Library, Stage

Named = str | tuple[str, str]
"""An alias that always holds, or (alias, the condition under which it does)."""


def _aliases(by_library: Mapping[Library, tuple[Named, ...]]) -> tuple[Alias, ...]:
    pairs = [
        (library, (named, "always") if isinstance(named, str) else named)
        for library in LIBRARIES
        for named in by_library.get(library, ())
    ]
    return tuple(
        Alias(library=library, name=name, when=words, holds=when.CONDITIONS[words])
        for library, (name, words) in pairs
    )


def _stage(  # noqa: PLR0917 - a row of a table
    name: str,
    symbol: Named | None,
    axes: str,
    absent: Absence,
    equation: tuple[str, str],
    meaning: str,
    by_library: Mapping[Library, tuple[Named, ...]] | None = None,
    *,
    derived_from: tuple[str, ...] = (),
    by_default: bool = True,
    at_model: bool = False,
) -> Stage:
    letter, words = symbol if isinstance(symbol, tuple) else (symbol, "always")
    return Stage(
        name=name,
        level="model" if at_model else "block",
        symbol=letter,
        symbol_when=words,
        symbol_holds=when.CONDITIONS[words],
        axes=tuple(axes.split()),
        plain=equation[0],
        latex=equation[1],
        meaning=meaning,
        exists=when.WORDS[absent],
        absent=absent,
        aliases=_aliases(by_library or {}),
        derived_from=derived_from,
        by_default=by_default,
    )


def _norm_stages(
    name: str,
    symbol: Named | None,
    absent: Absence,
    meaning: str,
    transformer_lens: str,
    read_as: Mapping[Library, tuple[Named, ...]],
    *,
    at_model: bool = False,
) -> tuple[Stage, Stage, Stage]:
    """A norm's three stages. TransformerLens' hook_normalized is before gain and bias since 3.0,
    for either kind of norm."""
    # fmt: off
    return (
        _stage(f"{name}.scale", None, "n 1", absent,
               ("scale = sqrt(var(x) + eps) (RMSNorm: sqrt(mean(x²) + eps))",
                r"\sigma = \sqrt{\mathrm{var}(x) + \epsilon}"),
               "The number each row is divided by.",
               {"transformer_lens": (f"{transformer_lens}.hook_scale",)}, at_model=at_model),
        _stage(f"{name}.normalized", None, "n d", absent,
               ("normalized = (x - mean(x)) / scale (RMSNorm: x / scale)",
                r"\hat{x} = (x - \mu) / \sigma"),
               "Each row normalized, before gain and bias.",
               {"transformer_lens": (f"{transformer_lens}.hook_normalized",)}, at_model=at_model),
        _stage(f"{name}.out", symbol, "n d", absent,
               ("out = normalized · (gain_offset + weight) + bias",
                r"\hat{x} \odot g + b"),
               meaning,
               read_as, at_model=at_model),
    )


# fmt: off
_BEFORE = (
    _stage("embed", None, "n d", when.needs_tokens,
           ("embed = W_E[token_ids]", r"W_E[t]"),
           "The token embeddings.",
           {"transformer_lens": ("hook_embed",), "huggingface": ("inputs_embeds",),
            "nnsight": ("token_embeddings",), "interp_engine": ("embeddings",)}, at_model=True),
    _stage("pos_embed", None, "n d", when.needs_absolute,
           ("pos_embed = W_pos[position_ids] (sinusoidal: sines and cosines)",
            r"W_{\mathrm{pos}}[p]"),
           "The position vectors, added once, below the stack.",
           {"transformer_lens": ("hook_pos_embed",)}, at_model=True),
)

_ATTENTION = (
    _stage("resid_pre", "X", "n d", when.exists_always, ("X", "X"),
           "The stream entering the block.",
           {"transformer_lens": ("hook_resid_pre",), "huggingface": ("hidden_states",),
            "nnsight": ("layers_input",), "interp_engine": ("resid_pre",)}),
    *_norm_stages("norm1", ("U", "pre-norm"), when.needs_norm1,
                  "After gain and bias. Pre-norm: what attention reads. "
                  "Post-norm: what leaves the first addition.", "ln1",
                  {"nnsight": (("attentions_input", "pre-norm"),),
                   "interp_engine": (("attn_in", "pre-norm"),)}),
    _stage("attn.q", "Q", "h n k", when.needs_attention,
           ("Q = U W_Q + b_Q", "Q = U W_Q + b_Q"), "Queries as projected, after bias.",
           {"transformer_lens": ("attn.hook_q",)}),
    _stage("attn.k", "K", "g m k", when.needs_attention,
           ("K = U W_K + b_K", "K = U W_K + b_K"),
           "Keys as projected, after bias; one set for each key/value head.",
           {"transformer_lens": ("attn.hook_k",)}),
    _stage("attn.v", "V", "g m v", when.needs_attention,
           ("V = U W_V + b_V", "V = U W_V + b_V"),
           "Values, after bias; one set for each key/value head.",
           {"transformer_lens": ("attn.hook_v",),
            "interp_engine": (("value", "ungrouped heads"),)}),
    _stage("attn.q_rot", None, "h n k", when.needs_rope,
           ("q_rot = R(position) Q", "R_p Q"), "Queries after rotation by their position.",
           {"transformer_lens": ("attn.hook_rot_q",)}),
    _stage("attn.k_rot", None, "g m k", when.needs_rope,
           ("k_rot = R(position) K", "R_p K"), "Keys after rotation by their position.",
           {"transformer_lens": ("attn.hook_rot_k",)}),
    _stage("attn.dots", "Q K^T", "h n m", when.needs_attention,
           ("Q K^T", r"Q K^{\top}"),
           "Dot products of queries and keys (rotated, with RoPE), before scaling and masking.",
           derived_from=("attn.q", "attn.k"), by_default=False),
    _stage("attn.scores", "S", "h n m", when.needs_attention,
           ("S = mask(scale · Q K^T + bias)",
            r"S = \mathrm{mask}(Q K^{\top} / \sqrt{d_k})"),
           "What softmax reads: scaled, biased (ALiBi) and masked; forbidden pairs are -inf.",
           {"transformer_lens": ("attn.hook_attn_scores",), "interp_engine": ("attn_scores",)}),
    _stage("attn.pattern", "A", "h n m", when.needs_attention,
           ("A = softmax(S)", r"A = \mathrm{softmax}(S)"),
           "Mixing weights: row n says how much position n takes from each position m.",
           {"transformer_lens": ("attn.hook_pattern",), "huggingface": ("attentions",),
            "nnsight": ("attention_probabilities",), "interp_engine": ("attn_probs",)}),
    _stage("attn.z", "H", "h n v", when.needs_attention,
           ("H = A V", "H = A V"),
           "Each head's mixture of values, before the output projection.",
           {"transformer_lens": ("attn.hook_z",), "interp_engine": ("z",)}),
    _stage("attn.head_out", "H_r W_O^(r)", "h n d", when.needs_attention,
           ("H_r W_O^(r)", "H_r W_O^{(r)}"),
           "Each head's contribution to the stream; b_O is a part of its own.",
           {"transformer_lens": ("attn.hook_result",)}, derived_from=("attn.z",)),
    _stage("attn.source_out", "a_ij v_j W_O^(r)", "h n m d", when.needs_attention,
           ("a_ij v_j W_O^(r)", "a_{ij}^{(r)} v_j^{(r)} W_O^{(r)}"),
           "What each source position m gives receiving position n through each head.",
           derived_from=("attn.pattern", "attn.v"), by_default=False),
    _stage("attn_out", "Δ_attn", "n d", when.needs_attention,
           ("Δ_attn = Σ_r H_r W_O^(r) + b_O",
            r"\Delta_{\mathrm{attn}} = \sum_r H_r W_O^{(r)} + b_O"),
           "Attention's update: exactly what is added to the stream.",
           {"transformer_lens": ("hook_attn_out",), "nnsight": ("attentions_output",),
            "interp_engine": ("attn_out",)}),
    _stage("attn_sum", None, "n d", when.needs_attn_sum,
           ("X + Δ_attn", r"X + \Delta_{\mathrm{attn}}"),
           "Post-norm: the sum before the norm.",
           {"transformer_lens": (("hook_resid_mid", "post-norm"),)}),
    _stage("resid_mid", "Y", "n d", when.needs_both,
           ("Y = X + Δ_attn (post-norm: Y = LN1(X + Δ_attn))",
            r"Y = X + \Delta_{\mathrm{attn}}"),
           "The stream between attention and the ffn.",
           {"transformer_lens": (("hook_resid_mid", "pre-norm"),),
            "interp_engine": (("resid_mid", "pre-norm"),)}),
)

_FFN = (
    *_norm_stages("norm2", ("F", "pre-norm"), when.needs_norm2,
                  "After gain and bias. Pre-norm: what the ffn reads. "
                  "Post-norm: what leaves the second addition.", "ln2",
                  {"nnsight": (("mlps_input", "pre-norm"),),
                   "interp_engine": (("mlp_in", "pre-norm"),)}),
    _stage("ffn.up", None, "n f", when.needs_ffn,
           ("up = F W_in + b_in", r"F W_1 + b_1"), "The expansion, before the activation.",
           {"transformer_lens": (("mlp.hook_pre", "mlp"), ("mlp.hook_pre_linear", "gated ffn")),
            "interp_engine": (("mlp_pre", "mlp"), ("mlp_pre_linear", "gated ffn"))}),
    _stage("ffn.gate", None, "n f", when.needs_gate,
           ("gate = F W_gate + b_gate", r"F W_{\mathrm{gate}} + b_{\mathrm{gate}}"),
           "The gate, before the activation.",
           {"transformer_lens": (("mlp.hook_pre", "gated ffn"),),
            "interp_engine": (("mlp_pre", "gated ffn"),)}),
    _stage("ffn.hidden", "hidden", "n f", when.needs_ffn,
           ("hidden = act(up) (gated: act(gate) · up)", r"\mathrm{act}(F W_1 + b_1)"),
           "What W_out reads: one number for each neuron.",
           {"transformer_lens": ("mlp.hook_post",), "interp_engine": ("mlp_act",)}),
    _stage("ffn_out", "Δ_ffn", "n d", when.needs_ffn,
           ("Δ_ffn = hidden W_out + b_out",
            r"\Delta_{\mathrm{ffn}} = \mathrm{hidden}\, W_2 + b_2"),
           "The ffn's update: exactly what is added to the stream.",
           {"transformer_lens": ("hook_mlp_out",), "nnsight": ("mlps_output",),
            "interp_engine": ("mlp_out",)}),
    _stage("ffn_sum", None, "n d", when.needs_ffn_sum,
           ("Y + Δ_ffn", r"Y + \Delta_{\mathrm{ffn}}"),
           "Post-norm: the sum before the norm.",
           {"transformer_lens": (("hook_resid_post", "post-norm"),)}),
    _stage("resid_post", "Z", "n d", when.exists_always,
           ("Z = Y + Δ_ffn (post-norm: Z = LN2(Y + Δ_ffn))",
            r"Z = Y + \Delta_{\mathrm{ffn}}"),
           "The stream leaving the block.",
           {"transformer_lens": (("hook_resid_post", "pre-norm"),
                                 ("hook_normalized_resid_post", "post-norm")),
            "nnsight": ("layers_output",), "interp_engine": ("resid_post",)}),
)

_AFTER = (
    *_norm_stages("final_norm", None, when.needs_final_norm,
                  "After gain and bias: what the vocabulary readout reads.", "ln_final",
                  {"huggingface": ("last_hidden_state",), "interp_engine": ("final_norm",)},
                  at_model=True),
    _stage("logits", None, "n V", when.needs_vocab,
           ("logits = final W_U + b_U", r"\hat{x} W_U + b_U"),
           "One number for each token of the vocabulary, at each position.",
           {"huggingface": ("logits",), "nnsight": ("logits",), "interp_engine": ("lm_head",)},
           at_model=True),
)
# fmt: on

STAGES: tuple[Stage, ...] = (*_BEFORE, *_ATTENTION, *_FFN, *_AFTER)
