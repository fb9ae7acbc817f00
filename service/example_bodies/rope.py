"""Requests of POST /v1/rope, and the answer to the first."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_ARTICLE = {"positions": [12, 4], "pair": {"degrees_per_position": 4}}
_SHIFTED = {
    "positions": [13, 5],
    "pair": {"radians_per_position": 0.5},
    "vectors": [[0.6, 0.8], [1, 0]],
}
_SPECTRUM = {
    "positions": [100, 0],
    "spectrum": {
        "d_head": 8,
        "theta": 10000,
        "rotary_dim": 6,
        "pairing": "interleaved",
        "scaling": {"kind": "yarn", "factor": 4, "original_positions": 64},
    },
}
_MODEL = {"positions": [0, 1, 2, 8], "model": {"name": "induction"}, "block": -1}

REQUESTS: Mapping[str, Any] = MappingProxyType(
    {
        "article": {"summary": "The article's pair: 4 degrees a position", "value": _ARTICLE},
        "vectors": {"summary": "Other vectors, radians", "value": _SHIFTED},
        "spectrum": {"summary": "Every pair of a head, stretched", "value": _SPECTRUM},
        "model": {"summary": "The pairs of a model's last block", "value": _MODEL},
    }
)

ANSWER: Mapping[str, Any] = MappingProxyType(
    {
        "positions": [12, 4],
        "angles_degrees": [48.0, 16.0],
        "angles_radians": [0.8377580409572782, 0.2792526803190927],
        "relative": 8,
        "between_degrees": 32.0,
        "dot": 0.848048096156426,
        "rotated": {
            "query": [
                [0.6691306063588582, 0.7431448254773942],
                [0.9612616959383189, 0.27563735581699916],
            ],
            "key": [
                [0.6691306063588582, 0.7431448254773942],
                [0.9612616959383189, 0.27563735581699916],
            ],
        },
        "grid": {
            "relative": [[0, 8], [-8, 0]],
            "between_degrees": [[0.0, 32.0], [-32.0, 0.0]],
            "dots": [[1.0, 0.848048096156426], [0.848048096156426, 1.0]],
        },
        "spectrum": None,
    }
)
"""What the example `article` is answered."""
