"""Weights packed for the products: frozen, of one dtype, the right numbers in each place."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cached_property
from inspect import getmembers

import numpy as np
import pytest

import runs
from cases import small
from compute import config_json, selection, weights
from compute.tensors import Tensor
from compute.trace import Run, trace
from compute.types import DType, Selected
from compute.weights import Blocks, ModelWeights, StackWeights
from oracle.configs import Case

DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64"])


def arrays(part: object) -> Iterator[np.ndarray]:
    """Every array inside packed weights, fetched now."""
    if isinstance(part, np.ndarray):
        yield part
    elif isinstance(part, Blocks):
        for block in part:
            yield from arrays(block)
    elif isinstance(part, StackWeights):
        for name, _ in getmembers(type(part), lambda member: isinstance(member, cached_property)):
            yield from arrays(getattr(part, name))
    elif is_dataclass(part):
        for field in fields(part):
            yield from arrays(getattr(part, field.name))


def packed(seed: int, dtype: DType) -> ModelWeights:
    case = runs.case_of(seed)
    config = config_json.from_json(case.config)
    return weights.build(config, lambda tensor: case.weights[tensor.name], dtype)


class Asked:
    """A source that remembers what it was asked for."""

    def __init__(self, raw: small.Config, seed: int = 0) -> None:
        self.names: list[str] = []
        self.config = config_json.from_json(raw)
        self._values = small.drawn(raw, seed)

    def __call__(self, tensor: Tensor) -> np.ndarray:
        self.names.append(tensor.name)
        return self._values[tensor.name]

    def since(self) -> list[str]:
        """What was asked for since the last call."""
        names, self.names = self.names, []
        return names


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
    for seed in range(40):
        case, asked = runs.case_of(seed), []

        def source(tensor: Tensor, case: Case = case, asked: list[str] = asked) -> np.ndarray:
            asked.append(tensor.name)
            return np.asarray(case.weights[tensor.name])

        built = weights.build(config_json.from_json(case.config), source, "float32")
        first, again = list(arrays(built)), list(arrays(built))
        assert sorted(asked) == sorted(case.weights)
        assert all(one is other for one, other in zip(first, again, strict=True))


STACK = small.model(5, attention=small.attention(2, 3), ffn=small.mlp(7)) | {
    "n_layers": 3,
    "vocab": 11,
    "position": {"kind": "learned", "n_positions": 7},
    "norm": small.norm("layernorm"),
    "final_norm": True,
}


def test_building_asks_for_nothing() -> None:
    source = Asked(STACK)
    built = weights.build(source.config, source, "float64")
    assert built.dtype == "float64"
    assert len(built.blocks) == 3
    assert built.encoder is None
    assert source.since() == []


def test_each_part_is_fetched_when_it_is_first_read() -> None:
    source = Asked(STACK)
    built = weights.build(source.config, source, "float64")
    assert built.W_E.shape == (11, 5)
    assert source.since() == ["embed.W_E"]
    second = built.blocks[1]
    assert {name.rsplit(".", 1)[0] for name in source.since()} == {
        *("blocks.1.norm1", "blocks.1.attn", "blocks.1.norm2", "blocks.1.ffn")
    }
    assert built.blocks[1] is built.blocks[-2] is second
    assert source.since() == []
    assert built.blocks.made() == [second]
    assert len(built.blocks[1:]) == 2
    assert {name.split(".")[1] for name in source.since()} == {"2"}
    with pytest.raises(IndexError):
        built.blocks[3]
    assert source.since() == []


def test_an_encoder_is_fetched_apart_and_shares_the_embedding() -> None:
    encoder = small.model(5, ffn=small.mlp(3), position=small.NONE) | {"token_types": 2}
    source = Asked(STACK | {"cross_attention": True, "encoder": encoder})
    built = weights.build(source.config, source, "float64")
    assert built.encoder is not None
    assert source.since() == []
    assert built.encoder.W_type.shape == (2, 5)
    assert source.since() == ["encoder.type_embed.W_type"]
    assert built.encoder.blocks[0].ffn.W_in.shape == (5, 3)
    assert all(name.startswith("encoder.blocks.0.ffn.") for name in source.since())


def test_a_run_that_stops_early_asks_for_what_it_reads() -> None:
    source = Asked(STACK)
    built = weights.build(source.config, source, "float64")
    read = runs.inputs_of({"tensor": np.zeros((2, 5))})
    at = selection.scene_for(source.config, read)
    wanted = selection.resolve([Selected(name="blocks.1.attn.pattern")], at)
    trace(Run(config=source.config, weights=built, inputs=read, selection=wanted))
    asked = source.since()
    assert "pos_embed.W_pos" in asked
    assert not any(name.startswith(("embed.", "blocks.2.", "final_", "unembed")) for name in asked)


def test_keys_and_values_of_a_memory_lie_side_by_side() -> None:
    heads = small.attention(4, 3, n_kv_heads=2, d_value=5, bias=small.biases("v"))
    config = small.model(7, attention=heads, ffn=small.mlp(3)) | {"cross_attention": True}
    named = small.drawn(config, 0)
    cross = small.packed(config, named).blocks[0].cross
    sides = [named[f"blocks.0.cross.W_{letter}"] for letter in "KV"]
    columns = [W[head, :, i] for W in sides for head in range(2) for i in range(W.shape[2])]
    assert cross.W_KV.T.tolist() == [column.tolist() for column in columns]
    W_Q = named["blocks.0.cross.W_Q"]
    assert cross.W_Q.T.tolist() == [W_Q[r, :, i].tolist() for r in range(4) for i in range(3)]
    assert cross.b_Q is None
    assert cross.b_KV is not None
    assert cross.b_KV.tolist() == [0.0] * 6 + named["blocks.0.cross.b_V"].reshape(-1).tolist()


def test_the_brought_arrays_stay_their_owners() -> None:
    case = runs.case_of(3)
    mine = {name: np.array(values) for name, values in case.weights.items()}
    runs.states(runs.run_of(case.config, mine, case.inputs))
    assert all(values.flags.writeable for values in mine.values())
    assert all(mine[name].tobytes() == case.weights[name].tobytes() for name in mine)
