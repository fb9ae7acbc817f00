"""The tensors of a config: their names and shapes, and seeded values."""

from collections.abc import Iterator

from oracle.functions import Array, Config
from oracle.sizes import Rng

Shape = tuple[int, ...]


def shapes(config: Config) -> dict[str, Shape]:
    """Canonical full name -> shape, for every tensor the config has."""
    named = dict(_below(config))
    for layer in range(config["n_layers"]):
        named |= {f"blocks.{layer}.{name}": shape for name, shape in _of_block(config)}
    return named | dict(_above(config))


def draw(rng: Rng, config: Config) -> dict[str, Array]:
    """Matrices of spread 1/sqrt(fan-in), gains near 1, biases that are not zero."""
    offset = config["norm"].get("gain_offset", 0.0)
    return {name: _value(rng, name, shape, offset) for name, shape in shapes(config).items()}


def _value(rng: Rng, name: str, shape: Shape, gain_offset: float) -> Array:
    normal = rng.standard_normal(shape)
    last = name.rsplit(".", 1)[1]
    if last == "weight":
        return 1.0 - gain_offset + 0.2 * normal
    if last == "bias" or last.startswith("b_"):
        return 0.3 * normal
    return normal * _spread(last, shape)


def _spread(last: str, shape: Shape) -> float:
    if last in ("W_E", "W_pos"):
        return 0.7
    fan_in = shape[0] * shape[1] if last == "W_O" else shape[-2]
    return float(fan_in**-0.5)


def _below(config: Config) -> Iterator[tuple[str, Shape]]:
    d = config["d_model"]
    if config["vocab"] is not None:
        yield "embed.W_E", (config["vocab"], d)
    if config["position"]["kind"] == "learned":
        yield "pos_embed.W_pos", (config["position"]["n_positions"], d)


def _above(config: Config) -> Iterator[tuple[str, Shape]]:
    if config["final_norm"]:
        yield from _of_norm("final_norm", config)
    if config["vocab"] is not None and not config["tied"]:
        yield "unembed.W_U", (config["d_model"], config["vocab"])
    if config["unembed_bias"]:
        yield "unembed.b_U", (config["vocab"],)


def _of_block(config: Config) -> Iterator[tuple[str, Shape]]:
    if config["attention"]["kind"] != "none":
        yield from _of_norm("norm1", config)
        yield from _of_attention(config["attention"], config["d_model"])
    if config["ffn"]["kind"] != "none":
        yield from _of_norm("norm2", config)
        yield from _of_ffn(config["ffn"], config["d_model"])


def _of_norm(name: str, config: Config) -> Iterator[tuple[str, Shape]]:
    kind, shape = config["norm"]["kind"], (config["d_model"],)
    if kind != "none":
        yield f"{name}.weight", shape
    if kind == "layernorm":
        yield f"{name}.bias", shape


def _of_attention(attention: Config, d: int) -> Iterator[tuple[str, Shape]]:
    h, g = attention["n_heads"], attention["n_kv_heads"]
    k, v = attention["d_head"], attention["d_value"]
    for letter, heads, width in (("Q", h, k), ("K", g, k), ("V", g, v)):
        yield f"attn.W_{letter}", (heads, d, width)
        if attention["bias"][letter.lower()]:
            yield f"attn.b_{letter}", (heads, width)
    yield "attn.W_O", (h, v, d)
    if attention["bias"]["o"]:
        yield "attn.b_O", (d,)


def _of_ffn(ffn: Config, d: int) -> Iterator[tuple[str, Shape]]:
    f = ffn["d_ff"]
    sides = {"in": (d, f), "gate": (d, f), "out": (f, d)}
    for side, shape in sides.items():
        if side != "gate" or ffn["kind"] == "gated":
            yield f"ffn.W_{side}", shape
        if ffn["bias"][side]:
            yield f"ffn.b_{side}", shape[1:]
