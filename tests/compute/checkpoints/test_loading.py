"""Folders as transformers writes them: every misfit at once, what is not read is named."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from checkpoint_files import LLAMA, folder, llama_arrays, of_arrays, of_header
from compute import tensors
from compute.checkpoints import content, shards
from compute.checkpoints.folder import Checkpoint, check_whole, load
from compute.errors import MOST_FAULTS, ModelError

Arrays = dict[str, npt.NDArray[Any]]


def values(checkpoint: Checkpoint) -> Arrays:
    """Every tensor of a checkpoint, by our names."""
    source = checkpoint.source()
    listed = tensors.tensors(checkpoint.config)
    return {name: source(tensor) for name, tensor in listed.items()}


def places(path: Path) -> list[str | int]:
    """The last place of each fault that a folder is refused with."""
    with pytest.raises(ModelError) as refused:
        load(path)
    return [fault.place[-1] for fault in refused.value.faults]


def test_llama_folder_is_read_by_our_names(tmp_path: Path) -> None:
    arrays = llama_arrays()
    checkpoint = load(folder(tmp_path / "small", LLAMA, arrays))
    assert (checkpoint.name, checkpoint.family) == ("small", "llama")
    assert (checkpoint.text, checkpoint.card) == (None, "")
    assert (checkpoint.dtypes, checkpoint.left_out) == (("F32",), {})
    read = values(checkpoint)
    q_proj = arrays["model.layers.1.self_attn.q_proj.weight"]
    assert np.array_equal(read["blocks.1.attn.W_Q"][1], q_proj[4:].T)
    o_proj = arrays["model.layers.0.self_attn.o_proj.weight"]
    assert np.array_equal(read["blocks.0.attn.W_O"][1], o_proj[:, 4:].T)
    assert np.array_equal(read["unembed.W_U"], arrays["lm_head.weight"].T)
    assert tensors.parameter_counts(checkpoint.config)["total"] == sum(
        array.size for array in arrays.values()
    )


def test_names_may_have_a_prefix_or_not(tmp_path: Path) -> None:
    arrays = llama_arrays()
    bare = {name.removeprefix("model."): array for name, array in arrays.items()}
    one = values(load(folder(tmp_path / "one", LLAMA, arrays)))
    other = values(load(folder(tmp_path / "other", LLAMA, bare)))
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_one_tensor_under_two_names_is_refused(tmp_path: Path) -> None:
    arrays: Arrays = {**llama_arrays(), "norm.weight": np.ones(6)}
    assert places(folder(tmp_path / "small", LLAMA, arrays)) == ["norm.weight"]


def test_every_misfit_is_told_at_once(tmp_path: Path) -> None:
    arrays: Arrays = dict(llama_arrays())
    del arrays["model.layers.1.mlp.up_proj.weight"]
    arrays["model.norm.weight"] = np.ones(5)
    arrays["model.layers.1.mlp.up_porj.weight"] = np.ones((5, 6))
    path = folder(tmp_path / "small", LLAMA, arrays)
    with pytest.raises(ModelError) as refused:
        load(path)
    details = [fault.detail for fault in refused.value.faults]
    assert details == [
        "layers.1.mlp.up_proj.weight is missing.",
        "model.norm.weight has the wrong shape: [5], not [6].",
        "model.layers.1.mlp.up_porj.weight is not of this config. "
        "Nearest: layers.1.mlp.up_proj.weight.",
    ]


def test_many_misfits_are_told_up_to_a_cap(tmp_path: Path) -> None:
    arrays: Arrays = {**llama_arrays(), **{f"x.{i}": np.ones(1) for i in range(2000)}}
    assert len(places(folder(tmp_path / "small", LLAMA, arrays))) == MOST_FAULTS


def test_weight_of_whole_numbers_is_refused(tmp_path: Path) -> None:
    arrays = llama_arrays()
    path = folder(tmp_path / "small", LLAMA, arrays)
    file = path / "model.safetensors"
    length = int.from_bytes(file.read_bytes()[:8], "little")
    raw = json.loads(file.read_bytes()[8 : 8 + length])
    raw["model.norm.weight"]["dtype"] = "I32"
    file.write_bytes(of_header(raw, file.read_bytes()[8 + length :]))
    with pytest.raises(ModelError, match="is of dtype I32; a weight is of F64, F32, F16, BF16"):
        load(path)


TIED = {**LLAMA, "tie_word_embeddings": True}


def test_tied_readout_may_be_stored_too(tmp_path: Path) -> None:
    arrays = llama_arrays()
    arrays["lm_head.weight"] = arrays["model.embed_tokens.weight"]
    checkpoint = load(folder(tmp_path / "small", TIED, arrays))
    assert checkpoint.config.tied
    assert checkpoint.left_out == {"lm_head.weight": "whole"}


def test_tied_readout_that_differs_from_the_embedding_is_refused(tmp_path: Path) -> None:
    assert places(folder(tmp_path / "small", TIED, llama_arrays())) == ["lm_head.weight"]


def test_readout_is_needed_where_it_is_not_tied(tmp_path: Path) -> None:
    arrays = llama_arrays()
    del arrays["lm_head.weight"]
    assert places(folder(tmp_path / "small", LLAMA, arrays)) == ["lm_head.weight"]
    bare = {**LLAMA, "architectures": ["LlamaModel"]}
    assert not load(folder(tmp_path / "bare", bare, arrays)).config.readout


def test_buffers_are_left_out_by_name(tmp_path: Path) -> None:
    name = "model.layers.0.self_attn.rotary_emb.inv_freq"
    arrays: Arrays = {**llama_arrays(), name: np.ones(2)}
    assert load(folder(tmp_path / "small", LLAMA, arrays)).left_out == {name: "whole"}


Change = Mapping[str, object]
CONFIGS: dict[str, tuple[Change, list[str | int]]] = {
    "two keys": (
        {"hidden_size": "6", "rms_norm_eps": -1},
        ["hidden_size", "rms_norm_eps"],
    ),
    "depth": ({"num_hidden_layers": 1 << 20}, ["num_hidden_layers"]),
    "quantized": ({"quantization_config": {"bits": 4}}, ["quantization_config"]),
    "activation": ({"hidden_act": "mish"}, ["hidden_act"]),
    "rule between fields": ({"num_key_value_heads": 3, "num_attention_heads": 4}, ["config.json"]),
}


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_config_is_refused_by_its_keys(tmp_path: Path, name: str) -> None:
    change, expected = CONFIGS[name]
    path = folder(tmp_path / "small", {**LLAMA, **change}, llama_arrays())
    assert places(path) == expected


def test_more_blocks_than_any_model_has_are_refused_by_their_key(tmp_path: Path) -> None:
    arrays = {f"t{at}": np.ones(1, np.float32) for at in range(1100)}
    path = folder(tmp_path / "small", {**LLAMA, "num_hidden_layers": 1100}, arrays)
    assert places(path) == ["num_hidden_layers"]


def test_folder_without_config_is_refused(tmp_path: Path) -> None:
    assert places(tmp_path) == ["config.json"]


def test_large_config_is_refused(tmp_path: Path) -> None:
    folder(tmp_path / "small", {**LLAMA, "more": "x" * (1 << 20)}, llama_arrays())
    assert places(tmp_path / "small") == ["config.json"]


def test_numbers_are_looked_at_when_they_are_read(tmp_path: Path) -> None:
    arrays = llama_arrays()
    arrays["model.norm.weight"][2] = np.nan
    arrays["model.layers.1.mlp.up_proj.weight"][0, 0] = np.inf
    checkpoint = load(folder(tmp_path / "small", LLAMA, arrays))
    source, listed = checkpoint.source(), tensors.tensors(checkpoint.config)
    assert source(listed["embed.W_E"]).shape == (7, 6)
    with pytest.raises(ModelError, match=r"model\.norm\.weight holds what is no finite number"):
        source(listed["final_norm.weight"])
    with pytest.raises(ModelError) as refused:
        check_whole(checkpoint)
    assert len(refused.value.faults) == 2


def test_shards_give_what_one_file_gives(tmp_path: Path) -> None:
    arrays = llama_arrays()
    whole = values(load(folder(tmp_path / "whole", LLAMA, arrays)))
    path = folder(tmp_path / "shards", LLAMA, {})
    (path / "model.safetensors").unlink()
    names = list(arrays)
    parts = {"model-1.safetensors": names[:9], "model-2.safetensors": names[9:]}
    for file, held in parts.items():
        (path / file).write_bytes(of_arrays({name: arrays[name] for name in held}))
    weight_map = {name: file for file, held in parts.items() for name in held}
    (path / shards.INDEX).write_text(json.dumps({"weight_map": weight_map}))
    sharded = values(load(path))
    assert all(np.array_equal(whole[name], sharded[name]) for name in whole)


def test_tensor_that_several_are_made_of_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = load(folder(tmp_path / "small", GPT2, gpt2_arrays()))
    read: list[str] = []
    whole = shards.Shards.read

    def count(self: shards.Shards, name: str) -> npt.NDArray[Any]:
        read.append(name)
        return whole(self, name)

    monkeypatch.setattr(shards.Shards, "read", count)
    source, listed = checkpoint.source(), tensors.tensors(checkpoint.config)
    for _ in range(2):
        for name in ("W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V"):
            source(listed[f"blocks.0.attn.{name}"])
    assert read == ["h.0.attn.c_attn.weight", "h.0.attn.c_attn.bias"] * 2


GPT2: Mapping[str, object] = {
    "model_type": "gpt2",
    "n_embd": 4,
    "n_head": 2,
    "n_layer": 1,
    "n_positions": 5,
    "vocab_size": 7,
}


def gpt2_arrays() -> Arrays:
    shapes = {"wte.weight": (7, 4), "wpe.weight": (5, 4)}
    block: dict[str, tuple[int, ...]] = {
        "ln_1.weight": (4,),
        "ln_1.bias": (4,),
        "attn.c_attn.weight": (4, 12),
        "attn.c_attn.bias": (12,),
        "attn.c_proj.weight": (4, 4),
        "attn.c_proj.bias": (4,),
        "ln_2.weight": (4,),
        "ln_2.bias": (4,),
        "mlp.c_fc.weight": (4, 16),
        "mlp.c_fc.bias": (16,),
        "mlp.c_proj.weight": (16, 4),
        "mlp.c_proj.bias": (4,),
    }
    last: dict[str, tuple[int, ...]] = {"ln_f.weight": (4,), "ln_f.bias": (4,)}
    named = {**shapes, **{f"h.0.{name}": shape for name, shape in block.items()}, **last}
    return {
        name: np.random.default_rng(at).standard_normal(shape, np.float32)
        for at, (name, shape) in enumerate(named.items())
    }


def test_fused_matrix_is_cut_into_queries_keys_and_values(tmp_path: Path) -> None:
    arrays = gpt2_arrays()
    read = values(load(folder(tmp_path / "small", GPT2, arrays)))
    fused, bias = arrays["h.0.attn.c_attn.weight"], arrays["h.0.attn.c_attn.bias"]
    for at, letter in enumerate("QKV"):
        assert np.array_equal(
            np.concatenate(list(read[f"blocks.0.attn.W_{letter}"]), axis=1),
            fused[:, 4 * at : 4 * at + 4],
        )
        assert np.array_equal(read[f"blocks.0.attn.b_{letter}"].ravel(), bias[4 * at : 4 * at + 4])


HASHED: dict[str, Callable[[Path], object]] = {
    "config": lambda path: (path / "config.json").write_text(json.dumps({**LLAMA, "more": 1})),
    "tokenizer": lambda path: (path / "tokenizer.json").write_text(
        (Path(__file__).parents[3] / "models" / "letter-sort" / "tokenizer.json").read_text()
    ),
    "first number": lambda path: _add_to(path, 8 + _header_length(path)),
    "last number": lambda path: _add_to(path, -4),
}


def _header_length(path: Path) -> int:
    return int.from_bytes((path / "model.safetensors").read_bytes()[:8], "little")


def _add_to(path: Path, at: int) -> None:
    file = path / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[at] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("name", sorted(HASHED))
def test_content_is_of_all_that_decides_the_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, whole: bool
) -> None:
    if not whole:
        monkeypatch.setattr(content, "WHOLE_UP_TO", 0)
    path = folder(tmp_path / "small", LLAMA, llama_arrays())
    before = load(path).content
    assert load(path).content == before
    HASHED[name](path)
    assert load(path).content != before


def test_content_of_large_files_is_of_their_tensors_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {**LLAMA, "vocab_size": 2000}
    arrays: Arrays = dict(llama_arrays())
    arrays |= {name: np.ones((2000, 6)) for name in ("model.embed_tokens.weight", "lm_head.weight")}
    path = folder(tmp_path / "small", config, arrays)
    middle = 8 + _header_length(path) + 24_000
    whole = load(path).content
    monkeypatch.setattr(content, "WHOLE_UP_TO", 0)
    ends = load(path).content
    _add_to(path, middle)
    assert load(path).content == ends
    monkeypatch.undo()
    assert load(path).content != whole
