"""Rotations as asked for: exactly one of three, one unit, positions in range."""

import pytest
from pydantic import ValidationError

from compute.errors import ConfigError
from schemas.rope import RopeRequest, RopeSpectrumAsked

PAIR = {"degrees_per_position": 4}


def kinds(body: object) -> set[tuple[tuple[str | int, ...], str]]:
    """Where each fault is, and its type."""
    with pytest.raises(ValidationError) as raised:
        RopeRequest.model_validate(body)
    return {(fault["loc"], fault["type"]) for fault in raised.value.errors(include_input=False)}


def test_the_sketch_of_the_interface_is_a_request() -> None:
    asked = RopeRequest.model_validate({"positions": [12, 4], "pair": PAIR})
    assert asked.positions == [12, 4]
    assert asked.vectors is None


@pytest.mark.parametrize(
    "given", [{}, {"pair": PAIR, "spectrum": {"d_head": 4}}, {"pair": PAIR, "model": {"name": "x"}}]
)
def test_exactly_one_of_pair_spectrum_and_model_is_given(given: dict[str, object]) -> None:
    assert kinds({"positions": [1], **given}) == {((), "exactly_one")}


@pytest.mark.parametrize("pair", [{}, {**PAIR, "radians_per_position": 1}])
def test_a_pair_has_one_unit(pair: object) -> None:
    assert kinds({"positions": [1], "pair": pair}) == {(("pair",), "exactly_one")}


def test_positions_are_whole_and_in_range_each_told_by_itself() -> None:
    positions = [True, -1, (1 << 31) + 1, 1.5, "2", 1 << 31, 0]
    assert {loc[-1] for loc, _ in kinds({"positions": positions, "pair": PAIR})} == set(range(5))


@pytest.mark.parametrize(("count", "kind"), [(0, "too_short"), (1025, "too_long")])
def test_there_are_1_to_1024_positions(count: int, kind: str) -> None:
    assert kinds({"positions": [0] * count, "pair": PAIR}) == {(("positions",), kind)}
    RopeRequest.model_validate({"positions": [0] * 1024, "pair": PAIR})


def test_a_block_belongs_to_a_model() -> None:
    assert kinds({"positions": [1], "pair": PAIR, "block": 0}) == {((), "block")}


@pytest.mark.parametrize("rows", [1, 3])
def test_vectors_are_a_query_and_a_key(rows: int) -> None:
    body = {"positions": [1], "pair": PAIR, "vectors": [[1, 2]] * rows}
    assert kinds(body) == {((), "vectors")}


@pytest.mark.parametrize("angle", [1e7, -1e7, float("nan"), float("inf"), "4", True, None])
def test_an_angle_is_a_number_in_range(angle: object) -> None:
    assert kinds({"positions": [1], "pair": {"degrees_per_position": angle}}) != set()


def test_a_spectrum_has_the_defaults_of_a_config() -> None:
    position = RopeSpectrumAsked(d_head=6).to_compute()
    assert (position.kind, position.theta, position.rotary_dim) == ("rope", 10000.0, 6)
    assert (position.pairing, position.scaling.kind) == ("half", "none")


def test_a_spectrum_keeps_the_rules_of_a_config() -> None:
    asked = RopeSpectrumAsked.model_validate({"d_head": 7, "scaling": {"kind": "linear"}})
    with pytest.raises(ConfigError) as raised:
        asked.to_compute()
    assert raised.value.faults[0].place == ("position", "scaling", "factor")
    odd = RopeSpectrumAsked.model_validate({"d_head": 7})
    with pytest.raises(ConfigError) as raised:
        odd.to_compute()
    assert raised.value.faults[0].place == ("position", "rotary_dim")
