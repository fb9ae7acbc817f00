"""Decoders that are neither GPT's kind nor Llama's: Falcon, Phi, StableLM, OLMo, Command R."""

from schemas.presets.llama import gated
from schemas.presets.preset import Preset, Written

_HUB = "; count: the hub's safetensors"


def _falcon(d_model: int, n_layers: int, heads: tuple[int, int], **others: object) -> Written:
    n_heads, n_kv_heads = heads
    return {
        "d_model": d_model,
        "n_layers": n_layers,
        "attention": {"n_heads": n_heads, "n_kv_heads": n_kv_heads},
        "ffn": {"bias": False},
        "position": {"kind": "rope"},
        "topology": "parallel",
        "vocab": 65024,
        "tied": True,
        **others,
    }


def _phi(d_model: int, n_layers: int) -> Written:
    """A parallel block with one norm; 32 coordinates of each of 32 heads turn."""
    return {
        "d_model": d_model,
        "n_layers": n_layers,
        "attention": {"n_heads": 32, "bias": True},
        "ffn": {"activation": "gelu_tanh"},
        "norm": {"shared": True},
        "position": {"kind": "rope", "rotary_dim": 32},
        "topology": "parallel",
        "vocab": 51200,
        "unembed_bias": True,
    }


def _layernormed(written: Written, **others: object) -> Written:
    return {**written, "norm": {}, **others}


_OLMO = "No norm holds a number."

DECODERS = (
    Preset(
        "falcon-7b",
        "Falcon 7B: parallel blocks, one norm, one key/value head. As published.",
        "config.json of tiiuae/falcon-7b",
        _falcon(4544, 32, (71, 1), norm={"shared": True}),
        6_921_720_704,
    ),
    Preset(
        "falcon-40b",
        "Falcon 40B: parallel blocks, 8 key/value heads. As published.",
        "config.json of tiiuae/falcon-40b",
        _falcon(8192, 60, (128, 8)),
    ),
    Preset(
        "falcon-rw-1b",
        "Falcon RefinedWeb 1B: ALiBi, all biases. Its ALiBi is not scaled by 1 / √d_head here.",
        "config.json of tiiuae/falcon-rw-1b; count: keras-hub",
        {
            "d_model": 2048,
            "n_layers": 24,
            "attention": {"n_heads": 32, "bias": True},
            "position": {"kind": "alibi"},
            "vocab": 50304,
            "tied": True,
        },
        1_311_625_216,
    ),
    Preset(
        "phi-1.5",
        "Phi-1.5: parallel blocks with one norm. Half of each head turns. As published.",
        "config.json of microsoft/phi-1_5",
        _phi(2048, 24),
        1_418_270_720,
    ),
    Preset(
        "phi-2",
        "Phi-2: parallel blocks with one norm. 32 of 80 coordinates turn. As published.",
        "config.json of microsoft/phi-2; count: litgpt's tutorials",
        _phi(2560, 32),
        2_779_683_840,
    ),
    Preset(
        "stablelm-3b-4e1t",
        "StableLM 3B: Llama's block with LayerNorms. A quarter of each head turns. As published.",
        "config.json of stabilityai/stablelm-3b-4e1t; count: its model card",
        _layernormed(
            gated(2560, 32, (32, 32), 6912, 50304),
            position={"kind": "rope", "rotary_dim": 20},
        ),
        2_795_443_200,
    ),
    Preset(
        "stablelm-2-1.6b",
        "StableLM 2: StableLM's block with biases of Q, K and V. As published.",
        "config.json of stabilityai/stablelm-2-1_6b",
        _layernormed(
            gated(2048, 24, (32, 32), 5632, 100352),
            attention={"n_heads": 32, "bias": {"q": True, "k": True, "v": True}},
            position={"kind": "rope", "rotary_dim": 16},
        ),
        1_644_515_328,
    ),
    Preset(
        "olmo-1b",
        f"OLMo 1B: Llama's block. {_OLMO}",
        "config.json of allenai/OLMo-1B-hf",
        {**gated(2048, 16, (16, 16), 8192, 50304), "tied": True, "norm": {"gain": False}},
        1_176_764_416,
    ),
    Preset(
        "olmo-7b",
        f"OLMo 7B: Llama's block. {_OLMO}",
        "config.json of allenai/OLMo-7B-hf",
        {**gated(4096, 32, (32, 32), 11008, 50304), "norm": {"gain": False}},
        6_888_095_744,
    ),
    Preset(
        "olmo-2-7b",
        "OLMo 2 7B: norms on outputs. Queries and keys normalized over all heads. As published.",
        f"config.json of allenai/OLMo-2-1124-7B{_HUB}",
        {
            **gated(4096, 32, (32, 32), 11008, 100352, theta=500000),
            "attention": {"n_heads": 32, "qk_norm": "full"},
            "norm": {"kind": "rmsnorm", "placement": "output", "eps": 1e-6},
        },
        7_298_617_344,
    ),
    Preset(
        "command-r-35b",
        "Command R: parallel blocks with one norm, no biases. As published.",
        "config.json of CohereForAI/c4ai-command-r-v01",
        {
            **gated(8192, 40, (64, 64), 22528, 256000),
            "norm": {"bias": False, "shared": True},
            "position": {"kind": "rope", "theta": 8e6, "pairing": "interleaved"},
            "topology": "parallel",
            "tied": True,
            "logit_multiplier": 0.0625,
        },
    ),
)
