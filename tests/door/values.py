"""Values of the wrong kind, outside the bounds, or none of the words: each field in turn."""

from collections.abc import Iterator, Mapping, Sequence

from door.case import EDIT, MARK, Case, Raw, asked

_CONFIG, _WEIGHTS = "/model/config", "/model/weights"
_ROPE = {"/model/config/position": {"kind": "rope"}}
_ALIBI = {"/model/config/position": {"kind": "alibi"}}
_LEARNED = {"/model/config/position": {"kind": "learned", "n_positions": 4}}
_EXPERTS = {"/model/config/ffn": {"kind": "moe", "n_experts": 4, "top_k": 2}}
_BUCKETS = {"/model/config/position": {"kind": "t5_bias"}}
_SCALED = {"/model/config/position": {
    "kind": "rope", "scaling": {"kind": "yarn", "factor": 2, "original_positions": 8}
}}  # fmt: skip
_ENCODER = {"/model/config/encoder": {"attention": {"n_heads": 2}}}
_EDITS = {"/model/weights": {"edits": [{**EDIT, "where": {"head": [1]}}]}}
_SELECT = {"/select": ["X", {"name": "A"}]}

FIELDS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "model": ("/model", {}),
    "name": ("/model/name", {_CONFIG: None}),
    "config": (_CONFIG, {}),
    **{
        name: (f"{_CONFIG}/{name.replace('.', '/')}", {})
        for name in (
            "d_model", "n_layers", "vocab", "tied", "unembed_bias", "final_norm",
            "attention", "attention.kind", "attention.n_heads", "attention.n_kv_heads",
            "attention.d_head", "attention.d_value", "attention.scale", "attention.mask",
            "attention.window", "attention.bias", "attention.bias.q", "attention.bias.o",
            "ffn", "ffn.kind", "ffn.d_ff", "ffn.activation", "ffn.bias", "ffn.bias.in",
            "ffn.bias.gate", "ffn.bias.out",
            "norm", "norm.kind", "norm.placement", "norm.eps", "norm.gain_offset",
            "position", "position.kind",
            "attention.softcap", "attention.qk_norm", "attention.sinks", "norm.bias", "norm.shared",
            "topology", "residual_multiplier", "embed_multiplier", "embed_norm", "token_types",
            "layers", "readout", "mlm_head", "logit_multiplier", "logit_softcap",
            "cross_attention", "encoder",
        )
    },
    **{
        f"ffn.{name}": (f"{_CONFIG}/ffn/{name}", _EXPERTS)
        for name in (
            "n_experts", "top_k", "expert", "renormalize", "router_bias", "d_shared", "shared_gate",
        )
    },
    **{
        f"position.{name}": (f"{_CONFIG}/position/{name}", _BUCKETS)
        for name in ("n_buckets", "max_distance", "bidirectional")
    },
    **{
        f"scaling.{name}": (f"{_CONFIG}/position/scaling/{name}", _SCALED)
        for name in (
            "kind", "factor", "original_positions", "beta_fast", "beta_slow", "attention_factor",
        )
    },
    "position.scaling": (f"{_CONFIG}/position/scaling", _ROPE),
    **{
        f"layer.{name}": (f"{_CONFIG}/layers/0/{name}", {**_ROPE, f"{_CONFIG}/layers": [{}]})
        for name in ("window", "scale", "theta", "scaling")
    },
    **{
        f"encoder.{name}": (f"{_CONFIG}/encoder/{name}", _ENCODER)
        for name in ("n_layers", "d_model", "token_types", "residual_multiplier", "embed_norm",
                     "topology", "layers")
    },
    "encoder.attention.mask": (f"{_CONFIG}/encoder/attention/mask", _ENCODER),
    "position.n_positions": (f"{_CONFIG}/position/n_positions", _LEARNED),
    "position.theta": (f"{_CONFIG}/position/theta", _ROPE),
    "position.rotary_dim": (f"{_CONFIG}/position/rotary_dim", _ROPE),
    "position.pairing": (f"{_CONFIG}/position/pairing", _ROPE),
    "position.alibi_rule": (f"{_CONFIG}/position/alibi_rule", _ALIBI),
    "weights": (_WEIGHTS, {}),
    "init": (f"{_WEIGHTS}/init", {}),
    "seed": (f"{_WEIGHTS}/seed", {}),
    "tensors": (f"{_WEIGHTS}/tensors", {}),
    "edits": (f"{_WEIGHTS}/edits", {}),
    "an edit": (f"{_WEIGHTS}/edits/0", _EDITS),
    "edit.tensor": (f"{_WEIGHTS}/edits/0/tensor", _EDITS),
    "edit.where": (f"{_WEIGHTS}/edits/0/where", _EDITS),
    "edit.where.head": (f"{_WEIGHTS}/edits/0/where/head", _EDITS),
    "edit.where.head[0]": (f"{_WEIGHTS}/edits/0/where/head/0", _EDITS),
    "edit.op": (f"{_WEIGHTS}/edits/0/op", _EDITS),
    "input": ("/input", {}),
    "text": ("/input/text", {"/input": {}}),
    "special_tokens": ("/input/special_tokens", {}),
    "select": ("/select", {}),
    "a selection": ("/select/1", _SELECT),
    "selection.name": ("/select/1/name", _SELECT),
    "selection.head": ("/select/1/head", _SELECT),
    "selection.head[0]": ("/select/1/head/0", {"/select": ["X", {"name": "A", "head": [0]}]}),
    "selection.summary": ("/select/1/summary", _SELECT),
    "dtype": ("/dtype", {}),
    "identities": ("/identities", {}),
}  # fmt: skip
"""Field -> its pointer, and what makes the good request one that has it."""


def _cases(field: str, values: Sequence[object], code: str, says: str = "") -> Iterator[Case]:
    pointer, before = FIELDS[field]
    for value in values:
        shown = value.text if isinstance(value, Raw) else repr(value)
        name = f"{field} = {shown if len(shown) < 40 else f'{shown[:30]} and so on'}"
        yield asked(name, {**before, pointer: value}, code, says=says)


_NO_INT = (True, "4", 4.0, 4.5, [4], {"n": 4})
_NO_NUMBER = (True, "0.5", [0.5], {"n": 0.5})
_NO_BOOL = (1, 0, "true", "", [True], {"on": True})
_NO_OBJECT = (1, True, MARK, [], [{}])
_NO_TEXT = (1, True, ["A"], {"name": "A"})
_NO_LIST = (1, True, MARK, {"0": 1})

KINDS = [
    *(case for field in (
        "d_model", "n_layers", "vocab", "attention.n_heads", "attention.n_kv_heads",
        "attention.d_head", "attention.d_value", "attention.window", "ffn.d_ff",
        "position.n_positions", "position.rotary_dim", "seed", "ffn.n_experts", "ffn.top_k",
        "ffn.d_shared", "position.n_buckets", "position.max_distance", "token_types",
        "scaling.original_positions", "layer.window", "encoder.n_layers", "encoder.d_model",
        "encoder.token_types",
    ) for case in _cases(field, _NO_INT, "int_type", "A whole number is due here.")),
    *(case for field in ("attention.scale", "norm.eps", "norm.gain_offset", "position.theta",
                         "attention.softcap", "residual_multiplier", "embed_multiplier",
                         "logit_multiplier", "logit_softcap", "scaling.factor", "scaling.beta_fast",
                         "scaling.beta_slow", "scaling.attention_factor", "layer.scale",
                         "layer.theta", "encoder.residual_multiplier")
      for case in _cases(field, _NO_NUMBER, "float_type", "A number is due here.")),
    *(case for field in (
        "tied", "unembed_bias", "final_norm", "attention.bias.q", "attention.bias.o", "ffn.bias.in",
        "ffn.bias.gate", "ffn.bias.out", "special_tokens", "selection.summary", "identities",
        "attention.sinks", "norm.bias", "norm.shared", "ffn.renormalize", "ffn.router_bias",
        "ffn.shared_gate", "position.bidirectional", "embed_norm", "readout", "mlm_head",
        "cross_attention", "encoder.embed_norm",
    ) for case in _cases(field, _NO_BOOL, "bool_type", "true or false is due here.")),
    *(case for field in (
        "model", "config", "attention", "ffn", "norm", "position", "weights", "an edit", "input",
        "position.scaling", "encoder", "layer.scaling",
    ) for case in _cases(field, _NO_OBJECT, "model_type", "An object is due here.")),
    *(case for field in ("tensors", "edit.where")
      for case in _cases(field, _NO_OBJECT, "dict_type", "An object is due here.")),
    *(case for field in ("name", "edit.tensor", "selection.name")
      for case in _cases(field, _NO_TEXT, "string_type", "A string is due here.")),
    *(case for field in ("edits", "select", "layers", "encoder.layers")
      for case in _cases(field, _NO_LIST, "list_type", "A list is due here.")),
    *(case for field in ("edit.where.head", "selection.head")
      for case in _cases(field, _NO_LIST, "list_type", "A list of whole numbers is due here.")),
    *(case for field in ("edit.where.head[0]", "selection.head[0]")
      for case in _cases(field, (*_NO_INT, None), "wrong_type", "A whole number is due here.")),
    *_cases("attention.bias", (1, 0, MARK, [], ["q"]), "model_type"),
    *_cases("ffn.bias", (1, 0, MARK, [], ["in"]), "model_type"),
    *_cases("a selection", (1, True, None, [], ["A"]), "model_type"),
    *_cases("text", (1, True, {}, [], [1], ["A", None], [["A"]], ["A", {}]), "text",
            "text is a string, or a list of strings."),
]  # fmt: skip

NULLS = [
    *_cases("d_model", [None], "missing", "d_model is needed"),
    *_cases("n_layers", [None], "int_type", "A whole number is due here."),
    *(case for field in ("norm.eps", "norm.gain_offset", "residual_multiplier", "logit_multiplier")
      for case in _cases(field, [None], "float_type", "A number is due here.")),
    *(case for field in ("tied", "unembed_bias", "attention.bias.q",
                         "attention.sinks", "norm.shared", "readout", "mlm_head", "embed_norm",
                         "special_tokens", "selection.summary", "identities")
      for case in _cases(field, [None], "bool_type", "true or false is due here.")),
    *(case for field in ("model", "attention", "attention.bias", "ffn", "ffn.bias", "norm",
                         "position", "position.scaling", "weights", "an edit", "input")
      for case in _cases(field, [None], "model_type", "An object is due here.")),
    *(case for field in ("tensors", "edit.where")
      for case in _cases(field, [None], "dict_type", "An object is due here.")),
    *_cases("edits", [None], "list_type", "A list is due here."),
    *_cases("edit.where.head", [None], "list_type", "A list of whole numbers is due here."),
    *(case for field in ("edit.tensor", "selection.name")
      for case in _cases(field, [None], "string_type", "A string is due here.")),
]  # fmt: skip

_LEAST, _MOST, _BELOW = "greater_than_equal", "less_than_equal", "less_than"
_HUGE = (1 << 64, 10**30)
BOUNDS = [
    *(case for field in (
        "d_model", "n_layers", "vocab", "attention.n_heads", "attention.n_kv_heads",
        "attention.d_head", "attention.d_value", "attention.window", "ffn.d_ff",
        "position.n_positions", "position.rotary_dim", "ffn.n_experts", "ffn.top_k",
        "position.n_buckets", "position.max_distance", "scaling.original_positions",
        "layer.window", "encoder.n_layers", "encoder.d_model",
    ) for case in (
        *_cases(field, (0, -1, -(1 << 40)), _LEAST, "at least 1"),
        *_cases(field, ((1 << 20) + 1, 1 << 53, (1 << 63) - 1, *_HUGE), _MOST, "at most 1048576"),
    )),
    *_cases("seed", (-1, -(1 << 62)), _LEAST, "at least 0"),
    *_cases("seed", (1 << 53, (1 << 63) - 1, *_HUGE), _BELOW, "below 9007199254740992"),
    *_cases("attention.scale", (1000001, 1e7, 1e300), _MOST, "at most 1000000"),
    *_cases("attention.scale", (-1000001, -1e300), _LEAST, "at least -1000000"),
    *(case for field in ("residual_multiplier", "embed_multiplier", "logit_multiplier",
                         "layer.scale", "encoder.residual_multiplier")
      for case in _cases(field, (1000001, 1e300), _MOST, "at most 1000000")),
    *(case for field in ("attention.softcap", "logit_softcap", "scaling.attention_factor",
                         "scaling.beta_fast", "scaling.beta_slow", "layer.theta")
      for case in _cases(field, (0, -1, 1e-7), _LEAST, "at least 1e-06")),
    *(case for field in ("ffn.d_shared", "token_types", "encoder.token_types")
      for case in _cases(field, (-1, -(1 << 40)), _LEAST, "at least 0")),
    *_cases("scaling.factor", (0.5, 0, -1), _LEAST, "at least 1"),
    *_cases("layers", [[{}] * 4097], "too_long", "At most 4096"),
    *_cases("norm.eps", (0, -1e-5, 1e-31, -1), _LEAST, "at least 1e-30"),
    *_cases("norm.eps", (1.0001, 2, 1e30), _MOST, "at most 1"),
    *_cases("norm.gain_offset", (10.5, 1e9), _MOST, "at most 10"),
    *_cases("norm.gain_offset", (-10.5, -1e9), _LEAST, "at least -10"),
    *_cases("position.theta", (0, 1e-7, -10000), _LEAST, "at least 1e-06"),
    *_cases("position.theta", (1.1e12, 1e300), _MOST, "at most 1000000000000"),
    *(case for field in ("edit.where.head[0]", "selection.head[0]") for case in (
        *_cases(field, ((1 << 31) + 1, 1 << 62, *_HUGE), "out_of_range", "from -2^31 to 2^31"),
        *_cases(field, (-(1 << 31) - 1, -(1 << 62)), "out_of_range", "from -2^31 to 2^31"),
    )),
    *(case for field in ("edit.where.head", "selection.head") for case in (
        *_cases(field, [[], [0] * 8193], "wrong_length", "From 1 to 8192 indices"),
    )),
    *(case for field in ("name", "edit.tensor", "selection.name") for case in (
        *_cases(field, [""], "string_too_short", "at least 1"),
        *_cases(field, ["x" * 129, MARK * 40], "string_too_long", "at most 128"),
    )),
    *_cases("a selection", [""], "string_too_short"),
    *_cases("a selection", ["x" * 129], "string_too_long"),
    *_cases("select", [["A"] * 1001], "too_long", "At most 1000"),
    *_cases("edits", [[EDIT] * 257], "too_long", "At most 256"),
    *_cases("text", ["A" * 65537, ["A" * 40000, "B" * 40000]], "text_too_long", "65536"),
]  # fmt: skip

_WORDS = {
    "attention.kind": ("Softmax", "linear", "flash", "off"),
    "attention.mask": ("Causal", "casual", "bidirectional", "none"),
    "ffn.kind": ("MLP", "MoE", "swiglu", "dense"),
    "ffn.expert": ("Gated", "moe", "none", "glu"),
    "ffn.activation": ("GELU", "gelu_new", "swish", "tanh", "none"),
    "norm.kind": ("LayerNorm", "layer_norm", "rms", "batchnorm"),
    "norm.placement": ("Pre", "Sandwich", "before", "none"),
    "attention.qk_norm": ("Head", "heads", "layernorm", "true"),
    "topology": ("Parallel", "serial", "none", "both"),
    "encoder.topology": ("Parallel", "serial", "none", "both"),
    "scaling.kind": ("NTK", "longrope", "su", "default"),
    "encoder.attention.mask": ("Full", "all", "bidirectional", "none"),
    "position.kind": ("RoPE", "rotary", "sinusoid", "absolute"),
    "position.pairing": ("Half", "neox", "gptj", "none"),
    "position.alibi_rule": ("Bloom", "power", "default", "none"),
    "init": ("Seeded", "random", "xavier", "none"),
    "edit.op": ("Scale", "multiply", "delete", "sub"),
    "dtype": ("float16", "bfloat16", "Float32", "f32", "int8", "double"),
}
_LISTED = {"init": "'seeded', 'identity' or 'zeros'", "dtype": "'float32' or 'float64'"}
WORDS = [
    case
    for field, words in _WORDS.items()
    for values in [(*words, "", " ", MARK, f"{words[0].lower()} ", 1, True, 0.5, [], ["x"], {})]
    for case in _cases(field, values, "literal_error", _LISTED.get(field, ""))
] + [
    case
    for field in _WORDS
    if field not in ("position.pairing", "position.alibi_rule", "init")
    for case in _cases(field, [None], "literal_error")
]
