"""Presets there are not, and changes of a preset's config that do not go."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from door.case import MARK, Case, asked

_PRESET, _CONFIG = "/model/preset", "/model/config"
TINY: dict[str, Any] = {
    "model": {"preset": "gpt2-tiny"},
    "input": {"token_ids": [0, 1, 63]},
    "select": ["logits"],
}
"""Two blocks of 4 heads, width 32, 64 tokens, 64 learned positions."""

_preset = partial(asked, base=TINY)
NAMES = [
    *(_preset(f"preset {name!r}", {_PRESET: name}, "unknown_preset", says="GET /v1/presets")
      for name in (MARK, "gpt", "GPT2", "gpt-2", "gpt2 ", "gpt2\0", "letter-sort", "../gpt2", "*",
                   "openai-community/gpt2", "x" * 128)),
    *(_preset(f"preset = {value!r}", {_PRESET: value}, "string_type", says="A string is due here.")
      for value in (1, True, ["gpt2"], {"name": "gpt2"})),
    _preset("preset without a name", {_PRESET: ""}, "string_too_short"),
    _preset("preset of a long name", {_PRESET: MARK * 20}, "string_too_long"),
    _preset("preset that is null", {_PRESET: None}, {"/model": "exactly_one"},
            says="Give exactly one of name, preset and config"),
    _preset("preset and name", {"/model/name": "letter-sort"}, {"/model": "exactly_one"},
            says="A name and a preset do not go together."),
    _preset("preset, name and config", {"/model/name": "letter-sort", _CONFIG: {"n_layers": 1}},
            {"/model": "exactly_one"}),
    _preset("name of a model as a preset", {"/model": {"preset": "eiffel-toy"}},
            {_PRESET: "unknown_preset"}),
    _preset("name of a preset as a model", {"/model": {"name": "gpt2"}},
            {"/model/name": "unknown_model"}, "unknown-model"),
]  # fmt: skip


def _change(
    name: str, config: object, at: str, code: str, says: str = "", problem: str = "invalid-request"
) -> Case:
    return _preset(name, {_CONFIG: config}, {f"{_CONFIG}{at}": code}, problem, says=says)


def _rule(name: str, config: Mapping[str, object], at: str, says: str = "") -> Case:
    return _change(name, config, at, "config_rule", says, "config-rule")


CHANGES = [
    _change("unknown key", {MARK: 1}, f"/{MARK}", "extra_forbidden", "no such key"),
    _change("unknown key in a part", {"norm": {"epsilon": 1}}, "/norm/epsilon", "extra_forbidden",
            "Near it: eps"),
    _change("text for a config", MARK, "", "model_type", "An object is due here."),
    _change("list for a config", [{"n_layers": 1}], "", "model_type"),
    _change("text for a number", {"n_layers": "1"}, "/n_layers", "int_type"),
    _change("null for a part", {"attention": None}, "/attention", "model_type"),
    _change("null for a number of blocks", {"n_layers": None}, "/n_layers", "int_type"),
    _change("null for d_model", {"d_model": None}, "/d_model", "missing", "d_model is needed",
            "config-rule"),
    _change("null for n_heads", {"attention": {"n_heads": None}}, "/attention/n_heads", "missing",
            "n_heads is needed", "config-rule"),
    _change("zero blocks", {"n_layers": 0}, "/n_layers", "greater_than_equal", "at least 1"),
    _change("unknown kind", {"norm": {"kind": "batchnorm"}}, "/norm/kind", "literal_error"),
    _rule("heads that do not divide", {"attention": {"n_heads": 5}}, "/attention/n_heads",
          "d_model = 32 is not divisible by n_heads = 5"),
    _rule("width that the heads do not divide", {"d_model": 33}, "/d_model",
          "d_model = 33 is not divisible by n_heads = 4"),
    _rule("key heads that do not divide", {"attention": {"n_kv_heads": 3}}, "/attention/n_kv_heads",
          "n_heads = 4 is not a multiple of n_kv_heads = 3"),
    _rule("field of another kind of positions", {"position": {"theta": 10}}, "/position/theta",
          "position.kind = learned has no theta"),
    _rule("field of the kind it had", {"position": {"kind": "rope", "n_positions": 4}},
          "/position/n_positions", "position.kind = rope has no n_positions"),
    _rule("activation of no ffn", {"ffn": {"kind": "none", "activation": "relu"}},
          "/ffn/activation", "ffn.kind = none has no activation"),
    _rule("gate bias of an mlp", {"ffn": {"bias": {"gate": True}}}, "/ffn/bias/gate",
          "An mlp has no gate"),
    _rule("odd rotary width", {"position": {"kind": "rope", "rotary_dim": 3}},
          "/position/rotary_dim", "even and between 2 and d_head = 8"),
    _rule("rope and no attention", {"position": {"kind": "rope"}, "attention": {"kind": "none"}},
          "/position/kind", "rope works inside attention"),
    _rule("tied and no vocab", {"vocab": None, "tied": True}, "/tied", "it needs vocab"),
    _rule("neither attention nor ffn", {"attention": {"kind": "none"}, "ffn": {"kind": "none"}},
          "/ffn/kind", "A block needs attention"),
    _rule("cross-attention and norms around",
          {"norm": {"placement": "sandwich"}, "cross_attention": True},
          "/cross_attention", "norms are placed pre or post"),
    _rule("more experts chosen than there are", {"ffn": {"kind": "moe", "n_experts": 2,
          "top_k": 3}}, "/ffn/top_k", "more than there are experts"),
    _rule("layers of another number", {"layers": [{}]}, "/layers", "one entry for each block"),
    _rule("head of no readout", {"readout": False, "mlm_head": True}, "/mlm_head",
          "readout is false"),
    _change("experts without their number", {"ffn": {"kind": "moe", "top_k": 1}},
            "/ffn/n_experts", "missing", "n_experts is needed", "config-rule"),
    _rule("final norm and no norm", {"norm": {"kind": "none"}, "final_norm": True}, "/final_norm",
          "final_norm needs"),
]  # fmt: skip

FIT = [
    _preset("token out of the preset's vocabulary", {"/input/token_ids/1": 64},
            "out_of_vocabulary", "invalid-input", says="0 to 63"),
    _preset("tensor of another width", {"/input": {"tensor": [[1, 2, 3, 4]]}},
            {"/input/tensor": "shape_mismatch"}, "invalid-input", says="d_model = 32"),
    _preset("more positions than its table has", {"/input/token_ids": [0] * 65},
            "out_of_positions", "invalid-input", says="rows 0 to 63"),
    _preset("text for a preset", {"/input": {"text": MARK}}, {"/input/text": "no_tokenizer"},
            "invalid-input", says="Only a named model"),
    _preset("tokens where the vocab was taken", {_CONFIG: {"vocab": None}, "/select": ["Z"]},
            {"/input/token_ids": "no_vocab"}, "invalid-input"),
    _preset("weight of another block", {"/model/weights/tensors": {"blocks.2.attn.W_Q": [1]}},
            {"/model/weights/tensors/blocks.2.attn.W_Q": "unknown_tensor"}, "shape-mismatch",
            says="The blocks are 0 to 1."),
    _preset("weight of another shape", {"/model/weights/tensors": {"blocks.0.attn.W_Q": [1]}},
            {"/model/weights/tensors/blocks.0.attn.W_Q": "shape_mismatch"}, "shape-mismatch"),
    _preset("seed of zeros", {"/model/weights": {"init": "zeros", "seed": 1}},
            {"/model/weights": "seed_unused"}),
    _preset("stage the preset lacks", {"/select": ["attn.q_rot"]}, {"/select/0": "stage_absent"},
            "invalid-selection", says="rope"),
    _preset("deeper than blocks may be", {_CONFIG: {"n_layers": 65}},
            {f"{_CONFIG}/n_layers": "beyond_limit"}, "beyond-limit", says="blocks"),
    _preset("wider than a preset may be made", {_CONFIG: {"d_model": 8196}},
            {f"{_CONFIG}/d_model": "beyond_limit"}, "beyond-limit", says="d_model"),
    _preset("whole answer of a large preset", {_PRESET: "gpt2", "/select": None,
            "/input/token_ids": [0] * 1024}, {"": "beyond_limit"}, "beyond-limit",
            says="answer_elements"),
]  # fmt: skip
