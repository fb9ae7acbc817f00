"""What is split: a state or an update, as the sum that it is, or why it is none."""

from collections.abc import Iterator
from dataclasses import dataclass

from compute import selection, spelling, stages
from compute.config import ModelConfig
from compute.contributions.sublayers import NORMS, Sublayer, of_block
from compute.errors import Fault, QuestionError, refuse_if
from compute.selection import Scene

STATES = {"resid_pre": 0, "resid_mid": 1, "resid_cross": 2, "resid_post": 3}
"""A state of the stream -> how many of attn, cross and ffn come before it, at most."""

_UPDATES = {
    **{f"{name}_out": (name, True) for name in NORMS},
    **{f"{name}.out_raw": (name, False) for name in NORMS},
}
_SUMS = {f"{name}_sum": name for name in NORMS}
_ORDER = tuple(NORMS)
_PLACE = ("of",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A stage and what it is a sum of.

    starts: a state that is one part, or None where the sum starts at the embeddings (`embedded`)
    or has no state. sublayers: those whose updates are added, in order. norms: those between
    this sum and the readout, their scale held; None where the readout is not linear in it.
    """

    name: str
    stack: str
    embedded: bool
    starts: str | None
    sublayers: tuple[Sublayer, ...]
    norms: tuple[str, ...] | None
    is_last: bool = False
    is_state: bool = False


def is_post_norm(config: ModelConfig) -> bool:
    """Whether the stream is normalized after each addition."""
    return config.norm.kind != "none" and config.norm.placement == "post"


def find(of: str | None, scene: Scene) -> Target:
    """The target of a spelling, or a QuestionError; None and `logits`: the sum read out."""
    if of in (None, "logits"):
        return _target(last_sum(scene.config), scene)
    return _target(_named(of or "", scene), scene)


def last_sum(config: ModelConfig) -> str:
    """The last state, or, post-norm, the last sum before its norm."""
    last = config.n_layers - 1
    if not is_post_norm(config):
        return f"blocks.{last}.resid_post"
    return f"blocks.{last}.{of_block(config, last, '')[-1].name}_sum"


def _named(of: str, scene: Scene) -> str:
    """The one full name that a spelling means."""
    for meaning in spelling.meanings(of, scene.config):
        if meaning.outright:
            name = next(meaning.names())
            refuse_if(QuestionError, list(_no_sum(meaning.stage.name, name, scene)))
    return selection.one_stage(of, scene, _PLACE)


def _target(name: str, scene: Scene) -> Target:
    refuse_if(QuestionError, list(_faults(name, scene)))
    local, stack = stages.local_name(name), stages.stack_of(name)
    config = stages.config_of(stack + "embed", scene.config)
    if local in STATES:
        return _of_state(name, local, stack, config)
    layer = stages.layer_of(name) or 0
    subs = {sub.name: sub for sub in of_block(config, layer, stack)}
    sub = subs[_SUMS[local] if local in _SUMS else _UPDATES[local][0]]
    if local in _SUMS:
        return _of_sum(name, sub, list(subs.values()), config)
    added = _UPDATES[local][1] or not sub.is_changed
    own = Sublayer(sub.prefix, sub.name, sub.config, added)
    linear = added and not stack and not is_post_norm(config)
    return Target(
        name=name,
        stack=stack,
        embedded=False,
        starts=None,
        sublayers=(own,),
        norms=_final(config) if linear else None,
    )


def _of_state(name: str, local: str, stack: str, config: ModelConfig) -> Target:
    layer = stages.layer_of(name) or 0
    before = [sub for at in range(layer) for sub in of_block(config, at, stack)]
    read = _ORDER[: STATES[local]]
    own = [sub for sub in of_block(config, layer, stack) if sub.name in read]
    reads_out = not stack and not is_post_norm(config)
    return Target(
        name=name,
        stack=stack,
        embedded=True,
        starts=None,
        sublayers=(*before, *own),
        norms=_final(config) if reads_out else None,
        is_last=not stack and local == "resid_post" and layer == config.n_layers - 1,
        is_state=True,
    )


def _of_sum(name: str, sub: Sublayer, subs: list[Sublayer], config: ModelConfig) -> Target:
    """Post-norm: the state that the sublayer read, and its update."""
    stack, at = stages.stack_of(name), subs.index(sub)
    state = ("resid_pre", *_after(subs))[at]
    is_last = not stack and name == last_sum(config)
    norms = (sub.prefix + NORMS[sub.name], *_final(config)) if is_last else None
    return Target(
        name=name,
        stack=stack,
        embedded=False,
        starts=sub.prefix + state,
        sublayers=(sub,),
        norms=norms,
        is_last=is_last,
    )


def _after(subs: list[Sublayer]) -> list[str]:
    """The state after each sublayer of a block: its last one leaves resid_post."""
    names = {"attn": "resid_mid", "cross": "resid_cross", "ffn": "resid_post"}
    return [*(names[sub.name] for sub in subs[:-1]), "resid_post"]


def states_after(subs: list[Sublayer], config: ModelConfig) -> list[str]:
    """The states after each sublayer, full names; in a parallel block there is only the last."""
    if config.topology == "parallel":
        return [f"{subs[0].prefix}resid_post"]
    return [sub.prefix + state for sub, state in zip(subs, _after(subs), strict=True)]


def _final(config: ModelConfig) -> tuple[str, ...]:
    return ("final_norm",) if config.final_norm else ()


def _faults(name: str, scene: Scene) -> Iterator[Fault]:
    local = stages.local_name(name)
    config = stages.config_of(stages.stack_of(name) + "embed", scene.config)
    if local in STATES and is_post_norm(config) and not _enters(name):
        yield Fault(
            code="sum_does_not_hold",
            detail=_why_not(name, config),
            place=_PLACE,
            expected=_sums_that_hold(name, config),
        )


def _no_sum(local: str, name: str, scene: Scene) -> Iterator[Fault]:
    """A fault where a stage is neither a state nor an update nor a sum; those the block has."""
    every = [*STATES, *_UPDATES, *_SUMS]
    if local in every:
        return
    prefix = f"{stages.stack_of(name)}blocks.{stages.layer_of(name) or 0}."
    expected = [each for each in every if scene.absence(prefix + each) is None]
    detail = f"{local} is no sum of what sublayers write: ask for a state or an update."
    yield Fault(code="not_a_sum", detail=detail, place=_PLACE, expected=expected)


def _enters(name: str) -> bool:
    """Whether a state is the one that enters the first block: no norm stands before it."""
    return stages.layer_of(name) == 0 and stages.local_name(name) == "resid_pre"


def _why_not(name: str, config: ModelConfig) -> str:
    holds = ", ".join(_sums_that_hold(name, config))
    return (
        "This stack is post-norm: each state is a norm of a sum, so the parts below it do not add "
        f"up to it. The sums that hold are {holds}; ask for the left side of one of them."
    )


def _sums_that_hold(name: str, config: ModelConfig) -> list[str]:
    """The sums of a state's block."""
    subs = of_block(config, stages.layer_of(name) or 0, stages.stack_of(name))
    states = ["resid_pre", *_after(subs)]
    return [
        f"{sub.part}_sum = {sub.prefix}{state} + {sub.part}_out"
        for sub, state in zip(subs, states, strict=False)
    ]
