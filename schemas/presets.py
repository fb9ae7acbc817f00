"""Known shapes by name: configs as a request would write them, without their trained weights.

What follows from other fields (d_head, d_ff where it is 4 d_model) is left out, so that it follows
what a request changes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from schemas.base import Answered
from schemas.config import ConfigAsked
from schemas.resolved import ConfigAnswer


@dataclass(frozen=True, slots=True)
class Preset:
    """A shape: its name, what it is and what it leaves out, where its numbers are from."""

    name: str
    meaning: str
    source: str
    config: ConfigAsked


def _gpt2(d_model: int, n_layers: int, n_heads: int, vocab: int, n_positions: int) -> ConfigAsked:
    return ConfigAsked.model_validate(
        {
            "d_model": d_model,
            "n_layers": n_layers,
            "attention": {"n_heads": n_heads, "bias": True},
            "ffn": {"activation": "gelu_tanh"},
            "position": {"kind": "learned", "n_positions": n_positions},
            "vocab": vocab,
            "tied": True,
        }
    )


def _bert(d_model: int, n_layers: int, n_heads: int, vocab: int) -> ConfigAsked:
    return ConfigAsked.model_validate(
        {
            "d_model": d_model,
            "n_layers": n_layers,
            "attention": {"n_heads": n_heads, "mask": "full", "bias": True},
            "norm": {"placement": "post", "eps": 1e-12},
            "position": {"kind": "learned", "n_positions": 512},
            "token_types": 2,
            "embed_norm": True,
            "vocab": vocab,
            "tied": True,
            "mlm_head": True,
            "unembed_bias": True,
        }
    )


def _llama(
    d_model: int, n_layers: int, heads: tuple[int, int], d_ff: int, vocab: int, theta: float
) -> ConfigAsked:
    n_heads, n_kv_heads = heads
    return ConfigAsked.model_validate(
        {
            "d_model": d_model,
            "n_layers": n_layers,
            "attention": {"n_heads": n_heads, "n_kv_heads": n_kv_heads},
            "ffn": {"kind": "gated", "d_ff": d_ff, "activation": "silu", "bias": False},
            "norm": {"kind": "rmsnorm", "eps": 1e-5},
            "position": {"kind": "rope", "theta": theta},
            "vocab": vocab,
            "tied": True,
        }
    )


_MASKED = "With its masked-token head, without pooler and sentence head."
_OURS = "Ours, no published model."

_PRESETS = (
    Preset(
        "gpt2",
        "GPT-2 small: 12 blocks, pre-norm, learned positions. As published.",
        "config.json of openai-community/gpt2",
        _gpt2(768, 12, 12, 50257, 1024),
    ),
    Preset(
        "distilgpt2",
        "GPT-2 with half its blocks. As published.",
        "config.json of distilbert/distilgpt2",
        _gpt2(768, 6, 12, 50257, 1024),
    ),
    Preset(
        "gpt2-tiny",
        "GPT-2's block at a width a page can show: 2 blocks of 4 heads.",
        _OURS,
        _gpt2(32, 2, 4, 64, 64),
    ),
    Preset(
        "bert-base",
        f"BERT base, uncased: 12 blocks, post-norm, every position sees all. {_MASKED}",
        "config.json of google-bert/bert-base-uncased",
        _bert(768, 12, 12, 30522),
    ),
    Preset(
        "bert-tiny",
        f"BERT of 2 blocks of 2 heads. {_MASKED}",
        "google/bert_uncased_L-2_H-128_A-2",
        _bert(128, 2, 2, 30522),
    ),
    Preset(
        "stories15m",
        "Llama 2's block, small: 6 blocks, RMSNorm, RoPE, gated ffn. As published.",
        "stories15M of karpathy/tinyllamas",
        _llama(288, 6, (6, 6), 768, 32000, 10000),
    ),
    Preset(
        "smollm2-135m",
        "Llama 3's block, small: 30 blocks, 9 heads on 3 key/value heads. As published.",
        "config.json of HuggingFaceTB/SmolLM2-135M",
        _llama(576, 30, (9, 3), 1536, 49152, 100000),
    ),
    Preset(
        "llama-tiny",
        "Llama 3's block at a width a page can show: 2 blocks, 4 heads on 2 key/value heads.",
        _OURS,
        _llama(32, 2, (4, 2), 96, 64, 10000),
    ),
)

PRESETS: Mapping[str, Preset] = MappingProxyType({preset.name: preset for preset in _PRESETS})
"""Name -> preset."""


class PresetLine(Answered):
    """A shape that a request can name."""

    name: Annotated[str, Field(description="What a request calls it.")]
    meaning: Annotated[str, Field(description="What it is, and what it leaves out.")]
    source: Annotated[str, Field(description="Where its numbers are from.")]
    parameters: Annotated[int, Field(description="Numbers it holds.")]
    config: Annotated[ConfigAnswer, Field(description="Resolved, nothing optional.")]


class Presets(Answered):
    """The shapes there are."""

    presets: Annotated[list[PresetLine], Field(description="A line each.")]
