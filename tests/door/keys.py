"""Unknown keys in every object, keys that are needed, and keys of which one must be chosen."""

from functools import partial

from door.case import EDIT, GONE, MARK, NUMBER, TOKENS, asked

_CONFIG = "/model/config"
_WEIGHTS = {"/model/weights": {"tensors": {}, "edits": [EDIT]}}
_ENCODER = {f"{_CONFIG}/encoder": {"attention": {"n_heads": 2}}}
_unknown = partial(asked, faults="extra_forbidden", says="There is no such key here.")

OBJECTS = {
    "the request": ("", {}),
    "model": ("/model", {}),
    "model by name": ("/model", {"/model": {"name": "letter-sort"}}),
    "config": (_CONFIG, {}),
    "attention": (f"{_CONFIG}/attention", {}),
    "attention.bias": (f"{_CONFIG}/attention/bias", {f"{_CONFIG}/attention/bias": {"q": True}}),
    "ffn": (f"{_CONFIG}/ffn", {}),
    "ffn.bias": (f"{_CONFIG}/ffn/bias", {f"{_CONFIG}/ffn/bias": {"in": True}}),
    "norm": (f"{_CONFIG}/norm", {}),
    "position": (f"{_CONFIG}/position", {}),
    "position.scaling": (f"{_CONFIG}/position/scaling", {f"{_CONFIG}/position": {"kind": "rope"}}),
    "a layer": (f"{_CONFIG}/layers/0", {f"{_CONFIG}/layers": [{}]}),
    "encoder": (f"{_CONFIG}/encoder", _ENCODER),
    "encoder.attention": (f"{_CONFIG}/encoder/attention", _ENCODER),
    "memory": ("/input/memory", {"/input/memory": {"tensor": [[1, 2, 3, 4]]}}),
    "weights": ("/model/weights", _WEIGHTS),
    "an edit": ("/model/weights/edits/0", _WEIGHTS),
    "input": ("/input", {}),
    "a selection": ("/select/1", {"/select": ["A", {"name": "Z"}]}),
}
_AT = {name: pointer for name, (pointer, _) in OBJECTS.items()}

UNKNOWN = [
    *(
        _unknown(f"unknown key in {name}", {**before, f"{at}/{MARK}": NUMBER})
        for name, (at, before) in OBJECTS.items()
    ),
    *(
        _unknown(f"key in {where}: {key!r}", {**OBJECTS[where][1], f"{_AT[where]}/{key}": 1},
                 says=says)
        for where, key, says in [
            ("the request", "modle", "Near it: model"),
            ("the request", "inputs", "Near it: input"),
            ("the request", "Model", "Near it: model"),
            ("the request", "config", "It belongs at /model/config."),
            ("the request", "", "The keys here: model, input"),
            ("the request", " model", "Near it: model"),
            ("the request", "model\0", "Near it: model"),
            ("the request", "a~1b~0c", "There is no such key here."),
            ("the request", "__proto__", "There is no such key here."),
            ("the request", "$ref", "There is no such key here."),
            ("the request", "модель", "There is no such key here."),
            ("the request", "0", "There is no such key here."),
            ("model", "d_model", "There is no such key here."),
            ("model", "path", "There is no such key here."),
            ("config", "n_heads", "It belongs at /model/config/attention/n_heads"),
            ("config", "d_modle", "Near it: d_model"),
            ("config", "model_type", "There is no such key here."),
            ("config", "dropout", "There is no such key here."),
            ("attention", "n_head", "Near it: n_heads"),
            ("attention", "d_ff", "It belongs at /model/config/ffn/d_ff"),
            ("attention.bias", "Q", "There is no such key here."),
            ("attention.bias", "in", "There is no such key here."),
            ("ffn", "act", "activation"),
            ("ffn.bias", "in_", "Near it: in"),
            ("norm", "epsilon", "Near it: eps"),
            ("norm", "type", "There is no such key here."),
            ("position", "theta_base", "Near it: theta"),
            ("position", "base", "There is no such key here."),
            ("position.scaling", "beta_fasts", "Near it: beta_fast"),
            ("position.scaling", "type", "There is no such key here."),
            ("a layer", "mask", "There is no such key here."),
            ("encoder", "n_layer", "Near it: n_layers"),
            ("memory", "tokens", "Near it: token_ids"),
            ("memory", "memory", "It belongs at /input/memory."),
            ("weights", "tensor", "Near it: tensors"),
            ("an edit", "values", "Near it: value"),
            ("an edit", "head", "There is no such key here."),
            ("input", "tokens", "Near it: token_ids"),
            ("input", "mask", "There is no such key here."),
            ("input", "tensors", "Near it: tensor"),
            ("a selection", "heads", "Near it: head"),
            ("a selection", "positions", "Near it: position"),
            ("a selection", "where", "There is no such key here."),
        ]
    ),
    asked("key of 1,000 letters", {"/" + MARK * 112: 1}, {"": "extra_forbidden"}),
    asked("key of 128 letters", {"/" + "k" * 128: 1}, "extra_forbidden"),
    asked("unknown keys in three objects", {"/x": 1, "/model/y": 1, "/input/z": 1},
          {"/x": "extra_forbidden", "/model/y": "extra_forbidden", "/input/z": "extra_forbidden"}),
]  # fmt: skip

_missing = partial(asked, faults="missing", says="is needed")
MISSING = [
    asked("empty object", {"": {}}, {"/model": "missing", "/input": "missing"}),
    _missing("no model", {"/model": GONE}),
    _missing("no input", {"/input": GONE}),
    _missing("no d_model", {f"{_CONFIG}/d_model": GONE}, says="d_model is needed"),
    asked("empty config", {_CONFIG: {}},
          {f"{_CONFIG}/d_model": "missing", f"{_CONFIG}/attention/n_heads": "missing"}),
    _missing("edit of no tensor", {**_WEIGHTS, "/model/weights/edits/0/tensor": GONE}),
    _missing("edit without an op", {**_WEIGHTS, "/model/weights/edits/0/op": GONE}),
    asked("empty edit", {"/model/weights": {"edits": [{}]}},
          {"/model/weights/edits/0/tensor": "missing", "/model/weights/edits/0/op": "missing"}),
    asked("selection without a name", {"/select": ["A", {"head": [0]}]},
          {"/select/1/name": "missing"}),
    asked("empty selection", {"/select": [{}]}, {"/select/0/name": "missing"}),
    asked("no number of heads", {f"{_CONFIG}/attention/n_heads": GONE},
          "missing", says="n_heads is needed"),
    asked("no attention", {f"{_CONFIG}/attention": GONE},
          {f"{_CONFIG}/attention/n_heads": "missing"}),
]  # fmt: skip

_TENSOR, _IDS = [[1, 2, 3, 4]], [0, 1]
_one = partial(asked, faults="exactly_one", says="Give exactly one of")
ONE_OF = [
    _one("neither name nor config", {"/model": {}}),
    _one("weights alone", {"/model": {"weights": {"init": "zeros"}}}),
    _one("name and preset", {"/model": {"name": "letter-sort", "preset": "gpt2"}},
         faults={"/model": "exactly_one"}, says="A name and a preset do not go together."),
    _one("name, preset and config", {"/model/name": "letter-sort", "/model/preset": "gpt2"},
         faults={"/model": "exactly_one"}, says="A name and a preset do not go together."),
    _one("name and config, both null", {"/model": {"name": None, "config": None}}),
    _one("no input in input", {"/input": {}}),
    _one("masks alone", {"/input": {"key_mask": [True]}}),
    _one("three inputs, all null", {"/input": {"tensor": None, "token_ids": None, "text": None}}),
    _one("tensor and token ids", {"/input": {"tensor": _TENSOR, "token_ids": _IDS}}),
    _one("tensor and text", {"/input": {"tensor": _TENSOR, "text": MARK}}),
    _one("token ids and text", {"/input": {"token_ids": _IDS, "text": MARK}}),
    _one("all three inputs", {"/input": {"tensor": _TENSOR, "token_ids": _IDS, "text": MARK}}),
    asked("special tokens of a tensor", {"/input/special_tokens": True},
          {"/input": "special_tokens"}, says="belongs to text"),
    asked("special tokens of token ids", {"/input/special_tokens": True},
          {"/input": "special_tokens"}, base=TOKENS),
]  # fmt: skip
