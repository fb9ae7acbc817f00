"""Which identities a config has: what each ties together, and by which measure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from compute import _identity_measures as measures
from compute import _identity_sums as sums
from compute._identity_measures import Measured, Operands
from compute.config import ModelConfig


@dataclass(frozen=True, slots=True)
class Route:
    """An identity: its name, formula, the stages it ties together, its measure.

    `sized_by` are stages read for the size of the terms alone; `through` are states between both
    sides, which it does not hold across where one was changed; `absent` says why there is none.
    """

    name: str
    formula: str
    stages: tuple[str, ...]
    measure: Callable[[Operands], Measured]
    sized_by: tuple[str, ...] = ()
    through: tuple[str, ...] = ()
    absent: str | None = None


def in_block(config: ModelConfig) -> Iterator[Route]:
    """The identities of one block, as its arrangement has them."""
    heads = _raw(config, "attn", "norm1_post")
    yield from _mixing(config, "attn", "m", heads)
    yield from _additions(config, "attn", "X", _ADDED["attn"])
    if config.cross_attention:
        yield from _mixing(config, "cross", "s", _raw(config, "cross", None))
        yield from _additions(config, "cross", "Y", _ADDED["cross"])
    yield from _feeding(config)
    yield from _additions(config, "ffn", "C" if config.cross_attention else "Y", _ADDED["ffn"])


def _mixing(config: ModelConfig, part: str, key: str, written: "Written") -> Iterator[Route]:
    """From scores to what all heads write together, of attention or cross-attention."""
    prefix = "" if part == "attn" else f"{part}_"
    scores, pattern, z = (f"{part}.{name}" for name in ("scores", "pattern", "z"))
    sinks = part == "attn" and config.attention.sinks
    if sinks:
        formula = "exp(S) / (Σ_m exp(S) + exp(sink)) = A"
        yield Route("pattern_softmax", formula, (pattern, scores), measures.softmax_with_sinks)
        formula = "Σ_m A_nm + sink_n = 1, A >= 0"
        yield Route("pattern_rows", formula, (pattern, "attn.sink"), measures.rows_with_sinks)
    else:
        yield Route(
            f"{prefix}pattern_softmax", "softmax(S) = A", (pattern, scores), measures.softmax
        )
        formula = f"Σ_{key} A_n{key} = 1, A >= 0"
        yield Route(f"{prefix}pattern_rows", formula, (pattern,), measures.pattern_rows)
    yield Route(f"{prefix}mixture", "A V = H", (pattern, f"{part}.v", z), measures.mixture)
    yield Route(
        f"{prefix}head_sum",
        f"Σ_r H_r W_O^(r) + b_O = {written.symbol}",
        (f"{part}.head_out", written.name),
        measures.head_sum if part == "attn" else measures.cross_head_sum,
        sized_by=(z,),
    )
    yield from written.route


@dataclass(frozen=True, slots=True)
class Written:
    """The stage a sublayer's products give, and what makes the update of it, where they differ."""

    name: str
    symbol: str
    route: tuple[Route, ...] = ()


def _raw(config: ModelConfig, part: str, norm: str | None) -> Written:
    """attn_out itself, or attn.out_raw and multiplier · its norm (or itself) = attn_out."""
    update = f"{part}_out"
    normed = norm is not None and config.norm.placement in ("sandwich", "output")
    if not normed and config.residual_multiplier == 1.0:
        return Written(update, _SYMBOLS[update])
    source = f"{norm}.out" if normed else f"{part}.out_raw"
    formula = f"residual_multiplier · {source} = {_SYMBOLS[update]}"
    measure = partial(measures.multiple, config.residual_multiplier)
    route = Route(f"{part}_update", formula, (source, update), measure)
    return Written(f"{part}.out_raw", f"{part}.out_raw", (route,))


def _feeding(config: ModelConfig) -> Iterator[Route]:
    written = _raw(config, "ffn", "norm2_post")
    if config.ffn.kind == "moe":
        terms = ("ffn.expert_weights", "ffn.expert_out")
        shared = ("ffn.shared_out",) if config.ffn.d_shared else ()
        plus = " + shared_out" if shared else ""
        yield Route(
            "expert_product",
            "hidden_c W_out + b_out = expert_out_c",
            ("ffn.expert_hidden", "ffn.experts", "ffn.expert_out"),
            measures.expert_product,
        )
        yield Route(
            "expert_sum",
            f"Σ_c weight_c expert_out_c{plus} = {written.symbol}",
            (*terms, *shared, written.name),
            measures.expert_sum,
        )
    else:
        formula = f"hidden W_out + b_out = {written.symbol}"
        yield Route("ffn_product", formula, ("ffn.hidden", written.name), measures.ffn_product)
    yield from written.route


_SYMBOLS = {
    "attn_out": "Δ_attn",
    "cross_out": "Δ_cross",
    "ffn_out": "Δ_ffn",
    "resid_pre": "X",
    "resid_mid": "Y",
    "resid_cross": "C",
    "resid_post": "Z",
}
_ADDED = {"attn": "attn_sum", "cross": "cross_sum", "ffn": "ffn_sum"}


def _additions(config: ModelConfig, part: str, base: str, sum_name: str) -> Iterator[Route]:
    """What an update is added to, and what comes of it."""
    if config.topology == "parallel":
        stages = ("resid_pre", "attn_out", "ffn_out", "resid_post")
        if part == "ffn":
            yield Route("block_addition", "X + Δ_attn + Δ_ffn = Z", stages, sums.addition)
        return
    states = _states(config)
    before, after = states[part]
    total = sum_name if config.norm.placement == "post" else after
    left = f"{base} + {_SYMBOLS[f'{part}_out']}"
    formula = f"{left} = {_SYMBOLS.get(total, total)}"
    yield Route(f"{part}_addition", formula, (before, f"{part}_out", total), sums.addition)


def _states(config: ModelConfig) -> Mapping[str, tuple[str, str]]:
    """Sublayer -> the stage of the stream it is added to, and of what it makes of it."""
    both = config.attention.kind != "none" and config.ffn.kind != "none"
    middle = "resid_mid" if both else "resid_post"
    if config.cross_attention:
        return {
            "attn": ("resid_pre", "resid_mid"),
            "cross": ("resid_mid", "resid_cross"),
            "ffn": ("resid_cross", "resid_post"),
        }
    return {
        "attn": ("resid_pre", middle),
        "ffn": ("resid_mid" if both else "resid_pre", "resid_post"),
    }


def expansion(config: ModelConfig) -> Route:
    """X^(N) = X^(0) + Σ (Δ_attn + Δ_ffn); only where no norm follows an addition."""
    there = {
        "attn_out": config.attention.kind != "none",
        "cross_out": config.cross_attention,
        "ffn_out": config.ffn.kind != "none",
    }
    names = [name for name, exists in there.items() if exists]
    updates = [f"blocks.{layer}.{name}" for layer in range(config.n_layers) for name in names]
    first, last = "blocks.0.resid_pre", f"blocks.{config.n_layers - 1}.resid_post"
    stream = ("resid_pre", "resid_mid", "resid_cross", "resid_post")
    states = [f"blocks.{layer}.{name}" for layer in range(config.n_layers) for name in stream]
    reason = "not applicable: post-norm, every sum is normalized before it goes on"
    cross = " + Δ_cross" if config.cross_attention else ""
    return Route(
        "expansion",
        f"X^(0) + Σ (Δ_attn{cross} + Δ_ffn) = X^(N)",
        (first, *updates, last),
        sums.addition,
        through=tuple(states),
        absent=reason if config.norm.placement == "post" else None,
    )


def embedding(config: ModelConfig) -> Route:
    """X^(0) is the sum of the embeddings there are; only where no norm follows them."""
    typed = ("type_embed",) if config.token_types else ()
    placed = ("pos_embed",) if config.position.kind in ("sinusoidal", "learned") else ()
    terms = ("embed", *(placed or (() if typed else ("pos_embed",))), *typed)
    reason = "not applicable: embed_norm = true, the sum is normalized before it goes on"
    return Route(
        "embedding_sum",
        f"{' + '.join(terms)} = X^(0)",
        (*terms, "blocks.0.resid_pre"),
        sums.addition,
        absent=reason if config.embed_norm else None,
    )
