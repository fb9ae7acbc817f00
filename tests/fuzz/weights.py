"""Weights as a request gives them, drawn by Hypothesis, and what they are."""

from base64 import b64encode
from typing import Any

import numpy as np
from hypothesis import strategies as st

from compute.types import DType
from fuzz.parts import Draw, Drawn


def packed(values: np.ndarray) -> Drawn:
    """An array as base64."""
    return {
        "dtype": values.dtype.name,
        "shape": values.shape,
        "data": b64encode(values.tobytes()).decode(),
    }


@st.composite
def given_weights(draw: Draw, values: dict[str, np.ndarray], dtype: DType, config: Drawn) -> Any:  # noqa: ANN401
    """Weights as a request gives them, and what they are: all given, or some over an init."""
    init = draw(st.sampled_from((None, None, "zeros", "seeded")))
    form = draw(st.sampled_from((np.ndarray.tolist, packed)))
    given = dict(values)
    if init == "zeros":
        kept = draw(st.sets(st.sampled_from(sorted(values))))
        given = {name: values[name] for name in kept}
        values = {name: given.get(name, zeros(name, v, config)) for name, v in values.items()}
    asked: Drawn = {"tensors": {name: form(value) for name, value in given.items()}}
    if init is not None:
        asked["init"] = init
    if draw(st.booleans()):
        asked["edits"] = [edited(draw, values, dtype, config) for _ in range(draw(number()))]
    return asked, values


def number() -> st.SearchStrategy[int]:
    """How many edits there are."""
    return st.integers(1, 3)


def zeros(name: str, like: np.ndarray, config: Drawn) -> np.ndarray:
    """What init = zeros makes: gains that are 1 with their offset, and zeros."""
    gain = 1.0 - stack_of(name, config)["norm"].get("gain_offset", 0.0)
    return np.full(like.shape, gain if name.endswith(".weight") else 0.0)


def stack_of(name: str, config: Drawn) -> Drawn:
    """The config of the stack that a tensor belongs to."""
    found: Drawn = config["encoder"] if name.startswith("encoder.") else config
    return found


def edited(draw: Draw, values: dict[str, np.ndarray], dtype: DType, config: Drawn) -> Drawn:
    """An edit of one tensor's first axis, also made in `values`, in the arithmetic asked for."""
    name = draw(st.sampled_from(sorted(values)))
    op, value = draw(st.sampled_from((("scale", -1), ("scale", 0.3), ("add", 0.7), ("set", 0.125))))
    word = first_axis(name, stack_of(name, config))
    index = draw(st.integers(-values[name].shape[0], values[name].shape[0] - 1))
    old = values[name].astype(dtype)
    factor = np.asarray(value, dtype)
    new = {"scale": old * factor, "add": old + factor, "set": np.full_like(old, factor)}[op]
    changed = old.copy()
    changed[index] = new[index]
    values[name] = changed.astype(np.float64)
    return {"tensor": name, "where": {word: [index]}, "op": op, "value": value}


FIRST = {
    "W_E": "vocabulary",
    "W_pos": "position",
    "W_type": "token_type",
    "W_rel": "bucket",
    "b_U": "vocabulary",
    "W_shared_out": "d_shared",
    "b_router": "expert",
    **dict.fromkeys(("W_Q", "W_O", "b_Q", "sinks"), "head"),
    **dict.fromkeys(("W_K", "W_V", "b_K", "b_V"), "kv_head"),
    "b": "d_mlm_head",
}
"""The word of a tensor's first axis, from the table of docs/weights.md; else d_model."""


def first_axis(name: str, config: Drawn) -> str:
    """The word of a tensor's first axis."""
    part, last = name.rsplit(".", 2)[-2:]
    if part in ("q_norm", "k_norm"):
        full = "head" if part == "q_norm" else "kv_head"
        return full if config["attention"]["qk_norm"] == "full" else "d_head"
    if last in ("W_in", "W_gate", "W_out", "b_in", "b_gate", "b_out"):
        each = {"W_out": "d_ff", "b_in": "d_ff", "b_gate": "d_ff"}.get(last, "d_model")
        return "expert" if config["ffn"]["kind"] == "moe" else each
    return FIRST.get(last, "d_model")
