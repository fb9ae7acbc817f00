"""POST /v1/sizing/capacity: what fits into a memory. The work of one worker thread."""

from collections.abc import Callable, Iterator, Mapping

from compute.config import ModelConfig
from compute.errors import Fault, Place, QuestionError, refuse_if
from compute.sizing import architecture
from compute.sizing.fitting import capacity, occupied
from compute.sizing.fitting.capacity import Found
from compute.sizing.fitting.occupied import Held, Room
from compute.sizing.vocabulary import Conventions
from schemas.sizing.capacity import CapacityRequest
from schemas.sizing.weights import FormatAsked
from service.sizing import capacity as views
from service.sizing import sized
from service.sizing.weights import kept_of
from service.state import State

View = Mapping[str, object]


def work(asked: CapacityRequest, state: State, check: Callable[[], None]) -> View:
    """The members of the answer to a request."""
    model = sized.of(asked.model, state)
    check()
    tokens = _tokens(asked, model.config)
    held = _held(asked, model.config)
    refuse_if(QuestionError, list(_faults(asked, model.config, held, tokens)))
    room = _room(asked)
    found = _found(asked, model.config, held, room, tokens)
    return {
        "model": sized.model(model),
        **views.view(asked, model.config, held, room, found),
    }


def _found(
    asked: CapacityRequest, config: ModelConfig, held: Held, room: Room, tokens: int
) -> Found:
    batch = asked.batch or 1
    if asked.ask == "context":
        return capacity.context(config, held, room, batch)
    if asked.ask == "batch":
        return capacity.batch(config, held, room, tokens)
    return capacity.fits(config, held, room, batch, tokens)


def _room(asked: CapacityRequest) -> Room:
    listed = None if asked.device is None else asked.device.to_compute().memory_bytes
    said = 0 if asked.budget is None else asked.budget.to_bytes()
    overhead = 0 if asked.overhead is None else asked.overhead.to_bytes()
    return Room(budget=listed or said, utilisation=asked.utilisation, overhead=overhead)


def _held(asked: CapacityRequest, config: ModelConfig) -> Held:
    weights = asked.weights or FormatAsked(dtype=asked.dtype)
    said = Conventions()
    activations = asked.activations.to_compute(asked.dtype, said.attention_kernel, said.recompute)
    return Held(
        include=asked.include or occupied.included(config),
        weights=weights.to_compute(),
        kept=kept_of(weights),
        cache=asked.cache.to_compute(asked.dtype),
        activations=activations,
        windows=asked.windows,
        source=asked.source_tokens,
    )


def _tokens(asked: CapacityRequest, config: ModelConfig) -> int:
    """Positions of each sequence; 0 where they are what is asked for, or are missing."""
    if asked.tokens is not None:
        return asked.tokens
    return 0 if asked.ask == "context" else architecture.patch_rows(config)


def _faults(
    asked: CapacityRequest, config: ModelConfig, held: Held, tokens: int
) -> Iterator[Fault]:
    yield from _of_the_question(asked, tokens)
    if asked.device is not None and asked.device.to_compute().memory_bytes is None:
        detail = "This device's memory is needed: device.memory, or a budget in its place."
        yield _fault("missing", detail, ("device", "memory"))
    patches, rows = architecture.patch_rows(config), capacity.positions(config, held)
    if patches and asked.ask == "context":
        detail = f"An image has its {patches} positions: ask for batch or fits."
        yield _fault("not_its_patches", detail, ("ask",), ["batch", "fits"], asked.ask)
    elif patches and tokens != patches:
        detail = f"The image has {patches} positions: leave tokens out."
        yield _fault("not_its_patches", detail, ("tokens",), patches, tokens)
    if tokens > rows:
        detail = f"These are {tokens} positions, and a learned table has {rows} rows."
        yield _fault("beyond_positions", detail, ("tokens",), f"at most {rows}", tokens)
    yield from _of_the_memory(asked, config)
    if "kv_cache" in held.include and not architecture.caches(config):
        at = held.include.index("kv_cache")
        detail = "This model keeps no keys and values: it has no attention, or no causal mask."
        expected = ["weights", "activations"]
        yield _fault("no_cache", detail, ("include", at), expected, "kv_cache")


def _of_the_question(asked: CapacityRequest, tokens: int) -> Iterator[Fault]:
    """What is asked for is not said, and what it depends on is."""
    if asked.ask == "context" and asked.tokens is not None:
        yield _fault("asked_for", "context asks for tokens: leave them out.", ("tokens",))
    if asked.ask == "batch" and asked.batch is not None:
        yield _fault("asked_for", "batch is what is asked for: leave it out.", ("batch",))
    if asked.ask != "context" and not tokens:
        detail = f"{asked.ask} needs tokens, the positions of each sequence."
        yield _fault("missing", detail, ("tokens",), "at least 1")


def _of_the_memory(asked: CapacityRequest, config: ModelConfig) -> Iterator[Fault]:
    """The positions that cross-attention reads, where there is any."""
    source, encoder = asked.source_tokens, config.encoder
    if source is None:
        return
    if not config.cross_attention:
        detail = "This model attends to no memory: leave source_tokens out."
        yield _fault("no_memory", detail, ("source_tokens",))
    elif encoder is not None and encoder.position.kind == "learned":
        rows = encoder.position.n_positions
        if source > rows:
            detail = f"The encoder's table of positions has {rows} rows."
            yield _fault("beyond_positions", detail, ("source_tokens",), f"at most {rows}", source)


def _fault(
    code: str, detail: str, place: Place, expected: object = None, got: object = None
) -> Fault:
    return Fault(code=code, detail=detail, place=place, expected=expected, got=got)
