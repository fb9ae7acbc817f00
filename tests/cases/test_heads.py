"""Heads and activations, as implementations have got them wrong in public: small exact cases."""

import numpy as np
import pytest

from cases import small
from compute.errors import ConfigError

# Activations that are easily taken for one another.


@pytest.mark.parametrize("kind", ["mlp", "gated"])
@pytest.mark.parametrize(
    ("activation", "x", "expected"),
    [
        ("gelu", 3.0, 2.99595031),
        ("gelu_tanh", 3.0, 2.99636261),
        ("gelu", -1.0, -0.15865525),
        ("gelu_tanh", -1.0, -0.15880801),
        ("gelu", 1.0, 0.84134475),
        ("quick_gelu", 1.0, 0.84579577),
        ("silu", 1.0, 0.73105858),
        ("relu", -1.0, 0.0),
        ("relu", 3.0, 3.0),
        ("identity", -1.0, -1.0),
    ],
)
def test_each_activation_is_a_function_of_its_own(
    kind: str, activation: str, x: float, expected: float
) -> None:
    bias = {"in": True, "gate": False, "out": False}
    config = small.model(1, ffn=small.mlp(1, kind=kind, activation=activation, bias=bias))
    given = {"ffn.W_out": [[2]], "ffn.W_in": [[1]]}
    if kind == "gated":  # the activation is of the gate, and up is b_in alone
        given |= {"ffn.W_in": [[0]], "ffn.W_gate": [[1]], "ffn.b_in": [1]}
    stages = small.block(config, given, tensor=[[x]])
    small.close(stages["ffn.hidden"], [[expected]], atol=5e-9)
    small.close(stages["ffn_out"], [[2 * expected]], atol=1e-8)


def test_the_two_gelus_are_at_most_4_73e_4_apart_near_2_70() -> None:
    grid = np.linspace(-6, 6, 1201)[:, None]
    hidden = [
        small.block(
            small.model(1, ffn=small.mlp(1, activation=name)), {"ffn.W_in": [[1]]}, tensor=grid
        )["ffn.hidden"]
        for name in ("gelu", "gelu_tanh")
    ]
    gap = np.abs(hidden[0] - hidden[1])
    assert gap.max() == pytest.approx(4.73e-4, abs=5e-7)
    assert abs(grid[gap.argmax(), 0]) == pytest.approx(2.70, abs=0.01)


# Heads are put together for each position, not one after the other.


@pytest.mark.parametrize(("h", "v", "n"), [(2, 2, 2), (2, 3, 5), (3, 2, 5), (5, 1, 3)])
def test_each_row_is_joined_from_the_values_of_its_own_position(h: int, v: int, n: int) -> None:
    d = h * v
    heads = small.attention(h, v, window=1)
    eye = np.eye(d).reshape(d, h, v).swapaxes(0, 1)
    given = {"attn.W_V": eye, "attn.W_O": np.eye(d).reshape(h, v, d)}
    rows = np.arange(1.0, 1 + n * d).reshape(n, d)
    stages = small.block(small.model(d, attention=heads), given, tensor=rows)
    small.close(stages["attn.pattern"], np.broadcast_to(np.eye(n), (h, n, n)), atol=0)
    small.close(stages["attn_out"], rows, atol=0)
    for r in range(h):
        small.close(stages["attn.z"][r], rows[:, r * v : (r + 1) * v], atol=0)


# Query heads that are neighbours share a key/value head.


@pytest.mark.parametrize(
    ("h", "g", "expected"),
    [
        (4, 2, [1, 1, 2, 2]),
        (4, 1, [1, 1, 1, 1]),
        (4, 4, [1, 2, 3, 4]),
        (6, 2, [1, 1, 1, 2, 2, 2]),
        (6, 3, [1, 1, 2, 2, 3, 3]),
        (15, 5, [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5]),
    ],
)
def test_neighbouring_heads_share_keys_and_values(h: int, g: int, expected: list[int]) -> None:
    heads = small.attention(h, 1, n_kv_heads=g, bias=small.biases("k", "v", "q"))
    of_group = np.arange(1.0, g + 1)[:, None]
    given = {"attn.b_V": of_group, "attn.b_K": of_group, "attn.b_Q": np.ones((h, 1))}
    stages = small.block(
        small.model(7, attention=heads), given, select=small.DOTS, tensor=np.ones((2, 7))
    )
    for row in range(2):
        small.close(stages["attn.z"][:, row, 0], expected, atol=1e-15)
        small.close(stages["attn.dots"][:, row, 0], expected, atol=0)
    assert stages["attn.v"].shape == (g, 2, 1)


@pytest.mark.parametrize(("h", "g"), [(4, 3), (3, 2), (2, 4), (5, 10)])
def test_heads_that_cannot_be_shared_out_are_refused(h: int, g: int) -> None:
    with pytest.raises(ConfigError) as refused:
        small.block(small.model(7, attention=small.attention(h, 1, n_kv_heads=g)), tensor=[[0] * 7])
    (fault,) = refused.value.faults
    assert (fault.place, fault.got) == (("attention", "n_kv_heads"), g)


# A head's widths are free of d_model / n_heads.


@pytest.mark.parametrize(
    ("d", "h", "k", "v"), [(5, 2, 4, 4), (5, 2, 4, 3), (3, 7, 2, 11), (7, 1, 13, 2)]
)
def test_a_head_may_have_any_width(d: int, h: int, k: int, v: int) -> None:
    heads = small.attention(h, k, d_value=v)
    given = {
        "attn.W_Q": np.ones((h, d, k)),
        "attn.W_K": np.ones((h, d, k)),
        "attn.W_V": np.ones((h, d, v)),
        "attn.W_O": np.ones((h, v, d)),
    }
    stages = small.block(
        small.model(d, attention=heads), given, select=small.DOTS, tensor=np.ones((2, d))
    )
    assert stages["attn.z"].shape == (h, 2, v)
    # q = k = [d, …]: k products of d², over sqrt(k)
    small.close(stages["attn.dots"], np.full((h, 2, 2), k * d**2), atol=0)
    np.testing.assert_allclose(stages["attn.scores"], np.full((h, 2, 2), k**0.5 * d**2), rtol=1e-15)
    np.testing.assert_allclose(stages["attn_out"], np.full((2, d), h * v * d), rtol=1e-15)


# The scale multiplies.


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        (4**-0.5, 2.0),
        (1.0, 4.0),
        (16**-0.5, 1.0),
        (2.0, 8.0),
        (0.0, 0.0),
        (-1.0, -4.0),
    ],
)
def test_the_scale_multiplies_the_dot_products(scale: float, expected: float) -> None:
    config = small.model(4, attention=small.attention(1, 4, scale=scale))
    given = {"attn.W_Q": [np.eye(4)], "attn.W_K": [np.eye(4)]}
    stages = small.block(config, given, select=small.DOTS, tensor=[[2, 0, 0, 0]])
    assert stages["attn.dots"].item() == 4.0
    assert stages["attn.scores"].item() == expected


def test_the_scale_is_the_same_in_every_layer() -> None:
    config = small.model(4, attention=small.attention(1, 4)) | {"n_layers": 3}
    named = small.values(config, {})
    for layer in range(3):
        for letter in "QK":
            named[f"blocks.{layer}.attn.W_{letter}"] = np.eye(4)[None]
    stages = small.stages_of(small.run(config, named, tensor=[[2, 0, 0, 0]]))
    for name in ("attn.scores", "blocks.1.attn.scores", "blocks.2.attn.scores"):
        assert stages[name].item() == 2.0


# Contributions of heads, and the biases beside them.


@pytest.mark.parametrize("letters", ["", "o", "v", "vo", "qkvo"])
def test_contributions_and_the_output_bias_sum_to_the_update(letters: str) -> None:
    heads = small.attention(2, 2, bias=small.biases(*letters))
    config = small.model(4, attention=heads)
    named = small.drawn(config, 1)
    W_O, b_O = named["blocks.0.attn.W_O"], named.get("blocks.0.attn.b_O", np.zeros(4))
    stages = small.stages_of(small.run(config, named, tensor=np.eye(3, 4)))
    # sums of a few numbers of order one, in another order
    small.close(stages["attn.head_out"].sum(axis=0) + b_O, stages["attn_out"], atol=1e-15)
    for r in range(2):
        small.close(stages["attn.head_out"][r], stages["attn.z"][r] @ W_O[r], atol=1e-15)


def test_an_output_bias_is_added_once_and_a_value_bias_once_a_head() -> None:
    heads = small.attention(3, 2, bias=small.biases("v", "o"))
    given = {
        "attn.b_V": np.ones((3, 2)),
        "attn.W_O": np.ones((3, 2, 5)),
        "attn.b_O": np.full(5, 100.0),
    }
    stages = small.block(small.model(5, attention=heads), given, tensor=np.zeros((4, 5)))
    small.close(stages["attn.head_out"], np.full((3, 4, 5), 2.0), atol=1e-15)
    small.close(stages["attn_out"], np.full((4, 5), 106.0), atol=1e-13)
