"""The seeded cases: they are valid, they meet every option often, their axes tell apart."""

from collections import Counter
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest

from compute import config_json, stages
from oracle.configs import ACTIVATIONS, Case, random_case
from oracle.forward import trace
from oracle.functions import Config

FIRST = range(200)
OFTEN = 8

OPTIONS = {
    *(f"input {name}" for name in ("token_ids", "tensor", "batched", "single", "one row")),
    *(f"layers {number}" for number in (1, 2, 3)),
    *(f"parts {name}" for name in ("both", "attention only", "ffn only")),
    *("parts attention only, post-norm", "parts ffn only, post-norm"),
    *(f"norm {name}" for name in ("layernorm", "rmsnorm", "none", "pre", "post", "offset")),
    *(f"heads {name}" for name in ("one", "ungrouped", "grouped", "one kv head", "default scale")),
    *(f"heads {name}" for name in ("own scale", "no biases", "all biases")),
    *(f"bias {name}" for name in ("q", "k", "v", "o", "in", "gate", "out")),
    *(f"mask {name}" for name in ("causal", "full", "narrow window", "wide window")),
    *(f"mask {name}" for name in ("padding", "holes", "pairs", "rows without a key")),
    *(f"mask {name}" for name in ("keys shared", "keys of each", "pairs shared", "pairs of each")),
    *(f"ffn {name}" for name in ("mlp", "gated", *ACTIVATIONS)),
    *(f"position {name}" for name in ("none", "sinusoidal", "learned", "rope", "alibi")),
    *(f"position {name}" for name in ("given", "of each", "shared", "padded and not given")),
    *(f"rope {name}" for name in ("half", "interleaved", "whole head", "part of head")),
    *(f"rope {name}" for name in ("half, many pairs", "interleaved, many pairs", "grouped heads")),
    *(f"alibi {name}" for name in ("bloom", "geometric", "power of two", "no power of two")),
    *(f"sinusoidal {name}" for name in ("odd", "even")),
    *(f"readout {name}" for name in ("none", "tied", "untied", "bias", "no bias", "of a tensor")),
    *("final norm pre", "final norm post", "final norm none", "final norm without vocab"),
}


@cache
def case_of(seed: int) -> Case:
    return random_case(seed)


def options_of(case: Case) -> Iterator[str]:
    """The options a case meets, by the words above."""
    yield from of_input(case)
    yield from of_stack(case.config)
    yield from of_norm(case.config)
    yield from of_readout(case)
    yield from of_position(case)
    if case.config["attention"]["kind"] != "none":
        yield from of_heads(case.config["attention"])
        yield from of_masks(case)
    if case.config["ffn"]["kind"] != "none":
        yield from of_ffn(case.config["ffn"])


def rows_of(case: Case) -> tuple[int, bool]:
    """(n, the input has a batch axis)."""
    if "tensor" in case.inputs:
        return case.inputs["tensor"].shape[-2], case.inputs["tensor"].ndim == 3
    return case.inputs["token_ids"].shape[-1], case.inputs["token_ids"].ndim == 2


def of_input(case: Case) -> Iterator[str]:
    n, batched = rows_of(case)
    yield "input tensor" if "tensor" in case.inputs else "input token_ids"
    yield "input batched" if batched else "input single"
    if n == 1:
        yield "input one row"


def of_stack(config: Config) -> Iterator[str]:
    yield f"layers {config['n_layers']}"
    placed = ", post-norm" if config["norm"].get("placement") == "post" else ""
    for part, other in (("attention", "ffn"), ("ffn", "attention")):
        if config[other]["kind"] == "none":
            yield from (f"parts {part} only", f"parts {part} only{placed}")
            return
    yield "parts both"


def of_norm(config: Config) -> Iterator[str]:
    norm = config["norm"]
    yield f"norm {norm['kind']}"
    if norm["kind"] != "none":
        yield f"norm {norm['placement']}"
        yield from ["norm offset"] if norm["gain_offset"] else []


def of_heads(attention: Config) -> Iterator[str]:
    h, g, bias = attention["n_heads"], attention["n_kv_heads"], attention["bias"]
    yield "heads one" if h == 1 else "heads ungrouped" if h == g else "heads grouped"
    yield from ["heads one kv head"] if 1 == g < h else []
    is_default = attention["scale"] == attention["d_head"] ** -0.5
    yield "heads default scale" if is_default else "heads own scale"
    yield from (f"bias {letter}" for letter, exists in bias.items() if exists)
    yield from ["heads all biases"] if all(bias.values()) else []
    yield from [] if any(bias.values()) else ["heads no biases"]


def of_masks(case: Case) -> Iterator[str]:
    attention, (n, batched) = case.config["attention"], rows_of(case)
    yield f"mask {attention['mask']}"
    if attention["window"] is not None:
        yield "mask narrow window" if attention["window"] < n else "mask wide window"
    for name, word, axes in (("key_mask", "keys", 1), ("attention_mask", "pairs", 2)):
        if name in case.inputs and batched:
            yield (
                f"mask {word} shared" if case.inputs[name].ndim == axes else f"mask {word} of each"
            )
    if "attention_mask" in case.inputs:
        yield "mask pairs"
    yield from of_key_mask(np.atleast_2d(case.inputs.get("key_mask", np.ones(n, dtype=bool))))
    if np.any(np.all(np.isneginf(scores_of(case)), axis=-1)):
        yield "mask rows without a key"


def of_key_mask(key_mask: np.ndarray) -> Iterator[str]:
    if np.any(~key_mask[:, 0] & key_mask.any(axis=1)):
        yield "mask padding"
    if np.any(np.maximum.accumulate(key_mask, axis=1) & ~key_mask):
        yield "mask holes"


def scores_of(case: Case) -> np.ndarray:
    return trace(case.config, case.weights, **case.inputs)["blocks.0.attn.scores"]


def of_ffn(ffn: Config) -> Iterator[str]:
    yield f"ffn {ffn['kind']}"
    yield f"ffn {ffn['activation']}"
    yield from (f"bias {side}" for side, exists in ffn["bias"].items() if exists)


def of_position(case: Case) -> Iterator[str]:
    position, ids = case.config["position"], case.inputs.get("position_ids")
    yield f"position {position['kind']}"
    if ids is not None:
        yield "position given"
    if ids is not None and rows_of(case)[1]:
        yield "position shared" if ids.ndim == 1 else "position of each"
    if ids is None and not np.all(case.inputs.get("key_mask", True)):
        yield from ["position padded and not given"] if position["kind"] != "none" else []
    if position["kind"] == "rope":
        yield from of_rope(position, case.config["attention"])
    if position["kind"] == "alibi":
        yield f"alibi {position['alibi_rule']}"
        is_power = case.config["attention"]["n_heads"] in (1, 2, 4, 8)
        yield "alibi power of two" if is_power else "alibi no power of two"
    if position["kind"] == "sinusoidal":
        yield "sinusoidal odd" if case.config["d_model"] % 2 else "sinusoidal even"


def of_rope(rope: Config, attention: Config) -> Iterator[str]:
    yield f"rope {rope['pairing']}"
    is_whole = rope["rotary_dim"] == attention["d_head"]
    yield "rope whole head" if is_whole else "rope part of head"
    yield from [f"rope {rope['pairing']}, many pairs"] if rope["rotary_dim"] > 2 else []
    yield from ["rope grouped heads"] if attention["n_kv_heads"] < attention["n_heads"] else []


def of_readout(case: Case) -> Iterator[str]:
    config = case.config
    placed = config["norm"].get("placement", "none")
    yield f"final norm {placed}" if config["final_norm"] else "final norm none"
    if config["vocab"] is None:
        yield "readout none"
        yield from ["final norm without vocab"] if config["final_norm"] else []
        return
    yield "readout tied" if config["tied"] else "readout untied"
    yield "readout bias" if config["unembed_bias"] else "readout no bias"
    yield from ["readout of a tensor"] if "tensor" in case.inputs else []


def test_every_option_is_met_often() -> None:
    met = Counter(option for seed in FIRST for option in set(options_of(case_of(seed))))
    assert met.keys() <= OPTIONS
    assert {option: met[option] for option in sorted(OPTIONS) if met[option] < OFTEN} == {}


def test_the_same_seed_gives_the_same_case() -> None:
    one, again = random_case(5), random_case(5)
    assert one.config == again.config
    assert one.weights.keys() == again.weights.keys()
    assert all(np.array_equal(one.weights[name], again.weights[name]) for name in one.weights)
    assert all(np.array_equal(one.inputs[name], again.inputs[name]) for name in one.inputs)


def test_a_config_is_what_compute_writes() -> None:
    for seed in FIRST:
        config = case_of(seed).config
        assert config_json.as_json(config_json.from_json(config)) == config


@pytest.mark.parametrize("seed", FIRST)
def test_a_trace_has_every_stage_of_the_catalogue_with_its_axes(seed: int) -> None:
    case = case_of(seed)
    config = config_json.from_json(case.config)
    n, batched = rows_of(case)
    b = next(iter(case.inputs.values())).shape[0] if batched else None
    lengths = stages.dimensions(config, n, b)
    expected = {
        name: tuple(lengths[axis] for axis in stages.axes_of(stage, batched))
        for name, stage in stages.in_order(config.n_layers)
        if stage.absent(config, "token_ids" in case.inputs) is None
    }
    traced = trace(case.config, case.weights, **case.inputs)
    assert {name: value.shape for name, value in traced.items()} == expected
    assert all(value.dtype == np.float64 for value in traced.values())
    assert all(np.isfinite(v).all() for k, v in traced.items() if not k.endswith("attn.scores"))


def test_stages_come_in_the_catalogues_order_where_norms_come_first() -> None:
    for seed in FIRST:
        case = case_of(seed)
        if case.config["norm"].get("placement") != "post":
            catalogue = [name for name, _ in stages.in_order(case.config["n_layers"])]
            traced = list(trace(case.config, case.weights, **case.inputs))
            assert traced == [name for name in catalogue if name in traced]


def test_no_two_axes_of_an_ungrouped_case_are_equally_long() -> None:
    for seed in FIRST:
        case = case_of(seed)
        attention, ffn = case.config["attention"], case.config["ffn"]
        n, _ = rows_of(case)
        lengths = [case.config["d_model"], case.config["vocab"], ffn.get("d_ff"), n]
        lengths += [attention.get(name) for name in ("n_heads", "d_head", "d_value")]
        known = [length for length in lengths if length not in (None, 1)]
        assert len(known) == len(set(known))
