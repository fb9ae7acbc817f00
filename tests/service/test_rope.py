"""POST /v1/rope, from bytes to bytes."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter
from starlette.testclient import TestClient

from near import near
from oracle import positions as oracle
from schemas.rope_answers import RopeAnswer
from service.example_bodies import rope as bodies

AssertProblem = Callable[..., dict[str, Any]]
PAIR = {"degrees_per_position": 4}


def asked(client: TestClient, **body: object) -> Any:  # noqa: ANN401 - plain JSON
    response = client.post("/v1/rope", json=body)
    assert response.status_code == 200, response.text
    TypeAdapter(RopeAnswer).validate_json(response.content, strict=True)
    return response.json()


def test_the_sketch_of_the_interface_is_answered_as_sketched(client: TestClient) -> None:
    found = asked(client, positions=[12, 4], pair=PAIR)
    assert found["angles_degrees"] == [48, 16]
    assert found["between_degrees"] == 32
    assert round(found["dot"], 7) == 0.8480481
    assert found["relative"] == 8


@pytest.mark.parametrize("name", bodies.REQUESTS)
def test_an_example_is_answered_as_described(client: TestClient, name: str) -> None:
    asked(client, **bodies.REQUESTS[name]["value"])


def test_the_answer_that_is_shown_is_the_answer(client: TestClient) -> None:
    found = asked(client, **bodies.REQUESTS["article"]["value"])
    assert near(found, dict(bodies.ANSWER))


def test_degrees_and_radians_of_the_same_angle_agree(client: TestClient) -> None:
    radians = {"radians_per_position": math.radians(4)}
    one, other = (asked(client, positions=[12, 4], pair=pair) for pair in (PAIR, radians))
    assert other["dot"] == pytest.approx(one["dot"], abs=1e-15)
    assert other["angles_degrees"] == pytest.approx([48, 16], abs=1e-13)


def test_one_position_or_three_have_a_grid_and_no_single_numbers(client: TestClient) -> None:
    for positions in ([7], [7, 0, 9]):
        found = asked(client, positions=positions, pair=PAIR)
        assert [found[key] for key in ("relative", "between_degrees", "dot")] == [None] * 3
        expected = [[math.cos(math.radians(4 * (p - q))) for q in positions] for p in positions]
        assert found["grid"]["dots"] == [pytest.approx(row, abs=1e-15) for row in expected]
        assert found["grid"]["relative"] == [[p - q for q in positions] for p in positions]
        assert found["grid"]["between_degrees"] == [
            [4 * (p - q) for q in positions] for p in positions
        ]


def test_a_spectrum_tells_its_pairs(client: TestClient) -> None:
    body = bodies.REQUESTS["spectrum"]["value"]
    found = asked(client, **body)
    spectrum = found["spectrum"]
    factor = 0.1 * math.log(4) + 1
    assert spectrum["attention_factor"] == pytest.approx(factor, rel=1e-15)
    assert spectrum["unrotated"] == [6, 7]
    assert [pair["coordinates"] for pair in spectrum["pairs"]] == [[0, 1], [2, 3], [4, 5]]
    for pair in spectrum["pairs"]:
        frequency = pair["radians_per_position"]
        assert pair["wavelength"] == pytest.approx(2 * math.pi / frequency, rel=1e-14)
        assert pair["degrees_per_position"] == pytest.approx(math.degrees(frequency), rel=1e-14)
        assert pair["angles_radians"] == pytest.approx([100 * frequency, 0.0], rel=1e-14)
        dot = factor**2 * math.cos(100 * frequency)
        assert pair["dot"] == pytest.approx(dot, abs=1e-13)
    assert math.fsum(pair["dot"] for pair in spectrum["pairs"]) == pytest.approx(found["dot"])
    assert found["angles_degrees"] is None
    assert found["grid"]["between_degrees"] is None


def test_vectors_of_a_spectrum_are_turned_as_the_oracle_turns_them(client: TestClient) -> None:
    query, key = [0.5, -1, 2, 0.25, 3, 1], [1, 1, -0.5, 2, 0, -3]
    spectrum = {"d_head": 6, "theta": 50, "rotary_dim": 4, "pairing": "half"}
    found = asked(client, positions=[9, 2], spectrum=spectrum, vectors=[query, key])
    rope = {"theta": 50.0, "rotary_dim": 4, "pairing": "half"}
    for name, vector in (("query", query), ("key", key)):
        for at, position in enumerate((9, 2)):
            expected = oracle.rotate(np.array(vector, float), position, rope)
            assert found["rotated"][name][at] == pytest.approx(list(expected), abs=1e-14)


def test_a_model_is_answered_with_the_theta_of_its_block(client: TestClient) -> None:
    config = {
        "d_model": 8,
        "n_layers": 3,
        "attention": {"n_heads": 2},
        "position": {"kind": "rope"},
        "layers": [{}, {"theta": 50}, {"theta": None}],
    }
    for block, theta in ((0, 10000.0), (None, 10000.0), (1, 50.0), (-2, 50.0)):
        given = {} if block is None else {"block": block}
        found = asked(client, positions=[3], model={"config": config}, **given)
        assert found["spectrum"]["position"]["theta"] == theta
        second = found["spectrum"]["pairs"][1]["radians_per_position"]
        assert second == pytest.approx(theta**-0.5, rel=1e-15)


def test_what_overflows_is_null(client: TestClient) -> None:
    huge = [[1e308, 1e308], [1e308, 1e308]]
    found = asked(client, positions=[1, 2], pair=PAIR, vectors=huge)
    assert found["dot"] is None
    assert asked(client, positions=[1, 2], spectrum={"d_head": 4})["dot"] is not None


LAYERS = {
    "config": {
        "d_model": 8,
        "attention": {"n_heads": 2},
        "position": {"kind": "rope"},
        "layers": [{"theta": None}],
    }
}


@pytest.mark.parametrize(
    ("body", "code", "pointers"),
    [
        ({"model": {"name": "letter-sort"}}, "unanswerable", ["/model"]),
        ({"model": LAYERS}, "unanswerable", ["/model"]),
        ({"model": {"name": "induction"}, "block": 2}, "unanswerable", ["/block"]),
        ({"model": {"name": "induction"}, "block": -3}, "unanswerable", ["/block"]),
        ({"model": {"name": "nobody"}}, "unknown-model", ["/model/name"]),
        ({"pair": PAIR, "vectors": [[1, 2, 3]] * 2}, "unanswerable", ["/vectors"]),
        ({"spectrum": {"d_head": 7}}, "config-rule", ["/spectrum/rotary_dim"]),
        ({"spectrum": {"d_head": 4, "rotary_dim": 6}}, "config-rule", ["/spectrum/rotary_dim"]),
        (
            {"spectrum": {"d_head": 4, "scaling": {"kind": "yarn"}}},
            "config-rule",
            ["/spectrum/scaling/factor", "/spectrum/scaling/original_positions"],
        ),
        (
            {"spectrum": {"d_head": 4, "scaling": {"kind": "linear", "factor": 2, "beta_fast": 2}}},
            "config-rule",
            ["/spectrum/scaling/beta_fast"],
        ),
        (
            {
                "spectrum": {
                    "d_head": 4,
                    "theta": 0.5,
                    "scaling": {"kind": "yarn", "factor": 2, "original_positions": 8},
                }
            },
            "config-rule",
            ["/spectrum/theta"],
        ),
    ],
)
def test_what_cannot_be_answered_is_told_where_it_is(
    client: TestClient,
    assert_problem: AssertProblem,
    body: dict[str, Any],
    code: str,
    pointers: list[str],
) -> None:
    response = client.post("/v1/rope", json={"positions": [1, 2], **body})
    found = assert_problem(response, code)
    assert [fault["pointer"] for fault in found["errors"]] == pointers


@pytest.mark.parametrize(
    "body",
    [
        {"positions": list(range(1024)), "spectrum": {"d_head": 1 << 20}},
        {"positions": [0], "spectrum": {"d_head": 1 << 20}},
    ],
)
def test_a_hostile_size_is_refused_before_anything_is_made(
    client: TestClient, assert_problem: AssertProblem, body: dict[str, Any]
) -> None:
    found = assert_problem(client.post("/v1/rope", json=body), "beyond-limit")
    assert found["advice"]["text"]


def test_as_much_as_may_be_asked_for_of_a_pair_is_answered(client: TestClient) -> None:
    found = asked(client, positions=[1 << 31] * 1024, pair={"radians_per_position": 1e6})
    assert len(found["grid"]["dots"]) == 1024
    # cosine and sine of the same angle on both sides, squared and summed
    assert found["grid"]["dots"][0][1023] == pytest.approx(1.0, abs=1e-15)
