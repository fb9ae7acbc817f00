"""One error of Pydantic's for many faults of a tensor, each with its place inside."""

from collections.abc import Iterable
from itertools import chain, islice

from pydantic_core import PydanticCustomError

from compute.errors import MOST_FAULTS, Fault


def refuse(faults: Iterable[Fault]) -> None:
    """Raise an error of type `tensor` if there is a fault; its context carries the first ones.

    They are looked for as they are read: thousands of tensors may each have thousands. Nothing
    of what was sent is repeated.
    """
    found = iter(faults)
    for first in found:
        told = islice(chain((first,), found), MOST_FAULTS)
        raise PydanticCustomError("tensor", "The tensor is malformed.", {"faults": told})
