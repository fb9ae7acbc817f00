"""Text to token ids and back, padded on the left."""

from pathlib import Path

import pytest

from compute.checkpoints.text import Text
from compute.errors import InputError

MODELS = Path(__file__).parents[3] / "models"


def tokenizer(name: str) -> Text:
    return Text.load(MODELS / name / "tokenizer.json")


def test_rows_are_padded_on_the_left() -> None:
    tokens = tokenizer("letter-sort").encode(["CAB", "C"], special_tokens=False)
    assert tokens.ids.tolist() == [[2, 0, 1], [0, 0, 2]]
    assert tokens.real.tolist() == [[True, True, True], [False, False, True]]


def test_words_and_pieces_are_each_others_inverse() -> None:
    text = tokenizer("eiffel-toy")
    tokens = text.encode(["the Eiffel tower"], special_tokens=True)
    assert [text.piece(int(i)) for i in tokens.ids[0]] == ["the", "Eiffel", "tower"]
    assert text.first_tokens(2) == ["the", "Eiffel"]
    assert text.vocabulary_size == 3


@pytest.mark.parametrize("texts", [["A", "AxA"], ["A", "A\x00"], ["A", "\ud7ff"], ["A", "a"]])
def test_unknown_token_is_refused_with_its_text_and_the_vocabulary(texts: list[str]) -> None:
    with pytest.raises(InputError) as refused:
        tokenizer("letter-sort").encode(texts, special_tokens=False)
    (fault,) = refused.value.faults
    assert fault.place == ("text", 1)
    assert "A, B, C" in fault.detail


def test_text_without_tokens_is_refused() -> None:
    with pytest.raises(InputError) as refused:
        tokenizer("eiffel-toy").encode(["the", " "], special_tokens=False)
    assert [fault.place for fault in refused.value.faults] == [("text", 1)]
