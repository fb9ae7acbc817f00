"""The models there are."""

from typing import cast

from fastapi import APIRouter, Request, Response

from compute import config_json, stages, tensors
from compute.checkpoints.folder import Checkpoint
from schemas.models import ModelDetail, ModelLine, Models, Parameters, Tokenizer
from schemas.resolved import ConfigAnswer
from service import openapi, plans, state
from service.answers import json

router = APIRouter(prefix="/models", tags=["models"])


@router.get("", response_model=Models)
def models(request: Request) -> Response:
    """Every model that can be named in a request."""
    return json(listed(state.of(request)))


@router.get(
    "/{name}", response_model=ModelDetail, responses=openapi.problem_responses("unknown-model")
)
def model(request: Request, name: str) -> Response:
    """A model's config, parameters by part, tensors, tokenizer, stages and card."""
    return json(described(state.of(request).store.get(name, place=())))


def listed(here: state.State) -> Models:
    """A line for each model of the store."""
    found, broken = here.store.all()
    return Models(models=[_line(checkpoint) for checkpoint in found], broken=broken)


def _line(checkpoint: Checkpoint) -> ModelLine:
    config = checkpoint.config
    return ModelLine(
        name=checkpoint.name,
        d_model=config.d_model,
        n_layers=config.n_layers,
        vocab=config.vocab,
        parameters=tensors.parameter_counts(config)["total"],
    )


def described(checkpoint: Checkpoint) -> ModelDetail:
    """All there is to say of a model but its tensors' values."""
    config = checkpoint.config
    return ModelDetail(
        name=checkpoint.name,
        digest=plans.digest_of(checkpoint),
        config=cast(ConfigAnswer, config_json.as_json(config)),
        parameters=Parameters(**tensors.parameter_counts(config)),
        tensors={name: list(t.shape) for name, t in tensors.tensors(config).items()},
        tokenizer=Tokenizer(
            vocabulary=checkpoint.text.vocabulary_size, tokens=checkpoint.text.first_tokens(100)
        ),
        stages=[stage.name for stage in stages.STAGES if stage.absent(config, True) is None],
        card=checkpoint.card,
    )
