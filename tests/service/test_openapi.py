"""The OpenAPI document is one, and its examples and schemas are true."""

from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
import pytest
from openapi_spec_validator import validate
from starlette.testclient import TestClient

from service.app import COMPUTING
from service.forms.form import SAFETENSORS
from service.problems import KINDS, MEDIA_TYPE

Json = dict[str, Any]


@pytest.fixture
def document(client: TestClient) -> Json:
    found: Json = client.get("/openapi.json").json()
    return found


def operations(document: Json) -> Iterator[tuple[str, str, Json]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def follows(document: Json, schema: Json, instance: object) -> None:
    """Check an instance against a schema of the document."""
    whole = {**schema, "components": document["components"]}
    jsonschema.validate(instance, whole, jsonschema.Draft202012Validator)


def test_document_is_valid_openapi_3_1(document: Json) -> None:
    assert document["openapi"].startswith("3.1.")
    validate(document)


def test_every_call_has_a_name_of_its_own_and_a_description(document: Json) -> None:
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert sorted(names) == sorted(set(names))
    assert [
        path for _, path, operation in operations(document) if not operation["description"]
    ] == []


def test_documented_request_examples_are_answered_as_documented(
    client: TestClient, document: Json
) -> None:
    ran = 0
    for method, path, operation in operations(document):
        media = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        for example in media.get("examples", {}).values():
            follows(document, media["schema"], example["value"])
            response = client.request(method, path, json=example["value"])
            assert response.status_code == 200, response.text
            answer = operation["responses"]["200"]["content"]["application/json"]["schema"]
            follows(document, answer, response.json())
            ran += 1
    assert ran > 0


def test_every_call_with_a_body_has_an_example(document: Json) -> None:
    bodies = [
        (media, described)
        for _, _, operation in operations(document)
        if "requestBody" in operation
        for media, described in operation["requestBody"]["content"].items()
    ]
    in_bytes = [described for media, described in bodies if media == SAFETENSORS]
    assert len(in_bytes) == len(COMPUTING)
    assert all("__metadata__" in described["schema"]["description"] for described in in_bytes)
    assert all(described["examples"] for media, described in bodies if media != SAFETENSORS)


def test_calls_without_parameters_answer_as_documented(client: TestClient, document: Json) -> None:
    for method, path, operation in operations(document):
        if method == "get" and "{" not in path:
            answer = operation["responses"]["200"]["content"]["application/json"]["schema"]
            follows(document, answer, client.get(path).json())


def test_problem_examples_follow_their_schema(document: Json) -> None:
    for _, _, operation in operations(document):
        for status, response in operation["responses"].items():
            media = response.get("content", {}).get(MEDIA_TYPE)
            if int(status) < 300:
                continue
            assert media is not None
            for code, example in media["examples"].items():
                assert example["value"]["status"] == KINDS[code].status == int(status)
                follows(document, media["schema"], example["value"])


def test_calls_with_a_body_document_what_any_body_may_be_answered(document: Json) -> None:
    for _, _, operation in operations(document):
        if "requestBody" in operation:
            assert {"400", "406", "408", "413", "415", "422", "500"} <= operation[
                "responses"
            ].keys()


def test_problems_that_are_sent_follow_the_documented_schema(
    client: TestClient, document: Json
) -> None:
    request: Json = {"model": {"name": "nobody"}, "input": {"token_ids": [0]}}
    sent = [
        (client.post("/v1/trace", json={}), "Problem"),
        (client.post("/v1/trace", json=request), "UnknownModelProblem"),
        (client.post("/v1/trace", headers={"Content-Type": "application/json",
                                           "Content-Length": "99999999"}), "LimitProblem"),
    ]  # fmt: skip
    for response, name in sent:
        follows(document, {"$ref": f"#/components/schemas/{name}"}, response.json())


def test_document_refers_to_no_other_place(document: Json) -> None:
    assert "http://" not in str(document)
    assert "https://" not in str(document)


def test_document_is_the_same_for_every_service(
    client: TestClient, make_client: Callable[..., TestClient]
) -> None:
    other = make_client(positions=7, cors_origins=())
    assert other.get("/openapi.json").content == client.get("/openapi.json").content


def test_every_field_is_described(client: TestClient) -> None:
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    silent = [
        f"{name}.{field}"
        for name, schema in schemas.items()
        for field, described in schema.get("properties", {}).items()
        if not described.get("description")
    ]
    assert silent == []
