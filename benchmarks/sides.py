"""The two sides of the block benchmark: a traced block, and its matrix products alone."""

from collections.abc import Callable

import numpy as np

from compute import config, config_rules, initial, selection, stages, weights
from compute.trace import Run, trace
from compute.types import Array, Inputs, Selected

D, HEADS, D_HEAD, D_FF = 768, 12, 64, 3072


def traced_block(positions: int) -> Callable[[], object]:
    """Runs one block and keeps every primary stage."""
    model = config_rules.check(_config())
    run = Run(
        config=model,
        weights=weights.build(model, initial.seeded(0, "float32", 0.0), "float32"),
        inputs=Inputs(tensor=_rows(positions, D)),
        selection=_primary(model, positions),
    )
    return lambda: trace(run)


def _config() -> config.ModelConfig:
    bias = config.AttentionBias(q=True, k=True, v=True, o=True)
    return config.ModelConfig(
        d_model=D,
        n_layers=1,
        attention=config.attention_config(D, HEADS, bias=bias),
        ffn=config.ffn_config(D, "mlp"),
        norm=config.NormConfig(),
        position=config.PositionConfig(),
        vocab=None,
        tied=False,
        unembed_bias=False,
        final_norm=False,
    )


def _primary(model: config.ModelConfig, positions: int) -> selection.Selection:
    scene = selection.scene_for(model, Inputs(tensor=_rows(positions, D)))
    asked = [
        Selected(name=name)
        for name, stage in stages.in_order(model)
        if not stage.derived and scene.absence(name) is None
    ]
    return selection.resolve(asked, scene)


def _rows(rows: int, columns: int) -> Array:
    return np.random.default_rng(0).standard_normal((rows, columns), np.float32)


def bare_products(positions: int) -> Callable[[], object]:
    """The six products of the same block, on arrays made beforehand."""
    x, W_QKV, W_O = _rows(positions, D), _rows(D, 3 * D), _rows(D, D)
    W_in, W_out = _rows(D, D_FF), _rows(D_FF, D)
    qkv = np.empty((positions, 3 * D), np.float32)
    Q, K, V = (_heads(_rows(positions, D)) for _ in range(3))
    S = np.empty((HEADS, positions, positions), np.float32)
    H = np.empty((HEADS, positions, D_HEAD), np.float32)
    update, hidden = np.empty_like(x), np.empty((positions, D_FF), np.float32)

    def products() -> None:
        np.matmul(x, W_QKV, out=qkv)
        np.matmul(Q, K.swapaxes(-1, -2), out=S)
        np.matmul(S, V, out=H)
        np.matmul(x, W_O, out=update)
        np.matmul(x, W_in, out=hidden)
        np.matmul(hidden, W_out, out=update)

    return products


def _heads(x: Array) -> Array:
    return np.ascontiguousarray(x.reshape(len(x), HEADS, D_HEAD).swapaxes(0, 1))
