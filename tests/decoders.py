"""Small decoders of every kind of position, and runs of them after a past."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from cases import small
from compute import config_json, selection, weights
from compute.trace import Run
from compute.types import DType, Inputs, Selected
from oracle.configs import Case

POSITIONS: Mapping[str, small.Config] = {
    "none": small.NONE,
    "sinusoidal": {"kind": "sinusoidal"},
    "learned": {"kind": "learned", "n_positions": 20},
    "rope": small.rope(4),
    "rope, interleaved": small.rope(2, pairing="interleaved"),
    "rope, linear": small.rope(4, scaling={"kind": "linear", "factor": 3.0}),
    "alibi": {"kind": "alibi", "alibi_rule": "bloom"},
    "t5_bias": {"kind": "t5_bias", "n_buckets": 6, "max_distance": 5, "bidirectional": False},
}


def decoder(position: small.Config, window: int | None, **given: object) -> small.Config:
    """Two blocks, two heads for each of two pairs of keys and values, a vocabulary of 11."""
    attention = {"n_kv_heads": 2, "mask": "causal", "window": window}
    return {
        **small.model(
            8,
            n_layers=2,
            attention=small.attention(4, 4, **attention),
            ffn=small.mlp(12),
            norm=small.norm("rmsnorm"),
            position=position,
            vocab=11,
        ),
        **given,
    }


def case_with(config: small.Config, **given: npt.ArrayLike) -> Case:
    kinds = {"key_mask": np.bool_}
    read = {name: np.asarray(value, kinds.get(name, np.int64)) for name, value in given.items()}
    return Case(0, config, small.drawn(config, 5), read)


LEFT_PADDED: Mapping[str, npt.ArrayLike] = {
    "token_ids": [[0, 0, 3, 7, 1, 9, 4, 2], [5, 6, 8, 10, 2, 1, 0, 3]],
    "key_mask": [[False] * 2 + [True] * 6, [True] * 8],
}


def run_with(
    case: Case, inputs: Inputs, select: Sequence[Selected] | None, dtype: DType = "float64"
) -> Run:
    config = config_json.from_json(case.config)
    return Run(
        config=config,
        weights=weights.build(config, lambda tensor: case.weights[tensor.name], dtype),
        inputs=inputs,
        selection=selection.resolve(select, selection.scene_for(config, inputs)),
    )


def logits_of(scene: selection.Scene) -> selection.Selection:
    return selection.resolve([Selected(name="logits")], scene)
