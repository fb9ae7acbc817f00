"""The OpenAPI document: what FastAPI derives, and what it cannot know.

Bodies are read raw and errors are answered outside of FastAPI, so both are described here:
`body` and `problem_responses` go into a route's declaration, `document` completes the whole.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import groupby
from typing import Any, cast

import orjson
from fastapi import FastAPI
from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import JsonSchemaMode

from schemas.problems import LimitProblem, Problem, UnknownModelProblem
from service.problems import KINDS, MEDIA_TYPE, Kind
from service.storage import parts

Json = dict[str, Any]
Responses = dict[int | str, Json]

_COMPONENTS = "#/components/schemas/"
_TEMPLATE = _COMPONENTS + "{model}"
_PROBLEM_TYPES = (Problem, LimitProblem, UnknownModelProblem)
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

_AN_UPLOAD = {"file": ["@config.json", "@model.safetensors", "@tokenizer.json", "@README.md"]}

OF_A_BODY = (
    "malformed-json",
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


def body(model: type[BaseModel], examples: Mapping[str, Json]) -> Json:
    """`openapi_extra` of a route that reads a model as JSON; examples as {name: {"value": …}}."""
    schema = model.model_json_schema(ref_template=_TEMPLATE, mode="validation")
    named = {**schema.pop("$defs", {}), model.__name__: schema}
    reference = {"$ref": _COMPONENTS + model.__name__, "$defs": named}  # `document` moves them
    media = {"schema": reference, "examples": dict(examples)}
    return {"requestBody": {"required": True, "content": {"application/json": media}}}


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


def example(answer: Mapping[str, Any]) -> Json:
    """What a route that answers may look like."""
    return {"content": {"application/json": {"example": dict(answer)}}}


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
    schemas.update(_problem_schemas())
    for operation in _operations(whole):
        operation["summary"] = operation["description"].split("\n")[0].rstrip(".")
        _drop_default_errors(operation)
        for media in operation.get("requestBody", {}).get("content", {}).values():
            schemas.update(media["schema"].pop("$defs", {}))
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


def _problem_schemas() -> Json:
    mode: JsonSchemaMode = "serialization"
    adapters = [(kind.__name__, mode, TypeAdapter(kind)) for kind in _PROBLEM_TYPES]
    _, schemas = TypeAdapter.json_schemas(adapters, ref_template=_TEMPLATE)
    return cast(Json, schemas["$defs"])


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
