"""Every bad request of the table, refused by the application in this process."""

from collections import Counter

import pytest
from starlette.testclient import TestClient

from door import good
from door.case import Case
from door.checks import Answer, check
from door.table import cases

IN_PROCESS = [pytest.param(case, id=name) for name, case in cases() if not case.wire]


@pytest.mark.parametrize("case", IN_PROCESS)
def test_bad_request_is_refused_in_its_place(client: TestClient, case: Case) -> None:
    response = client.request(
        case.method, case.path, content=case.body(), headers=dict(case.headers)
    )
    check(case, Answer(response.status_code, response.headers, response.content))


def test_every_case_has_a_name_of_its_own() -> None:
    twice = [name for name, count in Counter(name for name, _ in cases()).items() if count > 1]
    assert twice == []


def test_table_is_as_long_as_promised() -> None:
    assert sum(1 for _ in cases()) >= 4000


@pytest.mark.parametrize("name", good.REQUESTS)
def test_good_request_beside_the_bad_ones_is_answered(client: TestClient, name: str) -> None:
    answer = client.post("/v1/trace", json=good.REQUESTS[name])
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["tensors"]
    assert [x["name"] for x in body["identities"] if x["holds"] is False] == []
