"""The workload of a sizing request against its model: defaults, and what does not fit."""

from collections.abc import Iterator

from compute.config import ModelConfig
from compute.errors import Fault, Place, QuestionError, refuse_if
from compute.sizing import architecture
from compute.sizing.vocabulary import Workload
from schemas.sizing.workload import WorkloadAsked

View = dict[str, object]

_TOKENS = 1024


def of(asked: WorkloadAsked, config: ModelConfig) -> Workload:
    """The workload, nothing optional; a QuestionError for positions that a model does not have."""
    tokens = _default_tokens(config, asked) if asked.tokens is None else asked.tokens
    source = tokens if asked.source_tokens is None else asked.source_tokens
    refuse_if(QuestionError, list(_faults(config, asked, tokens, source)))
    return Workload(
        batch=asked.batch,
        tokens=tokens,
        cached=asked.cached,
        source=source if config.cross_attention else 0,
        new=asked.new_tokens,
    )


def _default_tokens(config: ModelConfig, asked: WorkloadAsked) -> int:
    patches = architecture.patch_rows(config)
    if patches:
        return patches
    room = [_TOKENS]
    if config.position.kind == "learned":
        room.append(config.position.n_positions - asked.cached - asked.new_tokens)
    encoder = config.encoder
    if encoder is not None and encoder.position.kind == "learned" and asked.source_tokens is None:
        room.append(encoder.position.n_positions)
    return max(1, min(room))


def _faults(config: ModelConfig, asked: WorkloadAsked, tokens: int, source: int) -> Iterator[Fault]:
    said = {"tokens": asked.tokens, "new_tokens": asked.new_tokens, "cached": asked.cached}
    place = next((key for key, value in said.items() if value), "model")
    yield from _beyond(config, asked.cached + tokens + asked.new_tokens, (place,))
    patches = architecture.patch_rows(config)
    if patches and tokens != patches:
        detail = f"The image has {patches} positions: leave tokens out."
        yield Fault(
            code="not_its_patches", detail=detail, place=("tokens",), expected=patches, got=tokens
        )
    if config.encoder is not None:
        given = asked.source_tokens is not None
        yield from _beyond(config.encoder, source, ("source_tokens" if given else "tokens",))
    if asked.source_tokens is not None and not config.cross_attention:
        detail = "This model attends to no memory: leave source_tokens out."
        yield Fault(code="no_memory", detail=detail, place=("source_tokens",))


def _beyond(stack: ModelConfig, got: int, place: Place) -> Iterator[Fault]:
    """A fault where there are more positions than a learned table has rows."""
    rows = stack.position.n_positions
    if stack.position.kind == "learned" and got > rows:
        detail = f"These are {got} positions, and the table of positions has {rows} rows "
        detail += "(position.n_positions of the config)."
        yield Fault(
            code="beyond_positions",
            detail=detail,
            place=place,
            expected=f"at most {rows}",
            got=got,
        )


def view(workload: Workload) -> View:
    """The member `workload`."""
    return {
        "batch": workload.batch,
        "tokens": workload.tokens,
        "cached": workload.cached,
        "source_tokens": workload.source,
        "new_tokens": workload.new,
    }


def symbols(workload: Workload) -> Iterator[View]:
    """The letters of the formulas that come from the workload."""
    named = {
        "B": ("batch", workload.batch),
        "n": ("tokens", workload.tokens),
        "past": ("cached", workload.cached),
        "s": ("source_tokens", workload.source),
    }
    for letter, (meaning, value) in named.items():
        yield {"letter": letter, "meaning": meaning, "value": value}
