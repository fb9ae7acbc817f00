"""The models there are; uploading and removing them."""

from itertools import islice
from typing import Annotated, cast

from anyio import to_thread
from fastapi import Path, Request, Response

from compute import config_json, stages, tensors
from compute.checkpoints.checkpoint import Checkpoint
from compute.checkpoints.text import Text
from compute.config import ModelConfig
from compute.selection import Scene
from schemas.models import ModelDetail, Models, Origin, Parameters, Tokenizer
from schemas.resolved import ConfigAnswer
from service import brought, errors, openapi, state
from service.answers import json
from service.routes import routing
from service.storage.store import Store, is_name

router = routing.router("models", "/v1/models")

_MOST_TOLD = 100
NewName = Annotated[str, Path(json_schema_extra={"pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"})]
"""Documents what `is_name` checks: the problem of another name is the route's own."""

_OF_AN_UPLOAD = (
    "malformed-multipart",
    "uploads-off",
    "not-acceptable",
    "slow-body",
    "fixed-model",
    "body-too-large",
    "unsupported-media-type",
    "invalid-request",
    "invalid-upload",
    "internal",
    "busy",
    "draining",
    "out-of-memory",
    "store-full",
)


@router.get("", response_model=Models)
def models(request: Request) -> Response:
    """Every model that can be named in a request."""
    return json(listed(state.of(request).store))


@router.get(
    "/{name}",
    response_model=ModelDetail,
    responses=openapi.problem_responses("unknown-model", "broken-model"),
)
def model(request: Request, name: str) -> Response:
    """A model's config, parameters by part, tensors, tokenizer, stages and card."""
    return json(described(state.of(request).store, name))


@router.put(
    "/{name}",
    response_model=ModelDetail,
    responses={
        **openapi.problem_responses(*_OF_AN_UPLOAD),
        201: {"model": ModelDetail, "description": "The name is new"},
    },
    openapi_extra=openapi.upload(),
)
async def put_model(request: Request, name: NewName) -> Response:
    """Upload a model under a name: the files of a Hugging Face folder, or one .gguf file.

    Answers as GET does, 201 where the name is new. A name that was uploaded before means the new
    model from then on; runs that have begun go on with the old one.
    """
    here = state.of(request)
    if here.uploading is None:
        raise errors.UploadsOff
    if not is_name(name):
        raise errors.BadModelName
    await to_thread.run_sync(here.store.refuse_if_fixed, name)
    checkpoint, known = await here.uploading.take(request, name)
    answer = await to_thread.run_sync(_described, checkpoint, "uploaded")
    return json(answer, 200 if known else 201)


@router.delete(
    "/{name}",
    status_code=204,
    responses=openapi.problem_responses("unknown-model", "fixed-model"),
)
def delete_model(request: Request, name: str) -> Response:
    """Remove an uploaded model; runs that have begun go on with it."""
    state.of(request).store.remove(name)
    return Response(status_code=204)


def listed(store: Store) -> Models:
    """A line for each model of the store."""
    lines, broken = store.lines()
    return Models(models=lines, broken=broken)


def described(store: Store, name: str) -> ModelDetail:
    """All there is to say of a model but its tensors' values."""
    checkpoint = store.get(name, place=())
    found = store.find(name)
    return _described(checkpoint, "uploaded" if found is None else found.origin)


def _described(checkpoint: Checkpoint, origin: Origin) -> ModelDetail:
    config, left_out = checkpoint.config, checkpoint.left_out
    return ModelDetail(
        name=checkpoint.name,
        family=checkpoint.family,
        origin=origin,
        digest=brought.told(checkpoint).digest,
        config=cast(ConfigAnswer, config_json.as_json(config)),
        parameters=Parameters(**tensors.parameter_counts(config)),
        dtypes=list(checkpoint.dtypes),
        tensors={name: list(t.shape) for name, t in tensors.tensors(config).items()},
        left_out=dict(islice(left_out.items(), _MOST_TOLD)),
        left_out_total=len(left_out),
        tokenizer=None if checkpoint.text is None else _tokenizer(checkpoint.text),
        stages=_stages(config),
        card=checkpoint.card,
    )


def _tokenizer(text: Text) -> Tokenizer:
    return Tokenizer(
        type=text.kind,
        vocabulary=text.vocabulary_size,
        special=dict(islice(text.special_tokens().items(), _MOST_TOLD)),
        tokens=text.first_tokens(_MOST_TOLD),
    )


def _stages(config: ModelConfig) -> list[str]:
    """The stages that some block, or the model, has."""
    scene = Scene(config, tokens=True, lengths={}, memory_tokens=True)
    there = (name for name, _ in stages.in_order(config) if scene.absence(name) is None)
    return list(dict.fromkeys(stages.stack_of(x) + stages.local_name(x) for x in there))
