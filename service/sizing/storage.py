"""The letter of a number format: bytes of a number where they are whole, else its bits."""

from compute.sizing.formats import Format
from service.sizing import ledgers

View = dict[str, object]


def symbol(form: Format, letter: str) -> View:
    """`b_x`, bytes, or `bits_x`, as `compute.sizing.stored` writes them."""
    if form.bits % 8:
        name, meaning, value = f"bits_{letter}", "bits of a number", form.bits
    else:
        name, meaning, value = f"b_{letter}", "bytes of a number", form.bits / 8
    return {"letter": name, "meaning": f"{meaning}, {form.name}", "value": ledgers.number(value)}
