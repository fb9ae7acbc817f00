"""Bytes of numbers as stored. A tensor ends on a whole byte: ceil(numbers · bits / 8)."""

from compute.sizing.formats import Format
from compute.sizing.quantity import Quantity, ceil_div, q

RULE = "Each tensor takes ceil(numbers · bits / 8) bytes; only there anything is rounded."


def stored(numbers: Quantity, form: Format, letter: str) -> Quantity:
    """Bytes of one tensor: numbers · b_x, or ceil(numbers · bits_x / 8) where b_x is not whole.

    `letter`: the x of b_x, bytes of a number, and bits_x.
    """
    whole_bytes = form.bits / 8
    if whole_bytes.denominator == 1:
        return numbers * q(f"b_{letter}", int(whole_bytes))
    return ceil_div(numbers * q(f"bits_{letter}", form.bits), 8)


def is_rounded(numbers: Quantity, form: Format) -> bool:
    """Whether a tensor of so many numbers ends within a byte."""
    return (numbers.value * form.bits) % 8 != 0
