"""Mixtures of experts: Mixtral, gpt-oss, DeepSeek."""

from math import log

from schemas.presets.llama import gated
from schemas.presets.preset import Preset, Written

_HUB = "; count: the hub's safetensors"


def _mixtral(d_model: int, n_layers: int, heads: tuple[int, int], d_ff: int, vocab: int) -> Written:
    mixture = {"kind": "moe", "d_ff": d_ff, "activation": "silu", "n_experts": 8, "top_k": 2}
    return {**gated(d_model, n_layers, heads, d_ff, vocab, theta=1e6), "ffn": mixture}


def _gpt_oss(n_layers: int, n_experts: int) -> Written:
    """Sinks, biases everywhere, a window of 128 in every second block."""
    yarn = {"kind": "yarn", "factor": 32, "original_positions": 4096}
    return {
        "d_model": 2880,
        "n_layers": n_layers,
        "attention": {
            "n_heads": 64,
            "n_kv_heads": 8,
            "d_head": 64,
            "sinks": True,
            "bias": True,
        },
        "ffn": {
            "kind": "moe",
            "d_ff": 2880,
            "activation": "quick_gelu",
            "bias": True,
            "n_experts": n_experts,
            "top_k": 4,
            "router_bias": True,
        },
        "norm": {"kind": "rmsnorm", "eps": 1e-5},
        "position": {"kind": "rope", "theta": 150000, "scaling": yarn},
        "vocab": 201088,
        "layers": [{"window": 128} if at % 2 == 0 else {} for at in range(n_layers)],
    }


def _oss(size: str, experts: int, n_layers: int, count: int) -> Preset:
    return Preset(
        f"gpt-oss-{size}",
        f"gpt-oss {size}: {experts} experts, sinks. A window in every second block. Its experts' "
        "bounds of ±7 are left out; the 1 that it adds to what they let through is in b_in.",
        f"config.json of openai/gpt-oss-{size}; count: keras-hub",
        _gpt_oss(n_layers, experts),
        count,
    )


def _deepseek(written: Written, q_lora_rank: int | None, mscale: float) -> Written:
    """Latent attention over 512 numbers; RoPE stretched 40 times, its scale as YaRN's squared."""
    yarn = {"kind": "yarn", "factor": 40, "original_positions": 4096, "attention_factor": 1}
    n_heads = written["attention"]["n_heads"]
    ranks = {} if q_lora_rank is None else {"q_lora_rank": q_lora_rank}
    latent = {**ranks, "kv_lora_rank": 512, "d_nope": 128, "d_rope": 64}
    scale = 192**-0.5 * (0.1 * mscale * log(40) + 1) ** 2
    return {
        **written,
        "attention": {"n_heads": n_heads, "scale": scale, "mla": latent},
        "position": {"kind": "rope", "scaling": yarn},
    }


_V3 = {
    "kind": "moe",
    "d_ff": 2048,
    "activation": "silu",
    "n_experts": 256,
    "top_k": 8,
    "router_bias": True,
    "d_shared": 2048,
    "first_dense": 3,
    "d_dense": 18432,
}
_V2_LITE = {
    "kind": "moe",
    "d_ff": 1408,
    "activation": "silu",
    "n_experts": 64,
    "top_k": 6,
    "renormalize": False,
    "d_shared": 2816,
    "first_dense": 1,
    "d_dense": 10944,
}

EXPERTS = (
    Preset(
        "mixtral-8x7b",
        "Mixtral 8x7B: each token goes to 2 of 8 experts. As published.",
        "config.json of mistralai/Mixtral-8x7B-v0.1; count: keras-hub",
        _mixtral(4096, 32, (32, 8), 14336, 32000),
        46_702_792_704,
    ),
    Preset(
        "mixtral-8x22b",
        "Mixtral 8x22B: each token goes to 2 of 8 experts. As published, of 32,768 tokens.",
        f"config.json of mistralai/Mixtral-8x22B-Instruct-v0.1{_HUB}",
        _mixtral(6144, 56, (48, 8), 16384, 32768),
        140_630_071_296,
    ),
    _oss("20b", 32, 24, 20_914_757_184),
    _oss("120b", 128, 36, 116_829_156_672),
    Preset(
        "deepseek-v3",
        "DeepSeek-V3: latent attention, a mixture of experts. 8 of 256 and a shared one, 3 dense "
        "blocks; without its block that predicts a second token.",
        "deepseek-ai/DeepSeek-V3, inference/configs/config_671B.json",
        {
            **_deepseek(gated(7168, 61, (128, 128), 18432, 129280, eps=1e-6), 1536, 1.0),
            "ffn": _V3,
        },
        671_026_419_200,
    ),
    Preset(
        "deepseek-v2-lite",
        "DeepSeek-V2 Lite: latent attention, a mixture of experts. 6 of 64 and 2 shared ones in "
        "one, a dense block.",
        "deepseek-ai/DeepSeek-V3, inference/configs/config_16B.json",
        {
            **_deepseek(gated(2048, 27, (16, 16), 10944, 102400, eps=1e-6), None, 0.707),
            "ffn": _V2_LITE,
        },
        15_706_484_224,
    ),
)
