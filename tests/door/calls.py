"""A small good request of each call that asks a question of a model, for the bad ones to change."""

from functools import partial
from typing import Any

from door import sizings
from door.case import NUMBER, asked

_NAMED = {"name": "letter-sort"}
_WRITTEN = {"config": {"d_model": 4, "n_layers": 2, "vocab": 5, "attention": {"n_heads": 2}}}
_TOKENS = {"token_ids": [0, 1, 4]}
_ROWS = [[NUMBER, 2, 3, 4], [5, 6, 7, 8], [9, 8, 7, 6]]

CHANGE: dict[str, Any] = {"stage": "blocks.0.attn.z", "op": "zero", "where": {"head": [1]}}
INTERVENED: dict[str, Any] = {
    "model": _WRITTEN,
    "input": _TOKENS,
    "select": ["Z"],
    "interventions": [CHANGE],
    "measures": [{"logit": 1}],
}
"""A trace of two blocks that silences a head, and reads a logit."""

SWEEP: dict[str, Any] = {
    "model": _WRITTEN,
    "clean": _TOKENS,
    "corrupted": {"token_ids": [0, 2, 4]},
    "stage": "attn.z",
    "over": ["block", "head"],
    "measure": {"logit": 1, "minus": 0},
}
ABLATION: dict[str, Any] = {
    "model": _WRITTEN,
    "clean": {"tensor": _ROWS},
    "stage": "resid_mid",
    "op": "add",
    "value": NUMBER,
    "over": ["position"],
    "measure": {"stage": "blocks.1.resid_post", "direction": [NUMBER, 2, 3, 4]},
}
COMPARE: dict[str, Any] = {
    "a": {"model": _WRITTEN, "input": _TOKENS, "select": ["Z"]},
    "b": {"model": _NAMED, "input": {"text": "CAB"}, "select": ["Z"]},
}
PREFIX: dict[str, Any] = {"model": {"config": {**_WRITTEN["config"], "n_layers": 1}},
                          "input": {"tensor": _ROWS[:1]}}  # fmt: skip
_HEADS = [[[NUMBER, 1], [2, 3]], [[4, 5], [6, 7]]]
CACHE: dict[str, Any] = {
    "digest": "sha256:4f6c0e3a5f0f2e3f2b1d4c6a8e9f7b5d3c1a0f8e6d4c2b0a9f8e7d6c5b4a3f2e",
    "dtype": "float32",
    "position_ids": [0, 1],
    "key_mask": [True, True],
    "blocks.0.attn.k": _HEADS,
    "blocks.0.attn.v": _HEADS,
}
"""Of two rows; its digest is no model's, which is found out last of all."""

DECODE: dict[str, Any] = {**PREFIX, "cache": CACHE}
GREEDY: dict[str, Any] = {"model": _NAMED, "input": {"text": "CAB"}, "steps": 2, "select": ["Z"]}

PAIR: dict[str, Any] = {
    "positions": [3, 1],
    "pair": {"degrees_per_position": NUMBER},
    "vectors": [[NUMBER, 1], [1, 0]],
}
SPECTRUM: dict[str, Any] = {
    "positions": [3, 1],
    "spectrum": {"d_head": 8, "theta": NUMBER, "scaling": {"kind": "linear", "factor": 2}},
}
TURNED: dict[str, Any] = {"positions": [0, 5], "model": {"name": "induction"}, "block": 0}

PERMUTED: dict[str, Any] = {
    "model": _WRITTEN,
    "input": {"tensor": _ROWS},
    "permutation": [2, 0, 1],
    "select": ["Z"],
}
SPLIT: dict[str, Any] = {
    "model": _NAMED,
    "input": {"text": "CAB"},
    "by": "head",
    "direction": {"token": "A", "minus": "B"},
    "top_k": 3,
}
ALONG: dict[str, Any] = {
    "model": _WRITTEN,
    "input": _TOKENS,
    "of": "blocks.1.resid_post",
    "direction": {"vector": [NUMBER, 2, 3, 4]},
}
CIRCUITS: dict[str, Any] = {
    "model": _WRITTEN,
    "heads": [{"block": 0, "head": 1}],
    "readers": [{"block": 1, "head": 0}],
    "ask": ["rank", "qk"],
    "tokens": [0, 1],
}
DERIVED: dict[str, Any] = {
    "model": _WRITTEN,
    "input": _TOKENS,
    "of": "blocks.1.resid_post",
    "by": "blocks.0.resid_pre",
    "position": 2,
    "source": 0,
    "ask": ["norms"],
}
GRADIENTS: dict[str, Any] = {
    "model": _WRITTEN,
    "input": {"tensor": _ROWS},
    "measure": {"stage": "blocks.1.resid_post", "direction": [NUMBER, 2, 3, 4], "position": 1},
    "gradients": ["blocks.0.resid_pre"],
}

intervened = partial(asked, base=INTERVENED)
sweep = partial(asked, base=SWEEP, path="/v1/sweep")
ablation = partial(asked, base=ABLATION, path="/v1/sweep")
compare = partial(asked, base=COMPARE, path="/v1/compare")
decode = partial(asked, base=DECODE, path="/v1/decode")
prefix = partial(asked, base=PREFIX, path="/v1/decode")
greedy = partial(asked, base=GREEDY, path="/v1/decode")
pair = partial(asked, base=PAIR, path="/v1/rope")
spectrum = partial(asked, base=SPECTRUM, path="/v1/rope")
turned = partial(asked, base=TURNED, path="/v1/rope")
permuted = partial(asked, base=PERMUTED, path="/v1/equivariance")
split = partial(asked, base=SPLIT, path="/v1/contributions")
along = partial(asked, base=ALONG, path="/v1/contributions")
circuits = partial(asked, base=CIRCUITS, path="/v1/subspaces")
derived = partial(asked, base=DERIVED, path="/v1/jacobian")
gradients = partial(asked, base=GRADIENTS, path="/v1/jacobian")

ANSWERED: dict[str, tuple[str, dict[str, Any]]] = {
    "intervened": ("/v1/trace", INTERVENED),
    "sweep": ("/v1/sweep", SWEEP),
    "ablation": ("/v1/sweep", ABLATION),
    "compare": ("/v1/compare", COMPARE),
    "prefix": ("/v1/decode", PREFIX),
    "greedy": ("/v1/decode", GREEDY),
    "pair": ("/v1/rope", PAIR),
    "spectrum": ("/v1/rope", SPECTRUM),
    "turned": ("/v1/rope", TURNED),
    "permuted": ("/v1/equivariance", PERMUTED),
    "split": ("/v1/contributions", SPLIT),
    "along": ("/v1/contributions", ALONG),
    "circuits": ("/v1/subspaces", CIRCUITS),
    "derived": ("/v1/jacobian", DERIVED),
    "gradients": ("/v1/jacobian", GRADIENTS),
    **sizings.ANSWERED,
}
"""Name -> where it is sent, and a request that is answered."""

REFUSED: dict[str, tuple[str, dict[str, Any]]] = {"decode": ("/v1/decode", DECODE)}
"""The same of requests that are refused for the last thing that is looked at."""
