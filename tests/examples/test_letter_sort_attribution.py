"""The example draws the picture of docs/contributions.md, and the page tells what it shows."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import running

ROOT = Path(__file__).parents[2]
PICTURE = "pictures/letter-sort-attribution.svg"
STORED = (ROOT / "docs" / PICTURE).read_text("utf-8")
SECTION = (
    (ROOT / "docs" / "contributions.md")
    .read_text("utf-8")
    .partition("## Which head wrote the answer\n")[2]
    .partition("\n## ")[0]
)
NUMBER = re.compile(r"[-+−]?\d+(?:\.\d+)?")
SHOWN = re.compile(r"[+−]\d+\.\d\d\b")
ROUNDING = 1e-4
"""Four digits behind the point are shown of a float64 that rounding moves by 1e-13."""

BARS = {
    name: float(value) for name, value in re.findall(r"<title>(.+?): (-?\d+\.\d+)</title>", STORED)
}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """What the example prints, and the picture that it draws, of a service that runs."""
    path = tmp_path_factory.mktemp("picture") / "letters.svg"
    script = ROOT / "examples" / "letter_sort_attribution.py"
    with running.service() as started:
        command = [sys.executable, "-W", "error", "-I", str(script)]
        options = ["--service", started.address, "--picture", str(path)]
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout, path.read_text("utf-8")


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/", "127.0.0.1:9"])
def test_example_without_a_service_says_what_to_do(address: str) -> None:
    script = ROOT / "examples" / "letter_sort_attribution.py"
    command = [sys.executable, "-I", str(script), "--service", address]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "scripts/serve" in done.stderr
    assert "Traceback" not in done.stderr


def numbers(text: str) -> list[float]:
    return [float(found.replace("−", "-")) for found in NUMBER.findall(text)]


def test_example_draws_the_stored_picture(drawn: tuple[str, str]) -> None:
    _, picture = drawn
    assert NUMBER.split(picture) == NUMBER.split(STORED)
    assert numbers(picture) == pytest.approx(numbers(STORED), abs=ROUNDING)


def test_example_prints_what_the_picture_shows(drawn: tuple[str, str]) -> None:
    printed, picture = drawn
    *bars, total, logits = printed.splitlines()
    assert [re.split(r"  +", line)[0] for line in bars] == list(BARS)
    below = SHOWN.findall(picture.partition("</desc>")[2])
    assert [line.split()[-1].replace("-", "−") for line in (*bars, total)] == below
    assert total.split()[-1] == logits.split()[-1]
    assert printed.isascii()  # also where a terminal knows little else


def test_bars_sum_to_the_difference_of_the_logits(drawn: tuple[str, str]) -> None:
    (sum_line,) = [line for line in drawn[0].splitlines() if line.startswith("sum")]
    assert sum(BARS.values()) == pytest.approx(numbers(sum_line)[-1], abs=0.005 + 15 * ROUNDING / 2)


def test_page_shows_the_picture_and_tells_its_numbers() -> None:
    alt, told = re.findall(rf"!\[(.*?)\]\({PICTURE}\)\n\n(.*?)\n\n", SECTION, re.S)[0]
    networks = [BARS[f"block {block}, feed-forward"] for block in (2, 1, 0)]
    heads = [value for name, value in BARS.items() if ", head " in name]
    others = [value for name, value in BARS.items() if "feed-forward" not in name]
    bounds, each = [min(others), max(others)], [min(heads), max(heads)]
    assert SHOWN.findall(alt) == signed([*networks, *bounds, sum(BARS.values())])
    assert SHOWN.findall(told) == signed([*each, sum(heads)])
    assert networks == sorted(networks, reverse=True)
    assert "The nine heads" in told
    assert len(heads) == 9


def test_page_counts_the_parts() -> None:
    from_page = re.search(r"all (\d+) parts, the (\d+) biases as one", " ".join(SECTION.split()))
    assert from_page is not None
    parts, biases = map(int, from_page.groups())
    assert len(BARS) == parts - biases + 1
    # Of three blocks: b_V through each of three heads, b_O and b_out; and the final norm's.
    assert biases == 3 * (3 + 1 + 1) + 1


def test_picture_is_told_in_words_and_loads_nothing() -> None:
    svg = ElementTree.fromstring(STORED)
    names = {element.get("id"): element.text or "" for element in svg if element.get("id")}
    assert svg.get("role") == "img"
    assert all(names[name] for name in (svg.get("aria-labelledby") or "").split())
    assert SHOWN.findall(names["desc"]) == [*signed(BARS.values()), SHOWN.findall(STORED)[-1]]
    assert "prefers-color-scheme: dark" in STORED
    assert not re.search(r"<script|<image|href|url\(|@import", STORED)
    assert STORED.count("http") == STORED.count('xmlns="http://www.w3.org/2000/svg"') == 1


def signed(values: object) -> list[str]:
    return [f"{value:+.2f}".replace("-", "−") for value in values]  # type: ignore[attr-defined]
