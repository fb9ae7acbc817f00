"""Results: a bar's values summed up, as JSON to keep and as a Markdown table to read."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.bars import BY_NAME, Bar

BEGIN, END = "<!-- measured -->", "<!-- /measured -->"

_HEAD = "| what | measured | quartiles | reach | aim | met |\n|---|---|---|---|---|---|"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A bar as measured: median, quartiles, rounds, details; or why it was not measured."""

    name: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    rounds: int = 0
    details: Mapping[str, Any] | None = None
    failed: str | None = None


def line(name: str, values: Iterable[float], details: Mapping[str, object]) -> Line:
    """The line of a bar's values."""
    each = sorted(values)
    low, _, high = quantiles(each, n=4, method="inclusive") if len(each) > 1 else (each * 3)
    told = {key: _summed_up(found) for key, found in details.items()}
    return Line(name=name, value=median(each), low=low, high=high, rounds=len(each), details=told)


def _summed_up(found: object) -> object:
    is_list = isinstance(found, list) and found
    return median(found) if is_list else found  # type: ignore[arg-type]


def write(path: Path, lines: list[Line], head: Mapping[str, object]) -> None:
    """path.json and path.md."""
    path.parent.mkdir(exist_ok=True)
    kept = {**head, "bars": [{**asdict(BY_NAME[one.name]), **asdict(one)} for one in lines]}
    path.with_suffix(".json").write_text(json.dumps(kept, indent=1) + "\n")
    path.with_suffix(".md").write_text(shown(lines, head).lstrip())


def read(path: Path) -> tuple[list[Line], Mapping[str, Any]]:
    """The lines of a file that `write` wrote, and its head."""
    kept = json.loads(path.read_text())
    names = Line.__dataclass_fields__.keys()
    lines = [Line(**{key: bar[key] for key in names}) for bar in kept["bars"]]
    return lines, {key: value for key, value in kept.items() if key != "bars"}


def into_page(page: Path, lines: Iterable[Line], head: Mapping[str, Any]) -> None:
    """Put the machine and the table between the marks of a page."""
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}{shown(lines, head)}{END}{after}", "utf-8")


def shown(lines: Iterable[Line], head: Mapping[str, Any]) -> str:
    """What stands between the marks of a page."""
    return f"\n{facts(head)}\n\n{table(lines)}\n"


def table(lines: Iterable[Line]) -> str:
    """The Markdown table."""
    return "\n".join([_HEAD, *(row(one) for one in lines)])


def row(one: Line) -> str:
    """A line of the table."""
    bar = BY_NAME[one.name]
    cells = [bar.what, *_measured(one, bar), _bound(bar, bar.reach), _bound(bar, bar.aim)]
    return f"| {' | '.join([*cells, _met(one, bar)])} |"


def _measured(one: Line, bar: Bar) -> tuple[str, str]:
    if one.value is None or one.low is None or one.high is None:
        return "–", "–"
    spread = f"{number(one.low)} – {number(one.high)} ({one.rounds})" if one.rounds > 1 else "(1)"
    return f"{number(one.value)}{_unit(bar)}", spread


def _bound(bar: Bar, bound: float | None) -> str:
    if bound is None:
        return ""
    return f"{'≥' if bar.at_least else '≤'} {number(bound)}{_unit(bar)}"


def _unit(bar: Bar) -> str:
    return "" if bar.unit == "×" else f" {bar.unit}"


def _met(one: Line, bar: Bar) -> str:
    if one.failed is not None:
        return f"not measured: {one.failed}"
    met = None if one.value is None else bar.met(one.value)
    return "" if met is None else "yes" if met else "**no**"


def number(value: float) -> str:
    """As many digits as say something."""
    if value and abs(value) < 1e-3:
        return f"{value:.1e}"
    return (
        f"{value:.0f}"
        if abs(value) >= 1000
        else f"{value:.3g}"
        if abs(value) >= 10
        else f"{value:.2f}"
    )


def facts(head: Mapping[str, Any]) -> str:
    """The machine in a paragraph."""
    machine = head["machine"]
    packages = {**machine["packages"], **head.get("peers", {}).get("packages", {})}
    versions = ", ".join(f"{name} {version}" for name, version in packages.items())
    settings = " ".join(f"{name}={word}" for name, word in machine["settings"].items())
    blas = f"{machine['blas']}, kernel {machine['blas_kernel']}"
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['system']}, "
        f"Python {machine['python']}; {versions}; {blas}. "
        f"One BLAS thread unless a line says two. All sides: `{settings}`."
    )
