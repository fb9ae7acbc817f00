"""The parts of a config as a request writes them, drawn by Hypothesis, half of the fields left out.

A part never breaks a rule: what it may say depends on the rest of the config, which comes first.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

Drawn = dict[str, Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]

ACTIVATIONS = ("gelu", "gelu_tanh", "quick_gelu", "relu", "relu2", "silu", "identity")
ROWS = 37  # of a table of learned positions: more than any position id of an input
MULTIPLIERS = st.sampled_from((1, 0.5, 2, -1, 0.3))


def maybe(draw: Draw, into: Drawn, key: str, values: st.SearchStrategy[Any]) -> None:
    """The key with a value, or not at all."""
    if draw(st.booleans()):
        into[key] = draw(values)


@st.composite
def attentions(draw: Draw, d_model: int, norm: Drawn) -> Drawn:
    """Heads in groups of any size; d_head may be left out where the heads divide d_model."""
    n_kv_heads, group = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    attention: Drawn = {"n_heads": n_kv_heads * group}
    if group > 1 or draw(st.booleans()):
        attention["n_kv_heads"] = n_kv_heads
    if d_model % attention["n_heads"] or draw(st.booleans()):
        attention["d_head"] = draw(st.integers(1, 7))
    maybe(draw, attention, "kind", st.just("softmax"))
    maybe(draw, attention, "d_value", st.integers(1, 7))
    maybe(draw, attention, "scale", scales())
    maybe(draw, attention, "softcap", st.sampled_from((None, 0.5, 3, 50)))
    if norm.get("kind") != "none":
        maybe(draw, attention, "qk_norm", st.sampled_from(("none", "head", "full")))
    maybe(draw, attention, "sinks", st.booleans())
    maybe(draw, attention, "mask", st.sampled_from(("causal", "full")))
    maybe(draw, attention, "window", windows())
    maybe(draw, attention, "bias", biases("q", "k", "v", "o"))
    return attention


def scales() -> st.SearchStrategy[Any]:
    """What multiplies Q K^T."""
    return st.sampled_from((0, 1, -1, 0.125, 1.5, 0.3))


def windows() -> st.SearchStrategy[Any]:
    """None, or narrower or wider than an input."""
    return st.one_of(st.none(), st.integers(1, 9))


def biases(*names: str) -> st.SearchStrategy[Any]:
    """true or false for all, or an object of some."""
    some = st.fixed_dictionaries({}, optional={name: st.booleans() for name in names})
    return st.one_of(st.booleans(), some)


@st.composite
def ffns(draw: Draw, norm: Drawn) -> Drawn:
    """Two matrices, three, or experts. Squared gates make cubes: too large without norms."""
    ffn: Drawn = {}
    maybe(draw, ffn, "kind", st.sampled_from(("mlp", "gated", "moe", "moe")))
    if ffn.get("kind") == "moe":
        ffn |= draw(experts())
    maybe(draw, ffn, "d_ff", st.integers(1, 19))
    gated = has_gate(ffn)
    cubes = gated and norm.get("kind") == "none"
    acts = [name for name in ACTIVATIONS if not (cubes and name == "relu2")]
    maybe(draw, ffn, "activation", st.sampled_from(acts))
    maybe(draw, ffn, "bias", biases("in", "gate", "out") if gated else biases("in", "out"))
    return ffn


def has_gate(ffn: Drawn) -> bool:
    """Whether there is a W_gate: in a gated ffn, and in experts that say nothing else."""
    kind = ffn.get("kind")
    return kind == "gated" or (kind == "moe" and ffn.get("expert", "gated") == "gated")


@st.composite
def experts(draw: Draw) -> Drawn:
    """One or many, one or all of them chosen; with a shared one or without."""
    n_experts = draw(st.integers(1, 7))
    ffn: Drawn = {"n_experts": n_experts, "top_k": draw(st.integers(1, n_experts))}
    maybe(draw, ffn, "expert", st.sampled_from(("gated", "mlp")))
    maybe(draw, ffn, "renormalize", st.booleans())
    maybe(draw, ffn, "router_bias", st.booleans())
    maybe(draw, ffn, "d_shared", st.integers(0, 5))
    if ffn.get("d_shared"):
        maybe(draw, ffn, "shared_gate", st.booleans())
    return ffn


@st.composite
def norms(draw: Draw, placements: tuple[str, ...], *, can_share: bool) -> Drawn:
    """All kinds; eps never so small that a row of zeros divides by nearly 0."""
    norm: Drawn = {}
    maybe(draw, norm, "kind", st.sampled_from(("layernorm", "rmsnorm", "none")))
    kind = norm.get("kind")
    if kind == "none":
        return norm
    maybe(draw, norm, "placement", st.sampled_from(placements))
    maybe(draw, norm, "eps", st.sampled_from((1e-5, 1e-6, 1e-2, 1)))
    maybe(draw, norm, "gain_offset", st.sampled_from((0, 1, 0.5, -1)))
    if kind != "rmsnorm":
        maybe(draw, norm, "bias", st.booleans())
    if can_share:
        maybe(draw, norm, "shared", st.booleans())
    return norm


@st.composite
def positions(draw: Draw, attention: Drawn) -> Drawn:
    """The kinds that the resolved attention allows."""
    kinds = ["none", "sinusoidal", "learned"]
    if attention["kind"] != "none":
        kinds += ["alibi", "t5_bias"] + (["rope", "rope"] if attention["d_head"] > 1 else [])
    kind = draw(st.sampled_from(kinds))
    position: Drawn = {"kind": kind}
    if kind == "learned":
        position["n_positions"] = ROWS
    if kind == "alibi":
        maybe(draw, position, "alibi_rule", st.sampled_from(("bloom", "geometric")))
    if kind == "t5_bias":
        position |= draw(buckets(attention))
    if kind == "rope":
        position |= draw(ropes(attention["d_head"]))
    return position


@st.composite
def buckets(draw: Draw, attention: Drawn) -> Drawn:
    """Enough buckets for both directions, and distances beyond those that have one each."""
    said: Drawn = {}
    maybe(draw, said, "bidirectional", st.booleans())
    both = said.get("bidirectional", attention["mask"] == "full")
    maybe(draw, said, "n_buckets", st.sampled_from((4, 6, 8, 32) if both else (2, 3, 8, 32)))
    exact = said.get("n_buckets", 32) // (2 if both else 1) // 2
    maybe(draw, said, "max_distance", st.sampled_from((exact + 1, exact + 4, 128)))
    return said


@st.composite
def ropes(draw: Draw, d_head: int) -> Drawn:
    """The whole head turns or a part of it, at its own speeds or at stretched ones."""
    rope: Drawn = {}
    widths = range(2, d_head + 1, 2)
    if d_head % 2 or draw(st.booleans()):
        rope["rotary_dim"] = draw(st.sampled_from(widths))
    maybe(draw, rope, "theta", thetas())
    maybe(draw, rope, "pairing", st.sampled_from(("half", "interleaved")))
    maybe(draw, rope, "scaling", scalings(rope.get("rotary_dim", d_head)))
    return rope


def thetas() -> st.SearchStrategy[Any]:
    """Bases of the frequencies."""
    return st.sampled_from((10000, 500000.0, 100))


@st.composite
def scalings(draw: Draw, rotary_dim: int) -> Drawn:
    """A kind with what it needs, and some of the rest."""
    kinds = ["none", "linear", "yarn", "llama3"] + (["dynamic"] if rotary_dim > 2 else [])
    kind = draw(st.sampled_from(kinds))
    scaling: Drawn = {"kind": kind}
    if kind == "none":
        return draw(st.sampled_from(({}, scaling)))
    scaling["factor"] = draw(st.sampled_from((1, 2, 3.5, 8)))
    if kind != "linear":
        scaling["original_positions"] = draw(st.sampled_from((1, 3, 8, 64, 512)))
    if kind == "yarn":
        maybe(draw, scaling, "beta_fast", st.sampled_from((32, 4)))
        maybe(draw, scaling, "beta_slow", st.sampled_from((1, 0.25)))
        maybe(draw, scaling, "attention_factor", st.sampled_from((1, 0.7, 1.2)))
    if kind == "llama3":
        maybe(draw, scaling, "low_freq_factor", st.sampled_from((1, 0.5)))
        maybe(draw, scaling, "high_freq_factor", st.sampled_from((4, 16)))
    return scaling


@st.composite
def layers(draw: Draw, position: Drawn) -> Drawn:
    """What one block has of its own; `position` is resolved."""
    layer: Drawn = {}
    maybe(draw, layer, "window", windows())
    maybe(draw, layer, "scale", scales())
    if position["kind"] == "rope":
        maybe(draw, layer, "theta", st.one_of(st.none(), thetas()))
        maybe(draw, layer, "scaling", scalings(position["rotary_dim"]))
    else:
        maybe(draw, layer, "theta", st.none())
    return layer
