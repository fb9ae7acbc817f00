"""Tokenizers by the keys of a GGUF file, each as llama.cpp has it.

gpt2: byte pairs by a list of merges. llama: SentencePiece's byte pairs, where the merge of the
highest score goes first, and bytes for what is no token. bert: WordPiece, of text in lower case
(whether a file's was so trained, it does not say).
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, processors
from tokenizers import pre_tokenizers as cutting

from compute.checkpoints.gguf.splits import SPLITS, WHOLE_FIRST
from compute.checkpoints.gguf.taking import Value
from compute.checkpoints.tokenizer_rules import MOST_MERGES

Keys = Mapping[str, Value]

_UNKNOWN, _CONTROL, _USER, _BYTE = 2, 3, 4, 6
ADDED = (_CONTROL, _USER)
"""Types of tokens that text names whole."""

_SPACE = "▁"


def _tokens(keys: Keys) -> tuple[list[str], list[int]]:
    """The tokens, and of which type each is."""
    tokens: Any = keys["tokenizer.ggml.tokens"]
    types: Any = keys["tokenizer.ggml.token_type"]
    return tokens, [int(x) for x in types]


def _id(keys: Keys, name: str, default: int) -> int:
    found = keys.get(f"tokenizer.ggml.{name}_token_id", default)
    return found if isinstance(found, int) else default


def _flag(keys: Keys, name: str, default: bool) -> bool:
    found = keys.get(f"tokenizer.ggml.{name}", default)
    return found if isinstance(found, bool) else default


def byte_pairs(keys: Keys) -> Tokenizer:
    """GPT-2's kind; merges of what is no token are left out."""
    tokens, types = _tokens(keys)
    pre = str(keys.get("tokenizer.ggml.pre", "default"))
    vocab = {token: number for number, token in enumerate(tokens)}
    lines: Any = keys["tokenizer.ggml.merges"]
    merges = [_pair(line) for line in lines]
    known = [(a, b) for a, b in merges if a in vocab and b in vocab and a + b in vocab]
    made = Tokenizer(models.BPE(vocab=vocab, merges=known, ignore_merges=pre in WHOLE_FIRST))
    cuts = [cutting.Split(Regex(pattern), "isolated") for pattern in SPLITS[pre]]
    to_bytes = cutting.ByteLevel(add_prefix_space=False, use_regex=False)
    made.pre_tokenizer = cutting.Sequence([*cuts, to_bytes])
    made.decoder = decoders.ByteLevel()
    return _finished(made, keys, tokens, types, begins=pre in WHOLE_FIRST)


def _pair(line: str) -> tuple[str, str]:
    first, _, second = line.partition(" ")
    return first, second


def sentence_piece(keys: Keys) -> Tokenizer:
    """Llama's kind: two tokens that make a third merge, the third of the highest score first."""
    tokens, types = _tokens(keys)
    vocab = {token: number for number, token in enumerate(tokens)}
    scores: Any = keys["tokenizer.ggml.scores"]
    found = _merges(vocab, types, np.asarray(scores, np.float64))
    ranked = sorted(islice(found, MOST_MERGES + 1))
    if len(ranked) > MOST_MERGES:
        raise ValueError(f"more than {MOST_MERGES} merges")
    merges = [(tokens[first], tokens[second]) for _, first, second in ranked]
    unknown = tokens[_id(keys, "unknown", 0)]
    made = Tokenizer(
        models.BPE(vocab=vocab, merges=merges, byte_fallback=True, fuse_unk=True, unk_token=unknown)
    )
    prefix = [normalizers.Prepend(_SPACE)] if _flag(keys, "add_space_prefix", True) else []
    made.normalizer = normalizers.Sequence([*prefix, normalizers.Replace(" ", _SPACE)])
    return _finished(made, keys, tokens, types, begins=True)


def _merges(
    vocab: Mapping[str, int], types: list[int], scores: np.ndarray[Any, Any]
) -> Iterator[tuple[float, int, int]]:
    for token, number in vocab.items():
        if types[number] in (_UNKNOWN, _CONTROL, _BYTE):
            continue
        for at in range(1, len(token)):
            first, second = vocab.get(token[:at]), vocab.get(token[at:])
            if first is not None and second is not None:
                yield -float(scores[number]), first, second


def word_pieces(keys: Keys) -> Tokenizer:
    """BERT's kind; the file marks where words begin, BERT where they go on."""
    tokens, types = _tokens(keys)
    pieces = [_piece(token, kind) for token, kind in zip(tokens, types, strict=True)]
    vocab = {piece: number for number, piece in enumerate(pieces)}
    unknown = pieces[_id(keys, "unknown", 100)]
    made = Tokenizer(models.WordPiece(vocab=vocab, unk_token=unknown, max_input_chars_per_word=100))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = cutting.BertPreTokenizer()
    first, last = _id(keys, "cls", _id(keys, "bos", 101)), _id(keys, "seperator", 102)
    made.add_special_tokens(_added(pieces, types, _CONTROL))
    return _framed(made, pieces, [first], [last])


def _piece(token: str, kind: int) -> str:
    if kind == _CONTROL:
        return token
    return token[1:] if token.startswith(_SPACE) else f"##{token}"


def _finished(
    made: Tokenizer, keys: Keys, tokens: list[str], types: list[int], begins: bool
) -> Tokenizer:
    """With the tokens that text names whole, and those that stand before and after it."""
    made.add_special_tokens(_added(tokens, types, _CONTROL))
    made.add_tokens(_added(tokens, types, _USER))
    first = [_id(keys, "bos", 1)] if _flag(keys, "add_bos_token", begins) else []
    last = [_id(keys, "eos", 2)] if _flag(keys, "add_eos_token", False) else []
    return _framed(made, tokens, first, last)


def _added(tokens: list[str], types: list[int], which: int) -> list[AddedToken]:
    return [
        AddedToken(token, special=which == _CONTROL, normalized=False)
        for token, kind in zip(tokens, types, strict=True)
        if kind == which and token
    ]


def _framed(made: Tokenizer, tokens: list[str], first: list[int], last: list[int]) -> Tokenizer:
    """With special tokens around a text, where they are asked for."""
    ids = [*first, *last]
    if ids:
        names = {number: f"token{number}" for number in ids}
        around = [[names[number] for number in part] for part in (first, last)]
        made.post_processor = processors.TemplateProcessing(
            single=" ".join([*around[0], "$A", *around[1]]),
            special_tokens=[(name, number) for number, name in names.items()],
        )
    return made


_TOKENS: Mapping[str, type] = {
    "tokenizer.ggml.tokens": list,
    "tokenizer.ggml.token_type": np.ndarray,
}
MAKERS: Mapping[str, Callable[[Keys], Tokenizer]] = {
    "gpt2": byte_pairs,
    "llama": sentence_piece,
    "bert": word_pieces,
}
"""tokenizer.ggml.model -> how it is made."""

NEEDS: Mapping[str, Mapping[str, type]] = {
    "gpt2": {**_TOKENS, "tokenizer.ggml.merges": list},
    "llama": {**_TOKENS, "tokenizer.ggml.scores": np.ndarray},
    "bert": _TOKENS,
}
"""tokenizer.ggml.model -> the keys it needs, and what each holds."""
