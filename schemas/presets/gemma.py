"""Gemma 1 to 3: gains of 1 + w, embeddings times √d_model, heads of a width of their own."""

from schemas.presets.preset import NOTHING, Preset, Written

_TEXT = "The text model alone."


def _gemma(
    shape: tuple[int, int],
    heads: tuple[int, int, int],
    d_ff: int,
    *,
    attention: Written = NOTHING,
    norm: Written = NOTHING,
    position: Written = NOTHING,
    **others: object,
) -> Written:
    """Gemma's block; `heads`: query heads, key/value heads, their width."""
    (d_model, n_layers), (n_heads, n_kv_heads, d_head) = shape, heads
    widths = {"n_heads": n_heads, "n_kv_heads": n_kv_heads, "d_head": d_head}
    return {
        "d_model": d_model,
        "n_layers": n_layers,
        "attention": {**widths, **attention},
        "ffn": {"kind": "gated", "d_ff": d_ff, "activation": "gelu_tanh", "bias": False},
        "norm": {"kind": "rmsnorm", "eps": 1e-6, "gain_offset": 1, **norm},
        "position": {"kind": "rope", **position},
        "vocab": 256000,
        "tied": True,
        "embed_multiplier": d_model**0.5,
        **others,
    }


def _gemma2(
    shape: tuple[int, int], heads: tuple[int, int, int], d_ff: int, **attention: object
) -> Written:
    """Every second block sees 4096 positions; scores and logits are capped."""
    return _gemma(
        shape,
        heads,
        d_ff,
        attention={"softcap": 50, **attention},
        norm={"placement": "sandwich"},
        logit_softcap=30,
        layers=[{"window": 4096} if at % 2 == 0 else {} for at in range(shape[1])],
    )


def _gemma3(
    shape: tuple[int, int],
    heads: tuple[int, int, int],
    d_ff: int,
    window: int,
    factor: float = 1,
    **attention: object,
) -> Written:
    """Five blocks of six see a window, and have a RoPE of their own that is not stretched."""
    stretched = {"scaling": {"kind": "linear", "factor": factor}} if factor > 1 else {}
    unstretched = {"scaling": {"kind": "none"}} if factor > 1 else {}
    local = {"window": window, "theta": 10000, **unstretched}
    return _gemma(
        shape,
        heads,
        d_ff,
        attention={"qk_norm": "head", **attention},
        norm={"placement": "sandwich"},
        position={"theta": 1e6, **stretched},
        vocab=262144,
        layers=[{} if at % 6 == 5 else local for at in range(shape[1])],
    )


def _preset(name: str, meaning: str, written: Written, count: int, repository: str = "") -> Preset:
    source = f"config.json of google/{repository or name}; count: keras-hub"
    return Preset(name, f"{meaning} As published.", source, written, count)


GEMMA = (
    _preset(
        "gemma-2b",
        "Gemma 2B: 8 heads of 256 on one key/value head.",
        _gemma((2048, 18), (8, 1, 256), 16384),
        2_506_172_416,
    ),
    _preset(
        "gemma-7b",
        "Gemma 7B: heads of 256, where d_model / n_heads is 192.",
        _gemma((3072, 28), (16, 16, 256), 24576),
        8_537_680_896,
    ),
    _preset(
        "gemma-2-2b",
        "Gemma 2 2B: sandwich norms, caps. A window of 4096 in every second block.",
        _gemma2((2304, 26), (8, 4, 256), 9216),
        2_614_341_888,
    ),
    _preset(
        "gemma-2-27b",
        "Gemma 2 27B: sandwich norms, caps. A window of 4096 in every second block, scale 1 / 12.",
        _gemma2((4608, 46), (32, 16, 128), 36864, scale=1 / 12),
        27_227_128_320,
    ),
    _preset(
        "gemma-3-270m",
        "Gemma 3 270M: a window of 512 in five blocks of six.",
        _gemma3((640, 18), (4, 1, 256), 2048, 512),
        268_098_176,
    ),
    _preset(
        "gemma-3-1b",
        "Gemma 3 1B: a window of 512 in five blocks of six.",
        _gemma3((1152, 26), (4, 1, 256), 6912, 512),
        999_885_952,
        "gemma-3-1b-pt",
    ),
    _preset(
        "gemma-3-4b",
        f"Gemma 3 4B: a window of 1024 in five blocks of six. {_TEXT}",
        _gemma3((2560, 34), (8, 4, 256), 10240, 1024, 8),
        3_880_099_328,
        "gemma-3-4b-pt",
    ),
    _preset(
        "gemma-3-27b",
        f"Gemma 3 27B: a window of 1024 in five blocks of six. Scale 1 / √168. {_TEXT}",
        _gemma3((5376, 62), (32, 16, 128), 21504, 1024, 8, scale=168**-0.5),
        27_009_002_240,
        "gemma-3-27b-pt",
    ),
)
