"""Every folder of a family, loaded by us, computes what transformers computes from it."""

import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from pathlib import Path

import numpy as np
import pytest

from compute import tensors, weights
from compute.checkpoints import folder as folders
from compute.checkpoints.checkpoint import Checkpoint
from compute.checkpoints.registry import FAMILIES
from compute.config import ModelConfig, RopeScaling
from compute.initial import Source
from compute.tensors import Tensor
from compute.types import Inputs
from parity import changes, references
from parity.changes import Change
from parity.references import HERE, Array, Reference

FOLDERS = [name for name in references.folders() if not name.startswith("option-")]
CLASSIC = [name for name in FOLDERS if (HERE / name / "config.classic.json").exists()]
REFERENCES = [each for name in FOLDERS for each in references.references(name)]
RUNS = [*REFERENCES, *references.narrowed(REFERENCES)]
PADDED = [each for each in REFERENCES if each.run == "left"]


FIRST_ROW = {"roberta": 2}
"""RoBERTa's position ids are rows of its table; OPT adds its 2 itself."""


@cache
def loaded(folder: str) -> Checkpoint:
    return folders.load(HERE / folder)


def inputs_of(reference: Reference) -> Inputs:
    first = FIRST_ROW.get(loaded(reference.folder).family, 0)
    return references.inputs_of(reference.given, first_row=first)


def test_every_family_has_a_folder() -> None:
    assert {loaded(folder).family for folder in FOLDERS} == {
        family.name for family in FAMILIES if family.name != "glassblock"
    }


def test_every_value_that_is_kept_is_compared() -> None:
    for folder in FOLDERS:
        compared = {
            f"{each.run}/{name}"
            for each in references.references(folder)
            for name in [*each.given, *(f"{each.dtype}/{value}" for value in each.values)]
        }
        assert compared == set(references.values_of(folder)) != set(), folder


def test_padding_moved_positions_and_both_dtypes_are_among_the_runs() -> None:
    families = {loaded(each.folder).family: set[str]() for each in REFERENCES}
    for each in REFERENCES:
        families[loaded(each.folder).family] |= {each.run, each.dtype}
    for family, runs in families.items():
        moved = set() if family == "t5" else {"left", "offset"}
        assert runs >= {"plain", "right", "float32", "float64"} | moved, family


@pytest.mark.parametrize("reference", RUNS, ids=str)
def test_hidden_states_patterns_and_logits_are_upstreams(reference: Reference) -> None:
    checkpoint = loaded(reference.folder)
    ours = weights.build(checkpoint.config, checkpoint.source(), reference.dtype)
    inputs = inputs_of(reference)
    assert references.compare(checkpoint.config, ours, inputs, reference).faults == []


@pytest.mark.parametrize("reference", PADDED, ids=str)
def test_left_padding_moves_positions_by_default(reference: Reference) -> None:
    """OPT and RoBERTa count real tokens themselves; the others were told to."""
    checkpoint = loaded(reference.folder)
    ours = weights.build(checkpoint.config, checkpoint.source(), reference.dtype)
    inputs = references.inputs_of(reference.given, positions=False)
    assert inputs.position_ids is None
    assert references.compare(checkpoint.config, ours, inputs, reference).faults == []


@pytest.mark.parametrize("folder", CLASSIC)
def test_the_keys_of_transformers_4_mean_the_same(folder: str, tmp_path: Path) -> None:
    classic = tmp_path / folder
    shutil.copytree(HERE / folder, classic)
    shutil.copy(classic / "config.classic.json", classic / "config.json")
    assert folders.load(classic).config == loaded(folder).config


@pytest.mark.parametrize("folder", [*references.PARENTS, *(f for f in FOLDERS if "classic" in f)])
def test_other_names_and_files_give_the_same_weights(folder: str) -> None:
    ours = loaded(folder)
    parent = loaded(references.PARENTS.get(folder, folder.removesuffix("-classic")))
    assert ours.config == parent.config
    one, other = ours.source(), parent.source()
    for name, tensor in tensors.tensors(ours.config).items():
        assert np.array_equal(one(tensor), other(tensor)), name


def test_the_folders_hold_every_dtype_and_shards() -> None:
    assert loaded("llama-float16").dtypes == ("F16",)
    assert loaded("llama-bfloat16").dtypes == ("BF16",)
    assert loaded("llama").dtypes == ("F32",)
    assert len(list((HERE / "llama-sharded").glob("*.safetensors"))) == 2


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_count_of_parameters_is_the_files_but_for_what_is_left_out(folder: str) -> None:
    checkpoint = loaded(folder)
    entries = checkpoint.reader.entries
    read = {name for stored in checkpoint.stored.values() for name in stored.names}
    numbers = sum(prod(entries[name].shape) for name in read)
    unread = sum(
        rows_named(what) * entries[name].shape[1]
        for name, what in checkpoint.left_out.items()
        if what != "whole"
    )
    assert tensors.parameter_counts(checkpoint.config)["total"] == numbers - unread
    whole = {name for name, what in checkpoint.left_out.items() if what == "whole"}
    assert set(entries) == read | whole
    assert not read & whole


def rows_named(what: str) -> int:
    """How many rows "row 0" and "rows 0 to 1" are."""
    first, *last = map(int, re.findall(r"\d+", what))
    return (last[0] if last else first) - first + 1


Edit = Callable[[dict[str, Array]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """A mistake: in a config, or in a model's weights by name."""

    folder: str
    config: Change = lambda config: config
    edit: Edit = lambda named: None


def swapped(*names: str) -> Edit:
    """Two tensors of each other's place."""

    def edit(named: dict[str, Array]) -> None:
        named[names[0]], named[names[1]] = named[names[1]], named[names[0]]

    return edit


def turned(name: str, axis: int = 0) -> Edit:
    """Entries along an axis moved by one."""

    def edit(named: dict[str, Array]) -> None:
        named[name] = np.roll(named[name], 1, axis)

    return edit


def without_length_factor(config: ModelConfig) -> ModelConfig:
    scaling = replace(config.position.scaling, attention_factor=1.0)
    return replace(config, position=replace(config.position, scaling=scaling))


UNSCALED = RopeScaling()
_ATTN, _FFN = "blocks.0.attn.", "blocks.0.ffn."

WRONG: Mapping[str, Wrong] = {
    "heads of Q in another order": Wrong(folder="llama", edit=turned(f"{_ATTN}W_Q")),
    "key heads in another order": Wrong(folder="llama", edit=turned(f"{_ATTN}W_K")),
    "value heads in another order": Wrong(folder="llama", edit=turned(f"{_ATTN}W_V")),
    "gate and up exchanged": Wrong(folder="llama", edit=swapped(f"{_FFN}W_gate", f"{_FFN}W_in")),
    "pairs interleaved": Wrong(folder="llama", config=changes.position(pairing="interleaved")),
    "a base of rotations": Wrong(folder="llama", config=changes.position(theta=9000.0)),
    "biases of Q and K exchanged": Wrong(folder="gpt2", edit=swapped(f"{_ATTN}b_Q", f"{_ATTN}b_K")),
    "gelu for its approximation": Wrong(folder="gpt2", config=changes.ffn(activation="gelu")),
    "the approximation for gelu": Wrong(folder="bert", config=changes.ffn(activation="gelu_tanh")),
    "an epsilon": Wrong(folder="gpt2", config=changes.norm(eps=1e-5)),
    "positions one row later": Wrong(folder="opt", edit=turned("pos_embed.W_pos")),
    "positions of RoBERTa one row later": Wrong(folder="roberta", edit=turned("pos_embed.W_pos")),
    "the same scale in every block": Wrong(
        folder="gpt2-inverse-layer", config=changes.whole(layers=())
    ),
    "token types exchanged": Wrong(folder="minilm", edit=turned("type_embed.W_type")),
    "no norm of the embeddings": Wrong(folder="distilbert", config=changes.whole(embed_norm=False)),
    "norms before for norms after": Wrong(folder="bert", config=changes.norm(placement="pre")),
    "no head of masked tokens": Wrong(folder="roberta", config=changes.whole(mlm_head=False)),
    "a causal mask": Wrong(folder="bert", config=changes.attention(mask="causal")),
    "a full mask": Wrong(folder="mistral", config=changes.attention(mask="full")),
    "a window one shorter": Wrong(folder="mistral", config=changes.attention(window=2)),
    "a window one longer": Wrong(folder="mistral", config=changes.attention(window=4)),
    "a window in every block": Wrong(
        folder="qwen2-sliding", config=changes.layers(lambda each: replace(each, window=3))
    ),
    "gains without their 1": Wrong(folder="gemma2", config=changes.norm(gain_offset=0.0)),
    "norms before and after exchanged": Wrong(
        folder="gemma2", edit=swapped("blocks.0.norm1.weight", "blocks.0.norm1_post.weight")
    ),
    "scores without a cap": Wrong(folder="gemma2", config=changes.attention(softcap=None)),
    "logits without a cap": Wrong(folder="gemma2", config=changes.whole(logit_softcap=None)),
    "embeddings unscaled": Wrong(folder="gemma2", config=changes.whole(embed_multiplier=1.0)),
    "scores by the width of a head": Wrong(
        folder="gemma2", config=changes.layers(lambda each: replace(each, scale=0.5))
    ),
    "one base for all blocks": Wrong(
        folder="gemma3", config=changes.layers(lambda each: replace(each, theta=1000.0))
    ),
    "no scaling of global blocks": Wrong(
        folder="gemma3", config=changes.layers(lambda each: replace(each, scaling=UNSCALED))
    ),
    "norms of Q and K exchanged": Wrong(
        folder="qwen3", edit=swapped(f"{_ATTN}q_norm.weight", f"{_ATTN}k_norm.weight")
    ),
    "queries without their norm": Wrong(folder="gemma3", config=changes.attention(qk_norm="none")),
    "a norm of each head for one of all": Wrong(
        folder="olmo2", config=changes.attention(qk_norm="none")
    ),
    "one by one for side by side": Wrong(
        folder="gpt-neox", config=changes.whole(topology="sequential")
    ),
    "side by side for one by one": Wrong(
        folder="gpt-neox-sequential", config=changes.whole(topology="parallel")
    ),
    "all of each head turned": Wrong(folder="phi", config=changes.position(rotary_dim=8)),
    **{
        f"no scaling of {kind}": Wrong(
            folder=f"llama-rope-{kind}", config=changes.position(scaling=UNSCALED)
        )
        for kind in ("linear", "dynamic", "llama3", "yarn")
    },
    "a factor of the length left out": Wrong(
        folder="llama-rope-yarn",
        config=lambda c: changes.position(
            scaling=replace(c.position.scaling, attention_factor=1.0)
        )(c),
    ),
    "one expert": Wrong(folder="mixtral", config=changes.ffn(top_k=1)),
    "weights of all experts": Wrong(folder="mixtral", config=changes.ffn(renormalize=False)),
    "experts in another order": Wrong(folder="mixtral", edit=turned(f"{_FFN}W_out")),
    "distances of one direction": Wrong(
        folder="t5", config=changes.encoder(changes.position(bidirectional=False))
    ),
    "distances of both directions": Wrong(folder="t5", config=changes.position(bidirectional=True)),
    "scores scaled": Wrong(folder="t5", config=changes.attention(scale=3**-0.5)),
    "logits unscaled": Wrong(folder="t5", config=changes.whole(logit_multiplier=1.0)),
    "the gate's gelu exact": Wrong(folder="t5-gated", config=changes.ffn(activation="gelu")),
    "keys and values across exchanged": Wrong(
        folder="t5", edit=swapped("blocks.0.cross.W_K", "blocks.0.cross.W_V")
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_mistake_is_seen(what: str) -> None:
    wrong = WRONG[what]
    checkpoint = loaded(wrong.folder)
    config = wrong.config(checkpoint.config)
    source = edited(checkpoint, wrong.edit)
    ours = weights.build(config, source, "float64")
    seen = [
        references.compare(config, ours, inputs_of(each), each).faults
        for each in references.references(wrong.folder)
        if each.dtype == "float64"
    ]
    assert any(seen)


def edited(checkpoint: Checkpoint, edit: Edit) -> Source:
    """The weights of a checkpoint after an edit."""
    read = checkpoint.source()
    named = {name: read(each) for name, each in tensors.tensors(checkpoint.config).items()}
    edit(named)

    def source(tensor: Tensor) -> Array:
        return named[tensor.name]

    return source
