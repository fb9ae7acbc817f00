"""The fields of a config.json: each of its type and within bounds, faults by key, all at once."""

from collections.abc import Callable

import pytest

from compute.checkpoints.fields import ACTIVATIONS, Fields
from compute.checkpoints.rope import NO_SCALING, Rope, rope
from compute.config import RopeScaling
from compute.errors import ModelError

Reading = Callable[[Fields], object]

WRONG: dict[str, tuple[dict[str, object], Reading]] = {
    "size missing": ({}, lambda fields: fields.size("x")),
    "size null": ({"x": None}, lambda fields: fields.size("x")),
    "size zero": ({"x": 0}, lambda fields: fields.size("x")),
    "size negative": ({"x": -3}, lambda fields: fields.size_or("x", 1)),
    "size a float": ({"x": 2.0}, lambda fields: fields.size("x")),
    "size a flag": ({"x": True}, lambda fields: fields.size("x")),
    "size a string": ({"x": "8"}, lambda fields: fields.size("x")),
    "size too large": ({"x": (1 << 20) + 1}, lambda fields: fields.size("x")),
    "size past int64": ({"x": 10**400}, lambda fields: fields.size("x")),
    "count negative": ({"x": -1}, lambda fields: fields.count_or("x", 0)),
    "number missing": ({}, lambda fields: fields.number("x")),
    "number zero": ({"x": 0}, lambda fields: fields.number("x")),
    "number negative": ({"x": -1e-5}, lambda fields: fields.number_or("x", 1.0)),
    "number infinite": ({"x": float("inf")}, lambda fields: fields.number("x")),
    "number past float64": ({"x": 10**400}, lambda fields: fields.number("x")),
    "number a flag": ({"x": True}, lambda fields: fields.number("x")),
    "number a list": ({"x": [1.0]}, lambda fields: fields.number("x")),
    "flag a number": ({"x": 1}, lambda fields: fields.flag("x", False)),
    "choice unknown": ({"x": "sillu"}, lambda fields: fields.activation("x", "gelu")),
    "choice a number": ({"x": 3}, lambda fields: fields.activation("x", "gelu")),
    "names unknown": ({"x": ["a", "c"]}, lambda fields: fields.names("x", ("a", "b"))),
    "names a string": ({"x": "a"}, lambda fields: fields.names("x", ("a", "b"))),
    "names of lists": ({"x": [["a"]]}, lambda fields: fields.names("x", ("a", "b"))),
    "option": ({"x": True}, lambda fields: fields.must_be("x", False, default=False)),
    "option by default": ({}, lambda fields: fields.must_be("x", False, default=True)),
    "option of another type": ({"x": 0}, lambda fields: fields.must_be("x", False, default=False)),
    "no object": ({"x": 3}, lambda fields: fields.nested("x")),
    "fault within": ({"x": {}}, lambda fields: fields.nested("x").size("y")),
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_wrong_field_is_refused_by_its_key(name: str) -> None:
    raw, read = WRONG[name]
    fields = Fields(raw)
    read(fields)
    with pytest.raises(ModelError) as refused:
        fields.check()
    (fault,) = refused.value.faults
    assert fault.place[:2] == ("config.json", "x")
    assert fault.detail.startswith(("x ", "y "))
    assert len(fault.detail) < 400


def test_all_faults_are_told_at_once() -> None:
    fields = Fields({"a": 0, "b": "x", "c": "silly"})
    fields.size("a")
    fields.number("b")
    fields.activation("c", "gelu")
    fields.nested("d").size("e")
    with pytest.raises(ModelError) as refused:
        fields.check()
    places = [fault.place for fault in refused.value.faults]
    assert places == [("config.json", x) for x in "abc"] + [("config.json", "d", "e")]


def test_refused_activation_names_the_nearest_and_those_there_are() -> None:
    fields = Fields({"hidden_act": "swishh"})
    fields.activation("hidden_act", "gelu")
    with pytest.raises(ModelError, match=r"gelu_pytorch_tanh.*got 'swishh'\. Nearest: swish\."):
        fields.check()


def test_null_is_left_out() -> None:
    fields = Fields(dict.fromkeys("abcdefg"))
    assert fields.size_or("a", 5) == 5
    assert fields.size_or("a", None) is None
    assert fields.number_or("b", 0.5) == 0.5
    assert fields.flag("c", True) is True
    assert fields.activation("d", "gelu_new") == "gelu_tanh"
    assert fields.names("e", ("x",)) is None
    assert not fields.nested("f").has("x")
    fields.must_be("g", 3, default=3)
    fields.check()


def test_every_activation_is_one_of_ours() -> None:
    from compute.activations import ACTIVATIONS as OURS  # noqa: PLC0415 - the same name

    assert set(ACTIVATIONS.values()) <= set(OURS) | {"relu2"}


def test_headless_is_what_was_stored_as_a_stack() -> None:
    assert Fields({"architectures": ["LlamaModel"]}).headless
    assert not Fields({"architectures": ["LlamaForCausalLM"]}).headless
    assert not Fields({"architectures": []}).headless
    assert not Fields({"architectures": "LlamaModel"}).headless


PLAIN = {"max_position_embeddings": 64}
ROPES: dict[str, tuple[dict[str, object], Rope]] = {
    "nothing said": ({}, Rope(10000.0, NO_SCALING, 1.0)),
    "classic": ({"rope_theta": 5e5, "rope_scaling": None}, Rope(5e5, NO_SCALING, 1.0)),
    "classic part": ({"partial_rotary_factor": 0.25}, Rope(10000.0, NO_SCALING, 0.25)),
    "classic linear": (
        {"rope_scaling": {"type": "linear", "factor": 4}},
        Rope(10000.0, RopeScaling(kind="linear", factor=4.0), 1.0),
    ),
    "parameters": (
        {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}},
        Rope(1e6, NO_SCALING, 1.0),
    ),
    "parameters by layer": (
        {"rope_parameters": {"sliding": {"rope_theta": 7.0}, "full": {"rope_theta": 8.0}}},
        Rope(7.0, NO_SCALING, 1.0),
    ),
    "dynamic": (
        {"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}, **PLAIN},
        Rope(10000.0, RopeScaling(kind="dynamic", factor=2.0, original_positions=64), 1.0),
    ),
    "llama3": (
        {
            "rope_parameters": {
                "rope_type": "llama3",
                "rope_theta": 10000.0,
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 32,
            }
        },
        Rope(10000.0, RopeScaling(kind="llama3", factor=8.0, original_positions=32), 1.0),
    ),
    "yarn": (
        {
            "rope_scaling": {
                "rope_type": "yarn",
                "factor": 4.0,
                "original_max_position_embeddings": 16,
                "attention_factor": 1.5,
                "beta_slow": 2.0,
            }
        },
        Rope(
            10000.0,
            RopeScaling(
                kind="yarn",
                factor=4.0,
                original_positions=16,
                beta_slow=2.0,
                attention_factor=1.5,
            ),
            1.0,
        ),
    ),
}


@pytest.mark.parametrize("name", sorted(ROPES))
def test_rope_is_read_from_the_keys_of_either_time(name: str) -> None:
    raw, expected = ROPES[name]
    fields = Fields(raw)
    assert rope(fields, layer_type="sliding") == expected
    fields.check()


def test_yarn_scales_by_the_logarithm_of_its_factor() -> None:
    scaling: dict[str, object] = {"type": "yarn", "factor": 4.0}
    fields = Fields({"rope_scaling": scaling, **PLAIN})
    assert rope(fields).scaling.attention_factor == pytest.approx(1.138629436111989, rel=1e-15)
    scaling |= {"mscale": 0.5, "mscale_all_dim": 0.25}
    assert rope(fields).scaling.attention_factor == pytest.approx(
        1.0693147180559945 / 1.0346573590279972, rel=1e-15
    )


ROPE_FAULTS: dict[str, tuple[dict[str, object], str]] = {
    "unknown kind": ({"rope_scaling": {"rope_type": "longrope"}}, "rope_type"),
    "unknown classic kind": ({"rope_scaling": {"type": "su"}}, "type"),
    "no factor": ({"rope_scaling": {"type": "linear"}}, "factor"),
    "factor zero": ({"rope_scaling": {"type": "linear", "factor": 0}}, "factor"),
    "no object": ({"rope_scaling": "linear"}, "rope_scaling"),
    "parameters no object": ({"rope_parameters": [1]}, "rope_parameters"),
    "theta negative": ({"rope_theta": -1.0}, "rope_theta"),
    "more than a head": ({"partial_rotary_factor": 1.5}, "partial_rotary_factor"),
    "not truncated": (
        {"rope_scaling": {"type": "yarn", "factor": 2.0, "truncate": False}, **PLAIN},
        "truncate",
    ),
    "bounds crossed": (
        {
            "rope_scaling": {
                "type": "llama3",
                "factor": 2.0,
                "low_freq_factor": 4.0,
                "high_freq_factor": 1.0,
            },
            **PLAIN,
        },
        "high_freq_factor",
    ),
}


@pytest.mark.parametrize("name", sorted(ROPE_FAULTS))
def test_rope_that_is_not_computed_is_refused_by_its_key(name: str) -> None:
    raw, key = ROPE_FAULTS[name]
    fields = Fields(raw)
    rope(fields)
    with pytest.raises(ModelError) as refused:
        fields.check()
    assert [fault.place[-1] for fault in refused.value.faults] == [key]
