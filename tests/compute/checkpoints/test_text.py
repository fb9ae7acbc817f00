"""Text to token ids and back, padded on the left."""

from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

from compute.checkpoints.text import Text
from compute.errors import InputError, ModelError

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


def _pieces() -> dict[str, Tokenizer]:
    """A tokenizer of each model that real ones have, over a few words."""
    words = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "play": 3, "##ing": 4, "a": 5}
    wordpiece = Tokenizer(models.WordPiece(words, unk_token="[UNK]"))
    wordpiece.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    wordpiece.decoder = decoders.WordPiece()
    wordpiece.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    letters = {letter: i for i, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    bpe = Tokenizer(models.BPE({**letters, "ab": 256}, [("a", "b")]))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.add_special_tokens(["<|endoftext|>"])
    unigram = Tokenizer(models.Unigram([("<unk>", 0.0), ("▁play", -1.0), ("ing", -2.0)], 0))
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    return {"WordPiece": wordpiece, "BPE": bpe, "Unigram": unigram}


REAL = {
    "WordPiece": ("playing a", False, ["play", "##ing", "a"]),
    "WordPiece with special tokens": ("playing", True, ["[CLS]", "play", "##ing", "[SEP]"]),
    "WordPiece of an unknown word": ("zebra", False, ["[UNK]"]),
    "BPE": ("ab c", False, ["ab", "Ġ", "c"]),
    "BPE of any bytes": ("é", False, ["Ã", "©"]),
    "BPE of a special token": ("a<|endoftext|>", False, ["a", "<|endoftext|>"]),
    "Unigram": ("playing", False, ["▁play", "ing"]),
}


@pytest.mark.parametrize("name", sorted(REAL))
def test_tokenizers_of_real_models_are_read(name: str) -> None:
    string, special, pieces = REAL[name]
    made = _pieces()[name.split(" ", maxsplit=1)[0]]
    text = Text.of_json(made.to_str().encode())
    (row,) = text.encode([string], special_tokens=special).ids
    assert [text.piece(int(i)) for i in row] == pieces


def test_tokenizer_neither_cuts_nor_pads_a_text() -> None:
    made = _pieces()["BPE"]
    made.enable_truncation(2)
    made.enable_padding(length=8)
    text = Text.of_json(made.to_str().encode())
    assert text.encode(["aaaaa"], special_tokens=False).ids.shape == (1, 5)


HOSTILE = {
    "empty": b"",
    "no JSON": b"{",
    "a list": b"[]",
    "no UTF-8": b"\xff\xfe",
    "deep": b"[" * 1_000_000,
    "deep object": b'{"model":' * 100_000,
    "no model": b'{"version": "1.0"}',
    "unknown model": b'{"version": "1.0", "model": {"type": "Run", "vocab": {}}}',
    "negative id": b'{"model":{"type":"WordLevel","vocab":{"a":-1},"unk_token":"a"}}',
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_what_is_no_tokenizer_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(HOSTILE[name])
    text = Text.load(path)
    with pytest.raises(ModelError) as refused:
        _ = text.tokenizer
    assert refused.value.faults[0].place == ("tokenizer.json",)


def test_tokenizer_file_has_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compute.checkpoints.text.LARGEST_TOKENIZER", 100)
    with pytest.raises(ModelError, match="more than 100 bytes"):
        Text.load(MODELS / "letter-sort" / "tokenizer.json")
