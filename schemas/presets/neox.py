"""Decoders with LayerNorms: Pythia and GPT-NeoX, OPT, BLOOM, MPT, PaLM."""

from schemas.presets.preset import NOTHING, Preset, Written

_PYTHIA = "config.json of EleutherAI/{}; count: Table 1 of arXiv:2304.01373"
_ROWS = "Two rows of its position table belong to no position."


def _decoder(
    shape: tuple[int, int, int], vocab: int, attention: Written = NOTHING, **others: object
) -> Written:
    """All biases, one matrix up and one down, tied; unless others say otherwise.

    `shape`: d_model, blocks, heads.
    """
    d_model, n_layers, n_heads = shape
    return {
        "d_model": d_model,
        "n_layers": n_layers,
        "attention": {"n_heads": n_heads, "bias": True, **attention},
        "vocab": vocab,
        "tied": True,
        **others,
    }


def _neox(d_model: int, n_layers: int, heads: tuple[int, int], vocab: int = 50304) -> Written:
    n_heads, rotary_dim = heads
    return _decoder(
        (d_model, n_layers, n_heads),
        vocab,
        position={"kind": "rope", "rotary_dim": rotary_dim},
        topology="parallel",
        tied=False,
    )


def _pythia(size: str, written: Written, count: int) -> Preset:
    return Preset(
        f"pythia-{size}",
        f"Pythia {size}: parallel blocks, a quarter of each head turns. As published.",
        _PYTHIA.format(f"pythia-{size}"),
        written,
        count,
    )


def _opt(size: str, d_model: int, n_layers: int, n_heads: int) -> Preset:
    written = _decoder(
        (d_model, n_layers, n_heads),
        50272,
        ffn={"activation": "relu"},
        position={"kind": "learned", "n_positions": 2050},
    )
    source = f"config.json of facebook/opt-{size}"
    return Preset(f"opt-{size}", f"OPT {size}: pre-norm, ReLU. {_ROWS}", source, written)


def _bloom(size: str, shape: tuple[int, int, int], count: int, source: str) -> Preset:
    written = _decoder(
        shape,
        250880,
        ffn={"activation": "gelu_tanh"},
        position={"kind": "alibi"},
        embed_norm=True,
    )
    meaning = f"BLOOM {size}: ALiBi, a norm on the embedding. As published."
    return Preset(f"bloom-{size}", meaning, source, written, count)


def _palm(size: str, d_model: int, n_layers: int, n_heads: int) -> Preset:
    written = _decoder(
        (d_model, n_layers, n_heads),
        256000,
        attention={"n_kv_heads": 1, "d_head": 256, "bias": False},
        ffn={"kind": "gated", "activation": "silu", "bias": False},
        norm={"bias": False, "shared": True},
        position={"kind": "rope"},
        topology="parallel",
        logit_multiplier=d_model**-0.5,
    )
    meaning = f"PaLM {size}: parallel blocks, SwiGLU, one key/value head. As the paper says."
    return Preset(f"palm-{size}", meaning, "Table 1 of arXiv:2204.02311", written)


NEOX = (
    _pythia("70m", _neox(512, 6, (8, 16)), 70_426_624),
    _pythia("160m", _neox(768, 12, (12, 16)), 162_322_944),
    _pythia("410m", _neox(1024, 24, (16, 16)), 405_334_016),
    _pythia("1b", _neox(2048, 16, (8, 64)), 1_011_781_632),
    _pythia("1.4b", _neox(2048, 24, (16, 32)), 1_414_647_808),
    _pythia("2.8b", _neox(2560, 32, (32, 20)), 2_775_208_960),
    _pythia("6.9b", _neox(4096, 32, (32, 32), 50432), 6_857_302_016),
    _pythia("12b", _neox(5120, 36, (40, 32), 50688), 11_846_072_320),
    Preset(
        "gpt-neox-20b",
        "GPT-NeoX: 44 parallel blocks, a quarter of each head turns. As published.",
        "config.json of EleutherAI/gpt-neox-20b; count: its model card",
        {**_neox(6144, 44, (64, 24), 50432), "ffn": {"activation": "gelu_tanh"}},
        20_554_567_680,
    ),
    _opt("125m", 768, 12, 12),
    _opt("1.3b", 2048, 24, 32),
    _opt("6.7b", 4096, 32, 32),
    _bloom(
        "560m",
        (1024, 24, 16),
        559_214_592,
        "config.json of bigscience/bloom-560m; count: keras-hub",
    ),
    _bloom(
        "1b7",
        (2048, 24, 16),
        1_722_408_960,
        "config.json of bigscience/bloom-1b7; count: keras-hub",
    ),
    _bloom(
        "176b",
        (14336, 70, 112),
        176_247_271_424,
        "config.json of bigscience/bloom; count: arXiv:2211.05100",
    ),
    Preset(
        "mpt-7b",
        "MPT 7B: ALiBi, no bias anywhere. As published.",
        "config.json of mosaicml/mpt-7b",
        _decoder(
            (4096, 32, 32),
            50432,
            attention={"bias": False},
            ffn={"bias": False},
            norm={"bias": False},
            position={"kind": "alibi"},
        ),
    ),
    _palm("8b", 4096, 32, 16),
    _palm("62b", 8192, 64, 32),
    _palm("540b", 18432, 118, 48),
)
