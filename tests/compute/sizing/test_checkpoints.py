"""What a model's config holds is what its file holds, but for tensors that are named here.

Files are read by the libraries that write them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

import gguf
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from compute.checkpoints import folder as folders
from compute.checkpoints.gguf import loading
from compute.checkpoints.registry import FAMILIES
from compute.sizing import parameters
from parity import references
from parity.options import OPTIONS

FOLDERS = [name for name in references.folders() if name not in OPTIONS]
GGUF = Path(__file__).parents[2] / "parity_gguf"
FILES = sorted(path.name for path in GGUF.glob("*.gguf"))


@dataclass(frozen=True)
class Beside:
    """A tensor of a file of whose numbers so many are no parameters of the model, and why."""

    name: str
    elements: int
    reason: str


_MASK, _TURNS = "which keys are seen: a buffer", "the frequencies of RoPE: a buffer"
_SHARED = "the embedding again"
_ROWS = "two rows that belong to no position"
_UNREAD = "a head that is not read"
BESIDE: Mapping[str, tuple[Beside, ...]] = {
    "bert-classic": (
        Beside("bert.embeddings.position_ids", 16, "the numbers 0, 1, …: a buffer"),
        Beside("bert.pooler.dense.weight", 8 * 8, _UNREAD),
        Beside("bert.pooler.dense.bias", 8, _UNREAD),
        Beside("cls.seq_relationship.weight", 2 * 8, _UNREAD),
        Beside("cls.seq_relationship.bias", 2, _UNREAD),
        Beside("cls.predictions.decoder.weight", 23 * 8, _SHARED),
        Beside("cls.predictions.decoder.bias", 23, "the readout's bias again"),
    ),
    "gpt-neox-sequential-classic": (
        Beside("gpt_neox.layers.0.attention.bias", 32 * 32, _MASK),
        Beside("gpt_neox.layers.0.attention.masked_bias", 1, _MASK),
        Beside("gpt_neox.layers.0.attention.rotary_emb.inv_freq", 1, _TURNS),
    ),
    "gpt2-classic": (
        Beside("h.0.attn.bias", 16 * 16, _MASK),
        Beside("h.1.attn.bias", 16 * 16, _MASK),
    ),
    "llama-classic": (
        Beside("model.layers.0.self_attn.rotary_emb.inv_freq", 2, _TURNS),
        Beside("model.layers.1.self_attn.rotary_emb.inv_freq", 2, _TURNS),
    ),
    "minilm": (
        Beside("pooler.dense.weight", 8 * 8, _UNREAD),
        Beside("pooler.dense.bias", 8, _UNREAD),
    ),
    "opt": (Beside("model.decoder.embed_positions.weight", 2 * 8, _ROWS),),
    "opt-post-norm": (Beside("model.decoder.embed_positions.weight", 2 * 8, _ROWS),),
    "roberta": (Beside("roberta.embeddings.position_embeddings.weight", 2 * 8, _ROWS),),
    "t5-gated-classic": (
        Beside("encoder.embed_tokens.weight", 23 * 8, _SHARED),
        Beside("decoder.embed_tokens.weight", 23 * 8, _SHARED),
        Beside(
            "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
            8 * 2,
            "a table that cross-attention does not read",
        ),
    ),
    "option-sinusoidal": (
        Beside(
            "distilbert.embeddings.position_embeddings.weight",
            16 * 8,
            "sines: computed, not held",
        ),
    ),
    "llama-biased-llama3.gguf": (
        Beside("rope_freqs.weight", 6, "how RoPE is stretched, as numbers"),
    ),
}
"""Folder or file -> what of it is no parameter of the model that is read from it."""


def of_safetensors(folder: Path) -> dict[str, int]:
    """Tensor -> elements, over every file of weights of a folder."""
    found: dict[str, int] = {}
    for path in sorted(folder.glob("model*.safetensors")):
        with safe_open(path, "np") as file:
            found |= {name: prod(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    return found


def of_gguf(path: Path) -> dict[str, int]:
    """The same of a GGUF file."""
    return {tensor.name: int(tensor.n_elements) for tensor in gguf.GGUFReader(path).tensors}


def less(name: str, held: Mapping[str, int]) -> int:
    """Elements of a file, less what is named: whole tensors, but for the rows of a table."""
    for beside in BESIDE.get(name, ()):
        rest = held[beside.name] - beside.elements
        assert rest > 0 if beside.reason == _ROWS else rest == 0, beside
    return sum(held.values()) - sum(beside.elements for beside in BESIDE.get(name, ()))


def test_every_family_is_among_the_folders() -> None:
    found = {folders.load(references.HERE / name).family for name in FOLDERS}
    assert found == {family.name for family in FAMILIES if family.name != "glassblock"}


def test_what_is_named_is_of_files_there_are() -> None:
    assert set(BESIDE) <= {*FOLDERS, *OPTIONS, *FILES}


def test_sharded_weights_are_counted_over_their_files() -> None:
    assert len(list((references.HERE / "llama-sharded").glob("model*.safetensors"))) > 1


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folders_model_holds_what_its_files_hold(name: str) -> None:
    path = references.HERE / name
    assert parameters.count(folders.load(path).config) == less(name, of_safetensors(path))


@pytest.mark.parametrize("name", OPTIONS)
def test_an_options_config_holds_what_its_file_holds(name: str) -> None:
    path = references.HERE / name
    config, _ = OPTIONS[name](load_file(path / "model.safetensors"))
    assert parameters.count(config) == less(name, of_safetensors(path))


@pytest.mark.parametrize("name", FILES)
def test_a_gguf_files_model_holds_what_the_file_holds(name: str) -> None:
    assert parameters.count(loading.load(GGUF / name).config) == less(name, of_gguf(GGUF / name))
