"""One number of a config made another, so that a published count comes out: solved for."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from compute.config import ModelConfig
from compute.sizing import architecture
from compute.sizing.holdings import holdings
from compute.sizing.quantity import number, q
from compute.sizing.reconciling.differences import Change, Difference, letters_of, relettered, whole


@dataclass(frozen=True, slots=True)
class _Unknown:
    """A number of the config that may be another: its letters, what it is a multiple of, and up
    to how many times its own it may be (0: a power of two)."""

    id: str
    words: str
    letters: tuple[str, ...]
    step: int
    most: Fraction


_UNKNOWNS = (
    _Unknown("other_rows", "The table of positions has {} rows.", ("n_positions",), 0, Fraction(0)),
    _Unknown("other_vocab", "The vocabulary has {} rows.", ("V",), 1, Fraction(51, 50)),
    _Unknown("other_heads", "There are {} heads, as wide as these.", ("h",), 1, Fraction(4)),
    _Unknown("other_d_head", "Each head is {} wide.", ("k", "v"), 8, Fraction(4)),
    _Unknown("other_blocks", "There are {} blocks.", ("L",), 1, Fraction(2)),
)


def solved(config: ModelConfig, least: int, most: int) -> Iterator[Difference]:
    """One number of the config made another, so that the count is from `least` to `most`.

    Any count has such a number if it may be any: each is tied to what such numbers are.
    """
    if config.encoder is None:
        for unknown in _UNKNOWNS:
            yield from _solved(config, unknown, least, most)


def _solved(config: ModelConfig, unknown: _Unknown, least: int, most: int) -> Iterator[Difference]:
    names = set(unknown.letters)
    if names == {"h"} and config.attention.n_heads == config.attention.n_kv_heads:
        names.add("g")
    held = {x.id: whole(x) for x in holdings(config)}
    slopes = {
        name: relettered(made, dict.fromkeys(names, number(1)))
        for name, made in held.items()
        if names & letters_of(made).keys()
    }
    slope = sum(int(x.value) for x in slopes.values())
    old = _value_of(config, unknown.letters)
    if not slope or old is None:
        return
    ours = sum(int(made.value) for made in held.values())
    new = _nearest(unknown, old, old + Fraction(least + most - 2 * ours, 2 * slope))
    if new == old or not least <= ours + (new - old) * slope <= most:
        return
    letter = unknown.letters[0]
    gained = q(f"{letter}_other", new) - q(letter, old)
    changes = tuple(Change(name, gained * made) for name, made in slopes.items())
    words = unknown.words.format(new)
    yield Difference(id=unknown.id, group=unknown.id, words=words, changes=changes, alone=True)


def _value_of(config: ModelConfig, letters: tuple[str, ...]) -> int | None:
    """The number that letters have in common, if they have one."""
    known = {**architecture.letters(config), "L": q("L", config.n_layers)}
    values = {int(known[x].value) for x in letters}
    if config.attention.mla is not None and "k" in letters:
        return None
    if architecture.n_dense(config) and "L" in letters:
        return None
    return values.pop() if len(values) == 1 else None


def _nearest(unknown: _Unknown, old: int, ideal: Fraction) -> int:
    """The number of its kind that is nearest to the ideal one, or the old one."""
    if not unknown.step:
        power = 1 << max(int(ideal).bit_length() - 1, 0)
        new = power if abs(power - ideal) <= abs(2 * power - ideal) else 2 * power
        return new if ideal > 1 else old
    new = round(ideal / unknown.step) * unknown.step
    within = 1 <= new <= unknown.most * old and old <= unknown.most * new
    return new if within else old
