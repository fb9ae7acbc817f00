"""The same weights, another block: what serves, what is filled, what is refused by name."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from compute import initial, overriding, tensors
from compute.config import (
    AttentionBias,
    FfnBias,
    ModelConfig,
    NormConfig,
    attention_config,
    ffn_config,
    position_config,
)
from compute.errors import ConfigError, Fault
from compute.overriding import Fit

STORED = ModelConfig(
    d_model=12,
    n_layers=2,
    attention=attention_config(12, 3),
    ffn=ffn_config(12, "gated", d_ff=7, bias=FfnBias(in_=False, out=False)),
    norm=NormConfig(),
    position=position_config("learned", 4, n_positions=5),
    vocab=11,
    tied=True,
    unembed_bias=False,
    final_norm=True,
)
"""Pre-norm, learned positions, no biases but the norms'."""


def part(name: str, **fields: object) -> dict[str, Any]:
    """A part of STORED with other fields."""
    return {name: replace(getattr(STORED, name), **fields)}


def fit(changes: dict[str, Any], *fields: str, given: tuple[str, ...] = ()) -> Fit:
    return overriding.fit(STORED, replace(STORED, **changes), fields, given)


def refused(
    changes: dict[str, Any], *fields: str, given: tuple[str, ...] = ()
) -> tuple[Fault, ...]:
    with pytest.raises(ConfigError) as error:
        fit(changes, *fields, given=given)
    assert {fault.code for fault in error.value.faults} == {"weights_cannot_serve"}
    return error.value.faults


@pytest.mark.parametrize(
    "changes",
    [
        {},
        part("norm", placement="post"),
        part("norm", eps=0.5, gain_offset=1.0),
        part("attention", mask="full", window=2, scale=3.0, softcap=4.0),
        part("ffn", activation="relu2"),
        {"topology": "parallel", "residual_multiplier": 0.5},
        {"logit_softcap": 3.0, "logit_multiplier": 0.1, "embed_multiplier": 2.0},
    ],
)
def test_what_reads_the_same_tensors_needs_and_leaves_none(changes: dict[str, Any]) -> None:
    assert fit(changes) == Fit()


@pytest.mark.parametrize(
    ("changes", "ends"),
    [
        ({"position": position_config("rope", 4)}, {"W_pos"}),
        (part("norm", kind="rmsnorm"), {"bias"}),
        ({**part("norm", kind="none"), "final_norm": False}, {"weight", "bias"}),
        (part("ffn", kind="mlp"), {"W_gate"}),
        ({"final_norm": False}, {"weight", "bias"}),
        ({"vocab": None, "tied": False}, {"W_E"}),
    ],
)
def test_stored_tensors_that_are_not_read_are_listed(
    changes: dict[str, Any], ends: set[str]
) -> None:
    made = fit(changes)
    assert made.filled == ()
    assert {name.rpartition(".")[2] for name in made.unused} == ends


def test_fewer_blocks_are_the_first_ones() -> None:
    made = fit({"n_layers": 1})
    assert made.filled == ()
    assert {name.split(".")[1] for name in made.unused} == {"1"}


@pytest.mark.parametrize(
    ("changes", "filled", "unused"),
    [
        (part("norm", placement="sandwich"), {"norm1_post", "norm2_post"}, set()),
        (
            part("norm", placement="output"),
            {"norm1_post", "norm2_post"},
            {"norm1", "norm2"},
        ),
        (part("attention", qk_norm="head"), {"attn.q_norm", "attn.k_norm"}, set()),
        ({"topology": "parallel", **part("norm", shared=True)}, set(), {"norm2"}),
    ],
)
def test_norms_that_are_not_stored_are_filled(
    changes: dict[str, Any], filled: set[str], unused: set[str]
) -> None:
    def all_of(norms: set[str]) -> set[str]:
        ends = ("weight", "bias")
        return {f"blocks.{x}.{norm}.{end}" for x in (0, 1) for norm in norms for end in ends}

    made = fit(changes)
    assert (set(made.filled), set(made.unused)) == (all_of(filled), all_of(unused))


def test_biases_of_products_are_filled_too() -> None:
    made = fit(part("attention", bias=AttentionBias(o=True)))
    assert made.filled == ("blocks.0.attn.b_O", "blocks.1.attn.b_O")


def test_what_is_filled_is_neutral() -> None:
    changed = replace(STORED, **part("norm", placement="sandwich", gain_offset=0.25))
    filled = fit(part("norm", placement="sandwich", gain_offset=0.25)).filled
    stored = initial.seeded(3, "float64", 0.0)
    fetch = overriding.source(stored, filled, changed, "float64")
    for name, tensor in tensors.tensors(changed).items():
        neutral = 0.75 if tensor.role == "gain" else 0.0
        expected = np.full(tensor.shape, neutral) if name in filled else stored(tensor)
        assert np.array_equal(fetch(tensor), expected)


def test_gain_of_an_encoder_is_neutral_with_its_own_offset() -> None:
    encoder = replace(
        STORED, vocab=None, tied=False, norm=NormConfig(gain_offset=1.0, placement="sandwich")
    )
    changed = replace(STORED, cross_attention=True, encoder=encoder)
    listed = tensors.tensors(changed)
    fetch = overriding.source(initial.seeded(0, "float32", 0.0), listed, changed, "float32")
    assert set(fetch(listed["encoder.blocks.0.norm1_post.weight"])) == {0.0}
    assert set(fetch(listed["blocks.0.norm1.weight"])) == {1.0}


def test_tensor_that_is_lacking_is_refused_at_the_field_that_needs_it() -> None:
    stored = replace(STORED, position=position_config("rope", 4))
    with pytest.raises(ConfigError) as error:
        overriding.fit(stored, STORED, ["position.kind", "position.n_positions"], ())
    (fault,) = error.value.faults
    assert (fault.code, fault.place) == ("weights_cannot_serve", ("position", "kind"))
    assert (fault.expected, fault.got) == ([5, 12], None)
    assert fault.detail == (
        "position.kind = learned needs pos_embed.W_pos (5, 12), which this model does not have; "
        "give it whole in weights.tensors. Fields that are not sent stay as stored: none follows "
        "another's change."
    )


def test_tensor_of_another_shape_is_refused_at_the_field_that_gives_it() -> None:
    position = {"position": position_config("learned", 4, n_positions=6)}
    (fault,) = refused(position, "position.n_positions")
    assert fault.place == ("position", "n_positions")
    assert (fault.expected, fault.got) == ([6, 12], [5, 12])
    assert "position.n_positions = 6 needs pos_embed.W_pos (6, 12) in another shape" in fault.detail


def test_every_tensor_that_is_needed_is_told_once_for_all_its_blocks() -> None:
    (fault,) = refused({"n_layers": 4}, "n_layers")
    assert fault.place == ("n_layers",)
    assert fault.detail.startswith(
        "n_layers = 4 needs blocks.2-3.attn.W_Q (3, 12, 4), blocks.2-3.attn.W_K (3, 12, 4), "
        "blocks.2-3.attn.W_V (3, 12, 4), blocks.2-3.attn.W_O (3, 4, 12), "
        "blocks.2-3.ffn.W_in (12, 7), blocks.2-3.ffn.W_gate (12, 7), "
        "blocks.2-3.ffn.W_out (7, 12), which this model does not have; give each whole in "
    )


def test_blocks_that_are_given_are_not_told_and_many_gaps_are_cut_short() -> None:
    given = tuple(f"blocks.{at}.attn.sinks" for at in (1, 4, 6, 8, 10))
    stored = replace(STORED, n_layers=12)
    changed = replace(stored, attention=replace(stored.attention, sinks=True))
    with pytest.raises(ConfigError) as error:
        overriding.fit(stored, changed, ["attention.sinks"], given)
    (fault,) = error.value.faults
    assert fault.detail.startswith(
        "attention.sinks = true needs blocks.0,2-3,5,7,….attn.sinks (3), which this model"
    )


def test_model_of_many_blocks_is_refused_in_few_words() -> None:
    encoder = replace(STORED, vocab=None, tied=False, n_layers=500)
    faults = refused({"cross_attention": True, "encoder": encoder, "n_layers": 400}, "encoder")
    assert all("blocks.2-399." in fault.detail or "0-499" in fault.detail for fault in faults)
    assert all(len(fault.detail) < 2000 for fault in faults)


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"tied": False}, "tied", "tied = false needs unembed.W_U (12, 11),"),
        ({"mlm_head": True}, "mlm_head", "mlm_head = true needs mlm_head.W (12, 12),"),
    ],
)
def test_true_and_false_are_told(changes: dict[str, Any], field: str, said: str) -> None:
    (fault,) = refused(changes, field)
    assert fault.detail.startswith(said)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        (part("attention", sinks=True), "attention.sinks"),
        ({"tied": False}, "tied"),
        ({"mlm_head": True}, "mlm_head"),
        ({"token_types": 2}, "token_types"),
        ({"cross_attention": True}, "cross_attention"),
        ({"position": position_config("t5_bias", 4)}, "position.kind"),
        ({"vocab": 12}, "vocab"),
        (part("ffn", d_ff=8), "ffn.d_ff"),
        (part("attention", n_kv_heads=1), "attention.n_kv_heads"),
        (part("attention", bias=AttentionBias(q=True), d_head=2), "attention.d_head"),
    ],
)
def test_change_that_the_weights_cannot_serve_is_refused_by_name(
    changes: dict[str, Any], field: str
) -> None:
    faults = refused(changes, "attention.bias.q", field, "norm.eps")
    assert {fault.place for fault in faults} == {tuple(field.split("."))}


def test_each_field_has_its_own_fault() -> None:
    changes = {"n_layers": 3, "vocab": 12, **part("attention", sinks=True)}
    faults = refused(changes, "n_layers", "attention.sinks", "vocab")
    assert {fault.place for fault in faults} == {("n_layers",), ("attention", "sinks"), ("vocab",)}


def test_encoder_is_refused_where_it_was_asked_for() -> None:
    encoder = replace(STORED, vocab=None, tied=False)
    faults = refused({"cross_attention": True, "encoder": encoder}, "encoder")
    assert {fault.place for fault in faults} == {("encoder",)}


def test_tensor_that_two_fields_need_is_refused_at_the_config() -> None:
    changes = {"d_model": 10, "vocab": 12}
    places = {fault.place for fault in refused(changes, "d_model", "vocab")}
    assert places == {("d_model",), ()}  # W_E has both


def test_what_is_given_whole_is_not_lacking() -> None:
    assert fit({"tied": False}, "tied", given=("unembed.W_U",)) == Fit()
    assert fit(
        part("norm", placement="sandwich"), given=("blocks.0.norm1_post.weight",)
    ).filled == (
        "blocks.0.norm1_post.bias",
        "blocks.0.norm2_post.weight",
        "blocks.0.norm2_post.bias",
        "blocks.1.norm1_post.weight",
        "blocks.1.norm1_post.bias",
        "blocks.1.norm2_post.weight",
        "blocks.1.norm2_post.bias",
    )


@pytest.mark.parametrize(
    ("changes", "field", "expected"),
    [
        (part("norm", eps=0.5), "norm.eps", True),
        (part("norm", eps=0.5), "norm.placement", False),
        (part("ffn", bias=FfnBias(in_=True, out=False)), "ffn.bias.in", True),
        (part("ffn", bias=FfnBias(in_=True, out=False)), "ffn.bias.out", False),
        ({"encoder": replace(STORED, vocab=None)}, "encoder.norm.eps", True),
    ],
)
def test_fields_that_differ_are_known(changes: dict[str, Any], field: str, expected: bool) -> None:
    assert overriding.differs(STORED, replace(STORED, **changes), field) is expected
