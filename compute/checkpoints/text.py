"""Text to token ids and back, by a model's own tokenizer.json."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from compute.checkpoints.faults import refused
from compute.checkpoints.json_file import read_bytes
from compute.errors import Fault, InputError, refuse_if
from compute.types import Bools, Ints

LARGEST_TOKENIZER = 1 << 26
"""Bytes of a tokenizer.json."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token ids (b, n), rows padded on the left, and which entries are real (b, n)."""

    ids: Ints
    real: Bools


class Text:
    """A tokenizer, made when text first comes: of a large vocabulary that takes a tenth of a second
    and more. Special tokens only where they are asked for."""

    def __init__(self, make: Callable[[], Tokenizer]) -> None:
        self._make = make

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Made once; a ModelError where that fails."""
        return self._make()

    @staticmethod
    def load(path: Path) -> "Text":
        """The tokenizer of a tokenizer.json."""
        return Text.of_json(read_bytes(path, LARGEST_TOKENIZER), path.name)

    @staticmethod
    def of_json(content: bytes, name: str = "tokenizer.json") -> "Text":
        """The tokenizer that a tokenizer.json's bytes describe; it never cuts or pads a text."""
        return Text(partial(_parsed, content, name))

    def encode(self, texts: Sequence[str], special_tokens: bool) -> Tokens:
        """The ids of each text, left-padded to the longest; an InputError for text it lacks."""
        rows = [self._ids(text, at, special_tokens) for at, text in enumerate(texts)]
        empty = [
            Fault(code="no_tokens", detail="The text has no tokens.", place=("text", at))
            for at, row in enumerate(rows)
            if not row
        ]
        refuse_if(InputError, empty)
        longest = max(map(len, rows))
        ids = np.zeros((len(rows), longest), np.int64)
        real = np.zeros((len(rows), longest), np.bool_)
        for at, row in enumerate(rows):
            ids[at, longest - len(row) :] = row
            real[at, longest - len(row) :] = True
        return Tokens(ids, real)

    def piece(self, token_id: int) -> str:
        """A token as text."""
        return self.tokenizer.id_to_token(token_id) or ""

    def _ids(self, text: str, at: int, special_tokens: bool) -> list[int]:
        try:
            return self.tokenizer.encode(text, add_special_tokens=special_tokens).ids
        except BaseException as error:  # bare Exception for a token it lacks, or a panic
            if not _is_of_library(error):
                raise
            at_which = self._first_unknown(text)
            where = "The text holds" if at_which is None else f"At character {at_which} stands"
            detail = f"{where} what is no token of this model; its tokens are {self._some()}."
            raise InputError(
                [Fault(code="out_of_vocabulary", detail=detail, place=("text", at))]
            ) from error

    def first_tokens(self, count: int) -> list[str]:
        """The tokens of the smallest ids."""
        vocabulary = sorted(self.tokenizer.get_vocab().items(), key=lambda item: item[1])
        return [token for token, _ in vocabulary[:count]]

    def _first_unknown(self, text: str) -> int | None:
        """Where, counted from 0, the first piece begins that is no token; None if none is found."""
        splitter = self.tokenizer.pre_tokenizer
        pieces = [] if splitter is None else splitter.pre_tokenize_str(text)
        unknown = (at[0] for piece, at in pieces if self.tokenizer.token_to_id(piece) is None)
        return next(unknown, None)

    def special_tokens(self) -> dict[str, int]:
        """The special tokens with their ids, by id."""
        added = self.tokenizer.get_added_tokens_decoder()
        return {token.content: at for at, token in sorted(added.items()) if token.special}

    @property
    def kind(self) -> str:
        """How it makes pieces: BPE, WordPiece, Unigram or WordLevel."""
        return type(self.tokenizer.model).__name__

    @property
    def vocabulary_size(self) -> int:
        """How many tokens there are."""
        return self.tokenizer.get_vocab_size()

    def _some(self) -> str:
        shown = ", ".join(self.first_tokens(12))
        return shown if self.vocabulary_size <= 12 else f"{shown}, …"


def _parsed(content: bytes, name: str) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_buffer(content)
        tokenizer.no_truncation()
        tokenizer.no_padding()
    except BaseException as error:  # the library raises bare Exception, or panics
        if not _is_of_library(error):
            raise
        raise refused(name, f"{name} is not a tokenizer.json.") from error
    return tokenizer


def _is_of_library(error: BaseException) -> bool:
    """Its errors are Exceptions; a panic of its Rust code is no Exception at all."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"
