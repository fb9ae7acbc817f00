"""Faults of positions, of what blocks have of their own, of the readout."""

from fuzz.breaking import OfConfig
from fuzz.parts import Drawn
from fuzz.resolving import NO_READOUT, resolved


def odd_rotation(config: Drawn) -> str | None:
    if config["attention"].get("kind") == "none":
        return None
    config["position"] = {"kind": "rope", "rotary_dim": 1}
    config.pop("layers", None)
    return "position/rotary_dim"


def rotation_wider_than_a_head(config: Drawn) -> str | None:
    width = resolved(config)["attention"].get("d_head")
    if width is None:
        return None
    config["position"] = {"kind": "rope", "rotary_dim": 2 * width + 2}
    config.pop("layers", None)
    return "position/rotary_dim"


def positions_inside_no_attention(config: Drawn) -> str | None:
    if config["attention"].get("kind") != "none":
        return None
    config["position"] = {"kind": "t5_bias"}
    return "position/kind"


def table_without_a_length(config: Drawn) -> str | None:
    config.pop("layers", None)
    config["position"] = {"kind": "learned"}
    return "position/n_positions"


def angle_of_no_rotation(config: Drawn) -> str | None:
    config.pop("layers", None)
    config["position"] = {"kind": "sinusoidal", "theta": 100}
    return "position/theta"


def buckets_of_half_a_direction(config: Drawn) -> str | None:
    if config["attention"].get("kind") == "none":
        return None
    config.pop("layers", None)
    config["position"] = {"kind": "t5_bias", "n_buckets": 5, "bidirectional": True}
    return "position/n_buckets"


def distances_that_end_too_soon(config: Drawn) -> str | None:
    if config["attention"].get("kind") == "none":
        return None
    config.pop("layers", None)
    near = {"n_buckets": 8, "bidirectional": False, "max_distance": 4}
    config["position"] = {"kind": "t5_bias", **near}
    return "position/max_distance"


def _rotates(config: Drawn, scaling: Drawn) -> bool:
    """Stretch what turns, if there is attention; its blocks are alike."""
    if resolved(config)["attention"].get("d_head", 0) < 2:
        return False
    config.pop("layers", None)
    config["position"] = {"kind": "rope", "rotary_dim": 2, "scaling": scaling}
    return True


def stretched_by_nothing(config: Drawn) -> str | None:
    scaling = {"kind": "yarn", "original_positions": 8}
    return "position/scaling/factor" if _rotates(config, scaling) else None


def stretched_from_nowhere(config: Drawn) -> str | None:
    scaling = {"kind": "llama3", "factor": 2}
    return "position/scaling/original_positions" if _rotates(config, scaling) else None


def stretched_with_a_field_of_another_kind(config: Drawn) -> str | None:
    scaling = {"kind": "linear", "factor": 2, "beta_fast": 3}
    return "position/scaling/beta_fast" if _rotates(config, scaling) else None


def exponent_of_one_pair(config: Drawn) -> str | None:
    scaling = {"kind": "dynamic", "factor": 2, "original_positions": 8}
    return "position/scaling/kind" if _rotates(config, scaling) else None


def fast_pairs_slower_than_slow_ones(config: Drawn) -> str | None:
    scaling = {"kind": "yarn", "factor": 2, "original_positions": 8, "beta_fast": 1}
    return "position/scaling/beta_fast" if _rotates(config, scaling) else None


def high_frequencies_below_low_ones(config: Drawn) -> str | None:
    scaling = {"kind": "llama3", "factor": 2, "original_positions": 8, "high_freq_factor": 1}
    return "position/scaling/high_freq_factor" if _rotates(config, scaling) else None


def layers_of_another_number(config: Drawn) -> str | None:
    if config["attention"].get("kind") == "none":
        return None
    config["layers"] = [{"window": 2}] * (config.get("n_layers", 1) + 1)
    return "layers"


def layers_of_no_attention(config: Drawn) -> str | None:
    if config["attention"].get("kind") != "none":
        return None
    config["layers"] = [{"window": 2}] * config.get("n_layers", 1)
    return "layers"


def layer_that_turns_what_does_not(config: Drawn) -> str | None:
    if resolved(config)["position"]["kind"] == "rope":
        return None
    config["layers"] = [{}] * (config.get("n_layers", 1) - 1) + [{"theta": 10}]
    return f"layers/{len(config['layers']) - 1}/theta"


def layer_stretched_by_nothing(config: Drawn) -> str | None:
    if resolved(config)["position"]["kind"] != "rope":
        return None
    config["layers"] = [{"scaling": {"kind": "linear"}}] + [{}] * (config.get("n_layers", 1) - 1)
    return "layers/0/scaling/factor"


def _without_readout(config: Drawn) -> None:
    for name in NO_READOUT:
        config.pop(name, None)


def tie_to_nothing(config: Drawn) -> str | None:
    _without_readout(config)
    config["tied"] = True
    return "tied"


def bias_of_no_readout(config: Drawn) -> str | None:
    _without_readout(config)
    config["unembed_bias"] = True
    return "unembed_bias"


def head_of_no_readout(config: Drawn) -> str | None:
    if resolved(config)["norm"]["kind"] == "none":
        return None
    _without_readout(config)
    config["mlm_head"] = True
    return "mlm_head"


def cap_of_no_logits(config: Drawn) -> str | None:
    _without_readout(config)
    config |= {"vocab": 3, "readout": False, "logit_softcap": 4}
    return "logit_softcap"


def multiplier_of_no_logits(config: Drawn) -> str | None:
    _without_readout(config)
    config |= {"vocab": 3, "readout": False, "logit_multiplier": 4}
    return "logit_multiplier"


ALL: tuple[OfConfig, ...] = (
    odd_rotation,
    rotation_wider_than_a_head,
    positions_inside_no_attention,
    table_without_a_length,
    angle_of_no_rotation,
    buckets_of_half_a_direction,
    distances_that_end_too_soon,
    stretched_by_nothing,
    stretched_from_nowhere,
    stretched_with_a_field_of_another_kind,
    exponent_of_one_pair,
    fast_pairs_slower_than_slow_ones,
    high_frequencies_below_low_ones,
    layers_of_another_number,
    layers_of_no_attention,
    layer_that_turns_what_does_not,
    layer_stretched_by_nothing,
    tie_to_nothing,
    bias_of_no_readout,
    head_of_no_readout,
    cap_of_no_logits,
    multiplier_of_no_logits,
)
