"""Axis lengths drawn so that no two axes are equally long."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

Rng = np.random.Generator
T = TypeVar("T")

UNGROUPED = ((1, 1), (2, 2), (3, 3), (5, 5))
GROUPED = ((2, 1), (3, 1), (5, 1), (4, 2), (6, 2), (6, 3))
"""(h, g): h is g times a prime."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The length of each axis, by its letter; `p` is the number of learned positions."""

    b: int
    n: int
    d: int
    h: int
    g: int
    k: int
    v: int
    f: int
    V: int
    p: int


def draw(rng: Rng, position: str) -> Sizes:
    """Different primes, but for grouped heads, even d of sinusoids and even k of whole turns."""
    h, g = one_of(rng, UNGROUPED if rng.random() < 0.55 else GROUPED)
    used = {h, g}
    b = unused(rng, used, (2, 3, 5))
    k = unused(rng, used, head_widths(rng, position))
    v = unused(rng, used, (2, 3, 5, 7, 11))
    n = 1 if rng.random() < 0.08 else unused(rng, used, (5, 7, 11, 13))
    even_d = position == "sinusoidal" and rng.random() < 0.4
    d = unused(rng, used, (10, 14, 22) if even_d else (11, 13, 17, 19, 23))
    f = unused(rng, used, (13, 17, 19, 23, 29))
    vocab = unused(rng, used, (17, 19, 23, 29, 31))
    return Sizes(b=b, n=n, d=d, h=h, g=g, k=k, v=v, f=f, V=vocab, p=unused(rng, used, (37, 41, 43)))


def head_widths(rng: Rng, position: str) -> tuple[int, ...]:
    """What d_head may be: no prime but 2 is even, and a head turns whole if its width is."""
    if position == "rope":
        return (4, 6, 8) if rng.random() < 0.4 else (3, 5, 7)
    return (2, 3, 5, 7)


def unused(rng: Rng, used: set[int], lengths: Sequence[int]) -> int:
    """One of the lengths that no axis has yet; it is used from now on."""
    length = one_of(rng, [length for length in lengths if length not in used])
    used.add(length)
    return length


def one_of(rng: Rng, options: Sequence[T]) -> T:
    """One of the options, each as likely as the others."""
    return options[int(rng.integers(len(options)))]
