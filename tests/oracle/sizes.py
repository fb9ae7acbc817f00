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
PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The length of each axis, by its letter; `positions` is the number of learned positions."""

    b: int
    n: int
    d: int
    h: int
    g: int
    k: int
    v: int
    f: int
    V: int
    e: int
    c: int
    u: int
    s: int
    t: int
    r: int
    positions: int


def draw(rng: Rng, position: str) -> Sizes:
    """Different primes, but for grouped heads, even d of sinusoids, even k of whole turns, even
    buckets, and some of the rest where primes have run out."""
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
    return _with_the_rest(rng, used, b=b, n=n, d=d, h=h, g=g, k=k, v=v, f=f, V=vocab)


def of_encoder(rng: Rng, position: str, decoder: Sizes) -> Sizes:
    """An encoder reads the decoder's memory at its width; all else is its own."""
    used = {decoder.b, decoder.s, decoder.d}
    h, g = one_of(rng, [pair for pair in UNGROUPED + GROUPED if not used & set(pair)])
    used |= {h, g}
    k = unused(rng, used, (2, 3, 4, 5, 6, 7, 8) if position == "rope" else (2, 3, 5, 7, 11))
    v = unused(rng, used, (2, 3, 5, 7, 11, 13))
    f = unused(rng, used, (13, 17, 19, 23, 29))
    kept = {"b": decoder.b, "n": decoder.s, "d": decoder.d, "V": decoder.V}
    return _with_the_rest(rng, used, **kept, h=h, g=g, k=k, v=v, f=f)


def _with_the_rest(rng: Rng, used: set[int], **drawn: int) -> Sizes:
    c = 1 if rng.random() < 0.25 else unused(rng, used, (2, 3, 4, 5, 6, 7, 9))
    every = c > 1 and rng.random() < 0.15  # each token goes to all experts
    e = c if every else unused(rng, used, [prime for prime in PRIMES if prime > c])
    s = unused(rng, used, (3, 5, 7, 11, 13, 4, 6, 8, 9, 12, 15))
    u = unused(rng, used, PRIMES[2:])
    t = unused(rng, used, PRIMES)
    r = unused(rng, used, PRIMES[3:] if rng.random() < 0.3 else (8, 10, 12, 14, 16, 18, 20, 22))
    positions = unused(rng, used, (37, 41, 43, 47, 53))
    return Sizes(**drawn, e=e, c=c, u=u, s=s, t=t, r=r, positions=positions)


def head_widths(rng: Rng, position: str) -> tuple[int, ...]:
    """What d_head may be: no prime but 2 is even, and a head turns whole if its width is."""
    if position == "rope":
        return (4, 6, 8) if rng.random() < 0.4 else (3, 5, 7)
    return (2, 3, 5, 7)


def unused(rng: Rng, used: set[int], lengths: Sequence[int]) -> int:
    """One of the first lengths that no axis has yet; it is used from now on."""
    length = one_of(rng, [length for length in lengths if length not in used][:5])
    used.add(length)
    return length


def one_of(rng: Rng, options: Sequence[T]) -> T:
    """One of the options, each as likely as the others."""
    return options[int(rng.integers(len(options)))]
