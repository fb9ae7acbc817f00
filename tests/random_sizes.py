"""Small models of every kind, and workloads for them, to be counted by hand."""

from typing import Any

import numpy as np

from compute.config import ModelConfig
from compute.sizing.vocabulary import Workload
from schemas.config import ConfigAsked


def config_of(asked: dict[str, Any]) -> ModelConfig:
    return ConfigAsked.model_validate(asked).to_compute()


def random_asked(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 20))
    asked = random_stack(rng, d) | {"vocab": int(rng.integers(1, 50)), "tied": bool(seed % 2)}
    if seed % 3 == 0:
        asked["encoder"] = random_stack(rng, d)
        asked["encoder"]["attention"]["mask"] = "full"
    if seed % 3 != 1:
        asked["cross_attention"] = True
    elif seed % 2:
        choices = [None, 1, 2, 3, 7]
        windows = [choices[i] for i in rng.integers(0, 5, asked["n_layers"])]
        asked["layers"] = [{"window": window} for window in windows]
    return asked


def random_workload(seed: int, config: ModelConfig) -> Workload:
    rng = np.random.default_rng(1000 + seed)
    batch, tokens, cached, source = (int(rng.integers(low, 9)) for low in (1, 1, 0, 1))
    source = source if config.cross_attention else 0
    cached *= seed % 2
    return Workload(batch=batch, tokens=tokens, cached=cached, source=source)


def random_stack(rng: np.random.Generator, d: int) -> dict[str, Any]:
    heads = int(rng.choice([1, 2, 3, 4, 6]))
    divisors = [g for g in range(1, heads + 1) if heads % g == 0]
    return {
        "d_model": d,
        "n_layers": int(rng.integers(1, 5)),
        "attention": {
            "n_heads": heads,
            "n_kv_heads": int(rng.choice(divisors)),
            "d_head": int(rng.integers(1, 9)),
            "d_value": int(rng.integers(1, 9)),
        },
        "ffn": random_ffn(rng),
    }


def random_ffn(rng: np.random.Generator) -> dict[str, Any]:
    kind = str(rng.choice(["mlp", "gated", "moe"]))
    made: dict[str, Any] = {"kind": kind, "d_ff": int(rng.integers(1, 30))}
    if kind != "moe":
        return made
    experts, shared = int(rng.integers(1, 9)), int(rng.integers(0, 2)) * int(rng.integers(1, 9))
    made |= {"n_experts": experts, "top_k": int(rng.integers(1, experts + 1)), "d_shared": shared}
    made |= {"expert": str(rng.choice(["mlp", "gated"]))}
    return {**made, "shared_gate": True} if shared and rng.integers(2) else made
