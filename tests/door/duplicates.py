"""Keys that stand twice in one object: no JSON, whichever of the two was meant."""

from door.case import MARK, Case, text

_CONFIG = '"config": {"d_model": 4, "attention": {"n_heads": 2}}'
_INPUT = '"input": {"tensor": [[1, 2, 3, 4]]}'
_TWICE = "A key stands twice in one object"


def _twice(name: str, body: str, where: str = "line 1") -> Case:
    return text(f"{name} twice", body, f"{_TWICE}, near {where}")


CASES = [
    _twice("model", f'{{"model": {{}}, "model": {{{_CONFIG}}}, {_INPUT}}}'),
    _twice("input", f'{{"model": {{{_CONFIG}}}, {_INPUT}, {_INPUT}}}'),
    _twice("dtype, equal,", f'{{{_INPUT}, "dtype": "float32", "dtype": "float32"}}'),
    _twice("d_model", '{"model": {"config": {"d_model": 4, "d_model": 8}}}'),
    _twice("n_heads", '{"model": {"config": {"attention": {"n_heads": 1, "n_heads": 2}}}}'),
    _twice("config and config as null", f'{{"model": {{"config": null, {_CONFIG}}}}}'),
    _twice("tensor of a weight", f'{{"model": {{{_CONFIG}, "weights": {{"tensors": '
           f'{{"blocks.0.attn.W_Q": [1], "blocks.0.attn.W_Q": [2]}}}}}}, {_INPUT}}}'),
    _twice("axis of an edit", '{"model": {"weights": {"edits": [{"where": {"head": [0], '
           '"head": [1]}}]}}}'),
    _twice("op of an edit", '{"model": {"weights": {"edits": [{"op": "zero", "op": "set"}]}}}'),
    _twice("position of a selection", '{"select": [{"name": "A", "position": [0], '
           '"position": [1]}]}'),
    _twice("shape of base64", '{"input": {"tensor": {"shape": [1], "shape": [2]}}}'),
    _twice("unknown key", f'{{"{MARK}": 1, "{MARK}": 2}}'),
    _twice("empty key", '{"": 1, "": 2}'),
    _twice("key written in another way", r'{"model": 1, "mode\u006c": 2}'),
    _twice("very long key", f'{{"{MARK * 1000}": 1, "{MARK * 1000}": 2}}'),
    _twice("key on a later line", '{\n  "model": 1,\n  "input": 2,\n  "model": 3\n}', "line 4"),
    _twice("key deep inside", '{"a": ' * 100 + '{"b": 1, "b": 2}' + "}" * 100),
    _twice("key far from the first", '{"a": 1, ' + ", ".join(f'"k{i}": 0' for i in range(1000)) +
           ', "a": 2}'),
    _twice("each key", '{"a": 1, "a": 2, "b": 3, "b": 4}'),
    _twice("key in the second of two objects", '[{"a": 1}, {"a": 1, "a": 2}]'),
]  # fmt: skip
