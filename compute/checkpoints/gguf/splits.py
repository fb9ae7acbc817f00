"""How byte-pair tokenizers of GGUF files cut text before they merge, by `tokenizer.ggml.pre`."""

from collections.abc import Mapping

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
_ENDINGS = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_LLAMA3 = _ENDINGS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + _SPACES
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
_DIGIT, _THREE_DIGITS = r"\p{N}", "[0-9][0-9][0-9]"

SPLITS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("gpt-2", "mpt", "olmo", "phi-2"), (_GPT2,)),
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r"), (_DIGIT, _GPT2)),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3"), (_LLAMA3,)),
    **dict.fromkeys(("qwen2", "stablelm2"), (_QWEN2,)),
    "falcon": (r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, _THREE_DIGITS),
    "default": (r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", _THREE_DIGITS),
}
"""A name -> patterns, each cutting what the one before left."""

WHOLE_FIRST = frozenset({"llama-bpe", "llama3", "llama-v3"})
"""Where a piece that is a token is that token, whatever its merges."""
