"""Decoders of Llama's block under other names: TinyLlama, Mistral, Yi, SmolLM, Baichuan, Phi-3."""

from schemas.presets.llama import gated
from schemas.presets.preset import Preset, Written

_HUB = "; count: the hub's safetensors"


def _like(name: str, meaning: str, source: str, written: Written, count: int) -> Preset:
    return Preset(name, f"{meaning} As published.", f"config.json of {source}", written, count)


LLAMA_LIKE = (
    _like(
        "tinyllama-1.1b",
        "TinyLlama: Llama's block, 4 key/value heads.",
        "TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T",
        gated(2048, 22, (32, 4), 5632, 32000),
        1_100_048_384,
    ),
    _like(
        "mistral-7b-v0.1",
        "Mistral 7B: Llama's block with a window of 4096.",
        f"mistralai/Mistral-7B-v0.1{_HUB}",
        gated(4096, 32, (32, 8), 14336, 32000, attention={"window": 4096}),
        7_241_732_096,
    ),
    _like(
        "mistral-7b-v0.3",
        "Mistral 7B: Llama's block, no window.",
        f"mistralai/Mistral-7B-v0.3{_HUB}",
        gated(4096, 32, (32, 8), 14336, 32768, theta=1e6),
        7_248_023_552,
    ),
    _like(
        "mistral-nemo-12b",
        "Mistral Nemo: Llama's block. Heads of 128, where d_model / n_heads is 160.",
        f"mistralai/Mistral-Nemo-Base-2407{_HUB}",
        gated(5120, 40, (32, 8), 14336, 131072, theta=1e6, attention={"d_head": 128}),
        12_247_782_400,
    ),
    _like(
        "yi-34b",
        "Yi 34B: Llama's block, 8 key/value heads.",
        "01-ai/Yi-34B",
        gated(7168, 60, (56, 8), 20480, 64000, theta=5e6),
        34_388_917_248,
    ),
    _like(
        "smollm2-360m",
        "SmolLM2 360M: Llama 3's block, 5 key/value heads.",
        f"HuggingFaceTB/SmolLM2-360M{_HUB}",
        gated(960, 32, (15, 5), 2560, 49152, theta=100000, tied=True),
        361_821_120,
    ),
    _like(
        "smollm2-1.7b",
        "SmolLM2 1.7B: Llama's block.",
        f"HuggingFaceTB/SmolLM2-1.7B{_HUB}",
        gated(2048, 24, (32, 32), 8192, 49152, theta=130000, tied=True),
        1_711_376_384,
    ),
    _like(
        "smollm3-3b",
        "SmolLM3: Llama's block; every fourth turns nothing.",
        f"HuggingFaceTB/SmolLM3-3B{_HUB}",
        {
            **gated(2048, 36, (16, 4), 11008, 128256, theta=5e6, eps=1e-6, tied=True),
            "layers": [{"theta": None} if at % 4 == 3 else {} for at in range(36)],
        },
        3_075_098_624,
    ),
    Preset(
        "baichuan-7b",
        "Baichuan 7B: Llama's block. As published.",
        "config.json of baichuan-inc/Baichuan-7B; count: calflops' README",
        gated(4096, 32, (32, 32), 11008, 64000, eps=1e-6),
        7_000_559_616,
    ),
    _like(
        "phi-3-mini",
        "Phi-3 mini, 4k: Llama's block, a window of 2047.",
        f"microsoft/Phi-3-mini-4k-instruct{_HUB}",
        gated(3072, 32, (32, 32), 8192, 32064, attention={"window": 2047}),
        3_821_079_552,
    ),
    _like(
        "phi-4-14b",
        "Phi-4: Llama's block, 10 key/value heads.",
        f"microsoft/phi-4{_HUB}",
        gated(5120, 40, (40, 10), 17920, 100352, theta=250000),
        14_659_507_200,
    ),
)
