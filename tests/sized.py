"""The architectures of tests/compute/sizing/truths.json as configs."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from compute.config import ModelConfig
from schemas.config import ConfigAsked

TRUTHS = Path(__file__).parent / "compute" / "sizing"

_NORMS = {
    "layernorm": {"kind": "layernorm"},
    "layernorm_nobias": {"kind": "layernorm", "bias": False},
    "rmsnorm": {"kind": "rmsnorm"},
    "nonparametric": {"kind": "layernorm", "gain": False},
}


@cache
def truths() -> dict[str, dict[str, Any]]:
    """Name -> truth, of 122 architectures."""
    return {truth["name"]: truth for truth in json.loads((TRUTHS / "truths.json").read_bytes())}


@cache
def extra_truths() -> dict[str, dict[str, Any]]:
    """Name -> truth, of 60 values of FLOPs, caches, activations, times and capacities."""
    listed = json.loads((TRUTHS / "extra_truths.json").read_bytes())
    return {truth["name"]: truth for truth in listed}


@cache
def config_of(name: str) -> ModelConfig:
    """The config of a truth, resolved."""
    return ConfigAsked.model_validate(asked(truths()[name]["config"])).to_compute()


def asked(truth: dict[str, Any]) -> dict[str, Any]:
    """A truth's config as a request writes it."""
    made = _stack(truth)
    extras = truth.get("extras", {})
    norm = truth["norm"]
    made |= {
        "vocab": truth["vocab"] or None,
        "tied": bool(truth["tied"] and truth["vocab"]),
        "unembed_bias": truth["biases"]["lm_head"] or "mlm_bias" in extras,
        "final_norm": norm.get("final", True),
        "mlm_head": "mlm_transform" in extras,
        "embed_norm": norm.get("embedding", False),
        "pooler": "pooler" in extras,
        "classes": _classes(truth, extras),
    }
    if truth["arch"] == "encoder":
        made["attention"]["mask"] = "full"
        made["readout"] = made["tied"] = "mlm_transform" in extras
    if not made["final_norm"]:
        made["norm"]["placement"] = "post"
    return {**made, **_unusual(truth, extras)}


def _unusual(truth: dict[str, Any], extras: dict[str, int]) -> dict[str, Any]:
    """What few models have."""
    width = truth.get("d_embed", truth["d_model"])
    made: dict[str, Any] = {"token_types": extras.get("token_type_embedding", 0) // width}
    if width != truth["d_model"]:
        made["d_embed"] = width
    if truth.get("shared_layers"):
        made["distinct_blocks"] = truth["shared_layers"]
    if "patch_embed" in extras:
        made["patches"] = _patches(truth, extras)
    if truth["arch"] == "encoder_decoder":
        made |= {"encoder": _stack(truth), "n_layers": truth["n_layers_dec"]}
    return made


def _stack(truth: dict[str, Any]) -> dict[str, Any]:
    norm = dict(_NORMS[truth["norm"]["kind"]])
    if truth["norm"].get("per_block") == 4:
        norm["placement"] = "sandwich"
    parallel = truth.get("parallel_residual", False)
    if parallel and truth["norm"]["per_block"] == 1:
        norm["shared"] = True
    return {
        "d_model": truth["d_model"],
        "n_layers": truth["n_layers"],
        "attention": _attention(truth),
        "ffn": _ffn(truth),
        "norm": norm,
        "position": _position(truth["positional"]),
        "topology": "parallel" if parallel else "sequential",
        "layers": _layers(truth),
    }


def _attention(truth: dict[str, Any]) -> dict[str, Any]:
    biases, mla = truth["biases"], truth.get("mla")
    made: dict[str, Any] = {
        "n_heads": truth["n_heads"],
        "bias": {**dict.fromkeys("qkv", biases["qkv"]), "o": biases["o"]},
        "qk_norm": {"per_head": "head", "full": "full", "none": "none"}[truth["qk_norm"]],
        "sinks": truth.get("attn_sinks", False),
    }
    if mla:
        names = {"d_nope": "qk_nope_head_dim", "d_rope": "qk_rope_head_dim"}
        ranks = {name: mla[name] for name in ("q_lora_rank", "kv_lora_rank")}
        latent = {**ranks, **{ours: mla[theirs] for ours, theirs in names.items()}}
        return {**made, "mla": latent, "d_value": mla["v_head_dim"]}
    return {**made, "n_kv_heads": truth["n_kv_heads"], "d_head": truth["d_head"]}


def _ffn(truth: dict[str, Any]) -> dict[str, Any]:
    moe = truth.get("moe")
    if moe is None:
        kind = "gated" if truth["gated"] else "mlp"
        return {"kind": kind, "d_ff": truth["d_ff"], "bias": truth["biases"]["mlp"]}
    made = {
        "kind": "moe",
        "expert": "gated" if truth["gated"] else "mlp",
        "d_ff": moe["d_ff_expert"],
        "n_experts": moe["n_experts"],
        "top_k": moe["top_k"],
        "d_shared": moe.get("d_ff_shared", 0),
        "router_bias": moe.get("router_bias", False),
        "bias": moe.get("expert_bias", False),
    }
    if moe.get("first_dense"):
        made |= {"first_dense": moe["first_dense"], "d_dense": truth["d_ff"]}
    return made


def _position(said: dict[str, Any]) -> dict[str, Any]:
    if said["kind"] == "learned":
        return {"kind": "learned", "n_positions": said["rows"]}
    if said["kind"] == "t5_relative_bias":
        return {"kind": "t5_bias", "n_buckets": said["buckets"]}
    return {"kind": said["kind"]}


def _layers(truth: dict[str, Any]) -> list[dict[str, Any]]:
    window, count = truth.get("sliding_window"), truth["n_layers"]
    if window is None:
        return []
    every = {"alternate": 2, "5:1": 6}.get(truth.get("sliding_pattern", ""), 0)
    is_global = [bool(every) and (layer + 1) % every == 0 for layer in range(count)]
    return [{"window": None if wide else window} for wide in is_global]


def _classes(truth: dict[str, Any], extras: dict[str, int]) -> int:
    held = extras.get("classifier", extras.get("nsp", 0))
    return held // (truth["d_model"] + 1)


def _patches(truth: dict[str, Any], extras: dict[str, int]) -> dict[str, Any]:
    side = round(((extras["patch_embed"] // truth["d_model"] - 1) / 3) ** 0.5)
    return {"image_size": 224, "patch_size": side, "class_token": "cls_token" in extras}
