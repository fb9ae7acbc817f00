"""Tokenizers that a .gguf file describes: made when text comes, or left out with the reason."""

from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from compute.checkpoints.gguf import loading, tokenizer_kinds
from compute.checkpoints.gguf.splits import SPLITS
from compute.checkpoints.text import Text
from compute.errors import ModelError
from parity_gguf.making import opened, written

FILES = Path(__file__).parents[3] / "parity_gguf"
NORMAL, UNKNOWN, CONTROL, USER, BYTE = 1, 2, 3, 4, 6

_PAIRS = ["<end>", "h", "e", "l", "o", "Ġ", "w", "he", "ll", "hell", "hello", "Ġw", "<tool>", "1"]
GPT2 = {
    "model": "gpt2",
    "pre": "gpt-2",
    "tokens": _PAIRS,
    "token_type": np.array([CONTROL, *[NORMAL] * 11, USER, NORMAL], np.int32),
    "merges": ["h e", "l l", "he ll", "hell o", "Ġ w", "no token"],
    "bos_token_id": 0,
}
_PIECES = ["<unk>", "<s>", "</s>", "<0xC3>", "<0xA9>", "▁", "a", "b", "c", "ab", "bc", "▁a"]
LLAMA = {
    "model": "llama",
    "tokens": _PIECES,
    "token_type": np.array([UNKNOWN, CONTROL, CONTROL, BYTE, BYTE, *[NORMAL] * 7], np.int32),
    "scores": np.array([0, 0, 0, 0, 0, -9, -9, -9, -9, -2, -1, -3], np.float32),
}
BERT = {
    "model": "bert",
    "tokens": ["[UNK]", "[CLS]", "[SEP]", "▁play", "ing", "▁we"],
    "token_type": np.array([CONTROL, CONTROL, CONTROL, *[NORMAL] * 3], np.int32),
    "unknown_token_id": 0,
    "cls_token_id": 1,
    "seperator_token_id": 2,
}


def _file(path: Path, described: dict[str, object]) -> Path:
    keys, values = opened(FILES / "llama.gguf")
    keys.update({f"tokenizer.ggml.{name}": value for name, value in described.items()})
    return written(path / "model.gguf", keys, values)


def _text(path: Path, described: dict[str, object]) -> Text:
    text = loading.load(_file(path, described)).text
    assert text is not None
    return text


@pytest.mark.parametrize(
    ("described", "given", "ids"),
    [
        (GPT2, "hello whe", [10, 11, 7]),
        (GPT2, "he<end>ll<tool>", [7, 0, 8, 12]),
        (GPT2 | {"pre": "starcoder"}, "1111", [13] * 4),
        (LLAMA, "abc", [11, 10]),  # bc goes first, though ab comes first
        (LLAMA, "b é", [5, 7, 5, 3, 4]),  # what is no token, by its bytes
        (LLAMA | {"add_space_prefix": False}, "abc", [6, 10]),
        (BERT, "We PLAYING fast", [5, 3, 4, 0]),
    ],
)
def test_text_is_cut_as_llama_cpp_cuts_it(
    tmp_path: Path, described: dict[str, object], given: str, ids: list[int]
) -> None:
    assert _text(tmp_path, described).encode([given], special_tokens=False).ids.tolist() == [ids]


@pytest.mark.parametrize(
    ("described", "given", "ids"),
    [
        (GPT2, "he", [7]),
        (
            GPT2 | {"add_bos_token": True, "add_eos_token": True, "eos_token_id": 12},
            "he",
            [0, 7, 12],
        ),
        (GPT2 | {"pre": "llama-bpe"}, "he", [0, 7]),
        (LLAMA, "a", [1, 11]),
        (LLAMA | {"add_bos_token": False, "add_eos_token": True}, "a", [11, 2]),
        (BERT, "we", [1, 5, 2]),
    ],
)
def test_special_tokens_stand_where_the_file_has_them(
    tmp_path: Path, described: dict[str, object], given: str, ids: list[int]
) -> None:
    assert _text(tmp_path, described).encode([given], special_tokens=True).ids.tolist() == [ids]


@pytest.mark.parametrize("pre", SPLITS)
def test_every_way_of_cutting_is_a_pattern(tmp_path: Path, pre: str) -> None:
    assert _text(tmp_path, GPT2 | {"pre": pre}).encode(["hello"], special_tokens=False).ids.size


def test_tokenizer_is_made_once_and_when_text_comes(tmp_path: Path) -> None:
    with patch.dict(tokenizer_kinds.MAKERS) as makers:
        made: list[object] = []
        inner = makers["gpt2"]
        makers["gpt2"] = lambda keys: made.append(keys) or inner(keys)
        text = _text(tmp_path, GPT2)
        assert not made
        assert text.piece(10) == "hello"
        assert text.vocabulary_size == 14
        assert len(made) == 1


@pytest.mark.parametrize(
    ("described", "why"),
    [
        ({"model": "t5"}, "its tokenizer is 't5'; gpt2, llama, bert are read."),
        ({"model": ["gpt2"]}, "its tokenizer is ['gpt2']; gpt2, llama, bert are read."),
        (GPT2 | {"pre": ["gpt-2"]}, "its tokenizer splits text as ['gpt-2']"),
        (GPT2 | {"pre": "gpt-5"}, "its tokenizer splits text as 'gpt-5', which is not known."),
        ({k: x for k, x in GPT2.items() if k != "merges"}, "has no tokenizer.ggml.merges."),
        (LLAMA | {"scores": "none"}, "its tokenizer has no tokenizer.ggml.scores."),
        (LLAMA | {"tokens": ["a" * (1 << 22)] * 2}, "more than 4194304 characters together."),
        (LLAMA | {"tokens": [*_PIECES[1:], "a" * 513]}, "a token of more than 512 characters."),
        (LLAMA | {"tokens": ["a"] * ((1 << 19) + 1)}, "more than 524288 tokens."),
        (GPT2 | {"merges": ["h e"] * ((1 << 20) + 1)}, "more than 1048576 merges."),
        (
            GPT2 | {"tokens": ["a"] * 16385, "token_type": np.full(16385, USER, np.int32)},
            "more than 16384 tokens that text names whole.",
        ),
    ],
)
def test_model_without_a_tokenizer_that_is_read_has_no_text_and_says_why(
    tmp_path: Path, described: dict[str, object], why: str
) -> None:
    checkpoint = loading.load(_file(tmp_path, described))
    assert checkpoint.text is None
    assert (
        "- No text: its tokenizer" in checkpoint.card or "- No text: its tokens" in checkpoint.card
    )
    assert why in checkpoint.card


@pytest.mark.parametrize(
    "described",
    [
        LLAMA | {"token_type": np.array([NORMAL], np.int32)},
        LLAMA | {"unknown_token_id": 99},
        BERT | {"cls_token_id": 99, "tokens": ["a", "b"]},
        GPT2 | {"tokens": []},
    ],
)
def test_tokenizer_that_makes_no_sense_is_refused_when_text_comes(
    tmp_path: Path, described: dict[str, object]
) -> None:
    with pytest.raises(ModelError, match=r"model\.gguf describes no tokenizer"):
        _text(tmp_path, described).encode(["a"], special_tokens=True)
