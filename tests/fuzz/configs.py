"""Configs as a request writes them, drawn by Hypothesis; what they resolve to, told again.

`resolved` fills in the defaults from the words of docs/trace.md and shares nothing with the
package. `broken` gives a config one fault, and says where it is.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

Drawn = dict[str, Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]

ACTIVATIONS = ("gelu", "gelu_tanh", "quick_gelu", "relu", "silu", "identity")
ROWS = 37  # of a table of learned positions: more than any position id of an input


def maybe(draw: Draw, into: Drawn, key: str, values: st.SearchStrategy[Any]) -> None:
    """The key with a value, or not at all."""
    if draw(st.booleans()):
        into[key] = draw(values)


@st.composite
def configs(draw: Draw) -> Drawn:
    """A config that breaks no rule, each field left out half of the time where it may be."""
    parts = draw(st.sampled_from(("both", "both", "both", "attention", "ffn")))
    norm = draw(norms())
    config: Drawn = {"d_model": draw(st.integers(1, 13))}
    maybe(draw, config, "n_layers", st.integers(1, 3))
    config["attention"] = (
        {"kind": "none"} if parts == "ffn" else draw(attentions(config["d_model"]))
    )
    if parts == "attention":
        config["ffn"] = {"kind": "none"}
    else:
        maybe(draw, config, "ffn", ffns())
    if norm:
        config["norm"] = norm
    maybe(draw, config, "position", positions(config))
    if draw(st.booleans()):
        config["vocab"] = draw(st.integers(1, 17))
        maybe(draw, config, "tied", st.booleans())
        maybe(draw, config, "unembed_bias", st.booleans())
    if norm.get("kind") != "none":
        maybe(draw, config, "final_norm", st.booleans())
    return config


@st.composite
def attentions(draw: Draw, d_model: int) -> Drawn:
    """Heads in groups of any size; d_head may be left out where the heads divide d_model."""
    n_kv_heads, group = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    attention: Drawn = {"n_heads": n_kv_heads * group}
    if group > 1 or draw(st.booleans()):
        attention["n_kv_heads"] = n_kv_heads
    if d_model % attention["n_heads"] or draw(st.booleans()):
        attention["d_head"] = draw(st.integers(1, 7))
    maybe(draw, attention, "kind", st.just("softmax"))
    maybe(draw, attention, "d_value", st.integers(1, 7))
    maybe(draw, attention, "scale", st.sampled_from((0, 1, -1, 0.125, 1.5, 0.3)))
    maybe(draw, attention, "mask", st.sampled_from(("causal", "full")))
    maybe(draw, attention, "window", st.one_of(st.none(), st.integers(1, 9)))
    maybe(draw, attention, "bias", biases("q", "k", "v", "o"))
    return attention


def biases(*names: str) -> st.SearchStrategy[Any]:
    """true or false for all, or an object of some."""
    some = st.fixed_dictionaries({}, optional={name: st.booleans() for name in names})
    return st.one_of(st.booleans(), some)


@st.composite
def ffns(draw: Draw) -> Drawn:
    """Two matrices or three."""
    ffn: Drawn = {}
    maybe(draw, ffn, "kind", st.sampled_from(("mlp", "gated")))
    gated = ffn.get("kind") == "gated"
    maybe(draw, ffn, "d_ff", st.integers(1, 19))
    maybe(draw, ffn, "activation", st.sampled_from(ACTIVATIONS))
    maybe(draw, ffn, "bias", biases("in", "gate", "out") if gated else biases("in", "out"))
    return ffn


@st.composite
def norms(draw: Draw) -> Drawn:
    """All kinds and placements; eps never so small that a row of zeros divides by nearly 0."""
    norm: Drawn = {}
    maybe(draw, norm, "kind", st.sampled_from(("layernorm", "rmsnorm", "none")))
    if norm.get("kind") != "none":
        maybe(draw, norm, "placement", st.sampled_from(("pre", "post")))
        maybe(draw, norm, "eps", st.sampled_from((1e-5, 1e-6, 1e-2, 1)))
        maybe(draw, norm, "gain_offset", st.sampled_from((0, 1, 0.5, -1)))
    return norm


@st.composite
def positions(draw: Draw, config: Drawn) -> Drawn:
    """The kinds that the rest of the config allows."""
    attention = resolved_attention(config)
    kinds = ["none", "sinusoidal", "learned"]
    if attention["kind"] != "none":
        kinds += ["alibi"] + (["rope"] if attention["d_head"] > 1 else [])
    kind = draw(st.sampled_from(kinds))
    position: Drawn = {"kind": kind}
    if kind == "learned":
        position["n_positions"] = ROWS
    if kind == "alibi":
        maybe(draw, position, "alibi_rule", st.sampled_from(("bloom", "geometric")))
    if kind == "rope":
        widths = range(2, attention["d_head"] + 1, 2)
        if attention["d_head"] % 2 or draw(st.booleans()):
            position["rotary_dim"] = draw(st.sampled_from(widths))
        maybe(draw, position, "theta", st.sampled_from((10000, 500000.0, 100)))
        maybe(draw, position, "pairing", st.sampled_from(("half", "interleaved")))
    return position


def resolved(config: Drawn) -> Drawn:
    """Every field, in the form of an answer's `model.config`."""
    norm = resolved_norm(config.get("norm", {}))
    attention, vocab = resolved_attention(config), config.get("vocab")
    pre = norm.get("placement") == "pre"
    return {
        "d_model": config["d_model"],
        "n_layers": config.get("n_layers", 1),
        "attention": attention,
        "ffn": resolved_ffn(config),
        "norm": norm,
        "position": resolved_position(config, attention),
        "vocab": vocab,
        "tied": config.get("tied", False),
        "unembed_bias": config.get("unembed_bias", False),
        "final_norm": config.get("final_norm", pre and vocab is not None),
    }


def resolved_attention(config: Drawn) -> Drawn:
    given = config["attention"]
    if given.get("kind") == "none":
        return {"kind": "none"}
    heads = given["n_heads"]
    width = given.get("d_head", config["d_model"] // heads)
    bias = given.get("bias", False)
    return {
        "kind": "softmax",
        "n_heads": heads,
        "n_kv_heads": given.get("n_kv_heads", heads),
        "d_head": width,
        "d_value": given.get("d_value", width),
        "scale": given.get("scale", width**-0.5),
        "mask": given.get("mask", "causal"),
        "window": given.get("window"),
        "bias": {x: bias if isinstance(bias, bool) else bias.get(x, False) for x in "qkvo"},
    }


def resolved_ffn(config: Drawn) -> Drawn:
    given = config.get("ffn", {})
    kind, bias = given.get("kind", "mlp"), given.get("bias", {})
    if kind == "none":
        return {"kind": "none"}
    said = {} if isinstance(bias, bool) else bias
    default = bias if isinstance(bias, bool) else True
    exists = {side: said.get(side, default) for side in ("in", "gate", "out")}
    return {
        "kind": kind,
        "d_ff": given.get("d_ff", 4 * config["d_model"]),
        "activation": given.get("activation", "gelu"),
        "bias": exists | {"gate": exists["gate"] and kind == "gated"},
    }


def resolved_norm(given: Drawn) -> Drawn:
    if given.get("kind") == "none":
        return {"kind": "none"}
    default = {"kind": "layernorm", "placement": "pre", "eps": 1e-5, "gain_offset": 0.0}
    return default | given


def resolved_position(config: Drawn, attention: Drawn) -> Drawn:
    given = config.get("position", {})
    kind = given.get("kind", "none")
    default: Drawn = {"kind": kind}
    if kind == "rope":
        width = attention["d_head"]
        default |= {"theta": 10000.0, "rotary_dim": width, "pairing": "half"}
    if kind == "alibi":
        default |= {"alibi_rule": "bloom"}
    return default | given
