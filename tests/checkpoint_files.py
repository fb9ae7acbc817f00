"""Checkpoint folders made for tests: safetensors files byte by byte, and configs."""

import json
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

WIDTHS = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "U8": 1, "BOOL": 1}

Layout = tuple[str, tuple[int, ...]]
"""dtype and shape."""


def header(tensors: Mapping[str, Layout]) -> dict[str, Any]:
    """A header whose tensors lie end to end."""
    found, at = {}, 0
    for name, (dtype, shape) in tensors.items():
        end = at + prod(shape) * WIDTHS[dtype]
        found[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, end]}
        at = end
    return found


def with_header(content: bytes, data: bytes = b"") -> bytes:
    """A whole file of a header's bytes."""
    return len(content).to_bytes(8, "little") + content + data


def of_header(raw: object, data: bytes = b"") -> bytes:
    """A whole file of a header."""
    return with_header(json.dumps(raw).encode(), data)


def of_arrays(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """A whole file of float32 arrays."""
    layouts = {name: ("F32", array.shape) for name, array in arrays.items()}
    data = b"".join(np.asarray(array, "<f4").tobytes() for array in arrays.values())
    return of_header(header(layouts), data)


def folder(
    path: Path, config: Mapping[str, object], arrays: Mapping[str, npt.NDArray[Any]]
) -> Path:
    """A folder of a config.json and a model.safetensors."""
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    (path / "model.safetensors").write_bytes(of_arrays(arrays))
    return path


LLAMA: Mapping[str, object] = {
    "model_type": "llama",
    "hidden_size": 6,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 5,
    "vocab_size": 7,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
}


def llama_arrays(seed: int = 0) -> dict[str, npt.NDArray[np.float32]]:
    """The tensors of LLAMA as transformers names them."""
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (7, 6)}
    for layer in range(2):
        prefix = f"model.layers.{layer}."
        shapes |= {
            f"{prefix}input_layernorm.weight": (6,),
            f"{prefix}self_attn.q_proj.weight": (8, 6),
            f"{prefix}self_attn.k_proj.weight": (4, 6),
            f"{prefix}self_attn.v_proj.weight": (4, 6),
            f"{prefix}self_attn.o_proj.weight": (6, 8),
            f"{prefix}post_attention_layernorm.weight": (6,),
            f"{prefix}mlp.gate_proj.weight": (5, 6),
            f"{prefix}mlp.up_proj.weight": (5, 6),
            f"{prefix}mlp.down_proj.weight": (6, 5),
        }
    shapes |= {"model.norm.weight": (6,), "lm_head.weight": (7, 6)}
    noise = np.random.default_rng(seed)
    return {name: noise.standard_normal(shape, np.float32) for name, shape in shapes.items()}
