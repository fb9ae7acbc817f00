"""GPT-1 to GPT-3 and what has their block: learned positions, LayerNorm, biases everywhere."""

from schemas.presets.preset import Preset, Written

OURS = "Ours, no published model."
_GPT3 = "Table 2.1 of arXiv:2005.14165"
_SPARSE = "All its blocks attend to everything; in GPT-3 every other one is banded."
_KERAS = "; count: keras-hub"


def _gpt2(
    d_model: int, n_layers: int, n_heads: int, vocab: int = 50257, n_positions: int = 1024
) -> Written:
    return {
        "d_model": d_model,
        "n_layers": n_layers,
        "attention": {"n_heads": n_heads, "bias": True},
        "ffn": {"activation": "gelu_tanh"},
        "position": {"kind": "learned", "n_positions": n_positions},
        "vocab": vocab,
        "tied": True,
    }


def _published(name: str, size: str, shape: tuple[int, int, int], count: int) -> Preset:
    d_model, n_layers, n_heads = shape
    return Preset(
        name,
        f"GPT-2 {size}: {n_layers} blocks, pre-norm, learned positions. As published.",
        f"config.json of openai-community/{name}{_KERAS}",
        _gpt2(d_model, n_layers, n_heads),
        count,
    )


def _gpt3(size: str, d_model: int, n_layers: int, n_heads: int, misprint: str = "") -> Preset:
    return Preset(
        f"gpt3-{size}",
        f"GPT-3 {size}: GPT-2's block. {_SPARSE}{misprint}",
        _GPT3,
        _gpt2(d_model, n_layers, n_heads, n_positions=2048),
    )


GPT = (
    Preset(
        "gpt2",
        "GPT-2 small: 12 blocks, pre-norm, learned positions. As published.",
        f"config.json of openai-community/gpt2{_KERAS}",
        _gpt2(768, 12, 12),
        124_439_808,
    ),
    Preset(
        "distilgpt2",
        "GPT-2 with half its blocks. As published.",
        "config.json of distilbert/distilgpt2",
        _gpt2(768, 6, 12),
        81_912_576,
    ),
    Preset(
        "gpt2-tiny",
        "GPT-2's block at a width a page can show. 2 blocks of 4 heads.",
        OURS,
        _gpt2(32, 2, 4, 64, 64),
    ),
    _published("gpt2-medium", "medium", (1024, 24, 16), 354_823_168),
    _published("gpt2-large", "large", (1280, 36, 20), 774_030_080),
    _published("gpt2-xl", "XL", (1600, 48, 25), 1_557_611_200),
    Preset(
        "nanogpt",
        "nanoGPT's GPT-2 small without any bias. As published.",
        "karpathy/nanoGPT, transformer_sizing.ipynb",
        {
            **_gpt2(768, 12, 12),
            "attention": {"n_heads": 12},
            "ffn": {"activation": "gelu", "bias": False},
            "norm": {"bias": False},
        },
        124_337_664,
    ),
    Preset(
        "openai-gpt",
        "GPT-1: 12 blocks, post-norm, learned positions. As published.",
        "config.json of openai-community/openai-gpt",
        {**_gpt2(768, 12, 12, 40478, 512), "norm": {"placement": "post"}},
        116_534_784,
    ),
    _gpt3("small", 768, 12, 12),
    _gpt3("medium", 1024, 24, 16),
    _gpt3("large", 1536, 24, 16),
    _gpt3("xl", 2048, 24, 16, " The table's 24 heads of 128 are wider than its stream: 16 here."),
    _gpt3("2.7b", 2560, 32, 32),
    _gpt3("6.7b", 4096, 32, 32),
    _gpt3("13b", 5120, 40, 40, " The table's width, 5140, is no multiple of 40: 5120 here."),
    _gpt3("175b", 12288, 96, 96),
    Preset(
        "starcoder-15.5b",
        "StarCoder: GPT-2's block, 48 heads on one key/value head. As published.",
        "config.json of bigcode/starcoder",
        {
            **_gpt2(6144, 40, 48, 49152, 8192),
            "attention": {"n_heads": 48, "n_kv_heads": 1, "bias": True},
        },
        15_517_456_384,
    ),
)
