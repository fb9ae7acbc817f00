"""The product's side: its own trace of a stack of blocks. Weights are packed beforehand."""

from collections.abc import Callable, Mapping

from benchmarks.sides import kept
from benchmarks.sides.rows import rows
from compute import config, config_rules, initial, selection, tensors, weights
from compute.config import ActivationName, ModelConfig
from compute.trace import Run, trace
from compute.types import Array, Inputs, Selected


def block(
    positions: int,
    *,
    layers: int = 1,
    activation: ActivationName = "gelu_tanh",
    contributions: bool = False,
) -> Callable[[], object]:
    """Runs blocks of GPT-2's size and keeps the listed stages."""
    asked = kept.names(layers, contributions=contributions)
    made = run(stack(layers, kept.LARGE, activation), positions, asked)
    return lambda: trace(made)


def last(positions: int, layers: int) -> Callable[[], object]:
    """The same blocks with the last resid_post alone."""
    made = run(stack(layers, kept.LARGE), positions, [f"blocks.{layers - 1}.resid_post"])
    return lambda: trace(made)


def small() -> Callable[[], dict[str, Array]]:
    """The small model: its stages by name."""
    model = stack(1, kept.SMALL)
    made = run(model, kept.SMALL_POSITIONS, kept.names(1))
    return lambda: {each.wanted.name: each.values for each in trace(made).made}


def stack(layers: int, size: kept.Size, activation: ActivationName = "gelu_tanh") -> ModelConfig:
    """Pre-norm blocks with LayerNorm, an MLP and biases everywhere, causal, without positions."""
    bias, d = config.AttentionBias(q=True, k=True, v=True, o=True), size.d
    return config_rules.check(
        ModelConfig(
            d_model=d,
            n_layers=layers,
            attention=config.attention_config(d, size.heads, bias=bias),
            ffn=config.ffn_config(d, "mlp", d_ff=size.d_ff, activation=activation),
            norm=config.NormConfig(),
            position=config.PositionConfig(),
            vocab=None,
            tied=False,
            unembed_bias=False,
            final_norm=False,
        )
    )


def run(model: ModelConfig, positions: int, names: list[str]) -> Run:
    """A run on seeded rows that keeps what is named; every block is fetched and packed."""
    inputs = Inputs(tensor=rows(positions, model.d_model))
    scene = selection.scene_for(model, inputs)
    made = Run(
        config=model,
        weights=weights.build(model, initial.seeded(0, "float32", 0.0), "float32"),
        inputs=inputs,
        selection=selection.resolve([Selected(name=name) for name in names], scene),
    )
    for layer in range(model.n_layers):
        _ = made.weights.blocks[layer]
    return made


def tensors_of(model: ModelConfig) -> Mapping[str, Array]:
    """The same weights by name: W_Q, W_K, W_V (h, d, k), W_O (h, k, d), W_in (d, f), …"""
    source = initial.seeded(0, "float32", 0.0)
    return {name: source(tensor) for name, tensor in tensors.tensors(model).items()}
