"""docs/names.md: its tables have every name, and what they say of Hugging Face's files runs."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import orjson
import pytest
from starlette.testclient import TestClient

from compute import config, config_json, tensors
from compute.stages import STAGES
from schemas.config import ConfigAsked
from service.app import create_app
from service.settings import Settings

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "names.md").read_text("utf-8")
REFERENCE = orjson.loads((HERE / "hugging_face.json").read_bytes())
FAMILIES = ("GPT-2", "BERT", "Llama")
CHOICES = ("attention.mask", "ffn.kind", "norm.kind", "norm.placement", "position.kind")
ROUNDING = 1e-6  # transformers has RMSNorm and RoPE in float32, whatever the model's dtype

Array = npt.NDArray[np.float64]


def rows(heading: str, table: int = 0) -> list[list[str]]:
    """The cells of a table under a heading, without its head."""
    section = re.split(r"^#+ ", PAGE.partition(f"# {heading}\n")[2], flags=re.M)[0]
    found = re.findall(r"(?:^\|.*\n)+", section, re.M)[table].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found]


def code(cell: str) -> str:
    return re.findall("`([^`]+)`", cell)[0]


SIZES: dict[str, Any] = {"d_model": 13, "vocab": 17, "attention": {
    "n_heads": 6, "n_kv_heads": 2, "d_head": 5, "d_value": 7, "bias": True, "sinks": True,
    "qk_norm": "head"}}  # fmt: skip
GATED = {"kind": "gated", "d_ff": 11}
EXPERTS = {"kind": "moe", "d_ff": 11, "n_experts": 4, "top_k": 2, "bias": False,
           "router_bias": True, "d_shared": 3, "shared_gate": True}  # fmt: skip
LEARNED = {"kind": "learned", "n_positions": 3}
ASKED = [
    {"ffn": EXPERTS, "mlm_head": True, "token_types": 2, "embed_norm": True},
    {"ffn": GATED, "position": LEARNED, "unembed_bias": True, "norm": {"placement": "sandwich"}},
    {"ffn": GATED, "position": {"kind": "t5_bias", "n_buckets": 8}, "cross_attention": True},
]
"""Together they have every tensor; the last ones have an ffn without experts."""


def every_tensor() -> dict[str, str]:
    """Each tensor of a block and a stack -> its axes; several configs together have them all."""
    found = {}
    for asked in ASKED:
        made = ConfigAsked.model_validate(SIZES | asked).to_compute()
        found |= {name: " ".join(x.axes) for name, x in tensors.tensors(made).items()}
    return found


def test_every_tensor_has_its_axes_and_its_name_in_transformer_lens() -> None:
    told = {code(row[0]).replace("{l}", "0"): row[1:] for row in rows("Weights: TransformerLens")}
    listed = every_tensor()
    assert {name.removeprefix("blocks.0.") for name in listed} == set(tensors.EXISTS)
    assert told.keys() == listed.keys()
    theirs = {"h": "n_heads", "g": "n_heads", "d": "d_model", "k": "d_head", "v": "d_head",
              "f": "d_mlp", "V": "d_vocab", "n": "n_ctx", "t": "2", "r": "n_buckets",
              "p": "d_model"}  # fmt: skip
    for name, (axes, _, other, other_axes) in told.items():
        assert axes == listed[name]
        if other:
            expected = ", ".join(theirs[letter] for letter in axes.split())
            assert other_axes.replace("_out", "") == expected


def test_every_symbol_has_its_stage_and_its_equation() -> None:
    told = {}
    for symbols, stages, equation, section in rows("The article's symbols"):
        told |= zip(symbols.split(", "), re.findall("`([^`]+)`", stages), strict=True)
        assert equation
        assert section
    symbols = {stage.symbol: stage.name for stage in STAGES if stage.symbol}
    assert told == symbols | {"X^(N)": "resid_post"}


def test_every_field_of_a_config_and_every_activation_is_mapped() -> None:
    parts: dict[str, Any] = {"attention": config.AttentionConfig, "ffn": config.FfnConfig,
             "norm": config.NormConfig, "position": config.PositionConfig}  # fmt: skip
    fields = [
        f"{field.name}.{inner.name}" if field.name in parts else field.name
        for field in dataclasses.fields(config.ModelConfig)
        for inner in dataclasses.fields(parts.get(field.name, ModelAlone))
        if (field.name, inner.name) != ("attention", "kind")
    ]
    told = [code(row[0]) for row in rows("Config")]
    told_too = [name for row in rows("Config") for name in re.findall("`([^`]+)`", row[0])[1:]]
    assert sorted([*told, *told_too]) == sorted(fields)
    activations = [code(row[0]) for row in rows("Config", 1)]
    assert sorted(activations) == sorted(get_args(config.ActivationName))


@dataclasses.dataclass
class ModelAlone:
    """A field of the model itself, no part: one name."""

    itself: None = None


def lengths(family: str) -> dict[str, int]:
    """Axis letter -> length, of the reference's model."""
    asked = asked_config(family)
    attention = asked["attention"]
    d, h = asked["d_model"], attention["n_heads"]
    g, k = attention.get("n_kv_heads", h), attention.get("d_head", d // h)
    n = asked["position"].get("n_positions", 0)
    t, f, V = asked.get("token_types", 0), asked["ffn"]["d_ff"], asked["vocab"]
    return {"d": d, "h": h, "g": g, "k": k, "f": f, "V": V, "n": n, "t": t}


def asked_config(family: str) -> dict[str, Any]:
    """Our config as the page's table makes it from theirs."""
    theirs = REFERENCE[family]["config"]
    asked: dict[str, Any] = {}
    for row in rows("Config"):
        field, cell = code(row[0]), row[3 + FAMILIES.index(family)]
        for value in _values(field, cell, theirs):
            part, _, name = field.rpartition(".")
            (asked.setdefault(part, {}) if part else asked)[name] = value
    return asked


def _values(field: str, cell: str, theirs: dict[str, Any]) -> Iterator[object]:
    """What a cell makes of a field: one value, or none where it says what the default is."""
    named = re.match("`([a-z_]+)`", cell)
    if named and named[1] in theirs:
        value = theirs[named[1]]
        yield activation(value) if field == "ffn.activation" else value
    elif cell in {"true", "false"}:
        yield cell == "true"
    elif field in CHOICES:
        yield cell


def activation(theirs: str) -> str:
    (ours,) = [code(row[0]) for row in rows("Config", 1) if f"`{theirs}`" in row[2]]
    return ours


def converted(family: str, layer: int) -> dict[str, Array]:
    """Our tensors, each made by its line of the page from what the reference stores."""
    stored = {
        re.sub(r"^(transformer|bert)\.", "", name): np.array(value)
        for name, value in REFERENCE[family]["stored"].items()
    }
    found = {}
    for ours, theirs, shape, line in rows(family):
        w = stored[code(theirs).replace("{l}", str(layer))]
        told = [side.replace(" ", "*") for side in shape.split(", ")]
        assert w.shape == tuple(eval(side, {}, lengths(family)) for side in told), theirs
        made = eval(code(line), {"np": np, "w": w, **lengths(family)})
        found[code(ours).replace("{l}", str(layer))] = made
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_of_hugging_face_become_ours_line_by_line(family: str) -> None:
    reference, states = REFERENCE[family], trace(family)
    layers = len(reference["attentions"])
    streams = [states[f"blocks.{layer}.resid_pre"] for layer in range(layers)]
    last = states.get("final_norm.out", states[f"blocks.{layers - 1}.resid_post"])
    close(reference["hidden_states"], [*streams, last])
    close(reference["attentions"], [states[f"blocks.{i}.attn.pattern"] for i in range(layers)])
    close(reference["logits"], states["logits"])


def close(theirs: object, ours: object) -> None:
    np.testing.assert_allclose(np.array(ours), np.array(theirs), rtol=0, atol=ROUNDING)


def trace(family: str) -> dict[str, Any]:
    """Every stage of a run of the reference's model, as the service answers it."""
    asked = asked_config(family)
    given = {key: REFERENCE[family].get(key) for key in ("token_ids", "token_types")}
    weights = {}
    for layer in range(asked["n_layers"]):
        weights |= converted(family, layer)
    given_tensors = {name: value.tolist() for name, value in weights.items()}
    request = {
        "model": {"config": asked, "weights": {"init": "zeros", "tensors": given_tensors}},
        "input": {key: value for key, value in given.items() if value is not None},
        "dtype": "float64",
    }
    response = TestClient(create_app(Settings())).post("/v1/trace", json=request)
    assert response.status_code == 200, response.text
    answer = response.json()
    assert sorted(answer["model"]["weights"]["given"]) == sorted(weights)
    assert len(weights) == len(tensors_of(answer["model"]["config"]))
    return {name: tensor["data"] for name, tensor in answer["tensors"].items()}


def tensors_of(resolved: dict[str, Any]) -> list[str]:
    """The names of all tensors of a config as answered."""
    return list(tensors.tensors(config_json.from_json(resolved)))
