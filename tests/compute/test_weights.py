"""Weights packed for the products: frozen, of one dtype, the right numbers in each place."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

import runs
from cases import small
from compute import config_json, weights
from compute.types import DType
from compute.weights import ModelWeights

DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64"])


def arrays(part: object) -> Iterator[np.ndarray]:
    """Every array inside packed weights."""
    if isinstance(part, np.ndarray):
        yield part
    elif isinstance(part, tuple):
        for block in part:
            yield from arrays(block)
    elif is_dataclass(part):
        for field in fields(part):
            yield from arrays(getattr(part, field.name))


def packed(seed: int, dtype: DType) -> ModelWeights:
    case = runs.case_of(seed)
    config = config_json.from_json(case.config)
    return weights.build(config, lambda tensor: case.weights[tensor.name], dtype)


@DTYPES
def test_every_weight_is_frozen_and_of_the_models_dtype(dtype: DType) -> None:
    for seed in range(40):
        filled = [array for array in arrays(packed(seed, dtype)) if array.size]
        assert not any(array.flags.writeable for array in filled)
        assert {array.dtype for array in filled} == {np.dtype(dtype)}


def test_queries_keys_and_values_lie_side_by_side_head_by_head() -> None:
    heads = small.attention(4, 3, n_kv_heads=2, d_value=5, bias=small.biases("k"))
    config = small.model(7, attention=heads)
    named = small.drawn(config, 0)
    built = small.packed(config, named)
    attention = built.blocks[0].attention
    sides = [named[f"blocks.0.attn.W_{letter}"] for letter in "QKV"]
    columns = [W[head, :, i] for W in sides for head in range(len(W)) for i in range(W.shape[2])]
    assert attention.W_QKV.T.tolist() == [column.tolist() for column in columns]
    b_K = named["blocks.0.attn.b_K"].reshape(-1).tolist()
    assert attention.b_QKV is not None
    assert attention.b_QKV.tolist() == [0.0] * 12 + b_K + [0.0] * 10
    assert attention.b_O is None


def test_a_gain_is_the_stored_weight_plus_its_offset() -> None:
    for offset in (0.0, 1.0, -2.5):
        config = small.model(3, ffn=small.mlp(2), norm=small.norm("rmsnorm", gain_offset=offset))
        named = small.values(config, {"norm2.weight": [0.0, 0.5, -1.0]})
        built = small.packed(config, named)
        gain = built.blocks[0].norm2.gain
        assert gain.tolist() == [offset, offset + 0.5, offset - 1.0]
        assert built.blocks[0].norm2.bias is None


def test_a_tied_readout_is_the_transposed_embedding() -> None:
    config = small.model(3, ffn=small.mlp(2)) | {"vocab": 5, "tied": True}
    named = small.drawn(config, 0)
    built = small.packed(config, named)
    assert built.W_U.tolist() == named["embed.W_E"].T.tolist()
    assert np.shares_memory(built.W_U, built.W_E)


def test_the_source_is_asked_once_for_each_tensor() -> None:
    case, asked = runs.case_of(3), []

    def source(tensor: weights.tensors.Tensor) -> np.ndarray:
        asked.append(tensor.name)
        return case.weights[tensor.name]

    weights.build(config_json.from_json(case.config), source, "float32")
    assert sorted(asked) == sorted(case.weights)


def test_the_brought_arrays_stay_their_owners() -> None:
    case = runs.case_of(3)
    mine = {name: np.array(values) for name, values in case.weights.items()}
    runs.states(runs.run_of(case.config, mine, case.inputs))
    assert all(values.flags.writeable for values in mine.values())
    assert all(mine[name].tobytes() == case.weights[name].tobytes() for name in mine)
