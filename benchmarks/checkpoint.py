"""Checkpoints in the form of GPT-2's files, of seeded noise, for requests that name a model."""

import json
from math import prod
from pathlib import Path

import numpy as np

from benchmarks.sides.kept import Size

VOCAB = 64

Shape = tuple[int, ...]


def write(folder: Path, size: Size, *, layers: int, positions: int) -> None:
    """config.json and model.safetensors, float32."""
    folder.mkdir(parents=True)
    config = {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "n_embd": size.d,
        "n_layer": layers,
        "n_head": size.heads,
        "n_inner": size.d_ff,
        "n_positions": positions,
        "vocab_size": VOCAB,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": True,
    }
    (folder / "config.json").write_text(json.dumps(config))
    shapes = _shapes(layers, positions, size.d, size.d_ff)
    head = _head(shapes)
    rng = np.random.default_rng(0)
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for name, shape in shapes.items():
            file.write(_noise(rng, name, shape).tobytes())


def _shapes(layers: int, positions: int, d: int, d_ff: int) -> dict[str, Shape]:
    named: dict[str, Shape] = {"wte.weight": (VOCAB, d), "wpe.weight": (positions, d)}
    products = {
        "attn.c_attn": (d, 3 * d),
        "attn.c_proj": (d, d),
        "mlp.c_fc": (d, d_ff),
        "mlp.c_proj": (d_ff, d),
    }
    for layer in range(layers):
        prefix = f"h.{layer}."
        for name, shape in products.items():
            named |= {f"{prefix}{name}.weight": shape, f"{prefix}{name}.bias": shape[1:]}
        for name in ("ln_1", "ln_2"):
            named |= {f"{prefix}{name}.weight": (d,), f"{prefix}{name}.bias": (d,)}
    return named | {"ln_f.weight": (d,), "ln_f.bias": (d,)}


def _head(shapes: dict[str, Shape]) -> bytes:
    lines, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + 4 * prod(shape)
        lines[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    return json.dumps(lines).encode()


def _noise(rng: np.random.Generator, name: str, shape: Shape) -> np.ndarray:
    values = rng.standard_normal(shape, np.float32)
    if len(shape) == 2:
        return values * np.float32(shape[0] ** -0.5)
    return values * np.float32(0.1) + np.float32("ln_" in name and name.endswith("weight"))
