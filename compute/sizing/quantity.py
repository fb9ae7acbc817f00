"""A number with the formula that made it, in letters and with the numbers in it.

    q("L", 12) * q("d", 768) ** 2   ->   value 7077888, "L·d²", "12 · 768²"

Value and formula come from one expression, so they cannot part. Values are exact: whole numbers,
or fractions where a half or a ratio is meant.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Union

Exact = int | Fraction
Operand = Union["Quantity", int]

Step = Literal["letter", "number", "+", "-", "*", "/", "^", "min", "max", "ceil"]
_SUM, _PRODUCT, _POWER, _ATOM = 0, 1, 2, 3
_BINDS = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "^": _POWER}
_POWERS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")

Both = tuple[str, str]
"""In letters, and with the numbers in it."""


@dataclass(slots=True, unsafe_hash=True)
class Quantity:
    """A value, the step that made it, and of what: formulas are written when they are asked for.

    A product leaves out a factor of 1 that is written as a number; a sum leaves out such a 0.
    Nobody writes to one; it is not frozen, since thousands are made for an answer, and a frozen one
    takes three times as long to make.
    """

    value: Exact
    step: Step
    letter: str = ""
    operands: tuple["Quantity", ...] = ()

    @property
    def formula(self) -> str:
        """In letters: `L·d²`."""
        return written(self)[0]

    @property
    def substituted(self) -> str:
        """With the numbers in it: `12 · 768²`."""
        return written(self)[1]

    def __add__(self, other: Operand) -> "Quantity":
        return _added(self, as_quantity(other))

    def __radd__(self, other: int) -> "Quantity":
        return as_quantity(other) + self

    def __sub__(self, other: Operand) -> "Quantity":
        return _subtracted(self, as_quantity(other))

    def __rsub__(self, other: int) -> "Quantity":
        return as_quantity(other) - self

    def __mul__(self, other: Operand) -> "Quantity":
        return _multiplied(self, as_quantity(other))

    def __rmul__(self, other: int) -> "Quantity":
        return as_quantity(other) * self

    def __truediv__(self, other: Operand) -> "Quantity":
        """The exact ratio, a fraction where it is no whole number."""
        under = as_quantity(other)
        return Quantity(_ratio(self.value, under.value), "/", operands=(self, under))

    def __pow__(self, power: int) -> "Quantity":
        return Quantity(self.value**power, "^", operands=(self, number(power)))

    def named(self, letter: str) -> "Quantity":
        """The same value as one letter: its own formula is told elsewhere."""
        return q(letter, self.value)


def q(letter: str, value: Exact) -> Quantity:
    """A letter that stands for a number."""
    return Quantity(value, "letter", letter)


def number(value: Exact) -> Quantity:
    """A number that stands for itself."""
    return Quantity(value, "number")


def as_quantity(operand: Operand) -> Quantity:
    """An operand of a formula: a whole number stands for itself."""
    return operand if isinstance(operand, Quantity) else number(operand)


def ceil_div(top: Quantity, bottom: Operand) -> Quantity:
    """The least whole number at or above a ratio."""
    made = top / as_quantity(bottom)
    ratio = Fraction(made.value)
    return Quantity(-(-ratio.numerator // ratio.denominator), "ceil", operands=(made,))


def least(first: Quantity, second: Quantity) -> Quantity:
    """The smaller of two."""
    return Quantity(min(first.value, second.value), "min", operands=(first, second))


def most(first: Quantity, second: Quantity) -> Quantity:
    """The larger of two."""
    return Quantity(max(first.value, second.value), "max", operands=(first, second))


def total(parts: Iterable[Quantity]) -> Quantity:
    """The sum, 0 of nothing."""
    made = number(0)
    for part in parts:
        made = made + part
    return made


def letters_of(made: Quantity) -> Iterator[tuple[str, Exact]]:
    """(letter, number) of each letter of a formula, as often as it stands there."""
    if made.step == "letter":
        yield made.letter, made.value
    for operand in made.operands:
        yield from letters_of(operand)


def whole(value: Exact) -> Exact:
    """An int where a fraction is a whole number."""
    if type(value) is int:
        return value
    return int(value) if value.denominator == 1 else value


def told(value: Exact) -> str:
    """Every digit of a number: `124439808`, `4.5`, or `1/3` where no decimals end."""
    value = whole(value)
    if type(value) is int:
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


def _ratio(top: Exact, bottom: Exact) -> Exact:
    if type(top) is int and type(bottom) is int and not top % bottom:
        return top // bottom
    return whole(Fraction(top) / Fraction(bottom))


def _is_written(operand: Quantity, value: int) -> bool:
    return operand.step == "number" and operand.value == value


def _added(left: Quantity, right: Quantity) -> Quantity:
    if _is_written(right, 0):
        return left
    if _is_written(left, 0):
        return right
    return Quantity(whole(left.value + right.value), "+", operands=(left, right))


def _subtracted(left: Quantity, right: Quantity) -> Quantity:
    if _is_written(right, 0):
        return left
    return Quantity(whole(left.value - right.value), "-", operands=(left, right))


def _multiplied(left: Quantity, right: Quantity) -> Quantity:
    if left.value == 1 and left.step == "number":
        return right
    if right.value == 1 and right.step == "number":
        return left
    return Quantity(whole(left.value * right.value), "*", operands=(left, right))


def written(made: Quantity) -> Both:
    """A formula in letters, and with the numbers in it, · and / spaced."""
    if made.step == "letter":
        return made.letter, told(made.value)
    if made.step == "number":
        digits = told(made.value)
        return digits, digits
    if made.step in ("*", "/"):
        sign, binding = ("·", _PRODUCT) if made.step == "*" else ("/", _POWER)
        return _joined(made, sign, (_PRODUCT, binding), f" {sign} ")
    if made.step in ("+", "-"):
        binding = _SUM if made.step == "+" else _PRODUCT
        return _joined(made, f" {made.step} ", (_SUM, binding), f" {made.step} ")
    if made.step == "^":
        base, power = made.operands
        letters, numbers = _bound(base, _ATOM)
        raised = told(power.value).translate(_POWERS)
        return letters + raised, numbers + raised
    pairs = [written(operand) for operand in made.operands]
    letters, numbers = (", ".join(each) for each in zip(*pairs, strict=True))
    return f"{made.step}({letters})", f"{made.step}({numbers})"


def _joined(made: Quantity, sign: str, binding: tuple[int, int], spaced: str) -> Both:
    left, right = made.operands
    first, second = _bound(left, binding[0]), _bound(right, binding[1])
    return first[0] + sign + second[0], first[1] + spaced + second[1]


def _bound(operand: Quantity, binding: int) -> Both:
    """An operand of a step that binds so strongly: in brackets if need be.

    Products and ratios are read from the left: a·b/c·d is ((a·b)/c)·d.
    """
    both = written(operand)
    if _binds(operand) >= binding:
        return both
    return f"({both[0]})", f"({both[1]})"


def _binds(made: Quantity) -> int:
    """How strongly the last step of a formula binds; a number below 0 is written as a sum."""
    if made.step == "number":
        return _ATOM if made.value >= 0 else _SUM
    return _BINDS.get(made.step, _ATOM)
