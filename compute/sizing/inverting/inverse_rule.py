"""A rule of sizes against a base model: the style that follows, or why there is none."""

from collections.abc import Iterator
from fractions import Fraction
from math import lcm

from compute.config import ModelConfig
from compute.errors import Fault, Place, QuestionError, refuse_if
from compute.sizing import architecture
from compute.sizing.inverting import inverse_style
from compute.sizing.inverting.inverse_style import (
    WIDTHS,
    Name,
    Rule,
    Style,
    heads_per_width,
    kv_ratio,
)

LARGEST = 1 << 20
"""Of any width, and of the number of blocks: what a request may say."""
MOST_LISTED = 512
"""Blocks that a request may list one by one."""


def of(base: ModelConfig, rule: Rule) -> Style:
    """The style; a QuestionError where the rule says what the base cannot have."""
    refuse_if(QuestionError, list(_faults(base, rule)))
    stacks = [stack.config for stack in architecture.stacks(base)]
    ratios = list(_ratios(base, rule))
    heads = [heads_per_width(stack, rule) for stack in stacks]
    room = LARGEST // rule.round_to * rule.round_to
    step = lcm(*(stack.ffn.every for stack in stacks))
    fewest = max(max(1, stack.ffn.first_dense, stack.distinct_blocks or 1) for stack in stacks)
    return Style(
        base,
        rule,
        ratios,
        unit=lcm(rule.multiple_of, *(_unit(stack, rule) for stack in stacks)),
        widest=min(
            LARGEST, *(int(room / x) for _, x in ratios), *(int(LARGEST / x) for x in heads if x)
        ),
        first_block=-(-fewest // step) * step,
        step=step,
        most_blocks=MOST_LISTED if any(stack.layers for stack in stacks) else LARGEST,
    )


def _ratios(base: ModelConfig, rule: Rule) -> Iterator[tuple[Name, Fraction]]:
    for stack in architecture.stacks(base):
        for field in WIDTHS:
            own = Fraction(getattr(stack.config.ffn, field), stack.config.d_model)
            said = rule.ff_ratio if field == "d_ff" else None
            if own:
                yield (stack.prefix, field), own if said is None else said


def _unit(stack: ModelConfig, rule: Rule) -> int:
    """The least d that makes h / ratio whole."""
    if stack.attention.kind == "none":
        return 1
    return (heads_per_width(stack, rule) / kv_ratio(stack, rule)).denominator


def _faults(base: ModelConfig, rule: Rule) -> Iterator[Fault]:
    attention = base.attention
    for name, said in (("d_head", rule.d_head), ("kv_ratio", rule.kv_ratio)):
        if said is not None and attention.kind == "none":
            yield _fault("The style has no attention: leave it out.", (name,))
        elif said is not None and attention.mla is not None:
            yield _fault(
                "The style's attention is latent, its heads its own: leave it out.", (name,)
            )
    if rule.ff_ratio is not None and base.ffn.kind == "none":
        yield _fault("The style has no feed-forward network: leave it out.", ("d_ff",))
    if base.encoder is not None and base.encoder.n_layers != base.n_layers:
        detail = "The style's encoder has as many blocks as its decoder."
        yield _fault(detail, ("style",), base.n_layers, base.encoder.n_layers)
    if rule.d_head is not None and attention.kind != "none" and attention.mla is None:
        yield from _of_heads(base, rule.d_head)


def _of_heads(base: ModelConfig, d_head: int) -> Iterator[Fault]:
    """Turned and value coordinates keep their share of a head, which is whole."""
    for stack in architecture.stacks(base):
        old = stack.config.attention.d_head
        turned = inverse_style.turned(stack.config.position, old, d_head).rotary_dim
        is_turned = stack.config.position.kind == "rope"
        share = Fraction(stack.config.position.rotary_dim * d_head, old)
        value = Fraction(stack.config.attention.d_value * d_head, old)
        if is_turned and (share.denominator != 1 or turned % 2 or turned < 2):
            detail = "rotary_dim keeps its share of a head, which is an even number."
            yield _fault(detail, ("d_head",), "an even rotary_dim", d_head)
        if value.denominator != 1 or value < 1:
            detail = "d_value keeps its share of a head, which is a whole number."
            yield _fault(detail, ("d_head",), "a whole d_value", d_head)


def _fault(detail: str, place: Place, expected: object = None, got: object = None) -> Fault:
    return Fault(code="not_of_this_style", detail=detail, place=place, expected=expected, got=got)
