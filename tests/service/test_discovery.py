"""What the service says about itself."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from compute import stages
from service import __version__
from service.app import COMPUTING, SIZING


def test_front_door_points_to_calls_that_answer(client: TestClient) -> None:
    welcome = client.get("/").json()
    assert (welcome.pop("name"), welcome.pop("version")) == ("glassblock", __version__)
    calls = {route.path for module in (*COMPUTING, *SIZING) for route in module.router.routes}
    asked = {path for path in welcome.values() if path in calls}
    assert asked == calls
    assert {client.get(path).status_code for path in asked} == {405}
    welcome = {name: path for name, path in welcome.items() if path not in calls}
    assert {path: client.get(path).status_code for path in welcome.values()} == dict.fromkeys(
        welcome.values(), 200
    )


def test_service_is_alive_and_ready(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}


def test_service_that_is_stopping_is_alive_and_not_ready(
    make_client: Callable[..., TestClient], assert_problem: Callable[..., dict[str, Any]]
) -> None:
    client = make_client()
    client.app.state.glassblock.admission.drain()  # type: ignore[attr-defined]
    response = client.get("/readyz")
    assert_problem(response, "draining")
    assert int(response.headers["retry-after"]) >= 1
    assert client.get("/healthz").status_code == 200


def test_end_of_the_application_drains_it(make_app: Callable[..., FastAPI]) -> None:
    app = make_app()
    with TestClient(app):
        assert not app.state.glassblock.admission.draining
    assert app.state.glassblock.admission.draining


def test_catalogue_has_every_stage_in_order_with_words_for_axes(client: TestClient) -> None:
    answered = client.get("/v1/stages").json()
    assert {axis["letter"]: axis["word"] for axis in answered["axes"]} == stages.GLOSSARY
    assert [stage["name"] for stage in answered["stages"]] == [s.name for s in stages.STAGES]
    (pattern,) = (stage for stage in answered["stages"] if stage["name"] == "attn.pattern")
    assert pattern["axes"] == ["head", "position", "key_position"]
    assert (pattern["symbol"], pattern["symbol_when"]) == ("A", "always")
    assert (pattern["derived"], pattern["by_default"]) == (False, True)
    assert {"library": "transformer_lens", "name": "attn.hook_pattern", "when": "always"} in (
        pattern["aliases"]
    )


def test_schema_says_what_an_encoders_stages_are_called(client: TestClient) -> None:
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert "encoder." in schemas["Catalogue"]["description"]
    assert "encoder." in schemas["StageAnswered"]["properties"]["name"]["description"]


def test_stage_without_a_symbol_says_so(client: TestClient) -> None:
    listed = client.get("/v1/stages").json()["stages"]
    assert all((stage["symbol"] is None) == (stage["symbol_when"] is None) for stage in listed)


def test_docs_page_and_all_it_loads_come_from_here(client: TestClient) -> None:
    page = client.get("/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "://" not in page.text
    for part in ("swagger-ui.css", "swagger-ui-bundle.js", "init.js", "favicon.png"):
        assert f"/docs/{part}" in page.text
        assert client.get(f"/docs/{part}").status_code == 200


def test_docs_page_has_no_script_or_style_of_its_own(client: TestClient) -> None:
    text = client.get("/docs").text
    assert "<style" not in text
    assert "style=" not in text
    assert text.count("<script") == text.count("<script src=")


@pytest.mark.parametrize("name", ["redoc.standalone.js", "..%2Fapp.py", "init.js%00"])
def test_docs_serve_no_other_file(client: TestClient, name: str) -> None:
    assert client.get(f"/docs/{name}").status_code == 404
