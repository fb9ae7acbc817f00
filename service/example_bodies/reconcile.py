"""Requests of POST /v1/sizing/reconcile, and the answer to the first."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from service.example_bodies import configs

_WRITTEN = {
    "d_model": 8,
    "vocab": 12,
    "tied": True,
    "attention": {"n_heads": 2},
    "ffn": {"bias": False},
    "norm": {"kind": "none"},
}
_OWN = {
    "model": {"config": _WRITTEN},
    "published": 960,
    "best": 1,
}
_BUFFERS = {"model": {"preset": "llama-2-7b"}, "published": 6738417664, "best": 1}
_ROUNDED = {"model": {"preset": "gpt2"}, "published": "137M"}
_TWO = {"model": {"preset": "deepseek-v3"}, "published": "684531386000", "best": 2}

REQUESTS: Mapping[str, Any] = MappingProxyType(
    {
        "article": {"summary": "A table that is counted twice", "value": _OWN},
        "buffers": {"summary": "Llama 2 7B as its checkpoint counts", "value": _BUFFERS},
        "rounded": {"summary": "GPT-2 of 137 million", "value": _ROUNDED},
        "two": {"summary": "DeepSeek-V3 by two differences", "value": _TWO},
    }
)


def _amount(value: int) -> dict[str, Any]:
    return {"value": value, "exact": str(value), "unit": "parameters", "kind": "exact"}


_SYMBOLS = (
    ("L", "n_layers", 1),
    ("d", "d_model", 8),
    ("h", "attention.n_heads", 2),
    ("g", "attention.n_kv_heads", 2),
    ("k", "attention.d_head", 4),
    ("v", "attention.d_value", 4),
    ("f", "ffn.d_ff", 32),
    ("V", "vocab, or vocab_padded_to", 12),
    ("d_embed", "d_embed", 8),
)
_WORDS = "The table that is the readout too is stored, or counted, again."

ANSWER: Mapping[str, Any] = MappingProxyType(
    {
        "model": {
            "name": None,
            "preset": None,
            "overrides": [],
            "config": configs.answered(_WRITTEN),
        },
        "symbols": [
            {"letter": letter, "meaning": meaning, "value": value}
            for letter, meaning, value in _SYMBOLS
        ],
        "ours": _amount(864),
        "published": {
            "text": "960",
            "value": _amount(960),
            "lowest": _amount(960),
            "highest": _amount(960),
        },
        "difference": _amount(96),
        "explanations": [
            {
                "id": "tied_head_again",
                "words": _WORDS,
                "differences": [
                    {
                        "id": "tied_head_again",
                        "group": "readout",
                        "words": _WORDS,
                        "value": _amount(96),
                        "parts": [
                            {
                                "id": "unembed.W_U",
                                "value": 96,
                                "exact": "96",
                                "formula": "V·d",
                                "substituted": "12 · 8",
                            }
                        ],
                    }
                ],
                "number": _amount(960),
                "remaining": _amount(0),
                "exact": True,
            }
        ],
        "explained": True,
        "notes": ["This is arithmetic: that a number comes out does not show how it was counted."],
    }
)
"""What the example `article` is answered."""
