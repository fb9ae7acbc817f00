"""The catalogue of stages."""

from functools import lru_cache

from fastapi import Response

from compute import stages
from compute.types import AXES
from schemas.stages import AliasAnswered, AxisAnswered, Catalogue, StageAnswered
from service.routes import routing

router = routing.router("discovery")


@router.get("/stages", response_model=Catalogue)
async def catalogue() -> Response:
    """Every tensor of a trace: names, axes, equation, when it exists, other libraries' names."""
    return Response(encoded(), media_type="application/json")


@lru_cache(maxsize=1)
def encoded() -> bytes:
    """The catalogue as JSON; it is the same for as long as the process lives."""
    axes = [AxisAnswered(letter=letter, word=word) for letter, word in stages.GLOSSARY.items()]
    found = Catalogue(axes=axes, stages=[described(stage) for stage in stages.STAGES])
    return found.model_dump_json().encode()


def described(stage: stages.Stage) -> StageAnswered:
    """A row of the catalogue, with words for its axes."""
    return StageAnswered(
        name=stage.name,
        level=stage.level,
        symbol=stage.symbol,
        symbol_when=stage.symbol_when if stage.symbol else None,
        axes=[AXES[letter] for letter in stage.axes],
        plain=stage.plain,
        latex=stage.latex,
        meaning=stage.meaning,
        exists=stage.exists,
        derived=stage.derived,
        derived_from=list(stage.derived_from),
        by_default=stage.by_default,
        aliases=[
            AliasAnswered(library=alias.library, name=alias.name, when=alias.when)
            for alias in stage.aliases
        ],
    )
