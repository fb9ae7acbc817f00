"""Options that no family of ours has, beside the models of upstream that are known for them."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from compute import config_rules, positions, tensors, weights
from compute.config import ModelConfig, block_config
from compute.types import DType, Inputs
from compute.weights import ModelWeights
from parity import changes, options, references
from parity.changes import Change
from parity.references import Arrays, Reference

FOLDERS = [name for name in references.folders() if name.startswith("option-")]
REFERENCES = [each for name in FOLDERS for each in references.references(name)]
RUNS = [*REFERENCES, *references.narrowed(REFERENCES)]

BLOOM = 1e-9
"""Its gelu has the root of 2/π as 0.79788456, which is 1e-9 below it."""


def inputs_of(reference: Reference) -> Inputs:
    """What the model was called with: token ids, or the rows of torch's decoder layer."""
    given = reference.given
    if "tgt" not in given:
        return references.inputs_of(given)
    seen, padding = given.get("tgt_mask"), given.get("memory_key_padding_mask")
    memory = Inputs(
        tensor=given["memory"].astype(reference.dtype),
        key_mask=None if padding is None else ~padding,
    )
    return Inputs(
        tensor=given["tgt"].astype(reference.dtype),
        attention_mask=None if seen is None else ~seen,
        memory=memory,
    )


def packed(config: ModelConfig, named: Arrays, dtype: DType) -> ModelWeights:
    assert set(tensors.tensors(config)) <= set(named)
    return weights.build(config, lambda tensor: named[tensor.name], dtype)


def test_every_folder_of_an_option_is_mapped() -> None:
    assert list(options.OPTIONS) == FOLDERS


def test_every_value_that_is_kept_is_compared() -> None:
    for folder in FOLDERS:
        compared = {
            f"{each.run}/{name}"
            for each in references.references(folder)
            for name in [*each.given, *(f"{each.dtype}/{value}" for value in each.values)]
        }
        assert compared == set(references.values_of(folder)) - {"slopes"}, folder


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_tensor_of_an_option_is_mapped(folder: str) -> None:
    config, named = options.option(folder)
    config_rules.check(config)
    listed = tensors.tensors(config)
    assert {name: x.shape for name, x in named.items()} == {n: t.shape for n, t in listed.items()}


@pytest.mark.parametrize("reference", RUNS, ids=str)
def test_an_options_hidden_states_patterns_and_logits_are_upstreams(reference: Reference) -> None:
    config, named = options.option(reference.folder)
    ours = packed(config, named, reference.dtype)
    exact = BLOOM if reference.folder == "option-bloom" else references.FLOAT64
    agreement = references.compare(config, ours, inputs_of(reference), reference, exact)
    assert agreement.faults == []


def test_slopes_of_six_heads_are_upstreams() -> None:
    theirs = references.values_of("option-bloom")["slopes"]
    np.testing.assert_allclose(positions.alibi_slopes(6, "bloom"), theirs, rtol=1e-15)


def test_a_sink_takes_what_the_keys_leave() -> None:
    reference = next(each for each in REFERENCES if str(each) == "option-gpt-oss-plain-float64")
    config, named = options.option(reference.folder)
    ours = packed(config, named, "float64")
    found = references.states(config, ours, inputs_of(reference), ["blocks.0.attn.sink"])
    left = 1.0 - reference.values["attn.0"].sum(axis=-1)
    np.testing.assert_allclose(found["blocks.0.attn.sink"], left, rtol=0, atol=1e-10)


def test_no_bound_of_gpt_oss_is_reached() -> None:
    """Its experts are ours only where |gate| and |up| stay below 7."""
    reference = next(each for each in REFERENCES if str(each) == "option-gpt-oss-plain-float64")
    config, named = options.option(reference.folder)
    ours = packed(config, named, "float64")
    stage = "blocks.0.norm2.out"
    F = references.states(config, ours, inputs_of(reference), [stage])[stage]
    for x, added in (("gate", 0.0), ("in", 1.0)):
        before = np.einsum("bnd,edf->bnef", F, named[f"blocks.0.ffn.W_{x}"])
        assert np.abs(before + named[f"blocks.0.ffn.b_{x}"] - added).max() < 7


def sequential(config: ModelConfig) -> ModelConfig:
    """One part after the other, behind norms of the same numbers."""
    return replace(config, topology="sequential", norm=replace(config.norm, shared=False))


WRONG: Mapping[str, tuple[str, Change]] = {
    "slopes by another rule": ("option-bloom", changes.position(alibi_rule="geometric")),
    "no norm of the embeddings": ("option-bloom", changes.whole(embed_norm=False)),
    "embeddings as they are": ("option-granite", changes.whole(embed_multiplier=1.0)),
    "parts added as they are": ("option-granite", changes.whole(residual_multiplier=1.0)),
    "logits as they are": ("option-granite", changes.whole(logit_multiplier=1.0)),
    "another scale": ("option-granite", changes.attention(scale=0.5)),
    "no sinks": ("option-gpt-oss", changes.attention(sinks=False)),
    "a window one longer": ("option-gpt-oss", changes.attention(window=4)),
    "a router without bias": ("option-gpt-oss", changes.ffn(router_bias=False)),
    "another activation": ("option-gpt-oss", changes.ffn(activation="silu")),
    "weights renormalised": ("option-qwen2-moe", changes.ffn(renormalize=True)),
    "the shared expert whole": ("option-qwen2-moe", changes.ffn(shared_gate=False)),
    "no shared expert": ("option-qwen2-moe", changes.ffn(shared_gate=False, d_shared=0)),
    "no shared expert beside": ("option-granite-moe-shared", changes.ffn(d_shared=0)),
    "an expert's output whole": ("option-switch", changes.ffn(renormalize=True)),
    "a gate for none": ("option-switch", changes.ffn(activation="silu")),
    "pairs half a head apart": ("option-gptj", changes.position(pairing="half")),
    "one part after the other": ("option-gptj", sequential),
    "the same in both blocks": (
        "option-cohere2",
        lambda c: replace(block_config(c, 0), layers=()),
    ),
    "a block that turns nothing turned": (
        "option-cohere2",
        lambda c: replace(c, layers=(c.layers[0], replace(c.layers[1], theta=100.0))),
    ),
    "gains without their 1": ("option-nemotron", changes.norm(gain_offset=0.0)),
    "relu for its square": ("option-nemotron", changes.ffn(activation="relu")),
    "no positions": ("option-sinusoidal", changes.position(kind="none")),
    "another norm's place": ("option-torch-decoder-post-norm", changes.norm(placement="pre")),
    "another norm's place before": (
        "option-torch-decoder-pre-norm",
        changes.norm(placement="post"),
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_another_option_is_seen(what: str) -> None:
    folder, change = WRONG[what]
    config, named = options.option(folder)
    wrong = change(config)
    doubled = {name.replace("norm1", "norm2"): x for name, x in named.items() if "norm1" in name}
    ours = packed(wrong, {**doubled, **named}, "float64")
    seen = [
        references.compare(wrong, ours, inputs_of(each), each).faults
        for each in references.references(folder)
        if each.dtype == "float64"
    ]
    assert any(seen)
