"""Requests of POST /v1/contributions, and the answer to the first."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from service import examples

Json = dict[str, Any]

_TOY = {"model": {"name": "eiffel-toy"}, "input": {"text": "the Eiffel tower"}}
_LETTERS = {"model": {"name": "letter-sort"}, "input": {"text": "CABBAC"}}
_RIGHT = {"token": "A", "minus": "B"}

_SOURCES = {**_TOY, "by": "source", "vectors": True, "dtype": "float64"}
_HEADS = {**_LETTERS, "by": "head", "direction": _RIGHT, "top_k": 5}
_LENS = {**_LETTERS, "direction": _RIGHT, "norm_scale": "recomputed"}
_NEURONS = {**_LETTERS, "of": "blocks.1.ffn_out", "by": "neuron", "direction": _RIGHT, "top_k": 3}
_POST_NORM = {
    "model": {"name": "letter-sort", "config": {"norm": {"placement": "post"}}},
    "input": {"text": "CABBAC"},
    "of": "blocks.1.attn_sum",
    "by": "head",
}
_DIRECTION = {
    **_TOY,
    "of": "Δ_attn",
    "by": "head",
    "positions": [1, 2],
    "direction": {"vector": [0, 1]},
}

REQUESTS: Mapping[str, Any] = MappingProxyType(
    {
        "sources": {"summary": "What each word gave the last one", "value": _SOURCES},
        "heads": {"summary": "Which head wrote the answer", "value": _HEADS},
        "lens": {"summary": "What the model would say at each state", "value": _LENS},
        "neurons": {"summary": "The neurons of one ffn, the largest first", "value": _NEURONS},
        "post-norm": {"summary": "A sum that holds in a post-norm stack", "value": _POST_NORM},
        "direction": {"summary": "Along a vector of the stream", "value": _DIRECTION},
    }
)


def _from(source: int, norm: float, share: float, cosine: float | None, x: float, y: float) -> Json:
    """What a word gave `tower` through the one head."""
    return {
        "id": "blocks.0.head.0",
        "source": source,
        "norm": norm,
        "projection": share * _LENGTH,
        "share": share,
        "cosine": cosine,
        "along": None,
        "vector": [x, y],
    }


_LENGTH = 1.3459727942600828

ANSWER: Mapping[str, Any] = MappingProxyType(
    {
        "model": examples.ANSWER["model"],
        "input": examples.ANSWER["input"],
        "of": "blocks.0.resid_post",
        "by": "source",
        "norm_scale": "frozen",
        "direction": None,
        "at": [
            {
                "position": 2,
                "state": {
                    "norm": _LENGTH,
                    "along": None,
                    "vector": [1.248255078257723, 0.5034898434845538],
                },
                "parts": [
                    {
                        "id": "embed",
                        "norm": 1.0,
                        "projection": 0.9273999322875781,
                        "share": 0.6890183339830391,
                        "cosine": 0.9273999322875781,
                        "along": None,
                        "vector": [1.0, 0.0],
                    },
                    _from(0, 0.0, 0.0, None, 0.0, 0.0),
                    _from(
                        1,
                        0.5034898434845538,
                        0.1399293655929954,
                        0.3740713375721206,
                        0.0,
                        0.5034898434845538,
                    ),
                    _from(
                        2,
                        0.24825507825772308,
                        0.17105230042396535,
                        0.9273999322875782,
                        0.24825507825772308,
                        0.0,
                    ),
                ],
                "sum": {
                    "max_abs": 0.0,
                    "rel": 0.0,
                    "tolerance": 4.295335902106063e-15,
                    "holds": True,
                },
                "logit": None,
                "lens": None,
            }
        ],
    }
)
"""What the example `sources` is answered."""
