"""Unknown and missing keys of the calls, keys of which one is chosen, and keys that go together."""

from collections.abc import Callable, Mapping
from typing import Any

from door import calls
from door.case import GONE, MARK, NUMBER, Case

Maker = Callable[..., Case]
_PATCH = {"/interventions/0": {**calls.CHANGE, "op": "patch", "from": {"token_ids": [1, 2, 3]}}}
_RULE = "Give exactly one of"

_OBJECTS: Mapping[str, tuple[Maker, tuple[str, ...]]] = {
    "trace": (calls.intervened, ("", "/interventions/0", "/measures/0")),
    "sweep": (calls.sweep, ("", "/model", "/clean", "/corrupted", "/measure")),
    "compare": (calls.compare, ("", "/a", "/b", "/a/model/config", "/b/input")),
    "decode": (calls.decode, ("", "/model/config", "/input")),
    "rope": (calls.pair, ("", "/pair")),
    "rope, a spectrum": (calls.spectrum, ("/spectrum", "/spectrum/scaling")),
    "rope, a model": (calls.turned, ("/model",)),
    "equivariance": (calls.permuted, ("", "/input", "/model")),
    "contributions": (calls.split, ("", "/direction", "/input")),
    "subspaces": (calls.circuits, ("", "/heads/0", "/readers/0", "/model")),
    "jacobian": (calls.derived, ("", "/input")),
    "jacobian, a measure": (calls.gradients, ("/measure",)),
}

UNKNOWN = [
    *(
        maker(f"{call}: unknown key {key!r} in {at or 'the request'}", {f"{at}/{key}": NUMBER},
              "extra_forbidden", says="There is no such key here.")
        for call, (maker, places) in _OBJECTS.items()
        for at in places
        for key in (MARK, "__proto__", "")
    ),
    *(
        maker(f"{at}, unknown key {pointer}", {pointer: 1}, "extra_forbidden", says=says)
        for at, (maker, pointer, says) in enumerate([
            (calls.intervened, "/intervention", "Near it: interventions"),
            (calls.intervened, "/interventions/0/head", "There is no such key here."),
            (calls.intervened, "/interventions/0/source", "There is no such key here."),
            (calls.intervened, "/interventions/0/name", "There is no such key here."),
            (calls.intervened, "/measures/0/token", "There is no such key here."),
            (calls.intervened, "/measures/0/positions", "Near it: position"),
            (calls.sweep, "/input", "There is no such key here."),
            (calls.sweep, "/corupted", "Near it: corrupted"),
            (calls.sweep, "/select", "There is no such key here."),
            (calls.compare, "/model", "There is no such key here."),
            (calls.compare, "/c", "There is no such key here."),
            (calls.decode, "/step", "Near it: steps"),
            (calls.decode, "/interventions", "There is no such key here."),
            (calls.pair, "/position", "Near it: positions"),
            (calls.pair, "/dtype", "There is no such key here."),
            (calls.spectrum, "/spectrum/kind", "There is no such key here."),
            (calls.permuted, "/permute", "Near it: permutation"),
            (calls.split, "/position", "Near it: positions"),
            (calls.circuits, "/input", "There is no such key here."),
            (calls.circuits, "/reader", "Near it: readers"),
            (calls.derived, "/select", "There is no such key here."),
        ])
    ),
    calls.intervened("axis word that is none", {f"/interventions/0/where/{MARK}": [0]},
                     "literal_error"),
    calls.sweep("sweep: axis word that is none", {"/where": {MARK: [0]}},
                {f"/where/{MARK}": "literal_error"}),
    calls.sweep("sweep: 17 axis words", {"/where": {str(i): [0] for i in range(17)}},
                "too_many_keys", says="at most 16 keys"),
    *(
        calls.decode(f"tensor of a cache called {key!r}", {f"/cache/{key}": [[[1]]]},
                     "unknown_key", "unanswerable", says="There is no such key here")
        for key in (MARK, "blocks.1.attn.k", "blocks.0.attn.q", "attn.k", "encoder.blocks.0.attn.k")
    ),
    calls.decode("cache with a number beside its tensors", {f"/cache/{MARK}": 1},
                 "rank_mismatch"),
    calls.decode("cache of 2,049 keys", {"/cache": {f"t{i}": [[[1]]] for i in range(2049)}},
                 "too_many_keys", says="at most 2048 keys"),
]  # fmt: skip

_NEEDED: Mapping[str, tuple[Maker, tuple[str, ...]]] = {
    "trace": (calls.intervened, ("/interventions/0/stage", "/interventions/0/op")),
    "sweep": (calls.sweep, ("/model", "/clean", "/stage", "/over", "/measure")),
    "compare": (calls.compare, ("/a", "/b", "/a/model", "/b/input")),
    "decode": (calls.decode, ("/model", "/input", "/cache/digest", "/cache/dtype",
                              "/cache/position_ids")),
    "rope": (calls.pair, ("/positions",)),
    "rope, a spectrum": (calls.spectrum, ("/spectrum/d_head",)),
    "equivariance": (calls.permuted, ("/model", "/input")),
    "contributions": (calls.split, ("/model", "/input")),
    "subspaces": (calls.circuits, ("/model", "/heads/0/block", "/heads/0/head")),
    "jacobian": (calls.derived, ("/model", "/input")),
}  # fmt: skip


def _empty(maker: Maker, *needed: str) -> Case:
    name = f"empty object that needs {' and '.join(needed)}"
    return maker(name, {"": {}}, {f"/{key}": "missing" for key in needed})


MISSING = [
    *(
        maker(f"{call}: no {pointer}", {pointer: GONE}, "missing", says="is needed")
        for call, (maker, pointers) in _NEEDED.items()
        for pointer in pointers
    ),
    _empty(calls.sweep, "model", "clean", "stage", "over", "measure"),
    _empty(calls.compare, "a", "b"),
    _empty(calls.permuted, "model", "input"),
    _empty(calls.circuits, "model"),
    calls.decode("empty cache", {"/cache": {}}, {f"/cache/{key}": "missing"
                 for key in ("digest", "dtype", "position_ids")}),
    *(
        calls.decode(f"cache without {key}", {f"/cache/{key}": GONE}, "missing", "unanswerable",
                     says=f"{key} is needed here")
        for key in ("blocks.0.attn.k", "blocks.0.attn.v")
    ),
    calls.decode("cache without any tensor", {
        "/cache/blocks.0.attn.k": GONE, "/cache/blocks.0.attn.v": GONE}, {
        "/cache/blocks.0.attn.k": "missing", "/cache/blocks.0.attn.v": "missing"}, "unanswerable"),
]  # fmt: skip


def _one_of(maker: Maker, name: str, changes: dict[str, Any], at: str) -> Case:
    return maker(f"one of several: {name}", changes, {at: "exactly_one"}, says=_RULE)


ONE_OF = [
    _one_of(calls.intervened, "measure of nothing", {"/measures/0": {}}, "/measures/0"),
    _one_of(calls.intervened, "logit and stage", {"/measures/0": {
        "logit": 1, "stage": "Z", "direction": [1]}}, "/measures/0"),
    _one_of(calls.intervened, "other input of nothing",
            {**_PATCH, "/interventions/0/from": {}}, "/interventions/0/from"),
    _one_of(calls.intervened, "other input of two", {
        **_PATCH, "/interventions/0/from": {"token_ids": [1], "text": MARK}},
        "/interventions/0/from"),
    _one_of(calls.sweep, "clean is nothing", {"/clean": {}}, "/clean"),
    _one_of(calls.sweep, "corrupted is two", {"/corrupted/text": MARK}, "/corrupted"),
    _one_of(calls.sweep, "measure of null", {"/measure": {"logit": None}}, "/measure"),
    _one_of(calls.compare, "input of a", {"/a/input": {}}, "/a/input"),
    _one_of(calls.compare, "model of b", {"/b/model": {}}, "/b/model"),
    _one_of(calls.compare, "name and preset of b", {"/b/model/preset": "gpt2"}, "/b/model"),
    _one_of(calls.decode, "input of decode", {"/input/token_ids": [1]}, "/input"),
    _one_of(calls.pair, "no rotation", {"": {"positions": [1]}}, ""),
    _one_of(calls.pair, "a pair and a spectrum", {"/spectrum": {"d_head": 2}, "/vectors": GONE},
            ""),
    _one_of(calls.pair, "a pair and a model", {"/model": {"name": "induction"}}, ""),
    _one_of(calls.pair, "pair of no angle", {"/pair": {}}, "/pair"),
    _one_of(calls.pair, "pair of both units", {"/pair/radians_per_position": 1}, "/pair"),
    _one_of(calls.permuted, "input of rows", {"/input/text": "A"}, "/input"),
    _one_of(calls.split, "direction of nothing", {"/direction": {}}, "/direction"),
    _one_of(calls.split, "token and vector", {"/direction/vector": [1]}, "/direction"),
    _one_of(calls.derived, "neither of nor measure", {"/of": GONE, "/by": GONE, "/ask": GONE}, ""),
    _one_of(calls.derived, "of and measure", {"/measure": {"logit": 1}, "/gradients": ["Z"]}, ""),
]  # fmt: skip

TOGETHER = [
    maker(f"go together: {name}", changes, {at: code}, says=says)
    for maker, name, changes, at, code, says in [
        (calls.intervened, "stage without direction", {"/measures/0": {"stage": "Z"}},
         "/measures/0", "measure", "go together"),
        (calls.intervened, "direction without stage", {"/measures/0/direction": [NUMBER]},
         "/measures/0", "measure", "go together"),
        (calls.sweep, "minus without logit", {"/measure": {"stage": "Z", "direction": [1],
         "minus": 1}}, "/measure", "measure", "give logit"),
        (calls.sweep, "patch without corrupted", {"/corrupted": GONE}, "", "sweep", "corrupted"),
        (calls.sweep, "zero with corrupted", {"/op": "zero"}, "", "sweep", "corrupted"),
        (calls.ablation, "base is a corrupted that is not there", {"/base": "corrupted"}, "",
         "sweep", "base is clean"),
        (calls.sweep, "one axis twice", {"/over": ["head", "block", "head"]}, "", "sweep", "once"),
        (calls.pair, "block without model", {"/block": 0}, "", "block", "belongs to model"),
        (calls.pair, "one vector", {"/vectors": [[1, 0]]}, "", "vectors", "a query and a key"),
        (calls.pair, "three vectors", {"/vectors": [[1, 0]] * 3}, "", "vectors", "a query and"),
        (calls.split, "minus without token", {"/direction": {"vector": [1], "minus": "A"}},
         "/direction", "direction", "give token"),
        (calls.split, "after_norm of a token", {"/direction/after_norm": True}, "/direction",
         "direction", "after_norm goes with vector"),
        (calls.circuits, "tokens without qk or ov", {"/ask": ["rank"]}, "", "tokens", "qk and ov"),
        (calls.derived, "of without by", {"/by": GONE}, "", "jacobian", "go together"),
        (calls.derived, "gradients with of", {"/gradients": ["Z"]}, "", "jacobian", "go together"),
        (calls.derived, "part twice", {"/ask": ["norms", "norms"]}, "", "jacobian", "once"),
        (calls.derived, "nothing shown", {"/ask": ["factors"]}, "", "jacobian", "Ask for one of"),
        (calls.gradients, "measure without gradients", {"/gradients": GONE}, "", "jacobian",
         "go together"),
        (calls.gradients, "position with measure", {"/position": 0}, "", "jacobian", "belong to"),
        (calls.gradients, "summary of a gradient", {"/gradients": [{"name": "Z", "summary": True}]},
         "", "jacobian", "summary is of a trace"),
    ]
]  # fmt: skip
