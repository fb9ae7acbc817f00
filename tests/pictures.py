"""Pictures of answers, and how tests read them."""

import io
import re
import unicodedata
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal

import orjson
from rich.console import Console
from starlette.testclient import TestClient

from service.app import create_app
from service.picture import page, screen
from service.settings import Settings

Answer = dict[str, Any]
Colours = Literal["standard", "256", "truecolor"]

EIFFEL = {"model": {"name": "eiffel-toy"}, "input": {"text": "the Eiffel tower"}}
SORT = {"model": {"name": "letter-sort"}, "input": {"text": "CABBAC"}}


@cache
def _client() -> TestClient:
    return TestClient(create_app(Settings()))


def ask(request: Mapping[str, Any]) -> Answer:
    """The answer of a trace request."""
    response = _client().post("/v1/trace", json=request)
    assert response.status_code == 200, response.text
    found: Answer = orjson.loads(response.content)
    return found


def drawn(
    answer: Answer,
    width: int = 80,
    colours: Colours | None = None,
    token_of: Callable[[str, int], str] | None = None,
) -> str:
    """The picture of an answer, as it would be printed."""
    file = io.StringIO()
    console = Console(
        file=file, width=width, color_system=colours, force_terminal=colours is not None
    )
    lines = page.page(answer, screen.look(console), token_of)  # type: ignore[arg-type]
    screen.print_all(lines, console)
    return file.getvalue()


def cells(line: str) -> int:
    """Columns of a terminal that a line takes."""
    return sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in line)


def section(text: str, title: str) -> list[str]:
    """The lines under a heading, to the next one."""
    found: list[str] = []
    inside = False
    for line in text.splitlines():
        if re.search("[─═]{3}", line):
            inside = line.startswith(title)
        elif inside:
            found.append(line.rstrip())
    return found


def line_of(lines: list[str], stage: str) -> str:
    """The line of a stage in the table of a block."""
    return next(line for line in lines if re.search(rf"(^|\s){re.escape(stage)}\s", line))


def numbers(line: str) -> list[float]:
    """The numbers at the end of a line."""
    return [float(word) for word in re.findall(r"(?<= )-?\d+(?:\.\d+)?(?=\s|$)", line)]


def tokens_config(**config: object) -> Answer:
    """A request of six token ids to a small seeded model."""
    base = {"d_model": 6, "n_layers": 2, "vocab": 9, "attention": {"n_heads": 3}}
    return {
        "model": {"config": {**base, **config}, "weights": {"seed": 5}},
        "input": {"token_ids": [3, 1, 4, 1, 5, 2]},
    }


CONFIGS = {
    "rope and a gated ffn": tokens_config(
        position={"kind": "rope"},
        ffn={"kind": "gated", "activation": "silu"},
        norm={"kind": "rmsnorm"},
        attention={"n_heads": 4, "n_kv_heads": 2, "d_head": 2},
    ),
    "post-norm": tokens_config(norm={"placement": "post"}),
    "no attention": tokens_config(attention={"kind": "none"}),
    "no ffn": tokens_config(ffn={"kind": "none"}),
    "no norm": tokens_config(norm={"kind": "none"}, position={"kind": "alibi"}),
    "a parallel block": tokens_config(
        topology="parallel", norm={"kind": "rmsnorm", "shared": True}, residual_multiplier=0.5
    ),
    "norms around": tokens_config(norm={"placement": "sandwich"}, embed_norm=True),
    "norms of what is given": tokens_config(norm={"placement": "output"}),
    "sinks and normed queries": tokens_config(
        attention={"n_heads": 3, "sinks": True, "qk_norm": "head", "softcap": 2}, mlm_head=True
    ),
    "experts": tokens_config(
        ffn={"kind": "moe", "n_experts": 5, "top_k": 2, "d_shared": 4, "shared_gate": True}
    ),
}


def with_memory(memory: Answer, **config: object) -> Answer:
    """A request of six token ids to a small seeded model that attends to a memory too."""
    asked = tokens_config(cross_attention=True, **config)
    return {**asked, "input": {**asked["input"], "memory": memory}}


ENCODER = {"n_layers": 2, "attention": {"n_heads": 2}, "position": {"kind": "t5_bias"}}
READ = with_memory(
    {"token_ids": [7, 8, 7, 2], "key_mask": [False, True, True, True]}, encoder=ENCODER
)
"""An encoder's four tokens, the first of them masked."""
