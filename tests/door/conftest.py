"""The application in this process, the same before the table as after it."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from door.checks import GOOD_REQUEST, ORIGIN
from service.app import create_app
from service.settings import Settings


@pytest.fixture(scope="package")
def client() -> Iterator[TestClient]:
    """A client of the application; what it answers to a good request stays the same."""
    with pytest.MonkeyPatch.context() as patch:
        for name in Settings.model_fields:
            patch.delenv(f"GLASSBLOCK_{name.upper()}", raising=False)
        app = create_app(Settings(cors_origins=(ORIGIN,)))
    with TestClient(app, headers={"Origin": ORIGIN}) as made:
        before = _good(made)
        yield made
        assert made.get("/healthz").status_code == 200
        assert _good(made) == before


def _good(client: TestClient) -> bytes:
    headers = {"Content-Type": "application/json"}
    response = client.post("/v1/trace", content=GOOD_REQUEST, headers=headers)
    assert response.status_code == 200
    return response.content
