"""The options of the seeded cases, by words, and which of them a case meets."""

from collections.abc import Iterator

import numpy as np

from oracle.configs import Case
from oracle.forward import trace
from oracle.functions import Config
from oracle.inputs import Inputs
from oracle.parts import ACTIVATIONS, SCALINGS

PLACED = ("pre", "post", "sandwich", "output")

OPTIONS = {
    *(f"input {name}" for name in ("token_ids", "tensor", "batched", "single", "one row")),
    *(f"layers {number}" for number in (1, 2, 3)),
    *(f"layers own {name}" for name in ("window", "scale", "theta", "scaling", "nothing turned")),
    *(f"parts {name}" for name in ("both", "attention only", "ffn only")),
    *(f"parts {name}, {placed}" for name in ("attention only", "ffn only") for placed in PLACED),
    *(f"norm {name}" for name in ("layernorm", "rmsnorm", "none", "pre", "post", "offset")),
    *(f"norm {name}" for name in ("sandwich", "output", "shared", "layernorm without bias")),
    *(f"parallel {name}" for name in ("two norms", "one norm", "no norm")),
    *(f"cross {name}" for name in ("pre", "post", "no norm", "rows", "encoder", "masked keys")),
    *(f"cross {name}" for name in ("grouped heads", "no key at all", "encoder reads tokens")),
    *(f"encoder {name}" for name in ("layers", "causal", "full", "rope", "t5_bias", "types")),
    *(f"encoder {name}" for name in ("attention only", "ffn only", "parallel", "final norm")),
    *(f"encoder {name}" for name in ("own multiplier", "sandwich or output", "embed norm")),
    *(f"multiplier {name}" for name in ("residual", "embed", "logit", "residual and sandwich")),
    *(f"below {name}" for name in ("embed norm", "types given", "types not given")),
    *(f"heads {name}" for name in ("one", "ungrouped", "grouped", "one kv head", "default scale")),
    *(f"heads {name}" for name in ("own scale", "no biases", "all biases", "softcap", "sinks")),
    *(f"heads qk_norm {name}" for name in ("none", "head", "full", "layernorm", "and rope")),
    *(f"bias {name}" for name in ("q", "k", "v", "o", "in", "gate", "out")),
    *(f"mask {name}" for name in ("causal", "full", "narrow window", "wide window")),
    *(f"mask {name}" for name in ("padding", "holes", "pairs", "rows without a key")),
    *(f"mask {name}" for name in ("keys shared", "keys of each", "pairs shared", "pairs of each")),
    *(f"mask {name}" for name in ("rows without a key, with sinks",)),
    *(f"ffn {name}" for name in ("mlp", "gated", "moe", *ACTIVATIONS)),
    *(f"experts {name}" for name in ("gated", "mlp", "one chosen", "some chosen", "all chosen")),
    *(f"experts {name}" for name in ("renormalized", "as they are", "router bias", "biases")),
    *(f"experts {name}" for name in ("shared", "shared and weighed", "none shared")),
    *(f"position {name}" for name in ("none", "sinusoidal", "learned", "rope", "alibi")),
    *(f"position {name}" for name in ("t5_bias", "given", "of each", "shared")),
    "position padded and not given",
    *(f"rope {name}" for name in ("half", "interleaved", "whole head", "part of head")),
    *(f"rope {name}" for name in ("half, many pairs", "interleaved, many pairs", "grouped heads")),
    *(f"rope {name}" for name in ("none", *SCALINGS, "dynamic, longer", "yarn, louder")),
    *(f"alibi {name}" for name in ("bloom", "geometric", "power of two", "no power of two")),
    *(f"t5 {name}" for name in ("one way", "both ways", "many blocks")),
    *(f"sinusoidal {name}" for name in ("odd", "even")),
    *(f"readout {name}" for name in ("none", "tied", "untied", "bias", "no bias", "of a tensor")),
    *(f"readout {name}" for name in ("left out", "mlm head", "softcap")),
    *(f"final norm {name}" for name in ("none", "without vocab", *PLACED)),
}


def options_of(case: Case) -> Iterator[str]:
    """The options a case meets, by the words above."""
    config = case.config
    yield from of_input(case)
    yield from of_stack(config)
    yield from of_layers(config)
    yield from of_norm(config)
    yield from of_below(case)
    yield from of_readout(case)
    yield from of_position(case)
    if config["attention"]["kind"] != "none":
        yield from of_heads(config)
        yield from of_masks(case)
    if config["ffn"]["kind"] != "none":
        yield from of_ffn(config["ffn"])
    if config["cross_attention"]:
        yield from of_cross(case)
    if config["encoder"] is not None:
        yield from of_encoder(case)


def rows_of(inputs: Inputs) -> tuple[int, bool]:
    """(n, the input has a batch axis)."""
    if "tensor" in inputs:
        return inputs["tensor"].shape[-2], inputs["tensor"].ndim == 3
    return inputs["token_ids"].shape[-1], inputs["token_ids"].ndim == 2


def of_input(case: Case) -> Iterator[str]:
    n, batched = rows_of(case.inputs)
    yield "input tensor" if "tensor" in case.inputs else "input token_ids"
    yield "input batched" if batched else "input single"
    if n == 1:
        yield "input one row"


def of_stack(config: Config) -> Iterator[str]:
    norm = config["norm"]
    yield f"layers {config['n_layers']}"
    yield f"parts {parts_of(config)}"
    if parts_of(config) != "both" and norm["kind"] != "none":
        yield f"parts {parts_of(config)}, {norm['placement']}"
    if config["topology"] == "parallel":
        yield f"parallel {norms_of(norm)}"
    if config["residual_multiplier"] != 1.0:
        yield "multiplier residual"
        is_sandwich = norm.get("placement") == "sandwich"
        yield from ["multiplier residual and sandwich"] if is_sandwich else []


def parts_of(config: Config) -> str:
    for part, other in (("attention", "ffn"), ("ffn", "attention")):
        if config[other]["kind"] == "none":
            return f"{part} only"
    return "both"


def norms_of(norm: Config) -> str:
    if norm["kind"] == "none":
        return "no norm"
    return "one norm" if norm["shared"] else "two norms"


def of_layers(config: Config) -> Iterator[str]:
    for own in config["layers"]:
        if own["window"] != config["attention"]["window"]:
            yield "layers own window"
        if own["scale"] != config["attention"]["scale"]:
            yield "layers own scale"
        if config["position"]["kind"] == "rope":
            yield "layers own theta" if own["theta"] else "layers own nothing turned"
            yield from ["layers own scaling"] if own["scaling"]["kind"] != "none" else []


def of_norm(config: Config) -> Iterator[str]:
    norm = config["norm"]
    yield f"norm {norm['kind']}"
    if norm["kind"] != "none":
        yield f"norm {norm['placement']}"
        yield from ["norm offset"] if norm["gain_offset"] else []
        yield from ["norm shared"] if norm["shared"] else []
        yield from [] if norm.get("bias", True) else ["norm layernorm without bias"]


def of_below(case: Case) -> Iterator[str]:
    config = case.config
    yield from ["below embed norm"] if config["embed_norm"] else []
    yield from ["multiplier embed"] if config["embed_multiplier"] != 1.0 else []
    if config["token_types"]:
        yield "below types given" if "token_types" in case.inputs else "below types not given"


def of_heads(config: Config) -> Iterator[str]:
    attention = config["attention"]
    h, g, bias = attention["n_heads"], attention["n_kv_heads"], attention["bias"]
    yield "heads one" if h == 1 else "heads ungrouped" if h == g else "heads grouped"
    yield from ["heads one kv head"] if 1 == g < h else []
    is_default = attention["scale"] == attention["d_head"] ** -0.5
    yield "heads default scale" if is_default else "heads own scale"
    yield from (f"bias {letter}" for letter, exists in bias.items() if exists)
    yield from ["heads all biases"] if all(bias.values()) else []
    yield from [] if any(bias.values()) else ["heads no biases"]
    yield from ["heads softcap"] if attention["softcap"] is not None else []
    yield from ["heads sinks"] if attention["sinks"] else []
    yield f"heads qk_norm {attention['qk_norm']}"
    if attention["qk_norm"] != "none":
        yield from ["heads qk_norm layernorm"] if config["norm"]["kind"] == "layernorm" else []
        yield from ["heads qk_norm and rope"] if config["position"]["kind"] == "rope" else []


def of_masks(case: Case) -> Iterator[str]:
    attention, (n, batched) = case.config["attention"], rows_of(case.inputs)
    yield f"mask {attention['mask']}"
    if attention["window"] is not None:
        yield "mask narrow window" if attention["window"] < n else "mask wide window"
    for name, word, axes in (("key_mask", "keys", 1), ("attention_mask", "pairs", 2)):
        if name in case.inputs and batched:
            yield (
                f"mask {word} shared" if case.inputs[name].ndim == axes else f"mask {word} of each"
            )
    if "attention_mask" in case.inputs:
        yield "mask pairs"
    yield from of_key_mask(np.atleast_2d(case.inputs.get("key_mask", np.ones(n, dtype=bool))))
    if np.any(np.all(np.isneginf(scores_of(case)), axis=-1)):
        yield "mask rows without a key"
        yield from ["mask rows without a key, with sinks"] if attention["sinks"] else []


def of_key_mask(key_mask: np.ndarray) -> Iterator[str]:
    if np.any(~key_mask[:, 0] & key_mask.any(axis=1)):
        yield "mask padding"
    if np.any(np.maximum.accumulate(key_mask, axis=1) & ~key_mask):
        yield "mask holes"


def scores_of(case: Case) -> np.ndarray:
    return trace(case.config, case.weights, **case.inputs)["blocks.0.attn.scores"]


def of_ffn(ffn: Config) -> Iterator[str]:
    yield f"ffn {ffn['kind']}"
    yield f"ffn {ffn['activation']}"
    yield from (f"bias {side}" for side, exists in ffn["bias"].items() if exists)
    if ffn["kind"] == "moe":
        yield from of_experts(ffn)


def of_experts(ffn: Config) -> Iterator[str]:
    c, e = ffn["top_k"], ffn["n_experts"]
    yield f"experts {ffn['expert']}"
    yield f"experts {'one' if c == 1 else 'all' if c == e else 'some'} chosen"
    yield "experts renormalized" if ffn["renormalize"] else "experts as they are"
    yield from ["experts router bias"] if ffn["router_bias"] else []
    yield from ["experts biases"] if any(ffn["bias"].values()) else []
    yield "experts shared" if ffn["d_shared"] else "experts none shared"
    yield from ["experts shared and weighed"] if ffn["shared_gate"] else []


def of_cross(case: Case) -> Iterator[str]:
    config, read = case.config, case.inputs["memory"]
    yield f"cross {config['norm'].get('placement', 'no norm')}"
    yield "cross rows" if config["encoder"] is None else "cross encoder"
    is_grouped = config["attention"]["n_heads"] > config["attention"]["n_kv_heads"]
    yield from ["cross grouped heads"] if is_grouped else []
    keys = np.atleast_2d(read.get("key_mask", True))
    yield from [] if np.all(keys) else ["cross masked keys"]
    yield from [] if np.all(np.any(keys, axis=-1)) else ["cross no key at all"]


def of_encoder(case: Case) -> Iterator[str]:
    encoder, read = case.config["encoder"], case.inputs["memory"]
    yield from ["cross encoder reads tokens"] if "token_ids" in read else []
    yield from [f"encoder {parts_of(encoder)}"] if parts_of(encoder) != "both" else []
    if encoder["attention"]["kind"] != "none":
        yield f"encoder {encoder['attention']['mask']}"
    kind, norm = encoder["position"]["kind"], encoder["norm"]
    yield from [f"encoder {kind}"] if kind in {"rope", "t5_bias"} else []
    is_after = norm.get("placement") in {"sandwich", "output"}
    found = {
        "layers": encoder["layers"],
        "types": encoder["token_types"],
        "parallel": encoder["topology"] == "parallel",
        "final norm": encoder["final_norm"],
        "own multiplier": encoder["embed_multiplier"] != 1.0,
        "sandwich or output": is_after,
        "embed norm": encoder["embed_norm"],
    }
    yield from (f"encoder {name}" for name, is_met in found.items() if is_met)


def of_position(case: Case) -> Iterator[str]:
    position, ids = case.config["position"], case.inputs.get("position_ids")
    yield f"position {position['kind']}"
    if ids is not None:
        yield "position given"
    if ids is not None and rows_of(case.inputs)[1]:
        yield "position shared" if ids.ndim == 1 else "position of each"
    if ids is None and not np.all(case.inputs.get("key_mask", True)):
        yield from ["position padded and not given"] if position["kind"] != "none" else []
    if position["kind"] == "rope":
        yield from of_rope(position, case.config["attention"])
        yield from of_scaling(case, position["scaling"])
    if position["kind"] == "alibi":
        yield f"alibi {position['alibi_rule']}"
        is_power = case.config["attention"]["n_heads"] in (1, 2, 4, 8)
        yield "alibi power of two" if is_power else "alibi no power of two"
    if position["kind"] == "t5_bias":
        yield "t5 both ways" if position["bidirectional"] else "t5 one way"
        yield from ["t5 many blocks"] if case.config["n_layers"] > 1 else []
    if position["kind"] == "sinusoidal":
        yield "sinusoidal odd" if case.config["d_model"] % 2 else "sinusoidal even"


def of_rope(rope: Config, attention: Config) -> Iterator[str]:
    yield f"rope {rope['pairing']}"
    is_whole = rope["rotary_dim"] == attention["d_head"]
    yield "rope whole head" if is_whole else "rope part of head"
    yield from [f"rope {rope['pairing']}, many pairs"] if rope["rotary_dim"] > 2 else []
    yield from ["rope grouped heads"] if attention["n_kv_heads"] < attention["n_heads"] else []


def of_scaling(case: Case, scaling: Config) -> Iterator[str]:
    yield f"rope {scaling['kind']}"
    if scaling["kind"] == "dynamic":
        farthest = np.max(case.inputs.get("position_ids", rows_of(case.inputs)[0] - 1))
        is_longer = farthest >= scaling["original_positions"]
        yield from ["rope dynamic, longer"] if is_longer else []
    if scaling["kind"] == "yarn":
        yield from ["rope yarn, louder"] if scaling["attention_factor"] != 1.0 else []


def of_readout(case: Case) -> Iterator[str]:
    config = case.config
    placed = config["norm"].get("placement", "none")
    yield f"final norm {placed}" if config["final_norm"] else "final norm none"
    if config["vocab"] is None:
        yield "readout none"
        yield from ["final norm without vocab"] if config["final_norm"] else []
        return
    if not config["readout"]:
        yield "readout left out"
        return
    yield from ["readout mlm head"] if config["mlm_head"] else []
    yield from ["readout softcap"] if config["logit_softcap"] is not None else []
    yield from ["multiplier logit"] if config["logit_multiplier"] != 1.0 else []
    yield "readout tied" if config["tied"] else "readout untied"
    yield "readout bias" if config["unembed_bias"] else "readout no bias"
    yield from ["readout of a tensor"] if "tensor" in case.inputs else []
