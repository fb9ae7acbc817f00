"""What a tokenizer.json may be, checked before the library reads it.

It does what a file says without bound: text that each step makes a thousand times longer, patterns
that never end. So a file is read here first: how many tokens and how long, of what kinds its parts
are, how much they may lengthen a text, how long a text may be for all of it to end soon.
"""

from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod

from compute.checkpoints import tokenizer_patterns
from compute.checkpoints.faults import refused, shown
from compute.checkpoints.json_file import parsed_object
from compute.checkpoints.tokenizer_patterns import PUBLISHED, UnsafeError

MOST_TOKENS = 1 << 19
MOST_MERGES = 1 << 20
MOST_ADDED = 1 << 14
MOST_ADDED_CHARACTERS = 1 << 18
"""Tokens that text names whole, and their characters together."""

LONGEST_TOKEN = 512
"""Characters; published ones have as many."""

LONGEST_WORD = 1000
"""Characters of a word that WordPiece may cut."""

MOST_GROWTH = 8
"""How much longer replacements may make a text, all together."""

MOST_BYTES = 1 << 20
"""Bytes of a text as it is normalized, where nothing asks for fewer."""

MOST_MADE = 1 << 23
"""Characters of a text at any step of its normalizing, at worst."""

_FEWEST_BYTES, _FEWEST_CHARACTERS = 1024, 256
_MOST_PARTS, _MOST_DEPTH = 32, 4
_LONGEST_STRING = 64
_LONGEST_AFFIX = 16
_MOST_AROUND = 16
_LARGEST_CHARSMAP = 1 << 21
_MOST_CONTAINERS, _MOST_ITEMS, _MOST_KEYS = 1 << 21, 1 << 23, 1 << 18
_WORD_STEPS, _LATTICE_STEPS = 1 << 33, 1 << 25
_UTF8 = 4

_GROWS = {
    "BertNormalizer": 3,
    "NFC": 3,
    "NFD": 4,
    "NFKC": 18,
    "NFKD": 18,
    "Lowercase": 2,
    **dict.fromkeys(("Strip", "StripAccents", "Nmt", "ByteLevel", "Precompiled"), 1),
}
"""Normalizer -> how many characters it may make of one."""

_KINDS: Mapping[str, tuple[str, frozenset[str]]] = {
    "normalizer": ("normalizers", frozenset({*_GROWS, "Prepend", "Replace"})),
    "pre_tokenizer": (
        "pretokenizers",
        frozenset(
            {
                *("BertPreTokenizer", "ByteLevel", "Metaspace", "Split", "Whitespace"),
                *("WhitespaceSplit", "Punctuation", "Digits", "CharDelimiterSplit"),
                "UnicodeScripts",
            }
        ),
    ),
    "post_processor": (
        "processors",
        frozenset({"TemplateProcessing", "BertProcessing", "RobertaProcessing", "ByteLevel"}),
    ),
    "decoder": (
        "decoders",
        frozenset(
            {
                *("ByteLevel", "WordPiece", "Metaspace", "BPEDecoder", "CTC", "Replace", "Fuse"),
                *("Strip", "ByteFallback"),
            }
        ),
    ),
}
"""Part of a file -> what its Sequence calls its own parts, and the types that are read."""

_MODELS = ("BPE", "WordPiece", "Unigram", "WordLevel")

Part = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of a text: its characters, its bytes once it is normalized, and how many a character makes.

    Fewer characters than most_bytes / growth need no look at what they make.
    """

    most_characters: int = 1 << 16
    most_bytes: int = MOST_BYTES
    growth: int = _UTF8


class _BrokenError(ValueError):
    """A rule that a file breaks: what is said of it, and the limit."""

    def __init__(self, detail: str, limit: object = None) -> None:
        super().__init__(detail)
        self.limit = limit


def check(content: bytes, name: str) -> Bounds:
    """The bounds of a text for this tokenizer; a ModelError where it breaks a rule."""
    if content.count(b'":') > MOST_TOKENS + _MOST_KEYS:
        raise refused(name, f"{name} has more than {MOST_TOKENS} tokens.", MOST_TOKENS)
    containers = content.count(b"[") + content.count(b"{")
    if containers > _MOST_CONTAINERS or content.count(b",") > _MOST_ITEMS:
        raise refused(name, f"{name} has more lists or entries than tokens and merges make.")
    raw = parsed_object(content, name)
    try:
        return _bounds(raw)
    except _BrokenError as error:
        raise refused(name, f"{name} {error}", error.limit) from error
    except UnsafeError as error:
        raise refused(name, f"{name} {error}") from error


def _bounds(raw: Part) -> Bounds:
    model = raw.get("model")
    if not isinstance(model, dict) or model.get("type") not in _MODELS:
        raise _BrokenError(f"is read with a model of type {', '.join(_MODELS)}.", list(_MODELS))
    longest = check_tokens([*_tokens(model), *_added(raw)])
    parts = {which: list(_flat(raw.get(which), which, 0)) for which in _KINDS}
    _check_around(parts["post_processor"])
    texts = [*parts["normalizer"], *parts["pre_tokenizer"], *parts["decoder"]]
    if len(texts) > _MOST_PARTS:
        raise _BrokenError(f"has more than {_MOST_PARTS} parts.", _MOST_PARTS)
    patterns = [x for x in map(_pattern, texts) if x is not None]
    growth = _growth(parts["normalizer"])
    most = tokenizer_patterns.longest_text(patterns, _most_bytes(model, longest))
    if most < _FEWEST_BYTES:
        raise _BrokenError("has patterns that may take too long on a text.")
    made = MOST_MADE if all(x in PUBLISHED for x in patterns) else most // _UTF8
    if made // growth < _FEWEST_CHARACTERS:
        raise _BrokenError(f"may make a text {growth} times longer.")
    return Bounds(made // growth, most, growth * _UTF8)


def _most_bytes(model: Part, longest: int) -> int:
    """As many as the model cuts into tokens soon, at worst."""
    if model["type"] == "Unigram":
        return min(MOST_BYTES, _LATTICE_STEPS // max(longest, 1))
    if model["type"] != "WordPiece":
        return MOST_BYTES
    word = model.get("max_input_chars_per_word", 100)
    if not isinstance(word, int) or not 0 <= word <= LONGEST_WORD:
        detail = f"has max_input_chars_per_word beyond {LONGEST_WORD}."
        raise _BrokenError(detail, LONGEST_WORD)
    return min(MOST_BYTES, _WORD_STEPS // max(word * word, 1))


def check_tokens(tokens: Sequence[str]) -> int:
    """Characters of the longest; a ValueError says that they are too many or too long."""
    if len(tokens) > MOST_TOKENS:
        raise _BrokenError(f"has more than {MOST_TOKENS} tokens.", MOST_TOKENS)
    longest = max(map(len, tokens), default=0)
    if longest > LONGEST_TOKEN:
        raise _BrokenError(f"has a token of more than {LONGEST_TOKEN} characters.", LONGEST_TOKEN)
    return longest


def _tokens(model: Part) -> list[str]:
    """The tokens of the model; its merges and affixes are counted."""
    vocab = model.get("vocab")
    if model["type"] == "Unigram":
        pairs = vocab if isinstance(vocab, list) else []
        tokens = [x[0] for x in pairs if isinstance(x, list) and x and isinstance(x[0], str)]
        if not tokens or len(tokens) < len(pairs):
            raise _BrokenError("has no vocab of tokens and scores.")
        if "" in tokens:
            raise _BrokenError("has a token without characters.")
    elif not isinstance(vocab, dict):
        raise _BrokenError("has no vocab of tokens and ids.")
    else:
        tokens = list(vocab)
    merges = model.get("merges")
    if isinstance(merges, list) and len(merges) > MOST_MERGES:
        raise _BrokenError(f"has more than {MOST_MERGES} merges.", MOST_MERGES)
    for key in ("continuing_subword_prefix", "end_of_word_suffix"):
        _string(model, key, _LONGEST_AFFIX)
    _string(model, "unk_token", _LONGEST_STRING)
    return tokens


def _added(raw: Part) -> list[str]:
    added = raw.get("added_tokens") or []
    if not isinstance(added, list) or not all(isinstance(x, dict) for x in added):
        raise _BrokenError("has added_tokens that are no list of tokens.")
    if len(added) > MOST_ADDED:
        raise _BrokenError(f"has more than {MOST_ADDED} added_tokens.", MOST_ADDED)
    tokens = [_string(x, "content", LONGEST_TOKEN) for x in added]
    if sum(map(len, tokens)) > MOST_ADDED_CHARACTERS:
        detail = f"has added_tokens of more than {MOST_ADDED_CHARACTERS} characters together."
        raise _BrokenError(detail, MOST_ADDED_CHARACTERS)
    return tokens


def _string(part: Part, key: str, most: int) -> str:
    """A string of a part, "" where there is none."""
    found = part.get(key)
    if found is None:
        return ""
    if not isinstance(found, str) or len(found) > most:
        raise _BrokenError(f"has a {key} that is no string of at most {most} characters.", most)
    return found


def _flat(part: object, which: str, depth: int) -> Iterator[Part]:
    """The parts of one kind in their order, those of a Sequence instead of it."""
    if part is None:
        return
    inside, kinds = _KINDS[which]
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(part, dict) or not isinstance(kind, str):
        raise _BrokenError(f"has a {which} without a type.")
    if kind != "Sequence":
        if kind not in kinds:
            raise _BrokenError(f"has a {which} {shown(kind)}, which is not read.", sorted(kinds))
        yield part
        return
    parts = part.get(inside)
    if not isinstance(parts, list) or len(parts) > _MOST_PARTS or depth >= _MOST_DEPTH:
        detail = f"has a {which} Sequence of more than {_MOST_PARTS} parts or {_MOST_DEPTH} deep."
        raise _BrokenError(detail, _MOST_PARTS)
    for x in parts:
        yield from _flat(x, which, depth + 1)


def _check_around(processors: list[Part]) -> None:
    """A template holds the text once, and few special tokens around it."""
    if len(processors) > _MOST_PARTS:
        raise _BrokenError(f"has more than {_MOST_PARTS} parts.", _MOST_PARTS)
    templates = [x for x in processors if x["type"] == "TemplateProcessing"]
    total = sum(_around(x, "single", 1) for x in templates)
    for x in templates:
        _around(x, "pair", 2)
    if total > _MOST_AROUND:
        detail = f"puts more than {_MOST_AROUND} special tokens around a text."
        raise _BrokenError(detail, _MOST_AROUND)
    for x in processors:
        for key in ("sep", "cls"):
            pair = x.get(key)
            if isinstance(pair, list):
                check_tokens([y for y in pair if isinstance(y, str)])


def _around(template: Part, key: str, texts: int) -> int:
    """How many tokens a template adds."""
    pieces, specials = template.get(key), template.get("special_tokens")
    if not isinstance(pieces, list) or not all(isinstance(x, dict) and len(x) == 1 for x in pieces):
        raise _BrokenError("has a template that is no list of parts.")
    named = [x["SpecialToken"] for x in pieces if "SpecialToken" in x]
    if len(pieces) - len(named) > texts or len(pieces) > 2 * _MOST_AROUND:
        raise _BrokenError("has a template that holds a text more than once, or too much.")
    return sum(_ids(specials, x) for x in named)


def _ids(specials: object, named: object) -> int:
    """How many ids a special token of a template has, whose name is short."""
    name = named.get("id") if isinstance(named, dict) else None
    known = specials.get(name) if isinstance(specials, dict) and isinstance(name, str) else None
    ids = known.get("ids") if isinstance(known, dict) else None
    tokens = known.get("tokens") if isinstance(known, dict) else None
    if not isinstance(ids, list) or not isinstance(tokens, list):
        raise _BrokenError("has a template with a special token that it does not describe.")
    check_tokens([x for x in tokens if isinstance(x, str)])
    return max(len(ids), len(tokens))


def _pattern(part: Part) -> str | None:
    """The regular expression of a part, if it has one; a string to find is short."""
    if part["type"] not in ("Split", "Replace"):
        return None
    pattern = part.get("pattern")
    if isinstance(pattern, dict) and len(pattern) == 1:
        if isinstance(pattern.get("Regex"), str):
            return str(pattern["Regex"])
        if isinstance(pattern.get("String"), str):
            _string(pattern, "String", LONGEST_TOKEN)
            return None
    raise _BrokenError("has a pattern that is neither Regex nor String.")


def _growth(normalizers: list[Part]) -> int:
    """How many characters may come of one."""
    made = prod(map(_lengthened, normalizers))
    if made > MOST_GROWTH:
        detail = f"may make a text more than {MOST_GROWTH} times longer by what it replaces."
        raise _BrokenError(detail, MOST_GROWTH)
    names = [str(x["type"]) for x in normalizers]
    unicode = max((_GROWS.get(x, 1) for x in names), default=1)
    again = 3 ** max(names.count("BertNormalizer") - 1, 0)
    mapped = prod(_longest_mapped(x) for x in normalizers if x["type"] == "Precompiled")
    bytewise = _UTF8 ** names.count("ByteLevel")
    return ceil(made) * unicode * again * mapped * bytewise


def _lengthened(part: Part) -> float:
    """How much longer what a part puts in may make a text."""
    if part["type"] == "Prepend":
        return 1 + len(_string(part, "prepend", _LONGEST_AFFIX)) / 2
    if part["type"] != "Replace":
        return 1
    content, pattern = _string(part, "content", _LONGEST_STRING), part.get("pattern")
    found = pattern.get("String") if isinstance(pattern, dict) else None
    if isinstance(found, str) and found:
        return max(1, len(content) / len(found))
    known = isinstance(pattern, dict) and pattern.get("Regex") in PUBLISHED
    return max(1, len(content)) if known else 1 + len(content)  # before and after nothing too


def _longest_mapped(part: Part) -> int:
    """The longest that a map of characters makes of one: 4 bytes of a length, a trie of that
    length, then strings that end with 0."""
    charsmap = _string(part, "precompiled_charsmap", _LARGEST_CHARSMAP)
    try:
        raw = b64decode(charsmap, validate=True)
    except ValueError as error:
        raise _BrokenError("has a precompiled_charsmap that is not base64.") from error
    strings = raw[4 + int.from_bytes(raw[:4], "little") :].split(b"\0")
    longest = max(map(len, strings))
    if longest > _LONGEST_STRING:
        detail = f"has a precompiled_charsmap that makes over {_LONGEST_STRING} bytes of one."
        raise _BrokenError(detail, _LONGEST_STRING)
    return max(longest, 1)
