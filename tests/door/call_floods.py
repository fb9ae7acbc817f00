"""Bodies of megabytes to the calls: a key filled as far as a body or a limit goes."""

from collections.abc import Callable

from door.case import Case

Body = Callable[[], bytes]
_VALUES, _LISTS, _KEYS = 4_190_000, 520_000, 131_000  # a little within the limits
_CONFIG = b'"model": {"config": {"d_model": 4, "vocab": 5, "attention": {"n_heads": 2}}}, '
_TRACE = b"{" + _CONFIG + b'"input": {"token_ids": [0]}, '
_SWEEP = (
    b"{" + _CONFIG + b'"clean": {"token_ids": [0]}, "op": "set", "stage": "Z", "over": ["position"]'
    b', "measure": {"logit": 1}, '
)
_DECODE = _TRACE + b'"cache": {"digest": "sha256:' + b"0" * 64 + b'", "dtype": "float32", '
_ALONG = _TRACE + b'"direction": {"vector": ['
_VALUE = _TRACE + b'"interventions": [{"stage": "blocks.0.resid_post", "op": "set", "value": ['
_INDICES = b"[" + b",".join([b"9"] * 8192) + b"]"
_PAIR = b'{"pair": {"degrees_per_position": 1}, "positions": [0, 1], '


def _filled(start: bytes, piece: bytes, end: bytes, count: int) -> Body:
    return lambda: start + b",".join([piece] * count) + end


def _keyed(start: bytes, value: bytes, end: bytes, count: int) -> Body:
    return lambda: start + b",".join(b'"k%x":%b' % (at, value) for at in range(count)) + end


def _flood(call: str, name: str, problem: str, body: Body, *faults: tuple[str, str]) -> Case:
    return Case(
        name=f"{call}: {name}",
        path=f"/v1/{call}",
        problem=problem,
        body=body,
        faults=faults,
        more=True,
    )


CALLS = [
    *(
        _flood(call, f"half a million objects as {key}", "invalid-request",
               _filled(start + b'"%b": [' % key.encode(), b"{}", b"]}", _LISTS),
               (f"/{key}", "too_long"))
        for call, start, key in [
            ("trace", _TRACE, "interventions"), ("trace", _TRACE, "measures"),
            ("subspaces", b"{" + _CONFIG, "heads"), ("subspaces", b"{" + _CONFIG, "readers"),
            ("jacobian", _TRACE + b'"measure": {"logit": 1}, ', "gradients"),
            ("decode", _TRACE, "select"),
        ]
    ),
    *(
        _flood(call, f"millions of {piece.decode()} as {key}", "invalid-request",
               _filled(start + b'"%b": [' % key.encode(), piece, b"]}", _VALUES),
               (f"/{key}", code))
        for call, start, key, piece, code in [
            ("rope", b'{"pair": {"degrees_per_position": 1}, ', "positions", b"1", "too_long"),
            ("rope", b'{"pair": {"degrees_per_position": 1}, ', "positions", b"-1", "too_long"),
            ("rope", _PAIR, "vectors", b"1", "rank_mismatch"),
            ("sweep", b"{" + _CONFIG, "over", b'"a"', "too_long"),
            ("equivariance", _TRACE, "select", b'"a"', "too_long"),
            ("subspaces", b"{" + _CONFIG, "tokens", b"0", "too_long"),
            ("subspaces", b"{" + _CONFIG, "ask", b"0", "too_long"),
            ("contributions", _TRACE, "positions", b"0", "wrong_length"),
            ("jacobian", _TRACE, "ask", b'"a"', "too_long"),
        ]
    ),
    _flood("equivariance", "millions of rows permuted", "unanswerable",
           _filled(_TRACE + b'"permutation": [', b"0", b"]}", _VALUES),
           ("/permutation", "not_a_permutation")),
    _flood("contributions", "millions of numbers as a direction", "unanswerable",
           _filled(_ALONG, b"1", b"]}}", _VALUES), ("/direction/vector", "wrong_length")),
    _flood("contributions", "millions of nulls as a direction", "invalid-request",
           _filled(_ALONG, b"null", b"]}}", 3_000_000), ("/direction/vector/0", "wrong_type")),
    _flood("trace", "millions of numbers as a value", "invalid-intervention",
           _filled(_VALUE, b"1", b"]}]}", _VALUES), ("/interventions/0/value", "shape_mismatch")),
    _flood("trace", "millions of numbers beyond float32 as a value", "invalid-intervention",
           _filled(_VALUE, b"1e39", b"]}]}", 3_000_000), ("/interventions/0/value/0", "overflow")),
    _flood("sweep", "millions of numbers as a value", "unanswerable",
           _filled(_SWEEP + b'"value": [', b"1", b"]}", _VALUES), ("/value", "shape_mismatch")),
    _flood("trace", "64 interventions of 8,192 indices thrice", "invalid-intervention",
           _filled(_TRACE + b'"interventions": [', b'{"stage": "*", "op": "zero", "where": {'
                   b'"position": %b, "head": %b, "batch": %b}}' % ((_INDICES,) * 3), b"]}", 64),
           ("/interventions/0/where/position/0", "index_out_of_range")),
    _flood("trace", "64 interventions of stars", "invalid-intervention",
           _filled(_TRACE + b'"interventions": [',
                   b'{"stage": "' + b"*a" * 62 + b'Xq", "op": "zero"}', b"]}", 64),
           ("/interventions/0/stage", "unknown_stage")),
    _flood("jacobian", "a thousand gradients of 8,192 indices", "invalid-selection",
           _filled(_TRACE + b'"measure": {"logit": 1}, "gradients": [',
                   b'{"name": "*", "position": ' + _INDICES + b"}", b"]}", 250),
           ("/gradients/0/position/0", "index_out_of_range")),
    _flood("sweep", "8,192 indices of each axis", "unanswerable",
           _filled(_SWEEP + b'"value": 1, "where": {', b'"position": %b, "d_model": %b, "block": %b'
                   % ((_INDICES,) * 3), b"}}", 1), ("/where/block/0", "index_out_of_range")),
    _flood("decode", "131,000 keys of a cache", "invalid-request",
           _keyed(_DECODE + b'"position_ids": [0], ', b"[[[1]]]", b"}}", _KEYS),
           ("/cache", "too_many_keys")),
    _flood("decode", "2,000 tensors that are unknown", "unanswerable",
           _keyed(_DECODE + b'"position_ids": [0], ', b"[[[1]]]", b"}}", 2000),
           ("/cache/blocks.0.attn.k", "missing")),
    _flood("decode", "2,000 tensors that are none", "invalid-request",
           _keyed(_DECODE + b'"position_ids": [0], ', b"[[[]]]", b"}}", 2000),
           ("/cache/k0/0/0", "empty")),
    _flood("decode", "millions of position ids", "unanswerable",
           _filled(_DECODE + b'"position_ids": [', b"1", b"]}}", _VALUES),
           ("/cache/blocks.0.attn.k", "missing")),
    _flood("decode", "half a million heads", "unanswerable",
           _filled(_DECODE + b'"position_ids": [0], "blocks.0.attn.v": [[[1, 1]]], '
                   b'"blocks.0.attn.k": [', b"[[1,1]]", b"]}}", _LISTS // 2),
           ("/cache/blocks.0.attn.k", "shape_mismatch")),
]  # fmt: skip
