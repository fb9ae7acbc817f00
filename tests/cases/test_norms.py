"""Norms, as transformer implementations have got them wrong in public: small exact cases."""

import math

import numpy as np
import pytest

from cases import small
from cases.small import Array, Config

FFN = small.mlp(2, bias={"in": False, "gate": False, "out": False})


def normed(x: list[float], kind: str, weight: list[float], **given: object) -> dict[str, Array]:
    """The stages of a block whose ffn is silent and whose norm2 has this weight."""
    config = small.model(len(x), ffn=FFN, norm=small.norm(kind, **given))
    return small.block(config, {"norm2.weight": weight}, tensor=[x])


# LayerNorm divides by n, and eps is inside the root.


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ([1, 0, 0, 0], [1.73200462, -0.57733487, -0.57733487, -0.57733487]),
        ([1e-3, 0, 0, 0], [0.23497813, -0.07832604, -0.07832604, -0.07832604]),
        # with eps = 0 these two would be equal, and with n - 1 the first would be 1.5
        ([1e3, 0, 0, 0], [1.7320508, -0.5773503, -0.5773503, -0.5773503]),
    ],
)
def test_layer_norm_divides_by_n_with_eps_inside_the_root(
    x: list[float], expected: list[float]
) -> None:
    small.close(normed(x, "layernorm", [1] * 4)["norm2.out"], [expected], atol=5e-8)


@pytest.mark.parametrize("d", [2, 3, 5, 11])
@pytest.mark.parametrize("eps", [1e-12, 1e-5, 1e-2, 1.0])
@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
def test_a_unit_vector_normalized_has_its_closed_form(d: int, eps: float, size: float) -> None:
    # mean s/d, variance s² (d - 1) / d²
    x = [size] + [0.0] * (d - 1)
    layer = normed(x, "layernorm", [1] * d, eps=eps)
    scale = math.sqrt(size**2 * (d - 1) / d**2 + eps)
    expected = [[(size - size / d) / scale] + [-size / d / scale] * (d - 1)]
    np.testing.assert_allclose(layer["norm2.scale"], [[scale]], rtol=1e-14)
    np.testing.assert_allclose(layer["norm2.out"], expected, rtol=1e-13)
    rms = normed(x, "rmsnorm", [1] * d, eps=eps)
    scale = math.sqrt(size**2 / d + eps)
    np.testing.assert_allclose(rms["norm2.scale"], [[scale]], rtol=1e-14)
    np.testing.assert_allclose(rms["norm2.out"], [[size / scale] + [0.0] * (d - 1)], rtol=1e-14)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_layer_norm_does_not_change_when_a_row_is_shifted(offset: float) -> None:
    shifted = normed([offset + x for x in (1, -2, 4, 0)], "layernorm", [1] * 4)
    plain = normed([1, -2, 4, 0], "layernorm", [1] * 4)
    # the shift itself rounds each number by 1.1e-16 of it
    small.close(shifted["norm2.out"], plain["norm2.out"], atol=1e-15 + 1e-15 * offset)


def test_rows_that_are_all_equal_become_the_bias() -> None:
    config = small.model(3, ffn=FFN, norm=small.norm("layernorm"))
    given = {"norm2.weight": [2, 3, 5], "norm2.bias": [7, 11, 13]}
    stages = small.block(config, given, tensor=[[4, 4, 4], [0, 0, 0]])
    small.close(stages["norm2.out"], [[7, 11, 13]] * 2, atol=0)


# A norm never writes to what it reads.


@pytest.mark.parametrize("kind", ["layernorm", "rmsnorm"])
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_the_stream_is_not_normalized_in_place(kind: str, placement: str) -> None:
    rows = np.random.default_rng(0).standard_normal((3, 5))
    config = small.model(
        5,
        attention=small.attention(2, 3),
        ffn=small.mlp(7),
        norm=small.norm(kind, placement=placement),
    )
    stages = small.stages_of(small.run(config, small.drawn(config, 0), tensor=rows))
    assert stages["resid_pre"].tobytes() == rows.tobytes()
    total = stages["resid_pre"] + stages["attn_out"]
    assert stages["attn_sum" if placement == "post" else "resid_mid"].tobytes() == total.tobytes()
    total = stages["resid_mid"] + stages["ffn_out"]
    assert stages["ffn_sum" if placement == "post" else "resid_post"].tobytes() == total.tobytes()


# The gain: with an offset, and between normalized and out.


@pytest.mark.parametrize(
    ("offset", "weight", "expected"),
    [
        (1.0, [0, 0], [0.8485281, 1.1313708]),
        (0.0, [0, 0], [0.0, 0.0]),
        (0.0, [1, 1], [0.8485281, 1.1313708]),
        (1.0, [1, -1], [1.6970563, 0.0]),
        (-1.0, [0, 0], [-0.8485281, -1.1313708]),
    ],
)
def test_the_gain_is_the_stored_weight_plus_its_offset(
    offset: float, weight: list[float], expected: list[float]
) -> None:
    stages = normed([3, 4], "rmsnorm", weight, eps=1e-6, gain_offset=offset)
    small.close(stages["norm2.out"], [expected], atol=1e-7)


OFFSET = small.norm("rmsnorm", eps=1e-6, gain_offset=1.0)
EVERY_NORM: dict[str, tuple[Config, list[str]]] = {
    "pre": ({}, ["norm1", "norm2", "final_norm"]),
    "post": ({"norm": OFFSET | {"placement": "post"}}, ["norm1", "norm2"]),
    "sandwich": ({"norm": OFFSET | {"placement": "sandwich"}}, ["norm1", "norm2"]),
    "below": ({"embed_norm": True}, ["embed_norm", "norm1"]),
    "cross": ({"cross_attention": True}, ["norm_cross"]),
    "parallel": ({"topology": "parallel", "norm": OFFSET | {"shared": True}}, ["norm1"]),
}


@pytest.mark.parametrize("arranged", EVERY_NORM)
def test_an_offset_works_in_every_norm_of_a_model(arranged: str) -> None:
    given, names = EVERY_NORM[arranged]
    parts = {"attention": small.attention(1, 2), "ffn": small.mlp(2), "norm": OFFSET}
    config = small.model(2, **parts) | {"final_norm": True} | given
    named = {name: 0 * values for name, values in small.values(config, {}).items()}
    memory = {"memory": {"tensor": [[1, 1]]}} if "cross_attention" in given else {}
    stages = small.stages_of(small.run(config, named, tensor=[[3, 4]], **memory))
    for name in names:
        small.close(stages[f"{name}.out"], [[0.8485281, 1.1313708]], atol=1e-6)


@pytest.mark.parametrize("placement", ["sandwich", "output"])
def test_an_offset_works_in_the_norms_of_outputs(placement: str) -> None:
    heads = small.attention(1, 2, bias=small.biases("o"))
    norm = OFFSET | {"placement": placement}
    config = small.model(2, attention=heads, ffn=small.mlp(2), norm=norm)
    named = {name: 0 * values for name, values in small.values(config, {}).items()}
    named |= {f"blocks.0.{bias}": np.array([3.0, 4.0]) for bias in ("attn.b_O", "ffn.b_out")}
    stages = small.stages_of(small.run(config, named, tensor=[[0, 0]]))
    for name in ("norm1_post.out", "norm2_post.out", "attn_out", "ffn_out"):
        small.close(stages[name], [[0.8485281, 1.1313708]], atol=1e-7)


@pytest.mark.parametrize("over", ["head", "full"])
def test_an_offset_works_in_the_norms_of_queries_and_keys(over: str) -> None:
    heads = small.attention(1, 2, qk_norm=over, bias=small.biases("q", "k"))
    config = small.model(2, attention=heads, norm=OFFSET)
    named = {name: 0 * values for name, values in small.values(config, {}).items()}
    named |= {f"blocks.0.attn.b_{letter}": np.array([[3.0, 4.0]]) for letter in "QK"}
    stages = small.stages_of(small.run(config, named, tensor=[[0, 0]]))
    for name in ("attn.q_norm", "attn.k_norm"):
        small.close(stages[name], [[[0.8485281, 1.1313708]]], atol=1e-7)


def test_an_offset_works_in_the_norm_of_the_masked_token_head() -> None:
    ffn = small.mlp(2, activation="identity")
    config = small.model(2, ffn=ffn, norm=OFFSET) | {"vocab": 3, "mlm_head": True}
    named = {name: 0 * values for name, values in small.values(config, {}).items()}
    named["mlm_head.b"] = np.array([3.0, 4.0])
    stages = small.stages_of(small.run(config, named, tensor=[[0, 0]]))
    small.close(stages["mlm_norm.out"], [[0.8485281, 1.1313708]], atol=1e-7)


def test_an_encoder_has_an_offset_of_its_own() -> None:
    parts = {"attention": small.attention(1, 2), "ffn": small.mlp(2)}
    encoder = small.model(2, **parts, norm=OFFSET) | {"final_norm": True}
    config = small.model(2, **parts, norm=small.norm("rmsnorm")) | {"cross_attention": True}
    config["encoder"] = encoder
    named = {name: 0 * values for name, values in small.values(config, {}).items()}
    run = small.run(config, named, tensor=[[3, 4]], memory={"tensor": [[3, 4]]})
    stages = small.stages_of(run)
    small.close(stages["encoder.final_norm.out"], [[0.8485281, 1.1313708]], atol=1e-6)
    small.close(stages["norm1.out"], [[0, 0]], atol=0)


def test_a_gain_with_its_offset_is_rounded_to_float32_once() -> None:
    config = small.model(13, ffn=FFN, norm=small.norm("rmsnorm", gain_offset=1.0))
    stored = np.random.default_rng(0).normal(0, 0.1, 13).astype(np.float32)
    named = small.values(config, {"norm2.weight": stored})
    gain = small.packed(config, named, "float32").blocks[0].norm2.gain
    assert gain.tolist() == [float(np.float32(1 + float(w))) for w in stored]


@pytest.mark.parametrize("kind", ["layernorm", "rmsnorm"])
def test_normalized_is_before_the_gain_and_out_is_what_the_sublayer_reads(kind: str) -> None:
    config = small.model(2, ffn=small.mlp(2), norm=small.norm(kind))
    eye = np.eye(2)
    stages = small.block(config, {"norm2.weight": [2, 2], "ffn.W_in": eye}, tensor=[[3, 4]])
    if kind == "rmsnorm":
        small.close(stages["norm2.normalized"], [[0.8485, 1.1314]], atol=5e-5)
        small.close(stages["norm2.out"], [[1.6971, 2.2627]], atol=5e-5)
    small.close(stages["norm2.out"], 2 * stages["norm2.normalized"], atol=0)
    small.close(stages["ffn.up"], stages["norm2.out"], atol=0)


def test_attention_reads_what_is_after_gain_and_bias() -> None:
    config = small.model(2, attention=small.attention(1, 2), norm=small.norm("layernorm"))
    given = {"norm1.weight": [2, 3], "norm1.bias": [5, 7], "attn.W_Q": [np.eye(2)]}
    stages = small.block(config, given, tensor=[[3, 4]])
    expected = [[5 - 2 * 0.5 / math.sqrt(0.25 + 1e-5), 7 + 3 * 0.5 / math.sqrt(0.25 + 1e-5)]]
    small.close(stages["attn.q"], [expected], atol=1e-14)


# Post-norm is not pre-norm.


def sublayers_of_constants(placement: str, **given: object) -> dict[str, Array]:
    """x = [1, 3]; attention adds [4, 0] and the ffn [0, -6]; LN1 has gain [2, 1], bias [0, 5]."""
    heads = small.attention(1, 2, bias=small.biases("o"))
    norm = small.norm("layernorm", placement=placement, eps=1e-14)
    config: Config = small.model(2, **{"attention": heads, "ffn": small.mlp(1), **given}, norm=norm)
    constants = {
        "attn.W_Q": [np.eye(2)],
        "attn.b_O": [4, 0],
        "ffn.b_out": [0, -6],
        "norm1.weight": [2, 1],
        "norm1.bias": [0, 5],
    }
    named = small.values(config, {})
    kept = {name: x for name, x in constants.items() if f"blocks.0.{name}" in named}
    return small.block(config, kept, tensor=[[1, 3]])


def test_post_norm_normalizes_the_sums_and_attention_reads_the_stream_itself() -> None:
    stages = sublayers_of_constants("post")
    small.close(stages["attn.q"], [[[1, 3]]], atol=0)
    small.close(stages["attn_sum"], [[5, 3]], atol=0)
    small.close(stages["norm1.normalized"], [[1, -1]], atol=1e-12)
    small.close(stages["norm1.out"], [[2, 4]], atol=1e-12)
    small.close(stages["resid_mid"], [[2, 4]], atol=1e-12)
    small.close(stages["ffn_sum"], [[2, -2]], atol=1e-12)
    small.close(stages["resid_post"], [[1, -1]], atol=1e-12)


def test_pre_norm_normalizes_what_is_read_and_adds_to_the_stream() -> None:
    stages = sublayers_of_constants("pre")
    small.close(stages["attn.q"], [[[-2, 6]]], atol=1e-12)
    small.close(stages["resid_mid"], [[5, 3]], atol=0)
    small.close(stages["resid_post"], [[5, -3]], atol=0)
    assert "attn_sum" not in stages
    assert "ffn_sum" not in stages


def test_post_norm_without_an_ffn_ends_with_its_one_norm() -> None:
    stages = sublayers_of_constants("post", ffn=small.NONE)
    small.close(stages["resid_post"], [[2, 4]], atol=1e-12)
    assert "resid_mid" not in stages


def test_post_norm_without_attention_ends_with_its_one_norm() -> None:
    stages = sublayers_of_constants("post", attention=small.NONE)
    small.close(stages["ffn_sum"], [[1, -3]], atol=0)
    small.close(stages["resid_post"], [[1, -1]], atol=1e-12)
