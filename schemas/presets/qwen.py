"""Qwen 2.5 and 3: Llama's block with biases of queries, keys and values, or norms of them."""

from schemas.presets.llama import gated
from schemas.presets.preset import Preset, Written

_FINE = {"kind": "rmsnorm", "eps": 1e-6}
_HUB = "; count: the hub's safetensors"


def _qwen25(size: str, count: int, written: Written) -> Preset:
    biases = {**written["attention"], "bias": {"q": True, "k": True, "v": True}}
    return Preset(
        f"qwen2.5-{size.lower()}",
        f"Qwen 2.5 {size}: Llama's block with biases of Q, K and V. As published.",
        f"config.json of Qwen/Qwen2.5-{size}{_HUB}",
        {**written, "attention": biases},
        count,
    )


def _qwen3(size: str, count: int, written: Written, counted: str = _HUB) -> Preset:
    block = "a mixture of experts," if written["ffn"]["kind"] == "moe" else "Llama's block with"
    return Preset(
        f"qwen3-{size.lower()}",
        f"Qwen 3 {size}: {block} norms of Q and K. As published.",
        f"config.json of Qwen/Qwen3-{size}{counted}",
        written,
        count,
    )


def _block25(
    shape: tuple[int, int], heads: tuple[int, int], d_ff: int, **others: object
) -> Written:
    return {**gated(*shape, heads, d_ff, 152064, theta=1e6), **others}


def _block3(shape: tuple[int, int], heads: tuple[int, int], d_ff: int, **others: object) -> Written:
    attention = {"d_head": 128, "qk_norm": "head"}
    written = gated(*shape, heads, d_ff, 151936, theta=1e6, eps=1e-6, attention=attention)
    return {**written, **others}


def _experts(written: Written) -> Written:
    ffn = {
        "kind": "moe",
        "d_ff": written["ffn"]["d_ff"],
        "activation": "silu",
        "n_experts": 128,
        "top_k": 8,
    }
    return {**written, "ffn": ffn}


_ONCE = "; count: keras-hub (the hub's file has the readout beside the embedding it is tied to)"

QWEN = (
    _qwen25(
        "0.5B",
        494_032_768,
        _block25((896, 24), (14, 2), 4864, vocab=151936, norm=_FINE, tied=True),
    ),
    _qwen25(
        "3B",
        3_085_938_688,
        _block25((2048, 36), (16, 2), 11008, vocab=151936, norm=_FINE, tied=True),
    ),
    _qwen25("7B", 7_615_616_512, _block25((3584, 28), (28, 4), 18944, norm=_FINE)),
    _qwen25("32B", 32_763_876_352, _block25((5120, 64), (40, 8), 27648)),
    _qwen25("72B", 72_706_203_648, _block25((8192, 80), (64, 8), 29568)),
    _qwen3("0.6B", 596_049_920, _block3((1024, 28), (16, 8), 3072, tied=True), _ONCE),
    _qwen3("4B", 4_022_468_096, _block3((2560, 36), (32, 8), 9728, tied=True)),
    _qwen3("8B", 8_190_735_360, _block3((4096, 36), (32, 8), 12288)),
    _qwen3("32B", 32_762_123_264, _block3((5120, 64), (64, 8), 25600)),
    _qwen3("30B-A3B", 30_532_122_624, _experts(_block3((2048, 48), (32, 4), 768))),
    _qwen3("235B-A22B", 235_093_634_560, _experts(_block3((4096, 94), (64, 4), 1536))),
)
