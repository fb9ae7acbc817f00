"""Configs of the examples as they are answered: resolved, nothing optional."""

from collections.abc import Mapping
from typing import Any

from compute import config_json
from schemas.config import ConfigAsked


def answered(written: Mapping[str, Any]) -> dict[str, Any]:
    """A config as a request writes it, as an answer tells it."""
    return config_json.as_json(ConfigAsked.model_validate(written).to_compute())


def gpt2(d_model: int, n_layers: int, n_positions: int) -> dict[str, Any]:
    """A config in GPT-2's style, heads of 64."""
    return answered(
        {
            "d_model": d_model,
            "n_layers": n_layers,
            "attention": {"n_heads": d_model // 64, "bias": True},
            "ffn": {"activation": "gelu_tanh"},
            "position": {"kind": "learned", "n_positions": n_positions},
            "vocab": 50257,
            "tied": True,
        }
    )
