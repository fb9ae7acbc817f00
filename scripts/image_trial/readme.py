"""The README's first request, and the numbers it says the answer holds."""

import json
import re
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"
PRECISION = 1e-6  # float32 on another kernel of the BLAS


def first_request(text: str) -> str:
    """The body of the first curl command."""
    found = re.search(r"/v1/trace [^\n]* -d '(\{.*?\})'\n", text, re.DOTALL)
    return found[1] if found else ""


def told_rows(text: str) -> list[list[float]]:
    """The rows of numbers that the text below the first curl command shows."""
    told = text.partition("In the answer")[2].partition("\n\n")[0]
    rows: list[list[float]] = [json.loads(row) for row in re.findall(r"`(\[[^`]*\])`", told)]
    return rows


def last_rows(answer: bytes) -> list[list[float]]:
    """What the answer has for these rows: the last of pattern, update and stream."""
    tensors = json.loads(answer)["tensors"]
    pattern = tensors["blocks.0.attn.pattern"]["data"][0][-1]
    return [
        pattern,
        *(tensors[f"blocks.0.{name}"]["data"][-1] for name in ("attn_out", "resid_post")),
    ]


def distance(found: list[list[float]], told: list[list[float]]) -> float:
    """The largest difference of two lists of rows; infinite where their shapes differ."""
    if not told or [len(row) for row in found] != [len(row) for row in told]:
        return float("inf")
    pairs = zip(found, told, strict=True)
    return max(abs(a - b) for one, two in pairs for a, b in zip(one, two, strict=True))
