"""What a tokenizer.json is refused for, and that those of published models are not."""

import json
import threading
import time
from base64 import b64encode
from collections.abc import Mapping

import numpy as np
import pytest
from tokenizers import Regex, pre_tokenizers

from compute.checkpoints import tokenizer_patterns, tokenizer_rules
from compute.checkpoints.text import Text
from compute.errors import InputError, ModelError

WORDS: Mapping[str, object] = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}


def written(**parts: object) -> bytes:
    """A tokenizer.json of a vocabulary of one, with these parts."""
    empty = dict.fromkeys(("normalizer", "pre_tokenizer", "post_processor", "decoder"))
    whole = {"version": "1.0", "added_tokens": [], **empty, "model": WORDS, **parts}
    return json.dumps(whole).encode()


def replacing(pattern: Mapping[str, str], content: str) -> dict[str, object]:
    return {"type": "Replace", "pattern": dict(pattern), "content": content}


def splitting(pattern: str) -> dict[str, object]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def in_turn(*parts: object) -> dict[str, object]:
    return {"type": "Sequence", "normalizers": list(parts)}


def nested(depth: int) -> object:
    return in_turn(nested(depth - 1)) if depth else {"type": "NFC"}


def pieces(cap: int) -> dict[str, object]:
    vocab = {"a": 0, "##a": 1}
    affix = {"unk_token": "a", "continuing_subword_prefix": "##"}
    return {"type": "WordPiece", "vocab": vocab, **affix, "max_input_chars_per_word": cap}


def around(ids: list[int]) -> dict[str, object]:
    special = {"SpecialToken": {"id": "x", "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    known = {"x": {"id": "x", "ids": ids, "tokens": ["a"] * len(ids)}}
    pair = {"pair": [text, {"Sequence": {"id": "B", "type_id": 0}}]}
    single = {"single": [special, text]}
    return {"type": "TemplateProcessing", **single, **pair, "special_tokens": known}


def added(content: str, count: int = 1) -> list[object]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    return [{"id": at + 1, "content": f"{content}{at}", **flags} for at in range(count)]


REFUSED: Mapping[str, tuple[bytes, str]] = {
    "a thousand times longer, four times": (
        written(normalizer=in_turn(*[replacing({"String": "a"}, "a" * 50)] * 4)),
        "8 times longer",
    ),
    "a long replacement": (
        written(normalizer=replacing({"String": "a"}, "a" * 1000)),
        "at most 64 characters",
    ),
    "a replacement of nothing": (
        written(normalizer=replacing({"String": ""}, "a" * 60)),
        "8 times longer",
    ),
    "a long prefix": (written(normalizer={"type": "Prepend", "prepend": "a" * 99}), "at most 16"),
    "deep": (written(normalizer=nested(6)), "4 deep"),
    "many": (written(normalizer=in_turn(*[{"type": "NFC"}] * 40)), "more than 32 parts"),
    "a charsmap": (
        written(
            normalizer={
                "type": "Precompiled",
                "precompiled_charsmap": b64encode(bytes(8) + b"x" * 999).decode(),
            }
        ),
        "over 64 bytes",
    ),
    "an unknown kind": (written(pre_tokenizer={"type": "Run"}), "not read"),
    "a word without end": (written(model=pieces(10**9)), "beyond 1000"),
    "a long token": (written(model={**WORDS, "vocab": {"a": 0, "b" * 513: 1}}), "512 characters"),
    "a long added token": (written(added_tokens=added("b" * 520)), "512 characters"),
    "many added tokens": (written(added_tokens=added("b", 16385)), "16384 added_tokens"),
    "added tokens of many letters": (written(added_tokens=added("b" * 500, 600)), "262144"),
    "a long unknown token": (written(model={**WORDS, "unk_token": "a" * 65}), "at most 64"),
    "a token of nothing": (
        written(model={"type": "Unigram", "unk_id": 0, "vocab": [["", 0.0]]}),
        "without characters",
    ),
    "special tokens without end": (written(post_processor=around([0] * 17)), "16 special tokens"),
    "a key twice": (b'{"model": {}, "model": {}}', "twice"),
    "lists": (b'{"model": [' + b"[]," * (1 << 21) + b"[]]}", "more lists"),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_would_not_end_is_refused_by_its_file(name: str) -> None:
    content, said = REFUSED[name]
    with pytest.raises(ModelError, match=said) as refused:
        _ = Text.of_json(content).tokenizer
    assert refused.value.faults[0].place == ("tokenizer.json",)


def test_number_of_tokens_is_refused_before_they_are_parsed() -> None:
    entries = b",".join(b'"%d":%d' % (at, at) for at in range(800_000))
    with pytest.raises(ModelError, match="more than 524288 tokens"):
        tokenizer_rules.check(b'{"model":{"type":"WordLevel","vocab":{' + entries + b"}}}", "t")


def test_tokens_and_merges_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_rules, "MOST_TOKENS", 2)
    monkeypatch.setattr(tokenizer_rules, "MOST_MERGES", 1)
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}
    with pytest.raises(ModelError, match="more than 2 tokens"):
        tokenizer_rules.check(written(model=model), "t")
    model = {"type": "BPE", "vocab": {"a": 0, "aa": 1}, "merges": [["a", "a"], ["a", "a"]]}
    with pytest.raises(ModelError, match="more than 1 merges"):
        tokenizer_rules.check(written(model=model), "t")


UNSAFE = {
    "(a*)*b": "repeats a group",
    "(a+)+$": "repeats a group",
    "(?:a|b){2,}": "repeats a group",
    "a{1,2}+b": "repeats what is repeated",
    "a*a*b": "too long",
    "(a*a*b)?": "too long",
    "a?" * 40 + "b": "too long",
    "(a|a)" * 30 + "b": "too long",
    "a{1,9999}": "counts beyond 64",
    r"(a)\1": "not read",
    "(?<=a+)b": "group of a kind",
    "(?#)a": "group of a kind",
    "(?i)a": "group of a kind",
    "a" * 1025: "1024 characters",
    "[a": "does not end",
    "(a": "brackets",
    "a)": "brackets",
    "*": "repeats nothing",
    "(" * 40: "32 groups",
}


@pytest.mark.parametrize("pattern", sorted(UNSAFE))
@pytest.mark.parametrize("where", ["normalizer", "pre_tokenizer", "decoder"])
def test_pattern_that_may_try_without_end_is_refused(pattern: str, where: str) -> None:
    part = splitting(pattern)
    if where != "pre_tokenizer":
        part = replacing({"Regex": pattern}, "b")
    with pytest.raises(ModelError, match=UNSAFE[pattern]):
        tokenizer_rules.check(written(**{where: part}), "t")


def test_pattern_of_ones_own_reads_shorter_texts() -> None:
    text = Text.of_json(written(pre_tokenizer=splitting(r"\p{L}*\p{N}")))
    begun = time.perf_counter()
    assert text.encode(["é" * 4000], special_tokens=False).ids.shape == (1, 1)
    assert time.perf_counter() - begun < 1
    with pytest.raises(InputError) as refused:
        text.encode(["é" * 30_000, "a"], special_tokens=False)
    assert refused.value.faults[0].code == "text_too_long"


LONG = 1 << 16
TEXTS = {
    "spaces": " " * LONG,
    "spaces before a letter": " " * (LONG - 1) + "x",
    "spaces, then lines": " " * (LONG // 2) + "\n" * (LONG // 2 - 1) + "x",
    "lines": "\n" * LONG,
    "mixed white": " \n" * (LONG // 2),
    "letters": "a" * LONG,
    "capitals before a mark": "A" * (LONG - 1) + "!",
    "both cases": "Aa" * (LONG // 2),
    "modifiers": "\u02b0" * (LONG - 1) + "!",
    "digits": "1" * LONG,
    "marks": "!" * LONG,
    "marks and letters": "!a" * (LONG // 2),
    "quotes": "'" * LONG,
    "accents": "\u0301" * LONG,
}


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_patterns_of_published_models_take_any_text(name: str) -> None:
    for pattern in tokenizer_patterns.PUBLISHED:
        assert tokenizer_patterns.longest_text([pattern], 1 << 20) == 1 << 20
        cut = pre_tokenizers.Split(Regex(pattern), "isolated")
        begun = time.perf_counter()
        cut.pre_tokenize_str(TEXTS[name])
        assert time.perf_counter() - begun < 1, pattern


NORMALIZERS = {
    "BERT": {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": True,
    },
    "Qwen": {"type": "NFC"},
    "Llama 2": in_turn({"type": "Prepend", "prepend": "▁"}, replacing({"String": " "}, "▁")),
    "ALBERT": in_turn(
        replacing({"String": "``"}, '"'),
        {"type": "NFKD"},
        {"type": "StripAccents"},
        {"type": "Lowercase"},
        replacing({"Regex": " {2,}"}, " "),
    ),
}


@pytest.mark.parametrize("name", sorted(NORMALIZERS))
def test_normalizers_of_published_models_take_a_whole_text(name: str) -> None:
    text = Text.of_json(written(normalizer=NORMALIZERS[name]))
    assert text.encode(["a" * LONG], special_tokens=False).ids.shape == (1, 1)


def test_text_that_its_normalizer_makes_too_long_is_refused() -> None:
    text = Text.of_json(written(normalizer={"type": "NFKD"}))
    with pytest.raises(InputError, match="1048576 bytes once it is normalized"):
        text.encode(["\ufdfa" * LONG], special_tokens=False)


def test_words_that_wordpiece_cuts_are_bounded() -> None:
    text = Text.of_json(written(model=pieces(1000)))
    with pytest.raises(InputError, match="at most 8589 bytes"):
        text.encode(["a " * LONG], special_tokens=False)
    assert text.encode(["a" * 1000], special_tokens=False).ids.shape == (1, 1000)


def test_other_threads_run_while_a_text_is_encoded() -> None:
    ladder = [["a" * n, -float(n)] for n in range(1, 512)]
    model = {"type": "Unigram", "unk_id": 0, "vocab": ladder}
    text = Text.of_json(written(model=model))
    _ = text.tokenizer
    work = threading.Thread(target=text.encode, args=(["a" * 30_000], False))
    longest, last = 0.0, time.perf_counter()
    begun = last
    work.start()
    while work.is_alive():
        time.sleep(0.001)
        longest, last = max(longest, time.perf_counter() - last), time.perf_counter()
    assert longest < (last - begun) / 2


def test_broken_tokenizer_leaves_ids_and_says_the_same_each_time() -> None:
    text = Text.of_json(REFUSED["a long token"][0])
    assert text.piece(0) is None
    said = []
    for _ in range(2):
        with pytest.raises(ModelError) as refused:
            text.encode(["a"], special_tokens=False)
        said.append(refused.value.faults)
    assert said[0] == said[1]


def test_first_tokens_leave_out_ids_without_one() -> None:
    text = Text.of_json(written(model={**WORDS, "vocab": {"a": 0, "c": 2, "z": 4_000_000_000}}))
    assert text.first_tokens(100) == ["a", "c"]


def test_characters_of_ids_are_counted() -> None:
    text = Text.of_json(written(model={**WORDS, "vocab": {"a": 0, "b" * 512: 1}}))
    assert text.characters(np.array([[0, 1], [1, 7]])) == 1 + 512 * 2
