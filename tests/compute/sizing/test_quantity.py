"""A value and its formula come from one expression."""

import random
from fractions import Fraction

import pytest

from compute.sizing.quantity import (
    Quantity,
    ceil_div,
    least,
    most,
    number,
    q,
    told,
    total,
)
from evaluating import evaluated

L, d, h = q("L", 12), q("d", 768), q("h", 5)


@pytest.mark.parametrize(
    ("made", "formula", "substituted", "value"),
    [
        (L * d**2, "L·d²", "12 · 768²", 7077888),
        (L * (d + h), "L·(d + h)", "12 · (768 + 5)", 9276),
        (d - (h - L), "d - (h - L)", "768 - (5 - 12)", 775),
        (d - h - L, "d - h - L", "768 - 5 - 12", 751),
        (1 * d, "d", "768", 768),
        (0 + h, "h", "5", 5),
        (2 * d / (h * L), "2·d/(h·L)", "2 · 768 / (5 · 12)", Fraction(128, 5)),
        ((d + h) ** 2, "(d + h)²", "(768 + 5)²", 597529),
        (h * d / 2, "h·d/2", "5 · 768 / 2", 1920),
        (ceil_div(d, h), "ceil(d/h)", "ceil(768 / 5)", 154),
        (least(d, h) + most(d, h), "min(d, h) + max(d, h)", "min(768, 5) + max(768, 5)", 773),
        (total([L, d]), "L + d", "12 + 768", 780),
        (total([]), "0", "0", 0),
        ((L * d).named("x") * h, "x·h", "9216 · 5", 46080),
    ],
)
def test_formula_is_written_as_a_reader_would(
    made: Quantity, formula: str, substituted: str, value: int | Fraction
) -> None:
    assert (made.formula, made.substituted, made.value) == (formula, substituted, value)
    assert evaluated(made.substituted) == value


@pytest.mark.parametrize(
    ("value", "digits"),
    [
        (124439808, "124439808"),
        (10**30, "1" + 30 * "0"),
        (Fraction(9, 2), "4.5"),
        (Fraction(-1, 8), "-0.125"),
        (Fraction(6, 3), "2"),
        (Fraction(1, 3), "1/3"),
        (Fraction(3, 10**20), "0." + 19 * "0" + "3"),
    ],
)
def test_every_digit_is_told(value: int | Fraction, digits: str) -> None:
    assert told(value) == digits


def test_a_random_expression_evaluates_to_its_value_both_ways() -> None:
    rng = random.Random(3)
    letters = {name: rng.randint(1, 40) for name in "abcdefgh"}
    for _ in range(2000):
        made = _random(rng, [q(name, value) for name, value in letters.items()], 5)
        assert evaluated(made.substituted) == made.value, made
        assert evaluated(made.formula, letters) == made.value, made


def _random(rng: random.Random, leaves: list[Quantity], depth: int) -> Quantity:
    if not depth or rng.random() < 0.2:
        return rng.choice([*leaves, number(rng.randint(0, 9))])
    left, right = (_random(rng, leaves, depth - 1) for _ in range(2))
    step = rng.choice("+-*/^cm")
    if step == "/":
        return left / right if right.value else left
    made = {
        "+": left + right,
        "-": left - right,
        "*": left * right,
        "^": left**2,
        "c": ceil_div(left, q("h", leaves[-1].value)),
        "m": least(left, right),
    }
    return made[step]
