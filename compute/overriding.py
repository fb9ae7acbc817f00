"""The same weights, another block: what of a stored model serves a changed config.

Each tensor of the new config is the stored one of its name and shape, or brought whole. Norm gains
and biases that the stored model lacks are filled with what changes nothing: gain 1, bias 0.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from compute import initial, tensors
from compute.config import ModelConfig
from compute.errors import ConfigError, Fault, refuse_if
from compute.initial import Source
from compute.tensors import Tensor
from compute.types import DType

Tensors = Mapping[str, Tensor]
_MOST_TOLD = 40
_MOST_RUNS = 4
_LACKED = "this model does not have"
_FOLLOWS = "Fields that are not sent stay as stored: none follows another's change."


@dataclass(frozen=True, slots=True)
class Fit:
    """filled: tensors that the stored model lacks, and that are neutral. unused: stored ones that
    the config does not read."""

    filled: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()


def fit(
    stored: ModelConfig, changed: ModelConfig, fields: Sequence[str], given: Collection[str]
) -> Fit:
    """How the stored weights serve the changed config; a ConfigError names what they cannot.

    fields: those that a request changed, dotted (`norm.placement`). given: tensors it brings whole.
    """
    old, new = tensors.tensors(stored), tensors.tensors(changed)
    lacking = [name for name in new if name not in given and _lacks(old, new[name])]
    refuse_if(ConfigError, list(_faults(stored, changed, fields, lacking)))
    return Fit(
        filled=tuple(name for name in new if name not in old and name not in given),
        unused=tuple(name for name in old if name not in new),
    )


def source(stored: Source, filled: Collection[str], changed: ModelConfig, dtype: DType) -> Source:
    """The stored tensors, and neutral ones where they are to be filled."""
    neutral = initial.by_stack(changed, partial(initial.zeros, dtype))
    return lambda tensor: (neutral if tensor.name in filled else stored)(tensor)


def differs(stored: ModelConfig, changed: ModelConfig, field: str) -> bool:
    """Whether a dotted field has another value."""
    return _at(stored, _attributes(field)) != _at(changed, _attributes(field))


def _lacks(old: Tensors, tensor: Tensor) -> bool:
    """Whether stored tensors neither have a tensor in its shape nor can do without it."""
    if tensor.name in old:
        return old[tensor.name].shape != tensor.shape
    return not _has_neutral(tensor)


def _has_neutral(tensor: Tensor) -> bool:
    """A gain of 1 and a bias of 0 change nothing; a sink's logit of 0 takes weight."""
    return tensor.role in ("gain", "bias") and not tensor.name.endswith(".sinks")


def _faults(
    stored: ModelConfig, changed: ModelConfig, fields: Sequence[str], lacking: Sequence[str]
) -> Iterator[Fault]:
    """One for each field and way of not fitting, with the tensors."""
    old, new = tensors.tensors(stored), tensors.tensors(changed)
    without = {field: _without(stored, changed, fields, field) for field in fields if lacking}
    groups: dict[tuple[str | None, bool], list[str]] = {}
    for name in lacking:
        cause = next((field for field in fields if _serves(old, without[field], name)), None)
        groups.setdefault((cause, name in old), []).append(name)
    for (cause, reshaped), names in groups.items():
        yield Fault(
            code="weights_cannot_serve",
            detail=_detail(_said(changed, cause), [new[name] for name in names], reshaped),
            place=tuple(cause.split(".")) if cause else (),
            expected=list(new[names[0]].shape),
            got=list(old[names[0]].shape) if reshaped else None,
        )


def _without(
    stored: ModelConfig, changed: ModelConfig, fields: Sequence[str], field: str
) -> Tensors:
    """The tensors of the stored config with all changes but one."""
    made = stored
    for path in (_attributes(other) for other in fields if other != field):
        made = _with(made, path, _at(changed, path))
    return tensors.tensors(made)


def _serves(old: Tensors, new: Tensors, name: str) -> bool:
    return name not in new or not _lacks(old, new[name])


def _said(changed: ModelConfig, cause: str | None) -> str:
    if cause is None:
        return "The config"
    value = _at(changed, _attributes(cause))
    if isinstance(value, bool):
        return f"{cause} = {str(value).lower()}"
    return f"{cause} = {value}" if isinstance(value, str | int) else cause


def _detail(said: str, needed: Sequence[Tensor], reshaped: bool) -> str:
    listed = _listed(needed)
    more = f" and {len(listed) - _MOST_TOLD} more" if len(listed) > _MOST_TOLD else ""
    told = ", ".join(listed[:_MOST_TOLD]) + more
    why = " in another shape than this model has" if reshaped else f", which {_LACKED}"
    whole = "it" if len(needed) == 1 else "each"
    return f"{said} needs {told}{why}; give {whole} whole in weights.tensors. {_FOLLOWS}"


def _listed(needed: Sequence[Tensor]) -> list[str]:
    """Names with shapes, those of several blocks as one: `blocks.0-2.ffn.W_gate (12, 48)`."""
    blocks: dict[tuple[str, str, tuple[int, ...]], list[int]] = {}
    for tensor in needed:
        stack, block, local = _in_parts(tensor.name)
        blocks.setdefault((stack, local, tensor.shape), []).extend(block)
    return [
        f"{stack}{_spans(sorted(found))}{local} ({', '.join(map(str, shape))})"
        for (stack, local, shape), found in blocks.items()
    ]


def _in_parts(name: str) -> tuple[str, list[int], str]:
    """`encoder.blocks.3.ffn.W_in` -> (`encoder.`, [3], `ffn.W_in`); `embed.W_E` has no block."""
    stack = tensors.ENCODER if name.startswith(tensors.ENCODER) else ""
    own = name.removeprefix(stack)
    if not own.startswith("blocks."):
        return stack, [], own
    _, block, local = own.split(".", 2)
    return stack, [int(block)], local


def _spans(blocks: Sequence[int]) -> str:
    """[0, 1, 2, 5] -> `blocks.0-2,5.`; nothing for a tensor of the model."""
    if not blocks:
        return ""
    held = set(blocks)
    starts = [at for at in blocks if at - 1 not in held]
    ends = [at for at in blocks if at + 1 not in held]
    spans = [f"{a}" if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True)]
    more = ["…"] if len(spans) > _MOST_RUNS else []
    return f"blocks.{','.join(spans[:_MOST_RUNS] + more)}."


def _attributes(field: str) -> tuple[str, ...]:
    return tuple("in_" if part == "in" else part for part in field.split("."))


def _at(part: Any, path: Sequence[str]) -> Any:  # noqa: ANN401 - whatever the field holds
    for name in path:
        part = getattr(part, name, None)
    return part


def _with(part: Any, path: Sequence[str], value: object) -> Any:  # noqa: ANN401 - as above
    first, *rest = path
    return replace(part, **{first: _with(getattr(part, first), rest, value) if rest else value})
