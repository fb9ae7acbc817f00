"""The tensors of a config: their names and shapes, and seeded values."""

from collections.abc import Iterator

from oracle.functions import Array, Config
from oracle.sizes import Rng

Shape = tuple[int, ...]
Named = Iterator[tuple[str, Shape]]

ENCODER = "encoder."


def shapes(config: Config) -> dict[str, Shape]:
    """Canonical full name -> shape, for every tensor the config has: the encoder's first."""
    named: dict[str, Shape] = {}
    if config.get("encoder") is not None:
        named |= {f"{ENCODER}{name}": shape for name, shape in _of_stack(config["encoder"])}
    return named | dict(_of_stack(config)) | dict(_above(config))


def draw(rng: Rng, config: Config) -> dict[str, Array]:
    """Matrices of spread 1/sqrt(fan-in), gains near 1, biases that are not zero."""
    drawn = {}
    for name, shape in shapes(config).items():
        own = config["encoder"] if name.startswith(ENCODER) else config
        drawn[name] = _value(rng, name, shape, own["norm"].get("gain_offset", 0.0))
    return drawn


def _value(rng: Rng, name: str, shape: Shape, gain_offset: float) -> Array:
    normal = rng.standard_normal(shape)
    last = name.rsplit(".", 1)[1]
    if last == "weight":
        return 1.0 - gain_offset + 0.2 * normal
    if last in ("bias", "b") or last.startswith("b_"):
        return 0.3 * normal
    return normal * _spread(last, shape)


def _spread(last: str, shape: Shape) -> float:
    if last in ("W_E", "W_pos", "W_type", "W_rel", "sinks"):
        return 0.7
    fan_in = shape[0] * shape[1] if last == "W_O" else shape[-2]
    return float(fan_in**-0.5)


def _of_stack(config: Config) -> Named:
    yield from _below(config)
    for layer in range(config["n_layers"]):
        yield from ((f"blocks.{layer}.{name}", shape) for name, shape in _of_block(config))
    if config["final_norm"]:
        yield from _of_norm("final_norm", config)


def _below(config: Config) -> Named:
    d, position = config["d_model"], config["position"]
    if config["vocab"] is not None:
        yield "embed.W_E", (config["vocab"], d)
    if position["kind"] == "learned":
        yield "pos_embed.W_pos", (position["n_positions"], d)
    if config.get("token_types", 0):
        yield "type_embed.W_type", (config["token_types"], d)
    if position["kind"] == "t5_bias":
        yield "rel_bias.W_rel", (position["n_buckets"], config["attention"]["n_heads"])
    if config.get("embed_norm", False):
        yield from _of_norm("embed_norm", config)


def _above(config: Config) -> Named:
    d = config["d_model"]
    if config.get("mlm_head", False):
        yield "mlm_head.W", (d, d)
        yield "mlm_head.b", (d,)
        yield from _of_norm("mlm_norm", config)
    if config["vocab"] is not None and config.get("readout", True) and not config["tied"]:
        yield "unembed.W_U", (d, config["vocab"])
    if config["unembed_bias"]:
        yield "unembed.b_U", (config["vocab"],)


def _of_block(config: Config) -> Named:
    before, after = _placed(config)
    if config["attention"]["kind"] != "none":
        yield from _of_norm("norm1", config) if before else ()
        yield from _of_projections("attn", config)
        yield from _beside_projections(config)
        yield from _of_norm("norm1_post", config) if after else ()
    if config.get("cross_attention", False):
        yield from _of_norm("norm_cross", config)
        yield from _of_projections("cross", config)
    if config["ffn"]["kind"] != "none":
        is_own = not config["norm"].get("shared", False)
        yield from _of_norm("norm2", config) if before and is_own else ()
        yield from _of_ffn(config["ffn"], config["d_model"])
        yield from _of_norm("norm2_post", config) if after else ()


def _placed(config: Config) -> tuple[bool, bool]:
    """Whether a sublayer has a norm before it or after an addition, and one of its output."""
    placement = config["norm"].get("placement", "pre")
    return placement != "output", placement in ("sandwich", "output")


def _of_norm(name: str, config: Config, shape: Shape | None = None) -> Named:
    norm, own = config["norm"], shape or (config["d_model"],)
    if norm["kind"] != "none":
        yield f"{name}.weight", own
    if norm["kind"] == "layernorm" and norm.get("bias", True):
        yield f"{name}.bias", own


def _of_projections(part: str, config: Config) -> Named:
    attention, d = config["attention"], config["d_model"]
    h, g = attention["n_heads"], attention["n_kv_heads"]
    k, v = attention["d_head"], attention["d_value"]
    for letter, heads, width in (("Q", h, k), ("K", g, k), ("V", g, v)):
        yield f"{part}.W_{letter}", (heads, d, width)
        if attention["bias"][letter.lower()]:
            yield f"{part}.b_{letter}", (heads, width)
    yield f"{part}.W_O", (h, v, d)
    if attention["bias"]["o"]:
        yield f"{part}.b_O", (d,)


def _beside_projections(config: Config) -> Named:
    attention = config["attention"]
    h, g, k = attention["n_heads"], attention["n_kv_heads"], attention["d_head"]
    over = attention.get("qk_norm", "none")
    if over != "none":
        yield from _of_norm("attn.q_norm", config, (h, k) if over == "full" else (k,))
        yield from _of_norm("attn.k_norm", config, (g, k) if over == "full" else (k,))
    if attention.get("sinks", False):
        yield "attn.sinks", (h,)


def _of_ffn(ffn: Config, d: int) -> Named:
    is_mixture = ffn["kind"] == "moe"
    if is_mixture:
        yield from _beside_experts(ffn, d)
    each = (ffn["n_experts"],) if is_mixture else ()
    is_gated = "gated" in (ffn["kind"], ffn.get("expert") if is_mixture else None)
    sides = {"in": (d, ffn["d_ff"]), "gate": (d, ffn["d_ff"]), "out": (ffn["d_ff"], d)}
    for side, shape in sides.items():
        if side != "gate" or is_gated:
            yield f"ffn.W_{side}", (*each, *shape)
        if ffn["bias"][side]:
            yield f"ffn.b_{side}", (*each, *shape[1:])


def _beside_experts(ffn: Config, d: int) -> Named:
    e, u = ffn["n_experts"], ffn["d_shared"]
    yield "ffn.W_router", (d, e)
    if ffn["router_bias"]:
        yield "ffn.b_router", (e,)
    if u:
        yield "ffn.W_shared_in", (d, u)
        if ffn["expert"] == "gated":
            yield "ffn.W_shared_gate", (d, u)
        yield "ffn.W_shared_out", (u, d)
    if u and ffn["shared_gate"]:
        yield "ffn.W_shared_weight", (d, 1)
