"""The product's seeded weights as PyTorch's tensors, packed as GPT-2's files pack them."""

from collections.abc import Mapping

import numpy as np
import torch

from benchmarks.sides import kept, ours
from benchmarks.sides.rows import rows


def packed(layers: int) -> list[dict[str, torch.Tensor]]:
    """For each block: W_QKV (d, 3d), W_O (d, d), W_in (d, f), W_out (f, d), biases, norms."""
    named = ours.tensors_of(ours.stack(layers, kept.LARGE))
    return [_block(named, f"blocks.{layer}.") for layer in range(layers)]


def _block(named: Mapping[str, np.ndarray], prefix: str) -> dict[str, torch.Tensor]:
    d = kept.LARGE.d
    w = {name.removeprefix(prefix): value for name, value in named.items()}
    sides = [w[f"attn.W_{name}"].swapaxes(0, 1).reshape(d, -1) for name in "QKV"]
    made = {
        "W_QKV": np.concatenate(sides, axis=1),
        "b_QKV": np.concatenate([w[f"attn.b_{name}"].ravel() for name in "QKV"]),
        "W_O": w["attn.W_O"].reshape(-1, d),
        "b_O": w["attn.b_O"],
        "W_in": w["ffn.W_in"],
        "b_in": w["ffn.b_in"],
        "W_out": w["ffn.W_out"],
        "b_out": w["ffn.b_out"],
        "gain1": w["norm1.weight"],
        "bias1": w["norm1.bias"],
        "gain2": w["norm2.weight"],
        "bias2": w["norm2.bias"],
    }
    return {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in made.items()}


def stream(positions: int) -> torch.Tensor:
    """The rows that enter the first block, (1, n, d)."""
    return torch.from_numpy(rows(positions, kept.LARGE.d))[None]
