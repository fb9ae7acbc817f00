"""T5 and T5 v1.1: an encoder and a decoder that reads it, no biases, a bias of distances."""

from schemas.presets.preset import Preset, Written


def _t5(d_model: int, n_layers: int, n_heads: int, d_ff: int, **ffn: object) -> Written:
    """Heads of 64; the scores are not scaled."""
    return _stacks(d_model, n_layers, {"n_heads": n_heads, "d_head": 64}, d_ff, **ffn)


def _stacks(d_model: int, n_layers: int, heads: Written, d_ff: int, **ffn: object) -> Written:
    stack = {
        "n_layers": n_layers,
        "attention": {**heads, "scale": 1},
        "ffn": {"d_ff": d_ff, "activation": "relu", "bias": False, **ffn},
        "norm": {"kind": "rmsnorm", "eps": 1e-6},
        "position": {"kind": "t5_bias"},
    }
    return {"d_model": d_model, **stack, "vocab": 32128, "encoder": stack}


def _tied(name: str, source: str, written: Written, count: int) -> Preset:
    return Preset(
        name,
        "T5: an encoder, and a decoder of as many blocks. As published.",
        f"config.json of {source}",
        {**written, "tied": True, "logit_multiplier": written["d_model"] ** -0.5},
        count,
    )


def _untied(size: str, written: Written, count: int) -> Preset:
    return Preset(
        f"t5-v1.1-{size}",
        "T5 v1.1: T5 with gated ffns and a readout of its own. As published.",
        f"config.json of google/t5-v1_1-{size}; count: keras-hub",
        written,
        count,
    )


_GATED = {"kind": "gated", "activation": "gelu_tanh"}
_KERAS = "; count: keras-hub"

T5 = (
    _tied("t5-small", f"google-t5/t5-small{_KERAS}", _t5(512, 6, 8, 2048), 60_506_624),
    _tied("t5-base", f"google-t5/t5-base{_KERAS}", _t5(768, 12, 12, 3072), 222_903_552),
    _tied("t5-large", f"google-t5/t5-large{_KERAS}", _t5(1024, 24, 16, 4096), 737_668_096),
    _tied(
        "t5-3b",
        "google-t5/t5-3b",
        _stacks(1024, 24, {"n_heads": 32, "d_head": 128}, 16384),
        2_851_598_336,
    ),
    _tied(
        "t5-11b",
        "google-t5/t5-11b",
        _stacks(1024, 24, {"n_heads": 128, "d_head": 128}, 65536),
        11_307_321_344,
    ),
    _untied("base", _t5(768, 12, 12, 2048, **_GATED), 247_577_856),
    _untied("xxl", _t5(4096, 24, 64, 10240, **_GATED), 11_135_332_352),
)
