"""The induction task: its sequences, which of them are held out, and its tokenizer.

    python models/induction/sequences.py

writes tokenizer.json beside this file. It needs no PyTorch.
"""

import hashlib
import random
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from string import ascii_uppercase

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

FOLDER = Path(__file__).resolve().parent
LETTERS = ascii_uppercase
TRAINED_LENGTHS = range(4, 27)
"""How many letters a half has in training: 4 to all 26, so a sequence has 8 to 52."""

HELD_OUT_SEED = 1


def is_held_out(half: str) -> bool:
    """Whether the first byte of the SHA-256 of the half's ASCII text is below 32: one in eight."""
    return hashlib.sha256(half.encode("ascii")).digest()[0] < 32


def random_halves(lengths: Sequence[int], chance: random.Random) -> Iterator[str]:
    """Halves without end: some letters of the alphabet, none of them twice, of random length.

    Random here is `random()` alone, whose numbers are the same in every version of Python.
    """
    while True:
        length = lengths[int(chance.random() * len(lengths))]
        shuffled = sorted(LETTERS, key=lambda _: chance.random())
        yield "".join(shuffled[:length])


def training_halves(count: int, chance: random.Random) -> list[str]:
    """Halves of the trained lengths, none of them held out."""
    drawn = random_halves(TRAINED_LENGTHS, chance)
    return list(islice((half for half in drawn if not is_held_out(half)), count))


def held_out_halves(length: int, count: int, seed: int = HELD_OUT_SEED) -> list[str]:
    """Halves of one length, all of them held out: the figures are measured on these."""
    drawn = random_halves([length], random.Random(seed))
    return list(islice((half for half in drawn if is_held_out(half)), count))


def tokenizer() -> Tokenizer:
    """One token a letter, A 0 to Z 25; any other character is an error."""
    letters = Tokenizer(models.WordLevel({letter: i for i, letter in enumerate(LETTERS)}))
    letters.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    letters.decoder = decoders.Fuse()
    return letters


def main() -> None:
    """Write tokenizer.json beside this file."""
    tokenizer().save(str(FOLDER / "tokenizer.json"))


if __name__ == "__main__":
    main()
