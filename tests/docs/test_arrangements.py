"""docs/arrangements.md: every example runs, and adds and takes away the stages that are told."""

import re
from functools import cache
from pathlib import Path
from typing import Any, get_args

import orjson
import pytest
from starlette.testclient import TestClient

from compute import block, config
from compute.config import ModelConfig
from compute.stages import BY_NAME, ENCODER, local_name
from schemas.config import ConfigAsked
from service.app import create_app
from service.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "arrangements.md").read_text("utf-8")
TEXT = " ".join(PAGE.split())
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
TOLD = re.compile(r"\b([Aa]dds|[Tt]ak(?:es|e) away)((?:\s+`[a-z0-9_.]+`[,;:.]?)+)")
CHOICES = (config.MaskKind, config.QkNorm, config.FfnKind, config.ExpertKind, config.NormKind,
           config.Placement, config.PositionKind, config.Pairing, config.ScalingKind,
           config.AlibiRule, config.Topology)  # fmt: skip

Case = tuple[str, dict[str, Any]]


def examples() -> list[Case]:
    """The text that an example belongs to, and its request: what stands between it and a heading
    or the example before, which it shares where that is nothing."""
    texts = BLOCK.split(PAGE)
    pairs = zip(texts[::3], texts[1::3], texts[2::3], strict=False)
    shown = [(text, block) for text, language, block in pairs if language == "json"]
    cases: list[Case] = []
    for text, example in shown:
        said = re.split("^#", text, flags=re.M)[-1].strip() or cases[-1][0]
        cases.append((said, request(orjson.loads(example))))
    return cases


def request(shown: dict[str, Any]) -> dict[str, Any]:
    """A whole request: as shown, or with the input that the page names."""
    assert '`"input": {"token_ids": [1, 2, 3]}`' in PAGE
    return shown if "model" in shown else {"model": shown, "input": {"token_ids": [1, 2, 3]}}


CASES = examples()


def answer(asked: dict[str, Any]) -> Any:  # noqa: ANN401 - plain JSON
    response = TestClient(create_app(Settings())).post("/v1/trace", json=asked)
    assert response.status_code == 200, response.text
    return response.json()


@cache
def found(at: int) -> Any:  # noqa: ANN401 - plain JSON
    return answer(CASES[at][1])


@cache
def before(at: int) -> set[str]:
    """The stages of the same request without its changes; of a plain block without a preset."""
    model = CASES[at][1]["model"]
    if "preset" in model:
        return stages(answer(request({"preset": model["preset"]})))
    config = {key: model["config"][key] for key in ("d_model", "attention")}
    return stages(answer({"model": {"config": config}, "input": {"tensor": [[1] * 2]}}))


def stages(answered: Any) -> set[str]:  # noqa: ANN401 - plain JSON
    """The stages of an answer, without their block."""
    stack = {name: ENCODER if name.startswith(ENCODER) else "" for name in answered["tensors"]}
    return {stack[name] + local_name(name) for name in stack}


each = pytest.mark.parametrize("at", range(len(CASES)))


@each
def test_example_runs_and_its_identities_hold(at: int) -> None:
    identities = found(at)["identities"]
    assert any(identity["holds"] for identity in identities)
    assert not [identity for identity in identities if identity["holds"] is False]


@each
def test_example_adds_and_takes_away_what_is_told(at: int) -> None:
    text, asked = CASES[at]
    now, then = stages(found(at)), before(at)
    for verb, names in TOLD.findall(text):
        told = set(re.findall("`([^`]+)`", names))
        assert {name.removeprefix(ENCODER) for name in told} <= BY_NAME.keys()
        if "away" in verb:
            assert told <= then - now, asked
        else:
            assert told <= now - then, asked
    if "Adds" not in text and "adds" not in text:
        assert not now - then


def test_every_stage_that_an_example_adds_is_told() -> None:
    told = {name for _, names in TOLD.findall(PAGE) for name in re.findall("`([^`]+)`", names)}
    told |= {name.removeprefix(ENCODER) for name in told}
    added = {name for at in range(len(CASES)) for name in stages(found(at)) - before(at)}
    missing = {name for name in added if not name.startswith(ENCODER)} - told
    assert {name for name in missing if not name.startswith("norm_cross.")} == set()


@pytest.mark.parametrize("equation", block.BLOCKS.values(), ids=lambda x: x.__name__)
def test_equation_of_every_block_is_on_the_page(equation: block.Block) -> None:
    said = (equation.__doc__ or "").partition("\n")[0]
    lines = re.findall(r"[YCZ] = .*?(?=,? +[YCZ] = |\.|:|$)", said)
    assert lines
    for line in lines:
        assert line in TEXT, line


@pytest.mark.parametrize(
    "changes",
    [
        {"topology": "parallel", "norm": {"placement": "post"}},
        {"cross_attention": True, "norm": {"placement": "sandwich"}},
    ],
)
def test_what_does_not_go_together_is_refused_as_told(changes: dict[str, Any]) -> None:
    assert "(a parallel block and post-norm, cross-attention and sandwich)" in TEXT
    asked = request({"preset": "gpt2-tiny", "config": changes})
    response = TestClient(create_app(Settings())).post("/v1/trace", json=asked)
    assert response.json()["type"] == "/problems/config-rule"


def test_every_choice_has_its_example_or_is_the_default() -> None:
    for kind in (kind for choice in CHOICES for kind in get_args(choice)):
        assert f"`{kind}`" in PAGE or f"{kind}:" in PAGE, kind


def test_every_field_of_a_model_is_on_the_page() -> None:
    parts: dict[str, Any] = {"attention": config.AttentionConfig, "ffn": config.FfnConfig,
             "norm": config.NormConfig, "position": config.PositionConfig}  # fmt: skip
    for name in ModelConfig.__dataclass_fields__.keys() - {"d_model", "n_layers", *parts}:
        assert name in ConfigAsked.model_fields
        assert f"`{name}`" in PAGE, name
    for part, fields in parts.items():
        for name in fields.__dataclass_fields__.keys() - {"n_heads"}:
            assert f"`{part}.{name}`" in PAGE or f"`{name}`" in PAGE, (part, name)
    for name in config.RopeScaling.__dataclass_fields__:
        assert f"`{name}`" in PAGE, name


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ({"name": "letter-sort", "config": {"norm": {"placement": "post"}}}, False),
        (
            {"name": "letter-sort", "config": {"norm": {"placement": "post"}, "final_norm": True}},
            True,
        ),
        ({"preset": "gpt2-tiny", "config": {"norm": {"placement": "post"}}}, False),
        ({"preset": "bert-tiny", "config": {"norm": {"placement": "pre"}}}, True),
    ],
)
def test_final_norm_goes_and_comes_with_the_placement_as_told(
    model: dict[str, Any], expected: bool
) -> None:
    assert '`"final_norm": true` keeps it' in TEXT
    asked = {"model": model, "input": {"token_ids": [1, 2, 0]}, "select": ["resid_post"]}
    assert answer(asked)["model"]["config"]["final_norm"] is expected
