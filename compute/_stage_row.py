"""How a row of the catalogue is written. Read through `compute.stages`."""

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


def _of_transformer_lens(name: str) -> dict[Library, tuple[Named, ...]]:
    return {"transformer_lens": (name,)}


def row(  # noqa: PLR0917 - a row of a table
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
    """One stage."""
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


def norm_rows(
    name: str,
    symbol: Named | None,
    absent: Absence,
    meaning: str,
    transformer_lens: str | None,
    read_as: Mapping[Library, tuple[Named, ...]],
    *,
    at_model: bool = False,
) -> tuple[Stage, Stage, Stage]:
    """A norm's three stages. TransformerLens' hook_normalized is before gain and bias since 3.0,
    for either kind of norm."""
    scale, normalized = (
        ({}, {})
        if transformer_lens is None
        else (
            _of_transformer_lens(f"{transformer_lens}.hook_scale"),
            _of_transformer_lens(f"{transformer_lens}.hook_normalized"),
        )
    )
    # fmt: off
    return (
        row(f"{name}.scale", None, "n 1", absent,
               ("scale = sqrt(var(x) + eps) (RMSNorm: sqrt(mean(x²) + eps))",
                r"\sigma = \sqrt{\mathrm{var}(x) + \epsilon}"),
               "The number each row is divided by.",
               scale, at_model=at_model),
        row(f"{name}.normalized", None, "n d", absent,
               ("normalized = (x - mean(x)) / scale (RMSNorm: x / scale)",
                r"\hat{x} = (x - \mu) / \sigma"),
               "Each row normalized, before gain and bias.",
               normalized, at_model=at_model),
        row(f"{name}.out", symbol, "n d", absent,
               ("out = normalized · (gain_offset + weight) + bias",
                r"\hat{x} \odot g + b"),
               meaning,
               read_as, at_model=at_model),
    )
