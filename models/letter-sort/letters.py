"""The letter-sort task: its inputs, which of them are trained on, and its tokenizer.

    python models/letter-sort/letters.py

writes split.json and tokenizer.json beside this file. It needs no PyTorch.
"""

import hashlib
import itertools
import json
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

FOLDER = Path(__file__).resolve().parent
LETTERS = "ABC"
INPUT_LENGTH = 6
SPLIT_SEED = 0
TRAIN_COUNT = 365
SPLIT_RULE = (
    "Order the 729 inputs by the SHA-256 hex digest of the ASCII text '{seed}:{letters}' "
    "(for example '0:ABCABC'). The first 365 are train, the other 364 are held out. "
    "Each list is then in alphabetical order."
)


def all_inputs() -> list[str]:
    """Every string of six letters from A, B, C, in alphabetical order: 3^6 = 729."""
    return ["".join(letters) for letters in itertools.product(LETTERS, repeat=INPUT_LENGTH)]


def split(seed: int = SPLIT_SEED) -> tuple[list[str], list[str]]:
    """(train, held out): 365 and 364 inputs, by SPLIT_RULE."""
    ordered = sorted(
        all_inputs(), key=lambda text: hashlib.sha256(f"{seed}:{text}".encode()).hexdigest()
    )
    return sorted(ordered[:TRAIN_COUNT]), sorted(ordered[TRAIN_COUNT:])


def sorted_letters(text: str) -> str:
    """The right answer: "CABBAC" -> "AABBCC"."""
    return "".join(sorted(text))


def tokenizer() -> Tokenizer:
    """One token a character; a character other than A, B, C is an error."""
    letters = Tokenizer(models.WordLevel({letter: i for i, letter in enumerate(LETTERS)}))
    letters.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    letters.decoder = decoders.Fuse()
    return letters


def main() -> None:
    """Write split.json and tokenizer.json beside this file."""
    train, held_out = split()
    document = {"seed": SPLIT_SEED, "rule": SPLIT_RULE, "train": train, "held_out": held_out}
    (FOLDER / "split.json").write_text(json.dumps(document, indent=1) + "\n")
    tokenizer().save(str(FOLDER / "tokenizer.json"))


if __name__ == "__main__":
    main()
