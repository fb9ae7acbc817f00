"""Requests beside the bad ones that break no rule: each field of a config, of an input."""

from collections.abc import Mapping
from typing import Any

from door.case import GOOD, LETTERS, TOKENS, changed

_ROWS = [[1, 2, 3, 4], [4, 3, 2, 1], [0, 1, 0, 1]]
_READER = {"attention": {"n_heads": 1}}
_SCALED = {"factor": 2, "original_positions": 8}
_MIXED = {"kind": "moe", "n_experts": 4, "top_k": 2}

CONFIGS: Mapping[str, dict[str, Any]] = {
    **{f"norms placed {word}": {"norm": {"placement": word}}
       for word in ("pre", "post", "sandwich", "output")},
    **{f"queries normed: {word}": {"attention": {"n_heads": 2, "qk_norm": word}}
       for word in ("none", "head", "full")},
    "softcap of null": {"attention": {"n_heads": 2, "softcap": None}},
    "softcap and sinks": {"attention": {"n_heads": 2, "softcap": 30, "sinks": True}},
    "layernorm without bias": {"norm": {"bias": False}},
    "parallel": {"topology": "parallel"},
    "parallel, one norm": {"topology": "parallel", "norm": {"shared": True}},
    "parallel, no norm": {"topology": "parallel", "norm": {"kind": "none"}},
    "squared relu": {"ffn": {"activation": "relu2"}},
    "experts": {"ffn": _MIXED},
    "experts, all of them": {"ffn": {"kind": "moe", "n_experts": 3, "top_k": 3}},
    "experts of two matrices": {"ffn": {**_MIXED, "expert": "mlp", "bias": True}},
    "experts with a shared one": {"ffn": {**_MIXED, "d_shared": 3, "shared_gate": True,
                                          "renormalize": False, "router_bias": True}},
    "experts with none shared": {"ffn": {**_MIXED, "d_shared": 0}},
    "buckets": {"position": {"kind": "t5_bias"}},
    "buckets of both directions": {"position": {"kind": "t5_bias", "n_buckets": 4,
                                                "max_distance": 2, "bidirectional": True}},
    "no scaling": {"position": {"kind": "rope", "scaling": {}}},
    "linear scaling": {"position": {"kind": "rope", "scaling": {"kind": "linear", "factor": 2}}},
    **{f"{kind} scaling": {"attention": {"n_heads": 2, "d_head": 4},
                           "position": {"kind": "rope", "scaling": {"kind": kind, **_SCALED}}}
       for kind in ("dynamic", "yarn", "llama3")},
    "blocks of their own": {"n_layers": 2, "layers": [{"window": 1, "scale": 2}, {}]},
    "blocks that turn and do not": {"n_layers": 2, "position": {"kind": "rope"},
                                    "layers": [{"theta": None}, {"theta": 50, "scaling":
                                               {"kind": "linear", "factor": 4}}]},
    "theta of null where nothing turns": {"layers": [{"theta": None}]},
    "multipliers": {"residual_multiplier": 0.5, "embed_multiplier": 0},
    "normed embedding": {"embed_norm": True},
    "types": {"token_types": 2},
    "readout of nothing": {"readout": False},
    "encoder of null": {"encoder": None, "cross_attention": None},
}  # fmt: skip

INPUTS: Mapping[str, dict[str, Any]] = {
    "types of tokens": {"/model/config/token_types": 2, "/input/token_types": [0, 1]},
    "types of a batch": {"/model/config/token_types": 2, "/input/tensor": [_ROWS, _ROWS],
                         "/input/token_types": [0, 1, 1]},
    "rows of a memory": {"/model/config/cross_attention": True, "/input/memory": {
        "tensor": _ROWS, "key_mask": [True, False, True]}},
    "batch of memories": {"/model/config/cross_attention": True, "/input/tensor": [_ROWS, _ROWS],
                          "/input/memory": {"tensor": [_ROWS, _ROWS], "key_mask": [True] * 3}},
    "memory of no key": {"/model/config/cross_attention": True, "/input/memory": {
        "tensor": _ROWS, "key_mask": [False] * 3}},
    "memory of null": {"/input/memory": None},
    "encoder of rows": {"/model/config/encoder": _READER, "/input/memory": {"tensor": _ROWS}},
    "encoder of everything": {
        "/model/config/encoder": {**_READER, "token_types": 2},
        "/input/memory": {"tensor": _ROWS, "position_ids": [4, 5, 6], "token_types": [0, 1, 0],
                          "key_mask": [True] * 3, "attention_mask": [[True] * 3] * 3}},
    "encoder's own stages": {
        "/model/config/encoder": {**_READER, "n_layers": 2}, "/input/memory": {"tensor": _ROWS},
        "/select": ["encoder.A", "encoder.blocks.1.resid_post", "cross.pattern",
                    {"name": "encoder.head_out", "position": [-1]}]},
}  # fmt: skip

READOUTS: Mapping[str, dict[str, Any]] = {
    "mlm head": {"mlm_head": True},
    "logits multiplied and capped": {"logit_multiplier": 0.5, "logit_softcap": 30},
    "embedding without a readout": {"readout": False},
    "encoder that reads tokens": {"encoder": _READER},
}

NAMED: Mapping[str, dict[str, Any]] = {
    "norms behind": {"norm": {"placement": "post"}},
    "norms around": {"norm": {"placement": "sandwich"}},
    "parallel": {"topology": "parallel"},
    "fewer blocks": {"n_layers": 1},
    "a window in a block": {"layers": [{"window": 2}, {}, {}]},
    "queries normed": {"attention": {"qk_norm": "head"}},
    "capped": {"logit_softcap": 5, "attention": {"softcap": 3}},
    "positions that turn": {"position": {"kind": "rope"}},
    "a bias filled with zeros": {"attention": {"bias": True}, "unembed_bias": True},
}


def _config(config: Mapping[str, object]) -> dict[str, object]:
    """The changes by pointer that put fields into a config."""
    return {f"/model/config/{key}": value for key, value in config.items()}


def _readout(config: Mapping[str, object]) -> dict[str, object]:
    memory = {"/input/memory": {"token_ids": [4, 3, 2]}} if "encoder" in config else {}
    return {**_config(config), **memory}


REQUESTS: Mapping[str, object] = {
    **{f"config: {name}": changed(GOOD, _config(config)) for name, config in CONFIGS.items()},
    **{f"input: {name}": changed(GOOD, changes) for name, changes in INPUTS.items()},
    **{f"readout: {name}": changed(TOKENS, _readout(x)) for name, x in READOUTS.items()},
    **{f"named: {name}": changed(LETTERS, {"/model/config": x}) for name, x in NAMED.items()},
}
"""Name -> a request that is answered."""
