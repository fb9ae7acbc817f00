"""What a config resolves to, told again: the defaults from the words of docs/trace.md.

Shares nothing with the package.
"""

from math import log

from fuzz.parts import Drawn, has_gate

NO_READOUT = {
    "vocab": None,
    "tied": False,
    "unembed_bias": False,
    "readout": False,
    "mlm_head": False,
    "logit_multiplier": 1.0,
    "logit_softcap": None,
}


def resolved(config: Drawn) -> Drawn:
    """Every field, in the form of an answer's `model.config`."""
    whole = resolved_stack(config, config["d_model"], "causal")
    read = {"readout": True} if config.get("vocab") is not None else {}
    readout = {**NO_READOUT, **read}
    readout = {name: config.get(name, default) for name, default in readout.items()}
    given = config.get("encoder")
    is_final = normed_before(whole["norm"]) and readout["vocab"] is not None
    return {
        **whole,
        **readout,
        "final_norm": config.get("final_norm", is_final),
        "cross_attention": config.get("cross_attention", given is not None),
        "encoder": None if given is None else resolved_encoder(given, config["d_model"]),
    }


def resolved_encoder(given: Drawn, d_model: int) -> Drawn:
    """A stack that sees both ways and ends with a norm, without a readout."""
    whole = resolved_stack(given, given.get("d_model", d_model), "full")
    final_norm = given.get("final_norm", normed_before(whole["norm"]))
    off = {"cross_attention": False, "encoder": None}
    return {**whole, **NO_READOUT, "final_norm": final_norm, **off}


def normed_before(norm: Drawn) -> bool:
    """Whether the stream leaves the last block without a norm, and there are norms."""
    return norm.get("placement", "post") != "post"


def resolved_stack(given: Drawn, d_model: int, mask: str) -> Drawn:
    """What encoder and decoder have alike; `mask` where attention says nothing of it."""
    attention = resolved_attention(given["attention"], d_model, mask)
    position = resolved_position(given.get("position", {}), attention)
    blocks = given.get("n_layers", 1)
    return {
        "d_model": d_model,
        "n_layers": blocks,
        "attention": attention,
        "ffn": resolved_ffn(given.get("ffn", {}), d_model),
        "norm": resolved_norm(given.get("norm", {})),
        "position": position,
        "topology": given.get("topology", "sequential"),
        "residual_multiplier": given.get("residual_multiplier", 1.0),
        "embed_multiplier": given.get("embed_multiplier", 1.0),
        "embed_norm": given.get("embed_norm", False),
        "token_types": given.get("token_types", 0),
        "layers": resolved_layers(given.get("layers", []), attention, position),
    }


def resolved_attention(given: Drawn, d_model: int, mask: str) -> Drawn:
    if given.get("kind") == "none":
        return {"kind": "none"}
    heads = given["n_heads"]
    width = given.get("d_head", d_model // heads)
    bias = given.get("bias", False)
    return {
        "kind": "softmax",
        "n_heads": heads,
        "n_kv_heads": given.get("n_kv_heads", heads),
        "d_head": width,
        "d_value": given.get("d_value", width),
        "scale": given.get("scale", width**-0.5),
        "softcap": given.get("softcap"),
        "qk_norm": given.get("qk_norm", "none"),
        "sinks": given.get("sinks", False),
        "mask": given.get("mask", mask),
        "window": given.get("window"),
        "bias": {x: bias if isinstance(bias, bool) else bias.get(x, False) for x in "qkvo"},
    }


def resolved_ffn(given: Drawn, d_model: int) -> Drawn:
    kind = given.get("kind", "mlp")
    if kind == "none":
        return {"kind": "none"}
    ffn = {
        "kind": kind,
        "d_ff": given.get("d_ff", 4 * d_model),
        "activation": given.get("activation", "gelu"),
        "bias": resolved_biases(given),
    }
    return ffn if kind != "moe" else ffn | resolved_experts(given)


def resolved_biases(given: Drawn) -> Drawn:
    """All exist but for experts, where b_gate goes with b_in; b_gate only where there is a gate."""
    is_mixture, bias = given.get("kind") == "moe", given.get("bias", {})
    said = {} if isinstance(bias, bool) else bias
    default = bias if isinstance(bias, bool) else not is_mixture
    exists = {side: said.get(side, default) for side in ("in", "out")}
    follows = exists["in"] if is_mixture else default
    return exists | {"gate": has_gate(given) and said.get("gate", follows)}


def resolved_experts(given: Drawn) -> Drawn:
    return {
        "n_experts": given["n_experts"],
        "top_k": given["top_k"],
        "expert": given.get("expert", "gated"),
        "renormalize": given.get("renormalize", True),
        "router_bias": given.get("router_bias", False),
        "d_shared": given.get("d_shared", 0),
        "shared_gate": given.get("shared_gate", False),
    }


def resolved_norm(given: Drawn) -> Drawn:
    kind = given.get("kind", "layernorm")
    if kind == "none":
        return {"kind": "none"}
    default = {"kind": kind, "placement": "pre", "eps": 1e-5, "gain_offset": 0.0, "shared": False}
    return default | ({"bias": True} if kind == "layernorm" else {}) | given


def resolved_position(given: Drawn, attention: Drawn) -> Drawn:
    kind = given.get("kind", "none")
    default: Drawn = {"kind": kind}
    if kind == "rope":
        width, scaling = attention["d_head"], resolved_scaling(given.get("scaling", {}))
        default |= {"theta": 10000.0, "rotary_dim": width, "pairing": "half"}
        return {**default, **given, "scaling": scaling}
    if kind == "alibi":
        default |= {"alibi_rule": "bloom"}
    if kind == "t5_bias":
        both = attention["mask"] == "full"
        default |= {"n_buckets": 32, "max_distance": 128, "bidirectional": both}
    return default | given


def resolved_scaling(given: Drawn) -> Drawn:
    kind = given.get("kind", "none")
    default: Drawn = {"kind": kind}
    if kind == "yarn":
        louder = 0.1 * log(given["factor"]) + 1
        default |= {"beta_fast": 32.0, "beta_slow": 1.0, "attention_factor": louder}
    if kind == "llama3":
        default |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    return default | given


def resolved_layers(given: list[Drawn], attention: Drawn, position: Drawn) -> list[Drawn]:
    """An entry for each block; none where all blocks are as the config says."""
    if not given:
        return []
    alike = {
        "window": attention["window"],
        "scale": attention["scale"],
        "theta": position.get("theta"),
        "scaling": position.get("scaling", {"kind": "none"}),
    }
    said = [layer | {"scaling": resolved_scaling(layer["scaling"])} if "scaling" in layer else layer
            for layer in given]  # fmt: skip
    entries = [alike | layer for layer in said]
    return entries if any(entry != alike for entry in entries) else []
