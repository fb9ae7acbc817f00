"""A number with the formula that made it, in letters and with the numbers in it.

    q("L", 12) * q("d", 768) ** 2   ->   value 7077888, "L·d²", "12 · 768²"

Value and formula come from one expression, so they cannot part. Values are exact: whole numbers,
or fractions where a half or a ratio is meant.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Union

Exact = int | Fraction
Operand = Union["Quantity", int]

_SUM, _PRODUCT, _POWER, _ATOM = 0, 1, 2, 3
_POWERS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True, slots=True)
class Quantity:
    """value; formula in letters; the same with numbers. `binds`: how strongly its last step does.

    A product leaves out a factor of 1 that is written as a number; a sum leaves out such a 0.
    """

    value: Exact
    formula: str
    substituted: str
    binds: int = _ATOM

    def __add__(self, other: Operand) -> "Quantity":
        return _added(self, as_quantity(other), "+")

    def __radd__(self, other: int) -> "Quantity":
        return as_quantity(other) + self

    def __sub__(self, other: Operand) -> "Quantity":
        return _added(self, as_quantity(other), "-")

    def __rsub__(self, other: int) -> "Quantity":
        return as_quantity(other) - self

    def __mul__(self, other: Operand) -> "Quantity":
        return _multiplied(self, as_quantity(other))

    def __rmul__(self, other: int) -> "Quantity":
        return as_quantity(other) * self

    def __truediv__(self, other: Operand) -> "Quantity":
        """The exact ratio, a fraction where it is no whole number."""
        under = as_quantity(other)
        top, bottom = _bound(self, _PRODUCT), _bound(under, _POWER)
        value = whole(Fraction(self.value) / Fraction(under.value))
        formula = f"{top[0]}/{bottom[0]}"
        return Quantity(value, formula, f"{top[1]} / {bottom[1]}", _PRODUCT)

    def __pow__(self, power: int) -> "Quantity":
        base, raised = _bound(self, _ATOM), str(power).translate(_POWERS)
        return Quantity(self.value**power, base[0] + raised, base[1] + raised, _POWER)

    def named(self, letter: str) -> "Quantity":
        """The same value as one letter: its own formula is told elsewhere."""
        return q(letter, self.value)


def q(letter: str, value: Exact) -> Quantity:
    """A letter that stands for a number."""
    return Quantity(value, letter, told(value))


def number(value: Exact) -> Quantity:
    """A number that stands for itself."""
    return Quantity(value, told(value), told(value), _ATOM if value >= 0 else _SUM)


def as_quantity(operand: Operand) -> Quantity:
    """An operand of a formula: a whole number stands for itself."""
    return operand if isinstance(operand, Quantity) else number(operand)


def ceil_div(top: Quantity, bottom: Operand) -> Quantity:
    """The least whole number at or above a ratio."""
    under = as_quantity(bottom)
    ratio = Fraction(top.value) / Fraction(under.value)
    made = top / under
    value = -(-ratio.numerator // ratio.denominator)
    return Quantity(value, f"ceil({made.formula})", f"ceil({made.substituted})")


def least(first: Quantity, second: Quantity) -> Quantity:
    """The smaller of two."""
    return _called("min", min(first.value, second.value), (first, second))


def most(first: Quantity, second: Quantity) -> Quantity:
    """The larger of two."""
    return _called("max", max(first.value, second.value), (first, second))


def total(parts: Iterable[Quantity]) -> Quantity:
    """The sum, 0 of nothing."""
    made = number(0)
    for part in parts:
        made = made + part
    return made


def whole(value: Exact) -> Exact:
    """An int where a fraction is a whole number."""
    is_whole = isinstance(value, Fraction) and value.denominator == 1
    return int(value) if is_whole else value


def told(value: Exact) -> str:
    """Every digit of a number: `124439808`, `4.5`, or `1/3` where no decimals end."""
    value = whole(value)
    if isinstance(value, int):
        return str(value)
    places = _decimal_places(value.denominator)
    if places is None:
        return f"{value.numerator}/{value.denominator}"
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


def _decimal_places(denominator: int) -> int | None:
    twos = fives = 0
    while denominator % 2 == 0:
        denominator, twos = denominator // 2, twos + 1
    while denominator % 5 == 0:
        denominator, fives = denominator // 5, fives + 1
    return max(twos, fives) if denominator == 1 else None


def _called(name: str, value: Exact, operands: tuple[Quantity, ...]) -> Quantity:
    letters = ", ".join(operand.formula for operand in operands)
    numbers = ", ".join(operand.substituted for operand in operands)
    return Quantity(value, f"{name}({letters})", f"{name}({numbers})")


def _is_written(operand: Quantity, value: int) -> bool:
    return operand.value == value and operand.formula == str(value)


def _added(left: Quantity, right: Quantity, sign: Literal["+", "-"]) -> Quantity:
    if _is_written(right, 0):
        return left
    if _is_written(left, 0) and sign == "+":
        return right
    value = left.value + right.value if sign == "+" else left.value - right.value
    second = _bound(right, _SUM if sign == "+" else _PRODUCT)
    return Quantity(
        whole(value),
        f"{left.formula} {sign} {second[0]}",
        f"{left.substituted} {sign} {second[1]}",
        _SUM,
    )


def _multiplied(left: Quantity, right: Quantity) -> Quantity:
    if _is_written(left, 1):
        return right
    if _is_written(right, 1):
        return left
    first, second = _bound(left, _PRODUCT), _bound(right, _PRODUCT)
    value = whole(left.value * right.value)
    return Quantity(value, f"{first[0]}·{second[0]}", f"{first[1]} · {second[1]}", _PRODUCT)


def _bound(operand: Quantity, binding: int) -> tuple[str, str]:
    """Formula and numbers as an operand of a step that binds so strongly: in brackets if need be.

    Products and ratios are read from the left: a·b/c·d is ((a·b)/c)·d.
    """
    if operand.binds >= binding:
        return operand.formula, operand.substituted
    return f"({operand.formula})", f"({operand.substituted})"
