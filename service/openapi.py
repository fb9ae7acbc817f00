"""The OpenAPI document: what FastAPI derives, and what it cannot know.

Bodies are read raw and errors are answered outside of FastAPI, so both are described here:
`body` and `problem_responses` go into a route's declaration, `document` completes the whole.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, cast

import orjson
from fastapi import FastAPI
from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import JsonSchemaMode

from schemas.answers import TraceAnswer
from schemas.compare import CompareRequest
from schemas.compare_answers import CompareAnswer
from schemas.contribution_answers import ContributionsAnswer
from schemas.contributions import ContributionsRequest
from schemas.decode import DecodeRequest
from schemas.decode_answers import DecodeAnswer
from schemas.equivariance import EquivarianceRequest
from schemas.equivariance_answers import EquivarianceAnswer
from schemas.jacobian import JacobianRequest
from schemas.jacobian_answers import JacobianAnswer
from schemas.plan_answers import PlanAnswer, TracePlanAnswer
from schemas.problems import LimitProblem, Problem, UnknownModelProblem
from schemas.rope import RopeRequest
from schemas.rope_answers import RopeAnswer
from schemas.sizing.answer import SizingAnswer
from schemas.sizing.capacity import CapacityAnswer, CapacityRequest
from schemas.sizing.compare import SizingCompareAnswer, SizingCompareRequest
from schemas.sizing.inverse import InverseAnswer, InverseRequest
from schemas.sizing.reconcile import ReconcileAnswer, ReconcileRequest
from schemas.sizing.request import SizingRequest
from schemas.subspaces import SubspacesRequest
from schemas.subspaces_answers import SubspacesAnswer
from schemas.sweep import SweepRequest
from schemas.sweep_answers import SweepAnswer
from schemas.trace import TraceRequest
from service.forms import form, sent
from service.problems import KINDS, MEDIA_TYPE, Kind
from service.storage import parts

Json = dict[str, Any]
Responses = dict[int | str, Json]

REQUESTS: Sequence[type[BaseModel]] = (
    *(TraceRequest, ContributionsRequest, SubspacesRequest, SweepRequest, CompareRequest),
    *(DecodeRequest, JacobianRequest, RopeRequest, EquivarianceRequest),
    *(SizingRequest, CapacityRequest),
    *(InverseRequest, SizingCompareRequest, ReconcileRequest),
)
ANSWERS: Sequence[type] = (
    *(TraceAnswer, ContributionsAnswer, SubspacesAnswer, SweepAnswer, CompareAnswer),
    *(DecodeAnswer, JacobianAnswer, RopeAnswer, EquivarianceAnswer),
    *(SizingAnswer, CapacityAnswer),
    *(InverseAnswer, SizingCompareAnswer, ReconcileAnswer),
)
"""Of the calls that compute: what each reads, and what it answers."""

_COMPONENTS = "#/components/schemas/"
_TEMPLATE = _COMPONENTS + "{model}"
_DESCRIBED: Sequence[tuple[Sequence[type], JsonSchemaMode]] = (
    ((Problem, LimitProblem, UnknownModelProblem), "serialization"),
    ((PlanAnswer, TracePlanAnswer), "serialization"),
    (REQUESTS, "validation"),
    (ANSWERS, "serialization"),
)
"""What routes refer to by name alone: FastAPI would describe it again for each application."""
_SPECIAL = {
    "body-too-large": LimitProblem,
    "beyond-limit": LimitProblem,
    "head-too-large": LimitProblem,
    "unknown-model": UnknownModelProblem,
}
_EXAMPLES: Mapping[str, Json] = {
    "body-too-large": {"limit": {"name": "body_bytes", "value": 16777216, "got": 16777217}},
    "beyond-limit": {
        "limit": {"name": "answer_elements", "value": 4194304, "got": 50331648},
        "estimate": {
            "elements": 50331648,
            "bytes": 587202560,
            "seconds": 1.5,
            "parts": [{"stage": "blocks.0.attn.pattern", "elements": 50331648}],
        },
        "advice": {"select": ["blocks.*.resid_post"]},
    },
    "unknown-model": {"models": ["eiffel-toy", "induction", "letter-sort"]},
}

_BINARY: Json = {
    "type": "string",
    "format": "binary",
    "description": "The same request as a safetensors file: its JSON, without its tensors, under "
    "__metadata__ in the entry request; each tensor as an entry that is named by the JSON Pointer "
    "of its place, as /input/tensor.",
}

_AN_UPLOAD = {"file": ["@config.json", "@model.safetensors", "@tokenizer.json", "@README.md"]}

OF_A_BODY = (
    "malformed-json",
    "malformed-safetensors",
    "not-acceptable",
    "slow-body",
    "body-too-large",
    "unsupported-media-type",
    "invalid-request",
    "internal",
)
"""What any call with a body may be answered."""

OF_A_RUN = ("beyond-limit", "busy", "draining", "out-of-memory", "deadline")
"""What any call that computes may be answered besides."""

OF_A_SIZING = ("unknown-model", "config-rule", "unanswerable", "invalid-selection")
"""What a call that sizes a model may be answered besides."""


def body(
    model: type[BaseModel], examples: Mapping[str, Json], taken: Sequence[str] = sent.TAKEN
) -> Json:
    """`openapi_extra` of a route that reads a model; examples as {name: {"value": …}}.

    taken: the media types of its body, which is what `bodies.read` goes by.
    """
    described = {
        form.JSON: {
            "schema": {"$ref": _COMPONENTS + model.__name__},
            "examples": dict(examples),
        },
        form.SAFETENSORS: {"schema": _BINARY},
    }
    content = {media: described[media] for media in taken}
    return {"requestBody": {"required": True, "content": content}}


def upload() -> Json:
    """`openapi_extra` of a route that reads the files of a model."""
    files = {"type": "array", "items": {"type": "string", "format": "binary"}}
    files["description"] = f"The model's files; each part's filename says which. {parts.OFFERED}"
    schema = {"type": "object", "properties": {"file": files}, "required": ["file"]}
    return {
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": {
                    "schema": schema,
                    "examples": {"files": {"summary": "By curl", "value": _AN_UPLOAD}},
                }
            },
        }
    }


def answer(model: type, example: Mapping[str, Any]) -> Json:
    """What a route that answers a model as JSON may look like."""
    schema = {"$ref": _COMPONENTS + model.__name__}
    return {"content": {"application/json": {"schema": schema, "example": dict(example)}}}


def tensors(model: type, example: Mapping[str, Any], plan: type = PlanAnswer) -> Json:
    """What a route that answers tensors, or its plan, may look like: JSON, a safetensors body,
    JSON Lines."""
    told = answer(model, example)
    either = [{"$ref": _COMPONENTS + each.__name__} for each in (model, plan)]
    told["content"][form.JSON]["schema"] = {"anyOf": either}
    told["content"] |= {
        form.SAFETENSORS: {"schema": {"type": "string", "format": "binary"}},
        **{lines: {"schema": {"type": "string"}} for lines in (form.LINES, form.NDJSON)},
    }
    return told


def problem_responses(*codes: str) -> Responses:
    """`responses` of a route that may answer with these kinds of problem."""
    kinds = sorted((KINDS[code] for code in codes), key=lambda kind: kind.status)
    return {
        status: _response(list(same)) for status, same in groupby(kinds, lambda kind: kind.status)
    }


@lru_cache(maxsize=4)
def encoded(app: FastAPI) -> bytes:
    """The document as JSON."""
    return orjson.dumps(document(app))


def document(app: FastAPI) -> Json:
    """The whole document, with every schema it refers to."""
    whole: Json = app.openapi()
    schemas: Json = whole.setdefault("components", {}).setdefault("schemas", {})
    for models, mode in _DESCRIBED:
        schemas.update(_schemas_of(models, mode))
    for operation in _operations(whole):
        operation["summary"] = operation["description"].split("\n")[0].rstrip(".")
        _drop_default_errors(operation)
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    return whole


def _operations(whole: Json) -> Iterator[Json]:
    for path in whole["paths"].values():
        yield from path.values()


def _drop_default_errors(operation: Json) -> None:
    """FastAPI's own 422, which is never sent."""
    found = operation["responses"].get("422", {}).get("content", {})
    if "application/json" in found:
        del operation["responses"]["422"]


def _schemas_of(models: Sequence[type], mode: JsonSchemaMode) -> Json:
    """The schema of each model, and those that they refer to."""
    found: Json = {}
    for model in models:
        schema = TypeAdapter(model).json_schema(ref_template=_TEMPLATE, mode=mode)
        found.update(schema.pop("$defs", {}), **{model.__name__: schema})
    return cast(Json, _without_nulls(found))


def _without_nulls(schema: object) -> object:
    """A schema without defaults of null: a key that is left out is not always one of null."""
    if isinstance(schema, dict):
        return {key: _without_nulls(x) for key, x in schema.items() if x is not None}
    return [_without_nulls(x) for x in schema] if isinstance(schema, list) else schema


def _response(kinds: list[Kind]) -> Json:
    names = sorted({_SPECIAL.get(kind.code, Problem).__name__ for kind in kinds})
    references = [{"$ref": _COMPONENTS + name} for name in names]
    schema = references[0] if len(references) == 1 else {"anyOf": references}
    examples = {kind.code: {"summary": kind.title, "value": _example(kind)} for kind in kinds}
    return {
        "description": "; or: ".join(kind.title for kind in kinds),
        "content": {MEDIA_TYPE: {"schema": schema, "examples": examples}},
    }


def _example(kind: Kind) -> Json:
    return {
        "type": kind.type,
        "title": kind.title,
        "status": kind.status,
        "detail": f"{kind.title}.",
        "instance": "urn:uuid:00000000-0000-4000-8000-000000000000",
        "errors_total": 0,
        "errors": [],
        **_EXAMPLES.get(kind.code, {}),
    }
