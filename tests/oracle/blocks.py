"""A transformer block: two updates to a running representation."""

import numpy as np

from oracle import functions, heads
from oracle.examples import Example
from oracle.functions import Array, Config, Stages, Weights


def block(config: Config, w: Weights, resid_pre: Array, one: Example) -> Stages:
    """One block by its placement of the norms; w: the block's weights without their prefix."""
    if config["norm"].get("placement") == "post":
        return post_norm_block(config, w, resid_pre, one)
    return pre_norm_block(config, w, resid_pre, one)


def pre_norm_block(config: Config, w: Weights, resid_pre: Array, one: Example) -> Stages:
    """Y = X + attention(layer_norm_1(X)); Z = Y + ffn(layer_norm_2(Y))."""
    stages = {"resid_pre": resid_pre}
    has_attention = config["attention"]["kind"] != "none"
    has_ffn = config["ffn"]["kind"] != "none"
    stream = resid_pre
    if has_attention:
        stages |= norm("norm1", config["norm"], w, stream)
        stages |= heads.attention(config, w, stages.get("norm1.out", stream), one)
        stream = stream + stages["attn_out"]
    if has_attention and has_ffn:
        stages["resid_mid"] = stream
    if has_ffn:
        stages |= norm("norm2", config["norm"], w, stream)
        stages |= feed_forward(config["ffn"], w, stages.get("norm2.out", stream))
        stream = stream + stages["ffn_out"]
    return stages | {"resid_post": stream}


def post_norm_block(config: Config, w: Weights, resid_pre: Array, one: Example) -> Stages:
    """Y = layer_norm_1(X + attention(X)); Z = layer_norm_2(Y + ffn(Y))."""
    stages = {"resid_pre": resid_pre}
    has_attention = config["attention"]["kind"] != "none"
    has_ffn = config["ffn"]["kind"] != "none"
    stream = resid_pre
    if has_attention:
        stages |= heads.attention(config, w, stream, one)
        stages["attn_sum"] = stream + stages["attn_out"]
        stages |= norm("norm1", config["norm"], w, stages["attn_sum"])
        stream = stages["norm1.out"]
    if has_attention and has_ffn:
        stages["resid_mid"] = stream
    if has_ffn:
        stages |= feed_forward(config["ffn"], w, stream)
        stages["ffn_sum"] = stream + stages["ffn_out"]
        stages |= norm("norm2", config["norm"], w, stages["ffn_sum"])
        stream = stages["norm2.out"]
    return stages | {"resid_post": stream}


def norm(name: str, kind: Config, w: Weights, x: Array) -> Stages:
    """A norm's three stages, each token across its own features; none where there is no norm."""
    if kind["kind"] == "none":
        return {}
    gain = kind["gain_offset"] + w[f"{name}.weight"]
    if kind["kind"] == "layernorm":
        scale = np.array([[functions.layer_norm_scale(row, kind["eps"])] for row in x])
        normalized = np.array([functions.layer_norm(row, kind["eps"]) for row in x])
        out = np.array([row * gain + w[f"{name}.bias"] for row in normalized])
    else:
        scale = np.array([[functions.rms_norm_scale(row, kind["eps"])] for row in x])
        normalized = np.array([functions.rms_norm(row, kind["eps"]) for row in x])
        out = np.array([row * gain for row in normalized])
    return {f"{name}.scale": scale, f"{name}.normalized": normalized, f"{name}.out": out}


def feed_forward(ffn: Config, w: Weights, f: Array) -> Stages:
    """hidden = act(F W_in + b_in), or act(F W_gate + b_gate) · up; Δ_ffn = hidden W_out + b_out."""
    bias, d_ff = ffn["bias"], ffn["d_ff"]
    stages: Stages = {}
    b_in = w["ffn.b_in"] if bias["in"] else np.zeros(d_ff)
    stages["ffn.up"] = up = functions.project(f, w["ffn.W_in"], b_in)
    if ffn["kind"] == "gated":
        b_gate = w["ffn.b_gate"] if bias["gate"] else np.zeros(d_ff)
        stages["ffn.gate"] = gate = functions.project(f, w["ffn.W_gate"], b_gate)
        stages["ffn.hidden"] = hidden = functions.activate(ffn["activation"], gate) * up
    else:
        stages["ffn.hidden"] = hidden = functions.activate(ffn["activation"], up)
    b_out = w["ffn.b_out"] if bias["out"] else np.zeros(f.shape[1])
    stages["ffn_out"] = functions.project(hidden, w["ffn.W_out"], b_out)
    return stages
