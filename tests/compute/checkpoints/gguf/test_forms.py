"""What files of an architecture may hold besides, and what is refused by name."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from compute.checkpoints.checkpoint import Checkpoint, check_whole
from compute.checkpoints.gguf import loading
from compute.config import ModelConfig, block_config
from compute.errors import ModelError
from compute.tensors import tensors
from parity_gguf.making import opened, written

FILES = Path(__file__).parents[3] / "parity_gguf"
Keys = dict[str, object]
Values = dict[str, npt.NDArray[Any]]


def _changed(
    path: Path, name: str, change: Callable[[Keys, Values], object] = lambda keys, values: None
) -> Path:
    keys, values = opened(FILES / f"{name}.gguf")
    change(keys, values)
    return written(path / "model.gguf", keys, values)


def _same_weights(one: Checkpoint, other: Checkpoint) -> bool:
    ours, theirs = one.source(), other.source()
    listed = tensors(one.config).values()
    return one.config == other.config and all(np.array_equal(ours(x), theirs(x)) for x in listed)


def _together(keys: Keys, values: Values) -> None:
    for block in range(2):
        for part in ("weight", "bias"):
            rows = [values.pop(f"blk.{block}.attn_{x}.{part}") for x in "qkv"]
            values[f"blk.{block}.attn_qkv.{part}"] = np.concatenate(rows)


def _gate_and_up(keys: Keys, values: Values) -> None:
    for block in range(2):
        gate, up = (values.pop(f"blk.{block}.ffn_{x}_exps.weight") for x in ("gate", "up"))
        values[f"blk.{block}.ffn_gate_up_exps.weight"] = np.concatenate([gate, up], axis=1)


def _each_by_itself(keys: Keys, values: Values) -> None:
    for block in range(2):
        for part in ("gate", "up", "down"):
            for expert, matrix in enumerate(values.pop(f"blk.{block}.ffn_{part}_exps.weight")):
                values[f"blk.{block}.ffn_{part}.{expert}.weight"] = matrix


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("llama-biased-llama3", _together),
        ("qwen2", _together),
        ("mixtral", _gate_and_up),
        ("mixtral", _each_by_itself),
    ],
)
def test_tensors_may_lie_together_or_apart(
    tmp_path: Path, name: str, change: Callable[[Keys, Values], object]
) -> None:
    apart = loading.load(FILES / f"{name}.gguf")
    assert _same_weights(loading.load(_changed(tmp_path, name, change)), apart)


def _deep(keys: Keys, values: Values) -> None:
    keys["gemma2.block_count"] = 46
    for name in [x for x in values if x.startswith("blk.1.")]:
        for block in range(2, 46):
            values[name.replace("blk.1.", f"blk.{block}.")] = values[name]


def _windows(config: ModelConfig) -> list[int | None]:
    return [block_config(config, x).attention.window for x in range(config.n_layers)]


def test_scale_of_gemma_is_that_of_its_key_length_but_for_the_largest(tmp_path: Path) -> None:
    assert loading.load(FILES / "gemma2.gguf").config.attention.scale == 6**-0.5
    deep = loading.load(_changed(tmp_path, "gemma2", _deep)).config
    assert block_config(deep, 0).attention.scale == (16 / 4) ** -0.5
    assert _windows(deep) == [3, None] * 23


def test_windows_are_where_the_file_says_or_where_the_family_has_them(tmp_path: Path) -> None:
    assert _windows(loading.load(FILES / "gemma3.gguf").config) == [3] * 5 + [None, 3]
    listed = np.array([False, True, True, False, False, False, False])

    def list_them(keys: Keys, values: Values) -> None:
        keys["gemma3.attention.sliding_window_pattern"] = listed

    made = loading.load(_changed(tmp_path, "gemma3", list_them)).config
    assert _windows(made) == [None, 3, 3, None, None, None, None]

    def without(keys: Keys, values: Values) -> None:
        keys.pop("gemma3.attention.sliding_window")

    assert _windows(loading.load(_changed(tmp_path, "gemma3", without)).config) == [None] * 7


def test_window_of_mistral_counts_where_a_file_has_one(tmp_path: Path) -> None:
    def narrow(keys: Keys, values: Values) -> None:
        keys["llama.attention.sliding_window"] = 3

    made = loading.load(_changed(tmp_path, "mistral", narrow))
    assert made.config.attention.window == 3
    assert made.family == "mistral"
    assert "window" not in made.card
    assert "Whether attention has a window is not said" in loading.load(FILES / "llama.gguf").card


def test_float32_of_the_file_is_the_decimal_that_was_meant() -> None:
    config = loading.load(FILES / "llama.gguf").config
    assert (config.norm.eps, config.position.theta) == (1e-6, 5000.0)


def test_llama3_scaling_is_told_from_its_divisors(tmp_path: Path) -> None:
    scaling = loading.load(FILES / "llama-biased-llama3.gguf").config.position.scaling
    assert (scaling.kind, scaling.factor, scaling.original_positions) == ("llama3", 8.0, 32)

    def ones(keys: Keys, values: Values) -> None:
        values["rope_freqs.weight"][:] = 1.0

    made = loading.load(_changed(tmp_path, "llama-biased-llama3", ones))
    assert made.config.position.scaling.kind == "none"


def _key(**changed: object) -> Callable[[Keys, Values], object]:
    return lambda keys, values: keys.update({x.replace("__", "."): y for x, y in changed.items()})


def _bend(keys: Keys, values: Values) -> None:
    values["rope_freqs.weight"][2] *= 1.01


def _stretch(keys: Keys, values: Values) -> None:
    values["rope_freqs.weight"] = np.ones(1000)


REFUSED: dict[str, tuple[str, Callable[[Keys, Values], object], str]] = {
    "another architecture": ("llama", _key(general__architecture="lama"), "Nearest: llama"),
    "none": ("llama", lambda keys, values: keys.pop("general.architecture"), "is not read"),
    "a vision tower": ("llama", _key(general__architecture="clip"), "is not read"),
    "architecture a number": ("llama", _key(general__architecture=3), "is not read"),
    "one of several": ("llama", _key(split__count=2), "split.count is above 1"),
    "a multiplier": ("llama", _key(llama__logit_scale=0.5), "may change what is computed"),
    "heads by block": (
        "llama",
        lambda keys, values: keys.update({"llama.attention.head_count": np.array([4, 2])}),
        "must be a whole number",
    ),
    "heads that do not divide": (
        "llama",
        _key(llama__attention__head_count_kv=3),
        "model.gguf, as it is read here: attention.n_kv_heads: ",
    ),
    "size missing": ("llama", lambda k, v: k.pop("llama.embedding_length"), "is missing"),
    "size a string": ("llama", _key(llama__embedding_length="16"), "must be a whole number"),
    "epsilon infinite": (
        "llama",
        _key(llama__attention__layer_norm_rms_epsilon=float("inf")),
        "must be a number",
    ),
    "a million blocks": ("llama", _key(llama__block_count=1 << 20), "more than the file has"),
    "a million decoder blocks": ("t5", _key(t5__decoder_block_count=1 << 20), "more than the file"),
    "a million experts": (
        "mixtral",
        _key(llama__expert_count=1 << 20),
        "at most 4096 experts",
    ),
    "half a head turned": ("llama", _key(llama__rope__dimension_count=2), "= 2 is not computed"),
    "values of another width": ("llama", _key(llama__attention__value_length=8), "is not computed"),
    "longrope": ("llama", _key(llama__rope__scaling__type="longrope"), "must be one of none"),
    "yarn of another strength": (
        "llama-yarn",
        _key(llama__rope__scaling__attn_factor=2.0),
        "attn_factor = 2.0 is not computed",
    ),
    "a scaling of its own": ("llama-biased-llama3", _bend, "not Llama 3's"),
    "divisors too many": ("llama-biased-llama3", _stretch, "has the wrong shape"),
    "tensor missing": ("llama", lambda k, v: v.pop("blk.1.ffn_up.weight"), "ffn_up.weight is miss"),
    "no embedding": ("llama", lambda k, v: v.pop("token_embd.weight"), "token_embd.weight is miss"),
    "tensor besides": (
        "llama",
        lambda k, v: v.update({"blk.0.ffn_upp.weight": np.ones(2)}),
        "is not of this config",
    ),
    "tensor of another shape": (
        "llama",
        lambda k, v: v.update({"output_norm.weight": np.ones(3)}),
        "has the wrong shape",
    ),
    "windows of OLMo 3": ("olmo2", _key(olmo2__attention__sliding_window=4), "is not read"),
    "Llama that sees the future": (
        "llama",
        _key(llama__attention__causal=False),
        "is not computed",
    ),
    "BERT with a readout's bias": (
        "bert",
        lambda k, v: v.update({"output.bias": np.ones(24)}),
        "unembed",
    ),
    "BERT that sees no future": ("bert", _key(bert__attention__causal=True), "is not computed"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_be_computed_wrongly_is_refused_by_name(tmp_path: Path, name: str) -> None:
    file, change, told = REFUSED[name]
    path = _changed(tmp_path, file, change)
    with pytest.raises(ModelError) as refused:
        loading.load(path)
    assert any(told in fault.detail for fault in refused.value.faults)
    assert {fault.place[0] for fault in refused.value.faults} == {"model.gguf"}


def test_numbers_that_are_not_finite_are_found_when_they_are_read(tmp_path: Path) -> None:
    def spoil(keys: Keys, values: Values) -> None:
        values["blk.1.ffn_up.weight"][0, 0] = np.nan

    checkpoint = loading.load(_changed(tmp_path, "llama", spoil))
    with pytest.raises(ModelError, match=r"blk\.1\.ffn_up\.weight holds what is no finite number"):
        check_whole(checkpoint)


def test_folder_of_one_file_is_the_model_by_the_folders_name(tmp_path: Path) -> None:
    folder = tmp_path / "my-model"
    folder.mkdir()
    assert loading.found(folder) is None
    shutil.copy(FILES / "llama.gguf", folder / "weights.gguf")
    assert loading.load(folder).name == "my-model"
    assert loading.load(folder / "weights.gguf").name == "weights"
    shutil.copy(FILES / "llama.gguf", folder / "others.gguf")
    for nothing in (folder, tmp_path, tmp_path / "none.gguf"):
        assert loading.found(nothing) is None
        with pytest.raises(ModelError, match=r"just one \.gguf file"):
            loading.load(nothing)


def test_content_is_of_keys_and_numbers(tmp_path: Path) -> None:
    def first(keys: Keys, values: Values) -> None:
        values["output_norm.weight"][0] += 1.0

    contents = {
        loading.load(_changed(tmp_path, "llama", change)).content
        for change in (first, _key(llama__context_length=65), lambda keys, values: None)
    }
    assert len(contents) == 3


def test_card_says_what_the_file_is_made_of() -> None:
    card = loading.load(FILES / "gptneox.gguf").card
    assert "- general.architecture: gptneox\n" in card
    assert "- Tensors by type: F32 (" in card
    assert "No text: its tokenizer is 'none'" in card


WRONG = [[], ["a", "b"], np.array([1, 2]), "x", True, 1 << 31, 0, -1.0]


@pytest.mark.parametrize("value", WRONG, ids=map(repr, WRONG))
def test_value_of_another_kind_is_refused_or_of_no_matter(tmp_path: Path, value: object) -> None:
    keys, values = opened(FILES / "mixtral.gguf")
    for key in [*keys, "split.count", "tokenizer.ggml.pre"]:
        path = written(tmp_path / "model.gguf", {**keys, key: value}, values)
        with suppress(ModelError):
            assert loading.load(path).family == "mixtral"
