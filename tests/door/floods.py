"""Bodies of up to 16 MiB that are wrong a million times over: refused briefly, in little time.

Each kind comes twice where a limit counts it: as often as the limit lets it through, and as often
as a body holds it.
"""

import base64
from collections.abc import Callable, Iterator

from door import call_floods
from door.case import MARK, Case

Body = Callable[[], bytes]
_BODY = (16 << 20) - 64
_VALUES, _LISTS, _KEYS = 4_190_000, 524_000, 131_000  # a little within the limits
_COUNTS = ("body_keys", "body_values", "body_lists")
_CONFIG = b'"config": {"d_model": 4, "attention": {"n_heads": 2}}'
_INPUT = b'"input": {"tensor": [[1, 2, 3, 4]]}'
_START, _END = b'{"model": {' + _CONFIG + b'}, "input": {"tensor": [', b"]}}"
_ROW, _ROW_END = _START + b"[", b"]" + _END
_AFTER = b"}}, " + _INPUT + b"}"
_NAMED = b'{"model": {"name": "letter-sort"}, "input": {'
_SELECT = b'{"model": {' + _CONFIG + b"}, " + _INPUT + b', "select": ['


def _weights(inside: bytes) -> bytes:
    return b'{"model": {' + _CONFIG + b', "weights": {' + inside


_WHERE = _weights(b'"edits": [{"tensor": "x", "op": "zero", "where": {')
_VALUE = _weights(b'"edits": [{"tensor": "blocks.0.attn.W_O", "op": "set", "value": [')
_W_O = _weights(b'"tensors": {"blocks.0.attn.W_O": [')
_EDITS = _weights(b'"edits": [')


def _filled(start: bytes, piece: bytes, end: bytes, most: int = _VALUES) -> Body:
    """As many pieces as a body holds, at most so many, with commas between."""

    def body() -> bytes:
        count = (_BODY - len(start) - len(end) + 1) // (len(piece) + 1)
        return start + b",".join([piece] * min(count, most)) + end

    return body


def _keyed(start: bytes, end: bytes, count: int, value: bytes = b"1") -> Body:
    """So many keys of one object."""

    def body() -> bytes:
        return start + b",".join(b'"k%x":%b' % (i, value) for i in range(count)) + end

    return body


def _flood(name: str, problem: str, body: Body, *faults: tuple[str, str], says: str = "") -> Case:
    return Case(name=name, problem=problem, body=body, faults=faults, says=says, more=True)


def _beyond(name: str, limit: str, body: Body) -> Case:
    return _flood(name, "beyond-limit", body, ("", "beyond_limit"), says=limit)


def _string(name: str, start: bytes, end: bytes, at: str, code: str) -> Case:
    """A string of 16 MB: letters, but for the mark at its start."""
    whole = start + MARK.encode() + b"z" * (_BODY - 200) + end
    return _flood(f"16 MB of one string as {name}", "invalid-request", lambda: whole, (at, code))


KEYS = [
    _flood("131,000 unknown keys of the request", "invalid-request",
           _keyed(b"{", b"}", _KEYS), ("", "too_many_keys")),
    _flood("131,000 unknown keys of a config", "invalid-request",
           _keyed(b'{"model": {"config": {', b"}}}", _KEYS), ("/model/config", "too_many_keys")),
    _flood("131,000 unknown keys of input", "invalid-request",
           _keyed(b'{"input": {', b"}}", _KEYS), ("/input", "too_many_keys")),
    _flood("131,000 tensors", "invalid-request", _keyed(_weights(b'"tensors": {'), b"}" + _AFTER,
           _KEYS), ("/model/weights/tensors", "too_many_keys")),
    _flood("131,000 axis words", "invalid-request", _keyed(_WHERE, b"}}]" + _AFTER, _KEYS),
           ("/model/weights/edits/0/where", "too_many_keys")),
    _flood("4,096 tensors of nothing", "invalid-request", _keyed(_weights(b'"tensors": {'),
           b"}" + _AFTER, 4096, b"[[]]"), ("/model/weights/tensors/k0/0", "empty")),
    _flood("4,096 unknown tensors", "shape-mismatch", _keyed(_weights(b'"tensors": {'),
           b"}" + _AFTER, 4096, b"[1]"), ("/model/weights/tensors/k0", "unknown_tensor")),
    _flood("a thousand keys of 16 kB", "invalid-request", lambda: b"{" + b",".join(
           b'"%04d%b":1' % (i, b"k" * 16_000) for i in range(1000)) + b"}", ("", "too_many_keys")),
    _beyond("a million unknown keys of the request", "body_keys", _keyed(b"{", b"}", 1_000_000)),
    _beyond("a million unknown keys of a config", "body_keys",
            _keyed(b'{"model": {"config": {', b"}}}", 1_000_000)),
    _beyond("a million tensors", "body_keys",
            _keyed(_weights(b'"tensors": {'), b"}" + _AFTER, 1_000_000)),
    _beyond("a million axis words", "body_keys", _keyed(_WHERE, b"}}]" + _AFTER, 1_000_000)),
]  # fmt: skip

VALUES = [
    *(
        _flood(f"millions of {name} for numbers", "invalid-request",
               _filled(_ROW, piece, _ROW_END), ("/input/tensor/0/0", code))
        for name, piece, code in [
            ("true", b"true", "wrong_type"), ("null", b"null", "wrong_type"),
            ("texts", b'""', "wrong_type"), ("numbers in quotes", b'"1.5"', "wrong_type"),
            ("numbers too large", b"1e999", "not_finite"),
        ]
    ),
    _flood("millions of numbers for rows", "invalid-request", _filled(_START, b"1", _END),
           ("/input/tensor", "rank_mismatch")),
    _flood("millions of numbers in a row", "invalid-input", _filled(_ROW, b"1", _ROW_END),
           ("/input/tensor", "shape_mismatch")),
    _flood("millions of long numbers in a row", "invalid-input",
           _filled(_ROW, b"0.12345678901234567", _ROW_END), ("/input/tensor", "shape_mismatch")),
    _flood("millions of numbers beyond float32", "invalid-input", _filled(_ROW, b"1e39", _ROW_END),
           ("/input/tensor/0/0", "overflow")),
    _flood("millions of whole numbers beyond int64", "invalid-input",
           _filled(_ROW, b"9" * 39, _ROW_END), ("/input/tensor/0/0", "overflow")),
    _flood("millions of token ids", "beyond-limit", _filled(_NAMED + b'"token_ids": [', b"0",
           b"]}}"), ("/input/token_ids", "beyond_limit"), says="positions"),
    _flood("millions of negative token ids", "invalid-request",
           _filled(_NAMED + b'"token_ids": [', b"-1", b"]}}"),
           ("/input/token_ids/0", "out_of_range")),
    _flood("thousands of token ids out of the vocabulary", "invalid-input",
           _filled(_NAMED + b'"token_ids": [', b"7", b"]}}", 4096),
           ("/input/token_ids/0", "out_of_vocabulary")),
    _flood("millions of mask entries", "invalid-input", _filled(_NAMED +
           b'"text": "ABC", "key_mask": [', b"true", b"]}}"),
           ("/input/key_mask", "shape_mismatch")),
    _flood("millions of texts", "invalid-request", _filled(_NAMED + b'"text": [', b'"A"', b"]}}"),
           ("/input/text", "text_too_long")),
    _flood("millions of empty texts", "beyond-limit", _filled(_NAMED + b'"text": [', b'""',
           b"]}}"), ("/input/text", "beyond_limit"), says="batch"),
    _flood("millions of selections", "invalid-request", _filled(_SELECT, b'"A"', b"]}"),
           ("/select", "too_long")),
    _flood("millions of indices of an edit", "invalid-request", _filled(_WHERE + b'"head": [',
           b"9", b"]}}]" + _AFTER), ("/model/weights/edits/0/where/head", "wrong_length")),
    _flood("millions of indices that are none", "invalid-request", _filled(_WHERE + b'"head": [',
           b'"a"', b"]}}]" + _AFTER), ("/model/weights/edits/0/where/head", "wrong_length")),
    _flood("256 edits of 8,192 indices", "shape-mismatch", _filled(_EDITS,
           b'{"tensor": "blocks.0.attn.W_O", "op": "zero", "where": {"head": [' +
           b",".join([b"9"] * 8192) + b"]}}", b"]" + _AFTER, 256),
           ("/model/weights/edits/0/where/head/0", "index_out_of_range")),
    _flood("300 selections of 8,192 indices", "invalid-selection", _filled(_SELECT,
           b'{"name": "*", "position": [' + b",".join([b"9"] * 8192) + b"]}", b"]}", 300),
           ("/select/0/position/0", "index_out_of_range")),
    _flood("a thousand selections of stars", "invalid-selection",
           _filled(_SELECT, b'"' + b"*a" * 62 + b'Xq"', b"]}", 1000),
           ("/select/0", "unknown_stage")),
    _flood("a thousand selections of other words", "invalid-selection",
           _filled(_SELECT, b'"blocks.0.' + MARK.encode() * 12 + b'"', b"]}", 1000),
           ("/select/0", "unknown_stage")),
    _flood("millions of numbers of an edit", "shape-mismatch", _filled(_VALUE, b"1",
           b"]}]" + _AFTER), ("/model/weights/edits/0/value", "shape_mismatch")),
    _flood("millions of numbers of a weight", "shape-mismatch", _filled(_W_O, b"1",
           b"]}" + _AFTER), ("/model/weights/tensors/blocks.0.attn.W_O", "shape_mismatch")),
    _beyond("8 million numbers in a row", "body_values", _filled(_ROW, b"1", _ROW_END, _BODY)),
    _beyond("8 million numbers of an edit", "body_values",
            _filled(_VALUE, b"1", b"]}]" + _AFTER, _BODY)),
    _beyond("16 million commas", "body_values", lambda: b"," * _BODY),
]  # fmt: skip

LISTS = [
    *(
        _flood(f"half a million {name} for rows", "invalid-request",
               _filled(_START, piece, _END, _LISTS // piece.count(b"[")), (at, code))
        for name, piece, at, code in [
            ("empty lists", b"[]", "/input/tensor/0", "empty"),
            ("lists of an empty list", b"[[]]", "/input/tensor/0/0", "empty"),
            ("lists nested four deep", b"[[[[1]]]]", "/input/tensor", "rank_mismatch"),
            ("lists of text", b'["a"]', "/input/tensor/0/0", "wrong_type"),
        ]
    ),
    _flood("half a million objects for numbers", "invalid-request",
           _filled(_ROW, b"{}", _ROW_END, _LISTS), ("/input/tensor/0/0", "wrong_type")),
    _flood("half a million unequal lists", "invalid-request",
           _filled(_START + b"[1],", b"[1,2]", _END, _LISTS), ("/input/tensor/1", "ragged")),
    _flood("half a million rows of one number", "beyond-limit",
           _filled(_START, b"[1]", _END, _LISTS), ("/input/tensor", "beyond_limit"),
           says="positions"),
    _flood("half a million selections of nothing", "invalid-request",
           _filled(_SELECT, b"{}", b"]}", _LISTS), ("/select", "too_long")),
    _flood("half a million edits of nothing", "invalid-request",
           _filled(_EDITS, b"{}", b"]" + _AFTER, _LISTS), ("/model/weights/edits", "too_long")),
    _flood("half a million lists for heads", "invalid-request",
           _filled(_WHERE + b'"head": [', b"[]", b"]}}]" + _AFTER, _LISTS),
           ("/model/weights/edits/0/where/head", "wrong_length")),
    _beyond("5 million empty lists", "body_lists", _filled(_START, b"[]", _END, _BODY)),
    _beyond("5 million objects", "body_lists", _filled(_ROW, b"{}", _ROW_END, _BODY)),
    _beyond("2 million unequal lists", "body_lists", _filled(_START, b"[1],[1,2]", _END, _BODY)),
    _beyond("16 million brackets", "body_lists", lambda: b"[" * _BODY),
    _beyond("8 million brackets, closed", "body_lists",
            lambda: b"[" * (8 << 20) + b"]" * ((8 << 20) - 64)),
    _beyond("16 million braces", "body_lists", lambda: b"{" * _BODY),
    _flood("half a million brackets", "malformed-json", lambda: b"[" * _LISTS),
]  # fmt: skip

STRINGS = [
    _string("the model's name", b'{"model": {"name": "', b'"}, ' + _INPUT + b"}", "/model/name",
            "string_too_long"),
    _string("a text", _NAMED + b'"text": "', b'"}}', "/input/text", "text_too_long"),
    _string("a dtype", b'{"model": {' + _CONFIG + b"}, " + _INPUT + b', "dtype": "', b'"}',
            "/dtype", "literal_error"),
    _string("a stage", _SELECT + b'"', b'"]}', "/select/0", "string_too_long"),
    _string("a tensor", b'{"model": {' + _CONFIG + b'}, "input": {"tensor": "', b'"}}',
            "/input/tensor", "rank_mismatch"),
    _string("a number", _ROW + b'"', b'"' + _ROW_END, "/input/tensor/0/0", "wrong_type"),
    _string("an unknown key", b'{"model": {' + _CONFIG + b"}, " + _INPUT + b', "', b'": 1}',
            "", "extra_forbidden"),
    _string("the name of a tensor", _weights(b'"tensors": {"'), b'": [1]}' + _AFTER,
            "/model/weights/tensors", "string_too_long"),
    _string("an axis word", _WHERE + b'"', b'": [0]}}]' + _AFTER, "/model/weights/edits/0/where",
            "literal_error"),
    _flood("16 MB of escapes in one string", "invalid-request", lambda: b'{"model": {"name": "' +
           rb"\u0041" * 2_700_000 + b'"}, ' + _INPUT + b"}", ("/model/name", "string_too_long")),
    _flood("16 MB of one string that does not end", "malformed-json",
           lambda: b'{"model": "' + b"z" * (_BODY - 200)),
    _flood("16 MB of one string that is no UTF-8 at its end", "malformed-json",
           lambda: b'{"model": "' + b"z" * (_BODY - 200) + b'\xff"}'),
    _flood("16 MB of spaces", "malformed-json", lambda: b" " * _BODY, says="empty"),
    _flood("good request after 15 MB of newlines", "invalid-request", lambda: b"\n" * (15 << 20) +
           b'{"model": {' + _CONFIG + b'}, "' + MARK.encode() + b'": 1, ' + _INPUT + b"}",
           (f"/{MARK}", "extra_forbidden")),
    _flood("fault after 15 MB of newlines", "malformed-json", lambda: b"\n" * (15 << 20) + b"{x}",
           says="line 15728641, column 2"),
    _flood("one number of 16 million digits", "malformed-json",
           lambda: _ROW + b"7" * (_BODY - 200) + _ROW_END, says="too many digits"),
    _flood("fraction of 16 million digits", "invalid-input",
           lambda: _ROW + b"0." + b"7" * (_BODY - 200) + _ROW_END,
           ("/input/tensor", "shape_mismatch")),
    _flood("exponent of 16 million digits", "invalid-request",
           lambda: _ROW + b"1e" + b"7" * (_BODY - 200) + _ROW_END,
           ("/input/tensor/0/0", "not_finite")),
    _flood("16 million zero bytes", "malformed-json", lambda: bytes(_BODY)),
    _flood("16 million quotes", "malformed-json", lambda: b'"' * _BODY),
    _flood("16 million bytes that are no UTF-8", "malformed-json", lambda: b"\xff" * _BODY),
]  # fmt: skip


def _packed(dtype: str, shape: str, entry: bytes, count: int) -> bytes:
    """A tensor of one entry many times, as base64."""
    data = base64.b64encode(entry * count)
    return b'{"dtype": "%b", "shape": [%b], "data": "%b"}' % (dtype.encode(), shape.encode(), data)


def _input(key: str, dtype: str, shape: str, entry: bytes, count: int) -> Body:
    rest = b"}}" if key in ("tensor", "token_ids") else b', "tensor": [[1, 2, 3, 4]]}}'
    start = b'{"model": {' + _CONFIG + b'}, "input": {"%b": ' % key.encode()
    return lambda: start + _packed(dtype, shape, entry, count) + rest


BYTES = [
    _flood("3 million numbers that are none", "invalid-request", _input("tensor", "float32",
           "1, 750000, 4", b"\0\0\xc0\x7f", 3_000_000), ("/input/tensor/data", "not_finite")),
    _flood("1.5 million numbers beyond float32", "invalid-input", _input("tensor", "float64",
           "1, 375000, 4", b"\0\0\0\0\0\0\0\x7f", 1_500_000), ("/input/tensor/data", "overflow")),
    _flood("750,000 rows", "beyond-limit", _input("tensor", "float32", "750000, 4",
           b"\0\0\x80\x3f", 3_000_000), ("/input/tensor", "beyond_limit"), says="positions"),
    _flood("3 million negative ids", "invalid-request", _input("token_ids", "int32", "3000000",
           b"\xff\xff\xff\xff", 3_000_000), ("/input/token_ids/data", "out_of_range")),
    _flood("3 million ids", "invalid-input", _input("position_ids", "int32", "3000000",
           b"\0\0\0\0", 3_000_000), ("/input/position_ids", "shape_mismatch")),
    _flood("12 million wrong bytes of a mask", "invalid-request", _input("attention_mask", "bool",
           "1, 3500, 3500", b"\2", 12_250_000), ("/input/attention_mask/data", "out_of_range")),
    _flood("12 million bytes of a mask", "invalid-input", _input("attention_mask", "bool",
           "3500, 3500", b"\1", 12_250_000), ("/input/attention_mask", "shape_mismatch")),
    _flood("4 million axes", "invalid-request", _filled(b'{"model": {' + _CONFIG + b'}, "input": '
           b'{"tensor": {"dtype": "float32", "data": "", "shape": [', b"1", b"]}}}"),
           ("/input/tensor/shape", "too_long")),
    _flood("12 MB of what is no base64", "invalid-request", lambda: b'{"model": {' + _CONFIG +
           b'}, "input": {"tensor": {"dtype": "float32", "shape": [3000000, 1], "data": "' +
           b"-" * 16_000_000 + b'"}}}', ("/input/tensor/data", "not_base64")),
    _flood("1,000 tensors of 200 numbers that are none", "invalid-request", lambda: _weights(
           b'"tensors": {') + b",".join(b'"t%d": %b' % (i, _packed("float32", "200",
           b"\0\0\xc0\x7f", 200)) for i in range(1000)) + b"}" + _AFTER,
           ("/model/weights/tensors/t0/data", "not_finite")),
]  # fmt: skip

FLOODS = {
    "keys": KEYS,
    "values": VALUES,
    "lists": LISTS,
    "strings": STRINGS,
    "bytes": BYTES,
    "calls": call_floods.CALLS,
}


def cases() -> Iterator[tuple[str, Case]]:
    """Every flood with the name of its kind before its own."""
    for kind, listed in FLOODS.items():
        for case in listed:
            yield f"floods of {kind}: {case.name}", case


def counted() -> Iterator[tuple[str, Case]]:
    """Those that a count refuses before they are read as JSON."""
    return (
        found
        for found in cases()
        if found[1].problem == "beyond-limit" and found[1].says in _COUNTS
    )
