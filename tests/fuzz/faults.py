"""One fault put into a config or into weights that have none, and where it must be found."""

from collections.abc import Callable
from typing import Any

from fuzz.configs import Drawn, resolved

Fault = tuple[str, str]
"""(code of the problem, pointer)"""

RULE = "config-rule"


def part(config: Drawn, name: str, **fields: object) -> None:
    """Put fields into a part of a config."""
    config[name] = {**config.get(name, {}), **fields}


def heads_that_do_not_divide(config: Drawn) -> str | None:
    if config["attention"].get("kind") == "none":
        return None
    config["attention"].pop("d_head", None)
    part(config, "attention", n_heads=config["d_model"] + 1, n_kv_heads=1)
    if config.get("position", {}).get("kind") == "rope":
        config["position"] = {"kind": "none"}
    return "attention/n_heads"


def groups_that_do_not_divide(config: Drawn) -> str | None:
    if config["attention"].get("kind") == "none":
        return None
    part(config, "attention", n_kv_heads=config["attention"]["n_heads"] + 1)
    return "attention/n_kv_heads"


def field_of_another_kind_of_attention(config: Drawn) -> str | None:
    if config["attention"].get("kind") != "none":
        return None
    part(config, "attention", mask="full")
    return "attention/mask"


def nothing_in_a_block(config: Drawn) -> str | None:
    config["attention"], config["ffn"] = {"kind": "none"}, {"kind": "none"}
    if config.get("position", {}).get("kind") in ("rope", "alibi"):
        del config["position"]
    return "ffn/kind"


def gate_bias_without_a_gate(config: Drawn) -> str | None:
    if resolved(config)["ffn"]["kind"] != "mlp":
        return None
    part(config, "ffn", bias={"gate": True})
    return "ffn/bias/gate"


def placement_of_no_norm(config: Drawn) -> str | None:
    config.pop("final_norm", None)
    config["norm"] = {"kind": "none", "placement": "post"}
    return "norm/placement"


def final_norm_of_no_norm(config: Drawn) -> str | None:
    config["norm"], config["final_norm"] = {"kind": "none"}, True
    return "final_norm"


def odd_rotation(config: Drawn) -> str | None:
    if config["attention"].get("kind") == "none":
        return None
    config["position"] = {"kind": "rope", "rotary_dim": 1}
    return "position/rotary_dim"


def rotation_wider_than_a_head(config: Drawn) -> str | None:
    width = resolved(config)["attention"].get("d_head")
    if width is None:
        return None
    config["position"] = {"kind": "rope", "rotary_dim": 2 * width + 2}
    return "position/rotary_dim"


def positions_inside_no_attention(config: Drawn) -> str | None:
    if config["attention"].get("kind") != "none":
        return None
    config["position"] = {"kind": "alibi"}
    return "position/kind"


def table_without_a_length(config: Drawn) -> str | None:
    config["position"] = {"kind": "learned"}
    return "position/n_positions"


def angle_of_no_rotation(config: Drawn) -> str | None:
    config["position"] = {"kind": "sinusoidal", "theta": 100}
    return "position/theta"


def _without_readout(config: Drawn) -> None:
    for name in ("vocab", "tied", "unembed_bias"):
        config.pop(name, None)


def tie_to_nothing(config: Drawn) -> str | None:
    _without_readout(config)
    config["tied"] = True
    return "tied"


def bias_of_no_readout(config: Drawn) -> str | None:
    _without_readout(config)
    config["unembed_bias"] = True
    return "unembed_bias"


OF_CONFIGS: tuple[Callable[[Drawn], str | None], ...] = (
    heads_that_do_not_divide,
    groups_that_do_not_divide,
    field_of_another_kind_of_attention,
    nothing_in_a_block,
    gate_bias_without_a_gate,
    placement_of_no_norm,
    final_norm_of_no_norm,
    odd_rotation,
    rotation_wider_than_a_head,
    positions_inside_no_attention,
    table_without_a_length,
    angle_of_no_rotation,
    tie_to_nothing,
    bias_of_no_readout,
)
"""Each changes a config so that one rule breaks, and gives its place; None where it cannot."""


def another_shape(tensors: Drawn, name: str) -> Fault:
    tensors[name] = [tensors[name]] if _depth(tensors[name]) < 3 else [*tensors[name] * 2]
    return "shape-mismatch", name


def another_name(tensors: Drawn, name: str) -> Fault:
    tensors["blocks.7.attn.W_X"] = [1.0]
    return "shape-mismatch", "blocks.7.attn.W_X"


def a_word_inside(tensors: Drawn, name: str) -> Fault:
    inner, place = tensors[name], name
    while isinstance(inner[0], list):
        inner, place = inner[-1], f"{place}/{len(inner) - 1}"
    inner[-1] = "0.5"
    return "invalid-request", f"{place}/{len(inner) - 1}"


def a_row_too_long(tensors: Drawn, name: str) -> Fault:
    if _depth(tensors[name]) < 2 or len(tensors[name]) < 2:
        return a_word_inside(tensors, name)
    tensors[name][-1] = [*tensors[name][-1], tensors[name][-1][-1]]
    return "invalid-request", f"{name}/{len(tensors[name]) - 1}"


OF_WEIGHTS: tuple[Callable[[Drawn, str], Fault], ...] = (
    another_shape,
    another_name,
    a_word_inside,
    a_row_too_long,
)
"""Each changes nested lists of weights at a name so that there is one fault."""


def _depth(nested: Any) -> int:  # noqa: ANN401 - lists in lists
    return 1 + _depth(nested[0]) if isinstance(nested, list) else 0
