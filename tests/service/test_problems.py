"""Every error is a problem of one shape, documented and with CORS headers."""

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from compute.errors import ComputeError, Fault
from service import errors, problems
from service.problems import KINDS, MOST_BYTES, Refusal

AssertProblem = Callable[..., dict[str, Any]]
DOCS = Path(__file__).parents[2] / "docs" / "errors.md"
JSON = {"Content-Type": "application/json"}
SECRET = "a secret of the service"


def raising(app: FastAPI, error: Exception) -> TestClient:
    async def fail() -> None:
        raise error

    app.add_api_route("/fail", fail)
    return TestClient(app, headers={"Origin": "http://page.example"})


def test_every_kind_is_documented_as_it_is_and_nothing_else_is() -> None:
    rows = re.findall(r"^\| (\d+) \| ([\w-]+) \| (.+?) \| (.+?) \|$", DOCS.read_text("utf-8"), re.M)
    kinds = [(str(kind.status), kind.code, kind.title, kind.meaning) for kind in KINDS.values()]
    assert rows == kinds


@pytest.mark.parametrize("code", KINDS)
def test_type_of_a_problem_is_an_address_that_explains_it(client: TestClient, code: str) -> None:
    found = client.get(KINDS[code].type).json()
    assert found == {
        "type": f"/problems/{code}",
        "title": KINDS[code].title,
        "status": KINDS[code].status,
        "meaning": KINDS[code].meaning,
    }


def test_every_kind_that_errors_name_exists_and_every_kind_is_used() -> None:
    source = Path(errors.__file__).read_text("utf-8")
    named = set(re.findall(r'(?:Refusal\(\s*code=|Origin\(|40[45]: )"([\w-]+)"', source))
    assert named == KINDS.keys()


@pytest.mark.parametrize("path", ["/nothing", "/v1/trace/", "/problems/nothing", "/docs/../x"])
def test_unknown_addresses_are_problems(
    client: TestClient, assert_problem: AssertProblem, path: str
) -> None:
    assert_problem(client.get(path), "not-found")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("GET", "/v1/trace", "POST"), ("POST", "/healthz", "GET"), ("BREW", "/v1/stages", "GET")],
)
def test_wrong_methods_are_told_the_right_ones(
    client: TestClient, assert_problem: AssertProblem, method: str, path: str, allowed: str
) -> None:
    response = client.request(method, path)
    assert_problem(response, "method-not-allowed")
    assert response.headers["allow"] == allowed


def test_allow_names_every_method_of_an_address_with_several(
    make_app: Callable[..., FastAPI],
) -> None:
    def nothing() -> None: ...

    app = make_app()
    for method in ("GET", "DELETE"):
        app.add_api_route("/several", nothing, methods=[method])
    assert TestClient(app).post("/several").headers["allow"] == "GET, DELETE"


def test_unknown_model_is_told_the_names_there_are(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    request = {"model": {"name": "nobody"}, "input": {"tensor": [[1, 2]]}}
    body = assert_problem(client.post("/v1/trace", json=request), "unknown-model")
    assert "eiffel-toy" in body["models"]
    assert body["errors"][0]["pointer"] == "/model/name"
    assert "nobody" not in str(body)


def test_answer_beyond_a_limit_says_which_how_much_and_what_fits(
    make_client: Callable[..., TestClient], assert_problem: AssertProblem
) -> None:
    request = {
        "model": {"config": {"d_model": 4, "attention": {"n_heads": 1}}},
        "input": {"tensor": [[0, 0, 0, 0]] * 8},
    }
    client = make_client(answer_elements=100)
    body = assert_problem(client.post("/v1/trace", json=request), "beyond-limit")
    assert body["limit"]["name"] == "answer_elements"
    assert body["limit"]["got"] > body["limit"]["value"] == 100
    sizes = [part["elements"] for part in body["estimate"]["parts"]]
    assert sizes == sorted(sizes, reverse=True)
    again = client.post("/v1/trace", json={**request, "select": body["advice"]["select"]})
    assert again.status_code == 200


def test_config_that_contradicts_itself_is_located(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    request = {
        "model": {"config": {"d_model": 3, "attention": {"n_heads": 2}}},
        "input": {"tensor": [[1, 2, 3]]},
    }
    body = assert_problem(client.post("/v1/trace", json=request), "config-rule")
    assert body["errors"][0]["pointer"] == "/model/config/attention/n_heads"


def test_fault_of_the_service_tells_nothing_and_is_logged(
    make_app: Callable[..., FastAPI],
    assert_problem: AssertProblem,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR, "glassblock"):
        response = raising(make_app(), RuntimeError(SECRET)).get("/fail")
    body = assert_problem(response, "internal")
    assert SECRET not in response.text
    (record,) = caplog.records
    assert body["instance"] in record.getMessage()
    assert record.exc_info is not None
    assert SECRET in str(record.exc_info[1])


def test_error_of_compute_without_an_origin_is_a_fault_of_the_service(
    make_app: Callable[..., FastAPI], assert_problem: AssertProblem
) -> None:
    error = ComputeError([Fault(code="x", detail=SECRET)])
    response = raising(make_app(), error).get("/fail")
    assert_problem(response, "internal")
    assert SECRET not in response.text


def test_lack_of_memory_is_temporary(
    make_app: Callable[..., FastAPI], assert_problem: AssertProblem
) -> None:
    response = raising(make_app(), MemoryError()).get("/fail")
    assert_problem(response, "out-of-memory")
    assert int(response.headers["retry-after"]) > 0


def test_problem_is_never_larger_than_its_bound() -> None:
    fault = Fault(code="x", detail="d" * 300, place=("k" * 100,) * 4, expected=["e" * 500] * 9)
    huge = Refusal(
        code="beyond-limit",
        faults=[fault] * 100,
        members={"limit": {"name": "x", "value": 1}, "advice": {"select": ["s" * 100] * 900}},
    )
    body = problems.problem(huge, most=100)
    encoded = problems.encode(body)
    assert len(encoded) <= MOST_BYTES
    assert orjson.loads(encoded)["errors_total"] == 100
    assert orjson.loads(encoded)["errors"]


def test_longest_list_of_faults_that_fits_is_kept() -> None:
    faults = [Fault(code="x", detail="d" * 300)] * 64
    encoded = problems.encode(problems.problem(Refusal(code="config-rule", faults=faults), 64))
    assert len(orjson.loads(encoded)["errors"]) == 32


def test_preflight_of_an_allowed_origin_is_answered(client: TestClient) -> None:
    headers = {"Access-Control-Request-Method": "POST",
               "Access-Control-Request-Headers": "content-type"}  # fmt: skip
    response = client.options("/v1/trace", headers=headers)
    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == "http://page.example"


def test_preflight_of_another_origin_is_a_problem(client: TestClient) -> None:
    headers = {"Origin": "http://other.example", "Access-Control-Request-Method": "POST"}
    response = client.options("/v1/trace", headers=headers)
    assert response.status_code == 400
    assert response.json()["type"] == "/problems/cors-refused"
    assert "access-control-allow-origin" not in response.headers


def test_headers_that_pages_need_are_exposed(client: TestClient) -> None:
    exposed = client.get("/healthz").headers["access-control-expose-headers"]
    assert exposed == "Server-Timing, Retry-After"


def test_without_origins_no_page_of_another_site_reads_anything(
    make_client: Callable[..., TestClient],
) -> None:
    response = make_client(cors_origins=()).get("/nothing")
    assert "access-control-allow-origin" not in response.headers


def test_log_has_one_line_a_request_and_nothing_that_was_sent(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "glassblock"):
        client.get("/problems/secret-word")
        client.get("/secret-word")
        client.get("/v1/limits")
    lines = [record.getMessage() for record in caplog.records if record.name == "glassblock"]
    assert [re.sub(r"[\d.]+ ms", "_ ms", line) for line in lines] == [
        "GET /problems/{code} 404 _ ms",
        "GET - 404 _ ms",
        "GET /v1/limits 200 _ ms",
    ]


def test_whole_number_beyond_what_json_readers_keep_is_a_string() -> None:
    fault = Fault(code="x", detail="y.", expected=[2**53, 2**70], got=-(2**64))
    listed = problems.problem(Refusal(code="invalid-request", faults=[fault]), most=1)["errors"][0]
    assert listed["expected"] == [2**53, str(2**70)]
    assert listed["got"] == str(-(2**64))
    assert orjson.loads(problems.encode(problems.problem(Refusal(code="busy"), most=1)))
