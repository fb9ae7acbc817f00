"""Which part of `letter-sort` wrote the next letter? A table, and a picture of it in SVG.

    python examples/letter_sort_attribution.py --picture letters.svg

asks a running service (http://127.0.0.1:8000, or --service) to split the logit of the right letter
minus that of a wrong one into what each part of the model adds to it. Standard library alone.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen
from xml.sax.saxutils import escape

TEXT, RIGHT, WRONG = "CABBAC", "A", "B"
"""Six letters to sort: the answer is AABBCC, so an A is next, no B."""

HEAD, FFN, EMBEDDING, BIAS = "attention head", "feed-forward network", "embedding", "biases"
KINDS = {HEAD: "head", FFN: "ffn", EMBEDDING: "embedding", BIAS: "bias"}
"""What a bar stands for, and its class in the picture."""


@dataclass(frozen=True)
class Bar:
    """What a part adds to the difference of the two logits."""

    label: str
    kind: str
    value: float


# --- the question


def ask(service: str) -> dict[str, Any]:
    """What the service answers at the last position: the parts, and the logits' difference."""
    question = {
        "model": {"name": "letter-sort"},
        "input": {"text": TEXT},
        "by": "head",
        "direction": {"token": RIGHT, "minus": WRONG},
        "dtype": "float64",
    }
    headers = {"Content-Type": "application/json"}
    address = f"{service.rstrip('/')}/v1/contributions"
    try:
        with urlopen(Request(address, json.dumps(question).encode(), headers)) as response:
            answer: dict[str, list[dict[str, Any]]] = json.load(response)
    except (URLError, ValueError) as error:
        raise SystemExit(
            f"No answer from {address} ({error}). scripts/serve starts the service; "
            "--service http://… says where another one listens."
        ) from None
    (last,) = answer["at"]
    return last


def bars(parts: Sequence[dict[str, Any]]) -> list[Bar]:
    """A bar for each head, feed-forward network and embedding, one for all biases; sorted."""
    found = [Bar(*named(part["id"]), part["along"]) for part in parts]
    biases = sum(bar.value for bar in found if bar.kind == BIAS)
    others = [bar for bar in found if bar.kind != BIAS]
    return sorted([*others, Bar("all biases", BIAS, biases)], key=lambda bar: -bar.value)


def named(part: str) -> tuple[str, str]:
    """The label and the kind of a part: "blocks.2.head.1" -> "block 2, head 1", a head."""
    if part in ("embed", "pos_embed"):
        return {"embed": "letter embedding", "pos_embed": "position embedding"}[part], EMBEDDING
    match part.split("."):
        case ["blocks", block, "head", head]:
            return f"block {block}, head {head}", HEAD
        case ["blocks", block, "ffn"]:
            return f"block {block}, feed-forward", FFN
    return part, BIAS


# --- the table


def table(shown: Sequence[Bar]) -> Iterator[str]:
    """A line for each bar, and their sum."""
    for bar in shown:
        yield f"{bar.label:<22}{bar.value:+8.2f}"
    yield f"{'sum':<22}{total(shown):+8.2f}"


def total(shown: Sequence[Bar]) -> float:
    """What all parts add: the difference of the two logits."""
    return sum(bar.value for bar in shown)


def signed(value: float) -> str:
    """Two digits behind the point, and a sign that is a sign: 0.5 -> "+0.50", -0.5 -> "−0.50"."""
    return f"{value:+.2f}".replace("-", "−")


# --- the picture

WIDTH, TOP, STEP, THICK = 720, 118, 24, 15
LEFT, END, MARGIN = 196, 640, 24
STYLE = """
  text { font: 14px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: #1f2328 }
  .title { font-size: 18px; font-weight: 600 }
  .quiet { fill: #59636e }
  .sum { font-weight: 600 }
  .end { text-anchor: end }
  .number { font-variant-numeric: tabular-nums }
  .paper { fill: #ffffff; stroke: #d1d9e0 }
  line { stroke: #818b98; stroke-width: 1 }
  .head { fill: #0969da } .ffn { fill: #bc4c00 }
  .embedding { fill: #1a7f37 } .bias { fill: #6e7781 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc }
    .quiet { fill: #9198a1 }
    .paper { fill: #0d1117; stroke: #3d444d }
    .head { fill: #58a6ff } .ffn { fill: #f0883e }
    .embedding { fill: #3fb950 } .bias { fill: #9198a1 }
  }
"""


def picture(shown: Sequence[Bar]) -> str:
    """The bars as SVG, for light and for dark pages."""
    height = TOP + STEP * len(shown) + 60
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" aria-labelledby="title desc">',
        f'<title id="title">{escape(title())}</title>',
        f'<desc id="desc">{escape(description(shown))}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="paper" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>',
        text(MARGIN, 34, title(), "title"),
        text(MARGIN, 58, before(), "quiet"),
        text(MARGIN, 77, measured(), "quiet"),
        *legend(),
        *drawn(shown),
        *sum_line(shown, TOP + STEP * len(shown) + 14),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def title() -> str:
    """What the picture answers."""
    return f"What makes {RIGHT} the next letter, and not {WRONG}"


def before() -> str:
    """What the model has read, and what it is to write."""
    return f"letter-sort has read {TEXT} and is to write {''.join(sorted(TEXT))}."


def measured() -> str:
    """What the bars are of."""
    return f"What each part adds to the logit of {RIGHT} minus that of {WRONG}:"


def description(shown: Sequence[Bar]) -> str:
    """The picture in words."""
    listed = ", ".join(f"{bar.label} {signed(bar.value)}" for bar in shown)
    return f"Bars, the largest first: {listed}. Their sum is {signed(total(shown))}."


def legend() -> Iterator[str]:
    """The kinds of parts, by colour."""
    for at, (kind, style) in zip((MARGIN, 166, 358, 474), KINDS.items(), strict=True):
        yield f'<rect class="{style}" x="{at}" y="89" width="12" height="12" rx="2"/>'
        yield text(at + 18, 100, kind, "quiet")


def drawn(shown: Sequence[Bar]) -> Iterator[str]:
    """A row for each bar: its label, the bar from the line of zero, its number."""
    least, most = min(0.0, shown[-1].value), max(0.0, shown[0].value)
    scale = (END - LEFT) / (most - least)
    zero = LEFT - least * scale
    for at, bar in enumerate(shown):
        y = TOP + STEP * at
        start, width = zero + min(0.0, bar.value) * scale, abs(bar.value) * scale
        yield text(LEFT - 12, y + 13, bar.label, "end")
        yield (
            f'<rect class="{KINDS[bar.kind]}" x="{start:.2f}" y="{y + 1}" width="{width:.2f}" '
            f'height="{THICK}" rx="2"><title>{escape(bar.label)}: {bar.value:.4f}</title></rect>'
        )
        yield text(WIDTH - MARGIN, y + 13, signed(bar.value), "end number")
    yield f'<line x1="{zero:.2f}" y1="{TOP - 4}" x2="{zero:.2f}" y2="{TOP + STEP * len(shown)}"/>'


def sum_line(shown: Sequence[Bar], y: int) -> Iterator[str]:
    """The sum, under a line."""
    yield f'<line x1="{MARGIN}" y1="{y - 6}" x2="{WIDTH - MARGIN}" y2="{y - 6}"/>'
    yield text(LEFT - 12, y + 18, "sum", "end sum")
    yield text(LEFT, y + 18, f"the logit of {RIGHT} minus the logit of {WRONG}", "quiet")
    yield text(WIDTH - MARGIN, y + 18, signed(total(shown)), "end number sum")


def text(x: float, y: float, words: str, style: str) -> str:
    """A line of text."""
    return f'<text class="{style}" x="{x}" y="{y}">{escape(words)}</text>'


def main() -> None:
    """Ask, print the table, write the picture."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--service", default="http://127.0.0.1:8000", help="where it listens")
    options.add_argument("--picture", type=Path, help="the file that the picture goes to")
    asked = options.parse_args()
    answer = ask(asked.service)
    shown = bars(answer["parts"])
    print(*table(shown), sep="\n")
    print(f"{f'logit {RIGHT} - logit {WRONG}':<22}{answer['logit']['value']:+8.2f}")
    if asked.picture:
        asked.picture.write_text(picture(shown), "utf-8")


if __name__ == "__main__":
    main()
