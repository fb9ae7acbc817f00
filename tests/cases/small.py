"""Small models written by hand and run through compute.trace: one block, few numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import runs
from compute import config_json, tensors, weights
from compute.trace import Run
from compute.types import DType, Selected
from compute.weights import ModelWeights

Array = npt.NDArray[Any]
Config = dict[str, Any]

NONE: Config = {"kind": "none"}


def attention(h: int, k: int, **given: object) -> Config:
    """Full attention of h heads, widths k, scale 1/sqrt(k), no biases, unless given otherwise."""
    off = {"q": False, "k": False, "v": False, "o": False}
    plain = {"kind": "softmax", "n_heads": h, "n_kv_heads": h, "d_head": k, "d_value": k}
    return {**plain, "scale": k**-0.5, "mask": "full", "window": None, "bias": off, **given}


def biases(*letters: str) -> Config:
    """Attention biases: those of these letters exist."""
    return {letter: letter in letters for letter in "qkvo"}


def mlp(f: int, **given: object) -> Config:
    """Two matrices with their biases, unless given otherwise."""
    bias = {"in": True, "gate": False, "out": True}
    return {"kind": "mlp", "d_ff": f, "activation": "gelu", "bias": bias, **given}


def moe(f: int, e: int, c: int, **given: object) -> Config:
    """c of e experts for each token: two matrices each, no biases, their weights summing to 1,
    none shared, unless given otherwise."""
    off = {"in": False, "gate": False, "out": False}
    plain = {"kind": "moe", "d_ff": f, "activation": "gelu", "bias": off}
    chosen = {"n_experts": e, "top_k": c, "expert": "mlp", "renormalize": True}
    beside = {"router_bias": False, "d_shared": 0, "shared_gate": False}
    return {**plain, **chosen, **beside, **given}


def norm(kind: str, **given: object) -> Config:
    """Before each sublayer, eps 1e-5, the stored weight being the gain, unless given otherwise."""
    return {"kind": kind, "placement": "pre", "eps": 1e-5, "gain_offset": 0.0, **given}


def rope(width: int, **given: object) -> Config:
    """Rotations of the first `width` coordinates, theta 1e4, half pairing, unless given."""
    return {"kind": "rope", "theta": 1e4, "rotary_dim": width, "pairing": "half", **given}


def model(d: int, **parts: object) -> Config:
    """One block of the parts that are given, nothing else."""
    nothing = {"attention": NONE, "ffn": NONE, "norm": NONE, "position": NONE}
    above = {"vocab": None, "tied": False, "unembed_bias": False, "final_norm": False}
    return {"d_model": d, "n_layers": 1, **nothing, **above, **parts}


def values(config: Config, given: Mapping[str, npt.ArrayLike]) -> dict[str, Array]:
    """Ones for the norms' weights and zeros for the rest, but block 0's given ones."""
    listed = tensors.tensors(config_json.from_json(config)).values()
    named = {
        tensor.name: np.full(tensor.shape, 1.0 if tensor.role == "gain" else 0.0)
        for tensor in listed
    }
    for name, value in given.items():
        assert named[f"blocks.0.{name}"].shape == np.shape(value), name
        named[f"blocks.0.{name}"] = np.asarray(value, np.float64)
    return named


def drawn(config: Config, seed: int) -> dict[str, Array]:
    """Weights of order one, none of them zero."""
    rng = np.random.default_rng(seed)
    listed = tensors.tensors(config_json.from_json(config)).values()
    return {t.name: rng.normal(0, 1 / np.sqrt(t.fan_in), t.shape) for t in listed}


def packed(config: Config, named: Mapping[str, Array], dtype: DType = "float64") -> ModelWeights:
    """The weights as the equations want them."""
    return weights.build(config_json.from_json(config), lambda t: named[t.name], dtype)


def run(
    config: Config,
    named: Mapping[str, Array],
    *,
    dtype: DType = "float64",
    select: Sequence[Selected] | None = None,
    memory: Mapping[str, npt.ArrayLike] | None = None,
    **inputs: npt.ArrayLike,
) -> Run:
    """The run of a model on an input: `tensor`, `key_mask`, `position_ids`, …, and `memory`,
    the same keywords again."""
    arrays: dict[str, Any] = read(dtype, inputs)
    if memory is not None:
        arrays["memory"] = read(dtype, memory)
    return runs.run_of(config, named, arrays, dtype=dtype, select=select)


def read(dtype: DType, inputs: Mapping[str, npt.ArrayLike]) -> dict[str, Array]:
    """An input's values as arrays of their kinds."""
    kinds = {"tensor": dtype, "key_mask": "bool", "attention_mask": "bool"}
    return {name: np.asarray(value, kinds.get(name, "int64")) for name, value in inputs.items()}


def block(
    config: Config,
    given: Mapping[str, npt.ArrayLike] | None = None,
    *,
    select: Sequence[Selected] | None = None,
    **inputs: npt.ArrayLike,
) -> dict[str, Array]:
    """Block 0's stages without their prefix; weights that are not given are 0, gains 1."""
    return stages_of(run(config, values(config, given or {}), select=select, **inputs))


def stages_of(made: Run) -> dict[str, Array]:
    """The stages of a run, block 0's without their prefix."""
    return {name.removeprefix("blocks.0."): array for name, array in runs.states(made).items()}


def close(got: npt.ArrayLike, expected: npt.ArrayLike, atol: float) -> None:
    np.testing.assert_allclose(got, expected, rtol=0, atol=atol)


DOTS = [Selected(name="*"), Selected(name="attn.dots")]
"""The default answer, and the dot products."""
