"""A checkpoint of about 500 MB in the form of Llama's files, and one block of it read by NumPy."""

import json
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

D, HEADS, KV_HEADS, VOCAB = 2048, 32, 8, 1024
KINDS = {"BF16": np.uint16, "F16": np.float16, "F32": np.float32}
D_FF = 5632
BYTES = 500_000_000

Shape = tuple[int, ...]
Values = npt.NDArray[Any]


@dataclass(frozen=True)
class File:
    """Where a file lies, what its numbers are stored as, where each tensor begins."""

    folder: Path
    kind: str
    begins: dict[str, int]

    @property
    def path(self) -> Path:
        """The safetensors file."""
        return self.folder / "model.safetensors"


def shapes(layers: int) -> dict[str, Shape]:
    """Every tensor of the file."""
    named: dict[str, Shape] = {"model.embed_tokens.weight": (VOCAB, D), "model.norm.weight": (D,)}
    for layer in range(layers):
        prefix = f"model.layers.{layer}."
        named |= {prefix + name: shape for name, shape in block().items()}
    return named


def block() -> dict[str, Shape]:
    """The tensors of one block, without its prefix."""
    width = D // HEADS * KV_HEADS
    return {
        "input_layernorm.weight": (D,),
        "self_attn.q_proj.weight": (D, D),
        "self_attn.k_proj.weight": (width, D),
        "self_attn.v_proj.weight": (width, D),
        "self_attn.o_proj.weight": (D, D),
        "post_attention_layernorm.weight": (D,),
        "mlp.gate_proj.weight": (D_FF, D),
        "mlp.up_proj.weight": (D_FF, D),
        "mlp.down_proj.weight": (D, D_FF),
    }


def write(folder: Path, kind: str) -> None:
    """As many blocks as come near 500 MB, of seeded noise."""
    layers = _layers(kind)
    head = _head(kind)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(_config(layers)))
    rng = np.random.default_rng(0)
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for shape in shapes(layers).values():
            file.write(_noise(rng, shape, kind).tobytes())


def found(folder: Path, kind: str) -> File:
    """The file that `write` wrote, and where its tensors begin."""
    head = _head(kind)
    start = 8 + len(head)
    begins = {name: start + line["data_offsets"][0] for name, line in json.loads(head).items()}
    return File(folder, kind, begins)


def _layers(kind: str) -> int:
    width = np.dtype(KINDS[kind]).itemsize
    return max(1, round(BYTES / (width * sum(map(prod, block().values())))))


def _head(kind: str) -> bytes:
    width, end = np.dtype(KINDS[kind]).itemsize, 0
    header = {}
    for name, shape in shapes(_layers(kind)).items():
        begin, end = end, end + width * prod(shape)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}
    return json.dumps(header).encode()


def _config(layers: int) -> dict[str, object]:
    return {
        "model_type": "llama",
        "hidden_size": D,
        "intermediate_size": D_FF,
        "num_hidden_layers": layers,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "vocab_size": VOCAB,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "tie_word_embeddings": True,
    }


def _noise(rng: np.random.Generator, shape: Shape, kind: str) -> Values:
    values = rng.standard_normal(shape, np.float32) * np.float32(0.02)
    if kind == "BF16":
        return (values.view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(KINDS[kind])


def read_and_convert(file: File) -> list[Values]:
    """Block 0 as NumPy alone reads it, in float32: `fromfile`, then a conversion."""
    return [_read(file, f"model.layers.0.{name}", shape) for name, shape in block().items()]


def _read(file: File, name: str, shape: Shape) -> Values:
    kind = KINDS[file.kind]
    raw = np.fromfile(file.path, kind, prod(shape), offset=file.begins[name])
    if file.kind == "BF16":
        return (raw.astype(np.uint32) << 16).view(np.float32).reshape(shape)
    return raw.astype(np.float32, copy=False).reshape(shape)
