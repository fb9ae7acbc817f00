"""The tokenizer of a GGUF file, made when text first comes: merges of a large vocabulary take
seconds."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from compute.checkpoints.faults import refused, shown
from compute.checkpoints.gguf import tokenizer_kinds as kinds
from compute.checkpoints.gguf.gguf_file import GgufFile
from compute.checkpoints.gguf.splits import SPLITS
from compute.checkpoints.gguf.taking import Value
from compute.checkpoints.text import Made, Text
from compute.checkpoints.tokenizer_rules import (
    LONGEST_TOKEN,
    MOST_ADDED,
    MOST_ADDED_CHARACTERS,
    MOST_MERGES,
    MOST_TOKENS,
    Bounds,
)

_MODEL, _PRE = "tokenizer.ggml.model", "tokenizer.ggml.pre"
_MOST_CHARACTERS = 1 << 22  # each place in a token of Llama's may be a merge


def text_of(file: GgufFile, keys: Mapping[str, Value]) -> tuple[Text | None, str]:
    """A file's tokenizer, or why there is none."""
    why_not = _why_not(keys)
    return (None, f"No text: {why_not}") if why_not else (Text(partial(_made, file)), "")


def _made(file: GgufFile) -> Made:
    """From the keys as they are read again; they are not held until text comes."""
    keys = file.keys()
    try:
        return Made(kinds.MAKERS[str(keys[_MODEL])](keys), Bounds())
    except BaseException as error:  # the library raises bare Exception, or panics
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        name = file.path.name
        raise refused((name, _MODEL), f"{name} describes no tokenizer.") from error


def _why_not(keys: Mapping[str, Value]) -> str:
    model, pre = keys.get(_MODEL), keys.get(_PRE, "default")
    if not isinstance(model, str) or model not in kinds.MAKERS:
        return f"its tokenizer is {shown(model)}; {', '.join(kinds.MAKERS)} are read."
    if not isinstance(pre, str) or (model == "gpt2" and pre not in SPLITS):
        return f"its tokenizer splits text as {shown(pre)}, which is not known."
    for key, kind in kinds.NEEDS[model].items():
        if not isinstance(keys.get(key), kind):
            return f"its tokenizer has no {key}."
    tokens = keys["tokenizer.ggml.tokens"]
    if not isinstance(tokens, list) or sum(map(len, tokens)) > _MOST_CHARACTERS:
        return f"its tokens have more than {_MOST_CHARACTERS} characters together."
    return _too_much(tokens, keys)


def _too_much(tokens: list[str], keys: Mapping[str, Value]) -> str:
    """What of it is beyond a limit, as of any tokenizer's."""
    merges = keys.get("tokenizer.ggml.merges")
    types = np.asarray(keys["tokenizer.ggml.token_type"])
    if len(tokens) > MOST_TOKENS:
        return f"its tokenizer has more than {MOST_TOKENS} tokens."
    if max(map(len, tokens), default=0) > LONGEST_TOKEN:
        return f"its tokenizer has a token of more than {LONGEST_TOKEN} characters."
    if isinstance(merges, list) and len(merges) > MOST_MERGES:
        return f"its tokenizer has more than {MOST_MERGES} merges."
    added = [x for x, kind in zip(tokens, types.tolist(), strict=False) if kind in kinds.ADDED]
    if len(added) > MOST_ADDED or sum(map(len, added)) > MOST_ADDED_CHARACTERS:
        return f"its tokenizer has more than {MOST_ADDED} tokens that text names whole."
    return ""
