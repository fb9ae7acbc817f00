"""Every stage, tensor, option and key of an answer stands in the docs."""

import re
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from compute import _identity_routes, config, config_json, tensors
from compute.stages import STAGES, Stage
from compute.types import EditOp
from oracle.configs import random_case
from schemas.answers import InputAnswer, ModelAnswer, TraceAnswer, WeightsAnswer
from schemas.config import ConfigAsked, EncoderAsked
from schemas.inputs import InputAsked, MemoryAsked
from schemas.positions import LayerAsked, PositionAsked, RopeScalingAsked
from schemas.sublayers import AttentionAsked, FfnAsked, NormAsked
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
    [
        ConfigAsked,
        EncoderAsked,
        AttentionAsked,
        FfnAsked,
        NormAsked,
        PositionAsked,
        RopeScalingAsked,
        LayerAsked,
        InputAsked,
        MemoryAsked,
        TraceRequest,
    ],
)
def test_request_key_is_documented(model: type[BaseModel]) -> None:
    for name in model.model_fields:
        assert re.search(rf"[`.\"]{name}[`\".]", TRACE), name


CHOICES = (config.AttentionKind, config.MaskKind, config.QkNorm, config.FfnKind, config.ExpertKind,
           config.ActivationName, config.NormKind, config.Placement, config.PositionKind,
           config.Pairing, config.ScalingKind, config.AlibiRule, config.Topology)  # fmt: skip


def test_choices_of_a_config_are_documented() -> None:
    for choice in (choice for choices in CHOICES for choice in get_args(choices)):
        assert f"`{choice}`" in TRACE, choice


def test_weights_keys_and_operations_are_documented() -> None:
    for name in WeightsAsked.model_fields:
        assert name in WEIGHTS
    for op in get_args(EditOp):
        assert f"`{op}`" in WEIGHTS


def test_every_tensor_is_documented() -> None:
    told = {name for line in re.findall(r"^\| (`.*?) \|", WEIGHTS, re.M) for name in _names(line)}
    assert told == set(tensors.EXISTS)


def _names(cell: str) -> list[str]:
    """`a.b`, `.c`, `d`: the full names that a cell of the table means, without stack and block."""
    first, *others = re.findall("`([^`]+)`", cell)
    full = first.removeprefix("blocks.{l}.")
    parts = full.rpartition(".")
    names = [full]
    for other in others:
        names.append(f"{parts[0]}.{other.removeprefix('.')}")
    return names


def test_key_of_an_answer_is_documented() -> None:
    for name in TraceAnswer.__annotations__:
        assert f"`{name}`" in TRACE, name
    for part in (ModelAnswer, WeightsAnswer, InputAnswer):
        for name in part.__annotations__:
            assert re.search(rf"\b{name}\b", TRACE), name


def test_route_is_documented() -> None:
    pages = "".join(page.read_text("utf-8") for page in DOCS.glob("*.md"))
    paths = create_app(Settings()).openapi()["paths"]
    for path in paths:
        assert path in pages, path


def test_identity_is_documented() -> None:
    configs = [config_json.from_json(random_case(seed).config) for seed in range(60)]
    names = {route.name for each in configs for route in _identity_routes.in_block(each)}
    assert len(names) > 15
    for name in sorted(names | {"embedding_sum", "expansion"}):
        assert re.search(rf"\b{name}\b", TRACE), name


def test_design_marks_the_folders_that_are_still_to_come() -> None:
    design = (DOCS / "design.md").read_text("utf-8")
    drawing = design.partition("## 2. The house\n")[2].partition("\n\n")[0]
    _, *pieces = re.split(r"\b(\w+)/(?=\s)", drawing)
    folders = dict(zip(pieces[::2], pieces[1::2], strict=True))
    assert folders.keys() >= {"web", "compute", "tests", "examples", "docs", "scripts"}
    for name, after in folders.items():
        to_come = "(to come)" in after.replace("sizing (to come)", "")
        assert (DOCS.parent / name).is_dir() is not to_come, name


PAGES = [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_link_of_a_page_leads_to_a_page_and_a_heading(page: Path) -> None:
    for target in re.findall(r"\]\((?!http)([^)]+)\)", page.read_text("utf-8")):
        path, _, heading = target.partition("#")
        there = page.parent / path if path else page
        assert there.exists(), target
        assert not heading or heading in _headings(there), target


def _headings(page: Path) -> set[str]:
    """The anchors of a page, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
