"""Text to token ids and back, by a model's own tokenizer.json."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from compute.checkpoints import tokenizer_rules
from compute.checkpoints.faults import refused
from compute.checkpoints.json_file import read_bytes
from compute.checkpoints.tokenizer_rules import Bounds
from compute.errors import Fault, InputError, ModelError, refuse_if
from compute.types import Bools, Ints

LARGEST_TOKENIZER = 1 << 26
"""Bytes of a tokenizer.json."""

_PIECE = 1024  # characters that are looked at while no other thread runs


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token ids (b, n), rows padded on the left, and which entries are real (b, n)."""

    ids: Ints
    real: Bools


@dataclass(frozen=True, slots=True)
class Made:
    """A tokenizer, and what it may be asked for."""

    tokenizer: Tokenizer
    bounds: Bounds


class Text:
    """A tokenizer, made when text first comes: of a large vocabulary that takes a tenth of a second
    and more. Special tokens only where they are asked for."""

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make

    @property
    def tokenizer(self) -> Tokenizer:
        """Made once; a ModelError where that fails."""
        return self._made.tokenizer

    @property
    def _made(self) -> Made:
        made = self._made_or_not
        if isinstance(made, tuple):
            raise ModelError(made)
        return made

    @cached_property
    def _made_or_not(self) -> Made | tuple[Fault, ...]:
        try:
            return self._make()
        except ModelError as error:
            return tuple(error.faults)

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
        self._check_lengths(texts)
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

    def piece(self, token_id: int) -> str | None:
        """A token as text; None for an id that the tokenizer has no token of, or where it is
        broken: token ids need none."""
        made = self._made_or_not
        return None if isinstance(made, tuple) else made.tokenizer.id_to_token(token_id)

    def characters(self, token_ids: Ints) -> int:
        """How many characters the tokens of ids have together."""
        ids, counts = np.unique(token_ids, return_counts=True)
        lengths = [len(self.piece(int(x)) or "") for x in ids]
        return int(np.dot(lengths, counts))

    def _ids(self, text: str, at: int, special_tokens: bool) -> list[int]:
        try:
            # of a list, though of one text: other threads run meanwhile
            (made,) = self.tokenizer.encode_batch_fast([text], add_special_tokens=special_tokens)
            return made.ids
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
        tokens = map(self.tokenizer.id_to_token, range(count))
        return [token for token in tokens if token is not None]

    def _check_lengths(self, texts: Sequence[str]) -> None:
        """Raise an InputError for texts that together are longer than the tokenizer soon reads."""
        bounds = self._made.bounds
        characters = sum(map(len, texts))
        if characters > bounds.most_characters:
            most, what = bounds.most_characters, "characters"
        elif characters * bounds.growth > bounds.most_bytes < self._normalized_bytes(texts):
            most, what = bounds.most_bytes, "bytes once it is normalized"
        else:
            return
        detail = f"For this model's tokenizer text has at most {most} {what}, in all."
        raise InputError([Fault(code="text_too_long", detail=detail, place=("text",))])

    def _normalized_bytes(self, texts: Sequence[str]) -> int:
        """About how many, counted a piece at a time: another thread may run after each."""
        normalizer = self.tokenizer.normalizer
        make = (lambda piece: piece) if normalizer is None else normalizer.normalize_str
        pieces = (text[at : at + _PIECE] for text in texts for at in range(0, len(text), _PIECE))
        return sum(len(make(piece).encode("utf-8", "replace")) for piece in pieces)

    def _first_unknown(self, text: str) -> int | None:
        """Where, counted from 0, the first piece begins that is no token; None if none is found,
        or the text is too long to look."""
        splitter = self.tokenizer.pre_tokenizer
        if splitter is None or len(text) > _PIECE:
            return None
        pieces = splitter.pre_tokenize_str(text)
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


def _parsed(content: bytes, name: str) -> Made:
    bounds = tokenizer_rules.check(content, name)
    try:
        tokenizer = Tokenizer.from_buffer(content)
        tokenizer.no_truncation()
        tokenizer.no_padding()
    except BaseException as error:  # the library raises bare Exception, or panics
        if not _is_of_library(error):
            raise
        raise refused(name, f"{name} is not a tokenizer.json.") from error
    return Made(tokenizer, bounds)


def _is_of_library(error: BaseException) -> bool:
    """Its errors are Exceptions; a panic of its Rust code is no Exception at all."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"
