"""Text to token ids and back, by a model's own tokenizer.json."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from compute.errors import Fault, InputError, ModelError, refuse_if
from compute.types import Bools, Ints


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token ids (b, n), rows padded on the left, and which entries are real (b, n)."""

    ids: Ints
    real: Bools


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """A tokenizer; special tokens only where they are asked for."""

    tokenizer: Tokenizer

    @staticmethod
    def load(path: Path) -> "Text":
        """The tokenizer of a tokenizer.json."""
        try:
            return Text(Tokenizer.from_file(str(path)))
        except Exception as error:  # the library raises bare Exception
            fault = Fault(code="model_folder", detail="not a tokenizer.json", place=(path.name,))
            raise ModelError([fault]) from error

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
        except Exception as error:  # the library raises bare Exception for a token it lacks
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

    @property
    def vocabulary_size(self) -> int:
        """How many tokens there are."""
        return self.tokenizer.get_vocab_size()

    def _some(self) -> str:
        shown = ", ".join(self.first_tokens(12))
        return shown if self.vocabulary_size <= 12 else f"{shown}, …"
