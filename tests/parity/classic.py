"""The same models in the forms that published checkpoints have.

transformers 5 writes other keys in config.json than transformers 4 did, and published checkpoints
name some tensors otherwise or hold tensors that nothing reads. Upstream reads both forms; so do
its folders here: `config.classic.json` beside a config.json, and folders `*-classic` whose
weights, and so values, are those of the folder they are made from.
"""

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from parity import checks, runs
from parity.families import FAMILIES, Family
from parity.runs import Tensors

Keys = dict[str, Any]
VERSION = "4.57.0"
DERIVED = ("layer_types", "_sliding_window_pattern", "dense_act_fn", "is_gated_act")


def make(here: Path, asked: list[str]) -> None:
    """Every config.classic.json, and the folders of classic tensors."""
    for family in FAMILIES:
        if not asked or family.folder in asked:
            write_config(family, here / family.folder)
    for folder, tensors in FOLDERS.items():
        if not asked or folder in asked:
            make_folder(here, folder, tensors)


def write_config(family: Family, folder: Path) -> None:
    """config.classic.json, where it reads as the same configuration."""
    new = json.loads((folder / "config.json").read_text("utf-8"))
    old = classic_keys(new)
    same = old.keys() == new.keys() - {"dtype"} | {"torch_dtype"}
    if not same and not family.folder.startswith("option"):
        check_config(family, new, old)
        write(folder / "config.classic.json", old)


def write(path: Path, keys: Keys) -> None:
    """A JSON file as upstream writes it."""
    path.write_text(json.dumps(keys, indent=2, sort_keys=True) + "\n", "utf-8")


def classic_keys(new: Keys) -> Keys:
    """The keys of transformers 4 for those of transformers 5."""
    old = {key: value for key, value in new.items() if key not in ("rope_parameters", "dtype")}
    old |= {"torch_dtype": new["dtype"], "transformers_version": VERSION}
    if "rope_parameters" in new:
        old |= ROPE_KEYS.get(new["model_type"], rope_keys)(new["rope_parameters"])
    if old.pop("scale_decoder_outputs", True) is False:
        old["tie_word_embeddings"] = False
    if new["model_type"] == "gemma3_text":
        old["sliding_window_pattern"] = new["_sliding_window_pattern"]
    for key in DERIVED:
        old.pop(key, None)
    return old


def rope_keys(rope: Keys) -> Keys:
    """rope_theta at the top, the rest in rope_scaling, without a part where there is none."""
    scaling = {key: value for key, value in rope.items() if key not in ("rope_theta", PART)}
    found = None if scaling == {"rope_type": "default"} else scaling
    part = {PART: rope[PART]} if PART in rope else {}
    return {"rope_theta": rope["rope_theta"], "rope_scaling": found, **part}


def llama_rope_keys(rope: Keys) -> Keys:
    """`rope_keys`, where the oldest kinds say `type`."""
    found = rope_keys(rope)
    if rope["rope_type"] in ("linear", "dynamic"):
        found["rope_scaling"]["type"] = found["rope_scaling"].pop("rope_type")
    return found


PART = "partial_rotary_factor"


def neox_rope_keys(rope: Keys) -> Keys:
    """GPT-NeoX's own names."""
    return {"rotary_emb_base": rope["rope_theta"], "rotary_pct": rope[PART]}


def gemma3_rope_keys(rope: Keys) -> Keys:
    """Gemma 3's two bases; the scaling is the global layers'."""
    local = rope["sliding_attention"]["rope_theta"]
    return {**rope_keys(rope["full_attention"]), "rope_local_base_freq": local}


ROPE_KEYS = {"llama": llama_rope_keys, "gpt_neox": neox_rope_keys, "gemma3_text": gemma3_rope_keys}


def check_config(family: Family, new: Keys, old: Keys) -> None:
    """Upstream reads the same configuration from both forms."""
    one, other = (understood(family, keys) for keys in (new, old))
    differing = {key for key in one | other if one.get(key) != other.get(key)}
    if differing:
        raise checks.Unsound(f"{family.folder}: {differing} differ in the classic form")


def understood(family: Family, keys: Keys) -> Keys:
    """The keys of transformers 5 after reading either form."""
    found = family.config.from_dict(copy.deepcopy(keys)).to_dict()
    (found.get("rope_parameters") or {}).pop("type", None)
    found.pop("transformers_version")
    return found


def make_folder(here: Path, name: str, tensors: Callable[[Tensors], Tensors]) -> None:
    """A folder of classic tensors; upstream computes the same from it."""
    family = next(each for each in FAMILIES if each.folder == name.removesuffix("-classic"))
    parent, folder = here / family.folder, here / name
    folder.mkdir(exist_ok=True)
    old = parent / "config.classic.json"
    shutil.copy(old if old.exists() else parent / "config.json", folder / "config.json")
    found = tensors(load_file(parent / "model.safetensors"))
    apart = {key: value.clone() for key, value in found.items()}
    save_file(apart, folder / "model.safetensors", {"format": "pt"})
    check_folder(family, folder, load_file(parent / "values.safetensors"))


def check_folder(family: Family, folder: Path, kept: Tensors) -> None:
    """The plain run of a classic folder has the values that its parent has."""
    of_run = {key.removeprefix("plain/"): kept[key] for key in kept if key.startswith("plain/")}
    given = {key: value for key, value in of_run.items() if "/" not in key}
    for key, value in runs.narrowed(
        runs.values(checks.read(family, folder), family, given)
    ).items():
        if not torch.equal(value, of_run[f"float32/{key}"]):
            raise checks.Unsound(f"{folder.name}: {key} is not that of {family.folder}")


def triangle(size: int) -> torch.Tensor:
    """(1, 1, n, n): the causal mask that old checkpoints keep beside the weights."""
    return torch.ones(size, size).tril()[None, None]


def gpt2(new: Tensors) -> Tensors:
    """No prefix, and the causal masks."""
    old = {name.removeprefix("transformer."): value for name, value in new.items()}
    return old | {f"h.{layer}.attn.bias": triangle(16) for layer in range(2)}


def bert(new: Tensors) -> Tensors:
    """gamma and beta, the position ids, the shared head, and the heads of pretraining."""
    names = {".LayerNorm.weight": ".LayerNorm.gamma", ".LayerNorm.bias": ".LayerNorm.beta"}
    old = {renamed(name, names): value for name, value in new.items()}
    table = new["bert.embeddings.word_embeddings.weight"]
    return old | {
        "bert.embeddings.position_ids": torch.arange(16)[None],
        "bert.pooler.dense.weight": torch.ones(8, 8),
        "bert.pooler.dense.bias": torch.ones(8),
        "cls.seq_relationship.weight": torch.ones(2, 8),
        "cls.seq_relationship.bias": torch.ones(2),
        "cls.predictions.decoder.weight": table,
        "cls.predictions.decoder.bias": new["cls.predictions.bias"],
    }


def neox(new: Tensors) -> Tensors:
    """The causal masks and the tables of frequencies."""
    attention = "gpt_neox.layers.0.attention"
    return new | {
        f"{attention}.bias": triangle(32).bool(),
        f"{attention}.masked_bias": torch.tensor(-1e9),
        f"{attention}.rotary_emb.inv_freq": torch.tensor([1.0]),
    }


def llama(new: Tensors) -> Tensors:
    """The table of frequencies in each layer."""
    name = "model.layers.{}.self_attn.rotary_emb.inv_freq"
    return new | {name.format(layer): torch.tensor([1.0, 0.01]) for layer in range(2)}


def t5(new: Tensors) -> Tensors:
    """Every copy of the shared table, and a relative table that nothing reads."""
    unread = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
    table = new["shared.weight"]
    return new | {
        "encoder.embed_tokens.weight": table,
        "decoder.embed_tokens.weight": table,
        unread: torch.ones(8, 2),
    }


def renamed(name: str, ends: dict[str, str]) -> str:
    """A name with its end replaced."""
    for end, other in ends.items():
        if name.endswith(end):
            return name.removesuffix(end) + other
    return name


FOLDERS: dict[str, Callable[[Tensors], Tensors]] = {
    "gpt2-classic": gpt2,
    "bert-classic": bert,
    "llama-classic": llama,
    "gpt-neox-sequential-classic": neox,
    "t5-gated-classic": t5,
}
