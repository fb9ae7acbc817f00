"""POST /v1/sizing/compare: models part by part. The work of one worker thread."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from compute.config import ModelConfig
from compute.errors import QuestionError
from compute.sizing import architecture, parameters
from compute.sizing.formats import CacheFormat, Format
from compute.sizing.ledger import Ledger
from compute.sizing.memory import kv_cache, weight_bytes
from compute.sizing.operations import flops
from compute.sizing.vocabulary import Conventions, Workload
from schemas.sizing.compare import Compared, SizingCompareRequest, Windows
from service import errors
from service.sizing import compare as views
from service.sizing import sized, workloads
from service.sizing.compare import Side
from service.sizing.sized import Sized
from service.state import State

View = Mapping[str, object]

_COMPARED: Sequence[Compared] = ("parameters", "flops", "kv_cache", "weights")


@dataclass(frozen=True, slots=True)
class _Sizing:
    """How any config is sized, the models' own and those between them."""

    workload: Workload
    conventions: Conventions
    format: Format
    windows: Windows
    names: Sequence[Compared]

    def of(self, config: ModelConfig) -> dict[str, Ledger]:
        """Its ledgers by name."""
        return {name: self.ledger(name, config) for name in self.names}

    def ledger(self, name: Compared, config: ModelConfig) -> Ledger:
        """One of them; a QuestionError where the config has none."""
        if name == "parameters":
            return parameters.ledger(config)
        if name == "weights":
            return weight_bytes.size(config, self.format)
        if name == "flops":
            return flops.forward(config, self.run(config), self.conventions)
        found = kv_cache.size(config, self.run(config), CacheFormat(format=self.format))
        return found.lower_bound if self.windows == "lower_bound" else found.allocation

    def run(self, config: ModelConfig) -> Workload:
        """The workload of a config: of an image its patches, a memory where one is read."""
        tokens = architecture.patch_rows(config) or self.workload.tokens
        source = tokens if config.cross_attention else 0
        return replace(self.workload, tokens=tokens, source=source)


def work(asked: SizingCompareRequest, state: State, check: Callable[[], None]) -> View:
    """The members of the answer to a request; `check` may raise to stop the work."""
    models = [_model(asked, at, state) for at in range(len(asked.models))]
    sizing = _sizing(asked, models)
    names, absent = _names(asked, sizing, models)
    sizing = replace(sizing, names=names)
    sides = [
        Side(entry.label, model.config, sizing.of(model.config))
        for entry, model in zip(asked.models, models, strict=True)
    ]
    first = sides[0]
    return {
        "models": list(_models(sides, models, sizing)),
        **{
            name: [views.total(first, side, name) for side in sides] if name in names else None
            for name in _COMPARED
        },
        "changes": [_changes(first, side, sizing, check) for side in sides[1:]],
        "absent": absent,
    }


def _model(asked: SizingCompareRequest, at: int, state: State) -> Sized:
    with errors.moved(("model",), ("models", at, "model")):
        return sized.of(asked.models[at].model, state)


def _models(sides: Sequence[Side], models: Sequence[Sized], sizing: _Sizing) -> Iterator[View]:
    for side, model in zip(sides, models, strict=True):
        tokens = sizing.run(side.config).tokens
        yield {"label": side.label, "model": sized.model(model), "tokens": tokens}


def _sizing(asked: SizingCompareRequest, models: Sequence[Sized]) -> _Sizing:
    """One workload for all: the positions asked for, else the fewest that any has by default."""
    is_image = [bool(architecture.patch_rows(model.config)) for model in models]
    own = [
        workloads.of(asked.workload(None), model.config).tokens
        for model, image in zip(models, is_image, strict=True)
        if not image
    ]
    for model, image in zip(models, is_image, strict=True):
        said = None if image and own else asked.tokens
        workloads.of(asked.workload(said), model.config)  # refuses positions it does not have
    tokens = min(own, default=1) if asked.tokens is None else asked.tokens
    return _Sizing(
        Workload(batch=asked.batch, tokens=tokens, cached=asked.cached),
        asked.conventions.to_compute(),
        Format(name=asked.dtype),
        asked.windows,
        (),
    )


def _names(
    asked: SizingCompareRequest, sizing: _Sizing, models: Sequence[Sized]
) -> tuple[Sequence[Compared], dict[str, str]]:
    """What is compared; what some model does not have, and why, where it was not asked for."""
    names: list[Compared] = []
    absent: dict[str, str] = {}
    for name in _COMPARED if asked.ask is None else asked.ask:
        try:
            for model in models:
                sizing.ledger(name, model.config)
        except QuestionError as error:
            if asked.ask is not None:
                raise
            absent[name] = str(error)
        else:
            names.append(name)
    return names, absent


def _changes(first: Side, other: Side, sizing: _Sizing, check: Callable[[], None]) -> View:
    def sizes(config: ModelConfig) -> dict[str, Ledger]:
        check()
        return sizing.of(config)

    return views.changes(first, other, sizes)
