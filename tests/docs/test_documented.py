"""Every stage, tensor, option and key of an answer stands in the docs."""

import re
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from compute import _identity_routes, config, tensors
from compute.stages import STAGES, Stage
from compute.types import EditOp
from schemas.answers import TraceAnswer
from schemas.config import (
    AttentionAsked,
    ConfigAsked,
    FfnAsked,
    NormAsked,
    PositionAsked,
)
from schemas.inputs import InputAsked
from schemas.trace import TraceRequest
from schemas.weights import WeightsAsked
from service.app import create_app
from service.settings import Settings

DOCS = Path(__file__).parents[2] / "docs"
TRACE, WEIGHTS, STAGES_PAGE = (
    (DOCS / f"{name}.md").read_text("utf-8") for name in ("trace", "weights", "stages")
)


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_stage_is_documented(stage: Stage) -> None:
    assert f"| `{stage.name}`" in STAGES_PAGE
    for alias in stage.aliases:
        assert f"`{alias.name}`" in STAGES_PAGE


@pytest.mark.parametrize(
    "model",
    [ConfigAsked, AttentionAsked, FfnAsked, NormAsked, PositionAsked, InputAsked, TraceRequest],
)
def test_request_key_is_documented(model: type[BaseModel]) -> None:
    for name in model.model_fields:
        assert re.search(rf"[`.\"]{name}[`\".]", TRACE), name


CHOICES = (config.AttentionKind, config.MaskKind, config.FfnKind, config.ActivationName,
           config.NormKind, config.Placement, config.PositionKind, config.Pairing,
           config.AlibiRule)  # fmt: skip


def test_choices_of_a_config_are_documented() -> None:
    for choice in (choice for choices in CHOICES for choice in get_args(choices)):
        assert f"`{choice}`" in TRACE, choice


def test_weights_keys_and_operations_are_documented() -> None:
    for name in WeightsAsked.model_fields:
        assert name in WEIGHTS
    for op in get_args(EditOp):
        assert f"`{op}`" in WEIGHTS


def test_every_tensor_is_documented() -> None:
    bias = config.AttentionBias(q=True, k=True, v=True, o=True)
    full = config.ModelConfig(
        d_model=4,
        n_layers=1,
        attention=config.attention_config(4, 2, bias=bias),
        ffn=config.ffn_config(4, "gated"),
        norm=config.NormConfig(),
        position=config.position_config("learned", 2, n_positions=3),
        vocab=5,
        tied=False,
        unembed_bias=True,
        final_norm=True,
    )
    for name in tensors.tensors(full):
        last = name.rpartition(".")[2]
        assert re.search(rf"`[^`]*\.?{last}`", WEIGHTS), name


def test_key_of_an_answer_is_documented() -> None:
    for name in TraceAnswer.__annotations__:
        assert f"`{name}`" in TRACE, name


def test_route_is_documented() -> None:
    pages = "".join(page.read_text("utf-8") for page in DOCS.glob("*.md"))
    paths = create_app(Settings()).openapi()["paths"]
    for path in paths:
        assert path in pages, path


def test_identity_is_documented() -> None:
    for name in re.findall(
        r'(?:Route\(|_sum\()\s*"([a-z_]+)"', Path(_identity_routes.__file__).read_text()
    ):
        assert name in TRACE, name


def test_design_marks_the_folders_that_are_still_to_come() -> None:
    design = (DOCS / "design.md").read_text("utf-8")
    drawing = design.partition("## 2. The house\n")[2].partition("\n\n")[0]
    _, *pieces = re.split(r"\b(\w+)/(?=\s)", drawing)
    folders = dict(zip(pieces[::2], pieces[1::2], strict=True))
    assert folders.keys() >= {"web", "compute", "tests", "examples", "docs", "scripts"}
    for name, after in folders.items():
        to_come = "(to come)" in after.replace("sizing (to come)", "")
        assert (DOCS.parent / name).is_dir() is not to_come, name
