"""Print docs/stages.md: the catalogue of stages as a page."""

from collections.abc import Collection, Iterator

from compute.stages import GLOSSARY, LIBRARIES, STAGES, Library, Stage
from compute.types import AXES

HEAD = """# Stages

Written by `scripts/docs` from `compute/stages.py`, the one catalogue; `GET /v1/stages` answers the
same as JSON. A block's stage has the prefix `blocks.{l}.` in front: `blocks.0.attn.pattern`; an
encoder has the same stages once more, with `encoder.` before them: `encoder.blocks.0.attn.pattern`.

Axes, letter and word: AXES. A request with a batch has `batch` in front of every stage's axes.
[Weights](weights.md) alone have OTHERS.
`exists` says which configs have the stage; one that a config lacks is refused with the reason,
never answered by its neighbour. *Derived* stages are computed after the run from others.
Stages marked † are not part of the answer without `select`: spell them out.

A request may use any of the names: ours, the article's symbol, or another library's, with or
without block (`blocks.0.hook_resid_pre`, `hook_pattern`, `A`). They are case-sensitive. Where a
library's name means another tensor for some configs, the condition stands behind it, and the name
follows that library's meaning. Notes:

- Hugging Face's `hidden_states[l]` is `blocks.{l}.resid_pre`; its last entry is
  `final_norm.out`, where the model has a final norm.
- TransformerLens' `hook_normalized` is before gain and bias, as it has been since its 3.0 (up to
  2.18 it was after them for LayerNorm). It needs its module's name in front
  (`ln1.hook_normalized`), as does `hook_scale`.
- In a post-norm block TransformerLens' `hook_resid_mid` and `hook_resid_post` are the sums before
  the norms: our `attn_sum` and `ffn_sum`. `norm1.out` has no symbol there.
- In a gated ffn TransformerLens' `hook_pre` is the gate and `hook_pre_linear` our `ffn.up`; it adds
  its b_in after the product, we to `up`: the names meet where b_in is zero or absent.
- TransformerLens' `hook_q`, `hook_z` … have the head axis after the position; ours has heads first.
"""


def page() -> Iterator[str]:
    """The lines of the page."""
    yield HEAD.replace("OTHERS", _axes(AXES.keys() - GLOSSARY)).replace("AXES", _axes(GLOSSARY))
    yield "## What each is\n"
    yield "| stage | symbol | axes | equation | meaning | exists |"
    yield "|---|---|---|---|---|---|"
    yield from (_row(stage) for stage in STAGES)
    yield "\n## What others call it\n"
    yield f"| stage | {' | '.join(LIBRARIES)} |"
    yield f"|---|{'---|' * len(LIBRARIES)}"
    yield from (_aliases(stage) for stage in STAGES)


def _axes(letters: Collection[str]) -> str:
    return ", ".join(f"`{letter}` {word}" for letter, word in AXES.items() if letter in letters)


def _row(stage: Stage) -> str:
    mark = "" if stage.by_default else " †"
    derived = f" *Derived* from {', '.join(stage.derived_from)}." if stage.derived else ""
    cells = [
        f"`{stage.name}`{mark}",
        _symbol(stage),
        " ".join(stage.axes),
        f"`{stage.plain}`",
        stage.meaning + derived,
        stage.exists,
    ]
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _symbol(stage: Stage) -> str:
    if stage.symbol is None:
        return ""
    condition = "" if stage.symbol_when == "always" else f" ({stage.symbol_when})"
    return f"{stage.symbol}{condition}"


def _aliases(stage: Stage) -> str:
    cells = [f"`{stage.name}`", *(_names(stage, library) for library in LIBRARIES)]
    return f"| {' | '.join(cells)} |"


def _names(stage: Stage, library: Library) -> str:
    found = [alias for alias in stage.aliases if alias.library == library]
    return ", ".join(
        f"`{alias.name}`" + ("" if alias.when == "always" else f" ({alias.when})")
        for alias in found
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    for line in page():
        print(line)
