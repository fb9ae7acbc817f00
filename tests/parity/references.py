"""The folders of references, and how near ours comes to them. Needs neither torch nor upstream."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file

from compute import selection
from compute.config import ModelConfig
from compute.trace import Run, trace
from compute.types import DType, Inputs, Selected
from compute.weights import ModelWeights

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]

HERE = Path(__file__).parent
CONFIGS = "classic_configs"  # configs alone
PARENTS = {"llama-sharded": "llama", "mixtral-fused": "mixtral"}  # whose weights they have

FLOAT64 = 1e-10
"""Hundreds of roundings of 1.1e-16 on both sides leave room; an epsilon or a slope that either
side keeps in float32 does not pass."""


def folders() -> list[str]:
    """Every folder of references, by name."""
    found = [each.name for each in HERE.iterdir() if each.is_dir() and each.name[0] not in "._"]
    return sorted(set(found) - {CONFIGS})


def values_of(folder: str) -> Arrays:
    """What upstream computes from a folder's weights."""
    return _values(PARENTS.get(folder, folder.removesuffix("-classic")))


@cache
def _values(folder: str) -> Arrays:
    return load_file(HERE / folder / "values.safetensors")


@dataclass(frozen=True, slots=True)
class Reference:
    """A run of a folder in a dtype: what the model was called with, and its values by name."""

    folder: str
    run: str
    dtype: DType
    given: Arrays
    values: Arrays

    beside: str = ""

    def __str__(self) -> str:
        return f"{self.folder}-{self.run}-{self.dtype}{self.beside}"


def references(folder: str) -> Iterator[Reference]:
    """The runs of a folder, each in the dtypes it is kept in."""
    kept = values_of(folder)
    for dtype in get_args(DType):
        for run in sorted({name.split("/")[0] for name in kept if f"/{dtype}/" in name}):
            of_run = _under(f"{run}/", kept)
            given = {name: value for name, value in of_run.items() if "/" not in name}
            yield Reference(folder, run, dtype, given, _under(f"{dtype}/", of_run))


def _under(prefix: str, kept: Arrays) -> Arrays:
    return {
        name.removeprefix(prefix): value for name, value in kept.items() if name.startswith(prefix)
    }


def narrowed(found: Iterable[Reference]) -> Iterator[Reference]:
    """The references in float64, for our run in float32: of it more is kept."""
    for each in found:
        if each.dtype == "float64":
            yield replace(each, dtype="float32", beside="-beside-float64")


def stage_of(value: str) -> str:
    """The stage that a kept value is: "encoder.attn.1" -> "encoder.blocks.1.attn.pattern"."""
    if value.startswith("encoder."):
        return "encoder." + stage_of(value.removeprefix("encoder."))
    if value in _WHOLE:
        return _WHOLE[value]
    kind, layer = value.split(".")
    if kind == "hidden":
        before = int(layer) - 1
        return "blocks.0.resid_pre" if before < 0 else f"blocks.{before}.resid_post"
    return f"blocks.{layer}.{_OF_BLOCK[kind]}"


_WHOLE = {"logits": "logits", "final": "final_norm.out"}
_OF_BLOCK = {"attn": "attn.pattern", "cross": "cross.pattern", "router": "ffn.router"}


def inputs_of(given: Arrays, *, first_row: int = 0, positions: bool = True) -> Inputs:
    """What upstream was called with, as our input.

    first_row: what position 0 is called there. `positions`: with the position ids, where given.
    """
    mask, ids = given.get("attention_mask"), given.get("position_ids")
    read = Inputs(
        token_ids=given["input_ids"],
        key_mask=None if mask is None else mask.astype(np.bool_),
        position_ids=None if ids is None or not positions else ids - first_row,
        token_types=given.get("token_type_ids"),
    )
    if "decoder_input_ids" not in given:
        return read
    return Inputs(token_ids=given["decoder_input_ids"], memory=read)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far each value is off, relative to its largest, and how far it may be."""

    apart: Mapping[str, float]
    allowed: float
    visible: Mapping[str, bool] = field(default_factory=dict)

    @property
    def faults(self) -> list[str]:
        """The values that do not agree, the worst first."""
        by_size = sorted(self.apart.items(), key=lambda item: -item[1])
        far = [
            f"{name} is off by {off:.1e} of its largest (at most {self.allowed:.1e})"
            for name, off in by_size
            if not off <= self.allowed
        ]
        seen = [f"{name} sees other keys" for name, same in self.visible.items() if not same]
        return [*far, *seen]


def states(
    config: ModelConfig, weights: ModelWeights, inputs: Inputs, stages: list[str]
) -> dict[str, Array]:
    """Stages of our run, by full name."""
    scene = selection.scene_for(config, inputs)
    chosen = selection.resolve([Selected(name=name) for name in stages], scene)
    run = Run(config=config, weights=weights, inputs=inputs, selection=chosen)
    return {made.wanted.name: made.values for made in trace(run).made}


def compare(
    config: ModelConfig,
    weights: ModelWeights,
    inputs: Inputs,
    reference: Reference,
    exact: float = FLOAT64,
) -> Agreement:
    """Our run beside the reference: rows of real tokens; patterns also by the keys they see.

    exact: how far a value may be off in float64.
    """
    values = reference.values
    wanted = {name: stage_of(name) for name in values}
    scores = [name.replace("pattern", "scores") for name in _patterns(config)]
    found = states(config, weights, inputs, sorted({*wanted.values(), *scores}))
    apart, visible = {}, {}
    for name, stage in wanted.items():
        real = _real(name, inputs)
        ours, theirs = _rows(name, found[stage], real), _rows(name, values[name], real)
        assert ours.dtype == reference.dtype, (stage, ours.dtype)
        apart[name] = _apart(ours, theirs)
        if _is_pattern(name):
            visible[name] = bool(np.array_equal(ours == 0, theirs == 0))
    of_scores = [found[name] for name in scores]
    allowed = exact if reference.dtype == "float64" else _allowed(of_scores)
    return Agreement(apart, allowed, visible)


def _patterns(config: ModelConfig) -> list[str]:
    stacks = [("", config)] + ([] if config.encoder is None else [("encoder.", config.encoder)])
    return [
        f"{prefix}blocks.{layer}.{part}.pattern"
        for prefix, stack in stacks
        for layer in range(stack.n_layers)
        for part in (("attn", "cross") if stack.cross_attention else ("attn",))
    ]


def _is_pattern(name: str) -> bool:
    return name.removeprefix("encoder.").startswith(("attn", "cross"))


def _real(name: str, inputs: Inputs) -> npt.NDArray[np.bool_]:
    """(b, n): the real tokens of the stack that a value is of."""
    stack = inputs.memory if name.startswith("encoder.") else inputs
    assert stack is not None
    return np.ones(stack.shape, np.bool_) if stack.key_mask is None else stack.key_mask


def _rows(name: str, values: Array, real: npt.NDArray[np.bool_]) -> Array:
    """(b, n, …) or of a pattern (b, h, n, m) -> the rows of real tokens, one after another."""
    return (np.moveaxis(values, 2, 1) if _is_pattern(name) else values)[real]


def _apart(ours: Array, theirs: Array) -> float:
    """Largest difference over the largest of theirs; infinite where either is no number."""
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    off = float(np.abs(ours.astype(np.float64) - theirs).max() / np.abs(theirs).max())
    return off if np.isfinite(off) else float("inf")


def _allowed(scores: list[Array]) -> float:
    """In float32: a score that is rounded by eps |S| moves every weight that is made of it."""
    largest = max(float(np.abs(S[np.isfinite(S)]).max(initial=0.0)) for S in scores)
    return max(2e-6, 8 * float(np.finfo(np.float32).eps) * largest)
