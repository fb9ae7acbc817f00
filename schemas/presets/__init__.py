"""Known shapes by name: configs as a request would write them, without their trained weights.

What follows from other fields (d_head, d_ff where it is 4 d_model) is left out, so that it follows
what a request changes.
"""

from collections.abc import Mapping
from types import MappingProxyType

from schemas.presets.answers import PresetLine, Presets
from schemas.presets.bert import BERT
from schemas.presets.decoders import DECODERS
from schemas.presets.experts import EXPERTS
from schemas.presets.gemma import GEMMA
from schemas.presets.gpt import GPT
from schemas.presets.llama import LLAMA
from schemas.presets.llama_like import LLAMA_LIKE
from schemas.presets.neox import NEOX
from schemas.presets.preset import Preset
from schemas.presets.qwen import QWEN
from schemas.presets.t5 import T5
from schemas.presets.vit import VIT

__all__ = ["PRESETS", "Preset", "PresetLine", "Presets"]

_FAMILIES = (GPT, LLAMA, LLAMA_LIKE, QWEN, GEMMA, EXPERTS, NEOX, DECODERS, BERT, VIT, T5)

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {preset.name: preset for family in _FAMILIES for preset in family}
)
"""Name -> preset."""
