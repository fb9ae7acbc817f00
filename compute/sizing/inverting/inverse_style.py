"""A style: everything of a model but its sizes, and its sizes at a width and a number of blocks.

heads = d / d_head, or h₀·d / d₀ as in the style; kv heads = heads / ratio;
d_ff = ceil(ratio · d / round_to) · round_to. Blocks that differ go on in the order that they have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from compute.config import AttentionConfig, LayerConfig, ModelConfig, PositionConfig

Name = tuple[str, str]
"""A width: its stack, and which field of its ffn."""
Widths = Mapping[Name, int]


WIDTHS = ("d_ff", "d_shared", "d_dense")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What sizes are allowed: d_model a multiple, within bounds; least <= d / L <= most.

    None: as in the style.
    """

    multiple_of: int
    least: int
    most: int
    aspect: tuple[int, int]
    d_head: int | None = None
    kv_ratio: int | None = None
    ff_ratio: Fraction | None = None
    round_to: int = 1


@dataclass(frozen=True, slots=True)
class Style:
    """A base model and a rule, and what follows from the two.

    unit: every allowed d_model is a multiple of it, so that heads and kv heads are whole. widest:
    no width beyond what a request may say up to here. first_block: the fewest blocks, those that
    are dense or distinct all there. step: blocks come in so many at a time, where only each so
    many-th has experts. most_blocks: as many as a request may say.
    """

    base: ModelConfig
    rule: Rule
    ratios: Sequence[tuple[Name, Fraction]]
    unit: int
    widest: int
    first_block: int
    step: int
    most_blocks: int

    def widths(self, d: int) -> dict[Name, int]:
        """The widths of feed-forward networks: ceil(ratio · d / round_to) · round_to."""
        to = self.rule.round_to
        return {
            name: -(-d * ratio.numerator // (ratio.denominator * to)) * to
            for name, ratio in self.ratios
        }

    def config(self, d: int, blocks: int) -> ModelConfig:
        """The model of these sizes, what its blocks have of their own with it."""
        made = self.alike(d, blocks, self.widths(d))
        encoder = made.encoder
        if encoder is not None and self.base.encoder is not None:
            encoder = replace(encoder, layers=self._layers(self.base.encoder, encoder))
        return replace(made, layers=self._layers(self.base, made), encoder=encoder)

    def alike(self, d: int, blocks: int, widths: Widths) -> ModelConfig:
        """The same without what blocks have of their own; its ffn of these widths."""
        encoder = self.base.encoder
        if encoder is not None:
            encoder = self._stack(encoder, d, blocks, widths, "encoder.")
        return replace(self._stack(self.base, d, blocks, widths, ""), encoder=encoder)

    def _stack(
        self, stack: ModelConfig, d: int, blocks: int, widths: Widths, prefix: str
    ) -> ModelConfig:
        wide = [widths.get((prefix, field), getattr(stack.ffn, field)) for field in WIDTHS]
        ffn = replace(stack.ffn, d_ff=wide[0], d_shared=wide[1], d_dense=wide[2])
        attention = self._attention(stack, d)
        position = turned(stack.position, stack.attention.d_head, attention.d_head)
        return replace(
            stack,
            d_model=d,
            n_layers=blocks,
            attention=attention,
            ffn=ffn,
            position=position,
            layers=(),
        )

    def _attention(self, stack: ModelConfig, d: int) -> AttentionConfig:
        attention, d_head = stack.attention, self.rule.d_head
        if attention.kind == "none":
            return attention
        heads = self._heads(stack, d)
        sized = replace(attention, n_heads=heads, n_kv_heads=heads // kv_ratio(stack, self.rule))
        if d_head is None:
            return sized
        d_value = attention.d_value * d_head // attention.d_head
        scale = _scale(attention.scale, attention.d_head, d_head)
        return replace(sized, d_head=d_head, d_value=d_value, scale=scale)

    def _layers(self, base: ModelConfig, made: ModelConfig) -> tuple[LayerConfig, ...]:
        """The base's entries in their order, on and on, each with the scale of the new heads."""
        if not base.layers:
            return ()
        turn = base.layers[: _period(base.layers)]
        old, new = base.attention.d_head, made.attention.d_head
        entries = [replace(layer, scale=_scale(layer.scale, old, new)) for layer in turn]
        return tuple(entries[at % len(entries)] for at in range(made.n_layers))

    def _heads(self, stack: ModelConfig, d: int) -> int:
        return int(d * heads_per_width(stack, self.rule))


def heads_per_width(stack: ModelConfig, rule: Rule) -> Fraction:
    """h / d: of the heads that are asked for, else as in the style."""
    if rule.d_head is not None and stack.attention.kind != "none":
        return Fraction(1, rule.d_head)
    return Fraction(stack.attention.n_heads, stack.d_model)


def kv_ratio(stack: ModelConfig, rule: Rule) -> int:
    own = stack.attention.n_heads // stack.attention.n_kv_heads
    return own if rule.kv_ratio is None else rule.kv_ratio


def turned(position: PositionConfig, old: int, new: int) -> PositionConfig:
    if position.kind != "rope" or old == new:
        return position
    return replace(position, rotary_dim=position.rotary_dim * new // old)


def _scale(scale: float, old: int, new: int) -> float:
    """1 / sqrt(d_head) follows the head; another scale is the style's own."""
    return max(new, 1) ** -0.5 if old != new and scale == max(old, 1) ** -0.5 else scale


def _period(layers: Sequence[LayerConfig]) -> int:
    """After so many blocks what they have of their own comes again."""
    periods = range(1, len(layers) + 1)
    return next(p for p in periods if all(a == b for a, b in zip(layers, layers[p:], strict=False)))
