"""Configs as a request writes them, drawn by Hypothesis: every arrangement, and no broken rule."""

from hypothesis import strategies as st

from fuzz import parts
from fuzz.parts import MULTIPLIERS, Draw, Drawn, maybe
from fuzz.resolving import resolved_attention, resolved_position

ANYWHERE = ("pre", "post", "sandwich", "output")


@st.composite
def configs(draw: Draw) -> Drawn:
    """A config that breaks no rule, each field left out half of the time where it may be."""
    how = draw(
        st.sampled_from(("both", "both", "both", "attention", "ffn", "parallel", "cross", "cross"))
    )
    d_model = draw(st.integers(1, 13))
    config = {"d_model": d_model, **draw(stacks(how, d_model, "causal"))}
    if draw(st.booleans()):
        config |= draw(readouts(config))
    if how == "cross":
        config |= draw(readers(d_model))
    return config


@st.composite
def stacks(draw: Draw, how: str, d_model: int, mask: str) -> Drawn:
    """Blocks and what stands below them; `mask` where attention says nothing of it."""
    stack: Drawn = {}
    maybe(draw, stack, "n_layers", st.integers(1, 3))
    placements = {"parallel": ("pre",), "cross": ("pre", "post")}.get(how, ANYWHERE)
    norm = draw(parts.norms(placements, can_share=how == "parallel"))
    stack["attention"] = {"kind": "none"} if how == "ffn" else draw(parts.attentions(d_model, norm))
    if how == "attention":
        stack["ffn"] = {"kind": "none"}
    else:
        maybe(draw, stack, "ffn", parts.ffns(norm))
    if norm:
        stack["norm"] = norm
    attention = resolved_attention(stack["attention"], d_model, mask)
    maybe(draw, stack, "position", parts.positions(attention))
    if how == "parallel":
        stack["topology"] = "parallel"
    if how != "ffn" and draw(st.booleans()):
        position = resolved_position(stack.get("position", {}), attention)
        blocks = stack.get("n_layers", 1)
        stack["layers"] = [draw(parts.layers(position)) for _ in range(blocks)]
    return stack | draw(around(norm))


@st.composite
def around(draw: Draw, norm: Drawn) -> Drawn:
    """What stands below the blocks and multiplies what they add."""
    stack: Drawn = {}
    maybe(draw, stack, "residual_multiplier", MULTIPLIERS)
    maybe(draw, stack, "embed_multiplier", MULTIPLIERS)
    maybe(draw, stack, "token_types", st.integers(0, 3))
    if norm.get("kind") != "none":
        maybe(draw, stack, "embed_norm", st.booleans())
        maybe(draw, stack, "final_norm", st.booleans())
    return stack


@st.composite
def readouts(draw: Draw, config: Drawn) -> Drawn:
    """A vocabulary, read out or not."""
    readout: Drawn = {"vocab": draw(st.integers(1, 17))}
    maybe(draw, readout, "readout", st.sampled_from((True, True, False)))
    if not readout.get("readout", True):
        return readout
    maybe(draw, readout, "tied", st.booleans())
    maybe(draw, readout, "unembed_bias", st.booleans())
    maybe(draw, readout, "logit_multiplier", MULTIPLIERS)
    maybe(draw, readout, "logit_softcap", st.sampled_from((None, 5, 30.0)))
    if config.get("norm", {}).get("kind") != "none":
        maybe(draw, readout, "mlm_head", st.booleans())
    return readout


@st.composite
def readers(draw: Draw, d_model: int) -> Drawn:
    """Cross-attention, to rows or to what an encoder makes of its input."""
    if draw(st.booleans()):
        return {"cross_attention": True}
    how = draw(st.sampled_from(("both", "both", "attention", "ffn", "parallel")))
    encoder = draw(stacks(how, d_model, "full"))
    maybe(draw, encoder, "d_model", st.just(d_model))
    crossed: Drawn = {"encoder": encoder}
    maybe(draw, crossed, "cross_attention", st.just(True))
    return crossed
