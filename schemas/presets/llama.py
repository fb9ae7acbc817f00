"""Llama 1 to 3 and what has its block: RMSNorm, RoPE, a gated ffn, no biases."""

from schemas.presets.gpt import OURS
from schemas.presets.preset import NOTHING, Preset, Written

_HUB = "; count: the hub's safetensors"


def gated(
    d_model: int,
    n_layers: int,
    heads: tuple[int, int],
    d_ff: int,
    vocab: int,
    *,
    theta: float = 10000,
    eps: float = 1e-5,
    attention: Written = NOTHING,
    **others: object,
) -> Written:
    """Llama's block, untied; `heads`: query heads, key/value heads."""
    n_heads, n_kv_heads = heads
    grouped = {} if n_kv_heads == n_heads else {"n_kv_heads": n_kv_heads}
    return {
        "d_model": d_model,
        "n_layers": n_layers,
        "attention": {"n_heads": n_heads, **grouped, **attention},
        "ffn": {"kind": "gated", "d_ff": d_ff, "activation": "silu", "bias": False},
        "norm": {"kind": "rmsnorm", "eps": eps},
        "position": {"kind": "rope", "theta": theta},
        "vocab": vocab,
        **others,
    }


def _small(
    shape: tuple[int, int], heads: tuple[int, int], d_ff: int, vocab: int, theta: float = 10000
) -> Written:
    """A tied one, its key/value heads said even where they are as many."""
    said = {"n_kv_heads": heads[1]}
    return gated(*shape, heads, d_ff, vocab, theta=theta, attention=said, tied=True)


def _llama(name: str, source: str, written: Written, count: int, more: str = "") -> Preset:
    """A model of Llama's block as published; `more`: what sets it apart."""
    n_heads = written["attention"]["n_heads"]
    n_kv_heads = written["attention"].get("n_kv_heads", n_heads)
    shared = "" if n_heads == n_kv_heads else f", {n_kv_heads} key/value heads"
    meaning = f"Llama's block{shared}{more}."
    return Preset(name, f"{meaning} As published.", f"config.json of {source}", written, count)


def _llama3(version: str, size: str, count: int, written: Written, factor: float = 0) -> Preset:
    """Llama 3; `factor`: how many times longer than 8192 positions its RoPE is stretched."""
    scaling = {"kind": "llama3", "factor": factor, "original_positions": 8192}
    position = {**written["position"], **({"scaling": scaling} if factor else {})}
    family = "Meta-Llama-3-" if version == "3" else f"Llama-{version}-"
    stretched = f", RoPE stretched {factor:g} times" if factor else ""
    return _llama(
        f"llama-{version}-{size.lower()}",
        f"meta-llama/{family}{size}{_HUB}",
        {**written, "position": position},
        count,
        stretched,
    )


_8B = gated(4096, 32, (32, 8), 14336, 128256, theta=500000)
_70B = gated(8192, 80, (64, 8), 28672, 128256, theta=500000)

LLAMA = (
    Preset(
        "stories15m",
        "Llama 2's block, small: 6 blocks, RMSNorm, RoPE, gated ffn. As published.",
        "stories15M of karpathy/tinyllamas",
        _small((288, 6), (6, 6), 768, vocab=32000),
        15_191_712,
    ),
    Preset(
        "stories110m",
        "Llama 2's block, small: 12 blocks. As published.",
        "stories110M of karpathy/tinyllamas",
        _small((768, 12), (12, 12), 2048, vocab=32000),
        109_529_856,
    ),
    Preset(
        "smollm2-135m",
        "Llama 3's block, small: 9 heads on 3 key/value heads. As published.",
        f"config.json of HuggingFaceTB/SmolLM2-135M{_HUB}",
        _small((576, 30), (9, 3), 1536, vocab=49152, theta=100000),
        134_515_008,
    ),
    Preset(
        "llama-tiny",
        "Llama 3's block at a width a page can show. 4 heads on 2 key/value heads.",
        OURS,
        _small((32, 2), (4, 2), 96, vocab=64),
    ),
    Preset(
        "llama-2-7b",
        "Llama 2 7B. As published; Llama 1 7B is the same but for its eps, 1e-6.",
        "config.json of meta-llama/Llama-2-7b-hf; count: keras-hub",
        gated(4096, 32, (32, 32), 11008, 32000),
        6_738_415_616,
    ),
    Preset(
        "llama-2-13b",
        "Llama 2 13B. As published; Llama 1 13B is the same but for its eps, 1e-6.",
        f"config.json of meta-llama/Llama-2-13b-hf{_HUB}, less 40 · 64 frequencies of RoPE",
        gated(5120, 40, (40, 40), 13824, 32000),
        13_015_864_320,
    ),
    _llama(
        "llama-1-30b",
        "huggyllama/llama-30b",
        gated(6656, 60, (52, 52), 17920, 32000, eps=1e-6),
        32_528_943_616,
    ),
    _llama(
        "llama-1-65b",
        "huggyllama/llama-65b",
        gated(8192, 80, (64, 64), 22016, 32000),
        65_285_660_672,
    ),
    _llama(
        "llama-2-70b",
        f"meta-llama/Llama-2-70b-hf{_HUB}, less 80 · 64 frequencies of RoPE",
        gated(8192, 80, (64, 8), 28672, 32000),
        68_976_648_192,
    ),
    _llama3("3", "8B", 8_030_261_248, _8B),
    _llama3("3.1", "8B", 8_030_261_248, _8B, 8),
    _llama3("3", "70B", 70_553_706_496, _70B),
    _llama3("3.1", "70B", 70_553_706_496, _70B, 8),
    _llama3(
        "3.1",
        "405B",
        405_853_388_800,
        gated(16384, 126, (128, 8), 53248, 128256, theta=500000),
        8,
    ),
    _llama3(
        "3.2",
        "1B",
        1_235_814_400,
        gated(2048, 16, (32, 8), 8192, 128256, theta=500000, tied=True),
        32,
    ),
    _llama3(
        "3.2",
        "3B",
        3_212_749_824,
        gated(3072, 28, (24, 8), 8192, 128256, theta=500000, tied=True),
        32,
    ),
)
