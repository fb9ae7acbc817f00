"""Print docs/names.md with its table of stages written again from the catalogue."""

import re
from collections.abc import Iterator
from pathlib import Path

from compute.stages import STAGES, Library, Stage

PAGE = Path(__file__).parents[1] / "docs" / "names.md"
TABLE = re.compile(r"(?<=<!-- stages -->\n).*?(?=<!-- end of stages -->)", re.DOTALL)

COLUMNS: tuple[tuple[Library, str], ...] = (
    ("transformer_lens", "TransformerLens"),
    ("huggingface", "Hugging Face"),
)


def page(text: str) -> str:
    """The page with the table as the catalogue has it now."""
    written, places = TABLE.subn("".join(f"{line}\n" for line in table()), text)
    if places != 1:
        raise ValueError(f"{PAGE} has {places} places for the table of stages; one is needed.")
    return written


def table() -> Iterator[str]:
    """One row a stage: our name, the article's symbol, the other libraries' names."""
    yield f"| stage | article | {' | '.join(title for _, title in COLUMNS)} |"
    yield f"|---|---|{'---|' * len(COLUMNS)}"
    for stage in STAGES:
        others = (_names(stage, library) for library, _ in COLUMNS)
        yield f"| {' | '.join((f'`{stage.name}`', _symbol(stage), *others))} |"


def _symbol(stage: Stage) -> str:
    return "" if stage.symbol is None else stage.symbol + _condition(stage.symbol_when)


def _names(stage: Stage, library: Library) -> str:
    found = (alias for alias in stage.aliases if alias.library == library)
    return ", ".join(f"`{alias.name}`{_condition(alias.when)}" for alias in found)


def _condition(words: str) -> str:
    return "" if words == "always" else f" ({words})"


if __name__ == "__main__":
    print(page(PAGE.read_text("utf-8")), end="")
