"""Values of the wrong kind, outside the bounds, or none of the words, at each key of the calls."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from door import calls
from door.case import MARK, Case, Raw

_FROM = {"/interventions/0": {**calls.CHANGE, "op": "patch", "from": {"token_ids": [1, 2, 3]}}}
_MEAN = {"/op": "mean", "/value": None, "/mean_over": ["position"]}

Maker = Callable[..., Case]
Field = tuple[str, Maker, str, Mapping[str, object]]


def _all(call: str, maker: Maker, *fields: str, at: str = "", **before: object) -> list[Field]:
    """The fields of a call below a pointer, with what makes its good request one that has them."""
    changes: dict[str, object] = before.get("before", {})  # type: ignore[assignment]
    return [(f"{call}: {x}", maker, f"{at}/{x}", changes) for x in fields]


WHOLE = [
    *_all("trace", calls.intervened, "position", "batch", at="/measures/0"),
    *_all("sweep", calls.sweep, "position", "batch", at="/measure"),
    *_all("decode", calls.greedy, "steps", "top"),
    *_all("rope", calls.pair, "0", at="/positions"),
    *_all("rope", calls.spectrum, "d_head", "rotary_dim", at="/spectrum"),
    *_all("rope", calls.turned, "block"),
    *_all("contributions", calls.split, "top_k"),
    *_all("subspaces", calls.circuits, "block", "head", at="/heads/0"),
    *_all("subspaces", calls.circuits, "block", "head", at="/readers/0"),
    *_all("jacobian", calls.derived, "position", "source", "batch"),
    *_all("jacobian", calls.gradients, "position", "batch", at="/measure"),
]
NUMBERS = [
    *_all("compare", calls.compare, "threshold"),
    *_all("rope", calls.pair, "degrees_per_position", "radians_per_position", at="/pair"),
    *_all("rope", calls.spectrum, "theta", at="/spectrum"),
]
FLAGS = [
    *_all("trace", calls.intervened, "clean"),
    *_all("compare", calls.compare, "a/clean", "b/identities"),
    *_all("decode", calls.greedy, "logits"),
    *_all("contributions", calls.along, "vectors", "direction/after_norm"),
    *_all("subspaces", calls.circuits, "fold_norm"),
]
OBJECTS = [
    *_all("trace", calls.intervened, "interventions/0", "measures/0"),
    *_all("sweep", calls.sweep, "model", "clean", "measure"),
    *_all("compare", calls.compare, "a", "b", "a/model", "b/input"),
    *_all("decode", calls.decode, "model", "input"),
    *_all("rope", calls.spectrum, "spectrum/scaling"),
    *_all("equivariance", calls.permuted, "model", "input"),
    *_all("contributions", calls.split, "model", "input"),
    *_all("subspaces", calls.circuits, "model", "heads/0", "readers/0"),
    *_all("jacobian", calls.derived, "model", "input"),
]
MAY_BE_NULL = [
    *_all("trace", calls.intervened, "from", at="/interventions/0", before=_FROM),
    *_all("decode", calls.decode, "cache"),
    *_all("sweep", calls.sweep, "corrupted"),
    *_all("rope", calls.pair, "pair"),
    *_all("rope", calls.spectrum, "spectrum"),
    *_all("rope", calls.turned, "model"),
    *_all("contributions", calls.split, "direction"),
    *_all("jacobian", calls.gradients, "measure"),
]
"""Objects that null stands for the lack of."""

TEXTS = [
    *_all("trace", calls.intervened, "stage", at="/interventions/0"),
    *_all("sweep", calls.sweep, "stage"),
    *_all("sweep", calls.ablation, "measure/stage"),
    *_all("equivariance", calls.permuted, "0", at="/select"),
    *_all("contributions", calls.along, "of"),
    *_all("jacobian", calls.derived, "of", "by"),
]
LISTS = [
    *_all("trace", calls.intervened, "interventions", "measures"),
    *_all("trace", calls.intervened, "over", at="/interventions/0"),
    *_all("sweep", calls.sweep, "over", "mean_over"),
    *_all("compare", calls.compare, "a/select", "b/interventions"),
    *_all("decode", calls.decode, "select"),
    *_all("rope", calls.pair, "positions"),
    *_all("equivariance", calls.permuted, "select"),
    *_all("subspaces", calls.circuits, "heads", "readers", "ask", "tokens"),
    *_all("jacobian", calls.derived, "ask"),
    *_all("jacobian", calls.gradients, "gradients"),
]
INDICES = [
    *_all("trace", calls.intervened, "where/head", at="/interventions/0"),
    *_all("sweep", calls.sweep, "where/block", "where/head"),
    *_all("contributions", calls.split, "positions"),
]
TOKENS = [
    *_all("trace", calls.intervened, "logit", "minus", at="/measures/0"),
    *_all("sweep", calls.sweep, "logit", "minus", at="/measure"),
    *_all("contributions", calls.split, "token", "minus", at="/direction"),
    *_all("subspaces", calls.circuits, "0", "1", at="/tokens"),
]
WORDS: Sequence[tuple[list[Field], tuple[str, ...]]] = [
    (_all("trace", calls.intervened, "interventions/0/op"), ("Zero", "ablate", "replace")),
    (_all("trace", calls.intervened, "path"), ("Total", "indirect", "both")),
    (_all("trace", calls.intervened, "0", at="/interventions/0/over",
          before={"/interventions/0": {**calls.CHANGE, "op": "mean", "over": ["head"]}}),
     ("Position", "heads", "n")),
    (_all("sweep", calls.sweep, "op"), ("Patch", "ablate", "copy")),
    (_all("sweep", calls.sweep, "base"), ("Clean", "corrupt", "both")),
    (_all("sweep", calls.sweep, "path"), ("Direct", "indirect", "none")),
    (_all("sweep", calls.sweep, "0", at="/over"), ("Block", "layer", "positions")),
    (_all("sweep", calls.ablation, "0", at="/mean_over", before=_MEAN), ("rows", "n")),
    (_all("compare", calls.compare, "a/dtype", "b/path"), ("f32", "Float64", "half")),
    (_all("decode", calls.greedy, "cache_as"), ("Base64", "list", "safetensors", "null")),
    (_all("decode", calls.decode, "dtype"), ("float16", "F64")),
    (_all("rope", calls.spectrum, "pairing", at="/spectrum"), ("neox", "Half")),
    (_all("rope", calls.spectrum, "kind", at="/spectrum/scaling"), ("ntk", "YaRN")),
    (_all("equivariance", calls.permuted, "dtype"), ("double", "int8")),
    (_all("contributions", calls.split, "by"), ("heads", "Head", "layer", "token")),
    (_all("contributions", calls.split, "norm_scale"), ("Frozen", "fold", "own")),
    (_all("subspaces", calls.circuits, "0", at="/ask"), ("Rank", "svd", "OV", "kq")),
    (_all("jacobian", calls.derived, "0", at="/ask"), ("norm", "svd", "Matrix")),
    (_all("jacobian", calls.derived, "dtype"), ("float128", "f64")),
]  # fmt: skip


def _cases(
    fields: Sequence[Field], values: Sequence[object], code: str, says: str = "", at: str = ""
) -> Iterator[Case]:
    """Each field with each value, refused there, or so much further inside."""
    for name, maker, pointer, before in fields:
        for value in values:
            shown: Any = value.text if isinstance(value, Raw) else repr(value)
            title = f"{name} ({pointer}) = {shown[:40]}"
            yield maker(title, {**before, pointer: value}, {f"{pointer}{at}": code}, says=says)


_OBJECT = (1, True, MARK, [], [{}])
KINDS = [
    *_cases(WHOLE, (True, "4", 4.0, 4.5, [4], {"n": 4}), "int_type", "A whole number is due here."),
    *_cases(NUMBERS, (True, "0.5", [0.5], {"n": 0.5}), "float_type", "A number is due here."),
    *_cases(FLAGS, (1, 0, "true", [True], {}, None), "bool_type", "true or false is due here."),
    *_cases(OBJECTS, (*_OBJECT, None), "model_type", "An object is due here."),
    *_cases(MAY_BE_NULL, _OBJECT, "model_type", "An object is due here."),
    *_cases(TEXTS, (1, True, ["A"], {"name": "A"}), "string_type", "A string is due here."),
    *_cases(LISTS, (1, True, MARK, {"0": 1}), "list_type", "A list is due here."),
    *_cases(INDICES, (1, True, MARK, {"0": 1}), "list_type", "A list of whole numbers"),
    *_cases(INDICES, ([True], [0.0], ["0"], [None], [[0]]), "wrong_type", "A whole", at="/0"),
    *_cases(TOKENS, (True, 1.0, ["A"], {"token": "A"}, {}), "wrong_type", "A token is due here"),
]
_LEAST, _MOST = "greater_than_equal", "less_than_equal"
_BEYOND = ((1 << 31) + 1, 1 << 53, 1 << 64, 10**30)
_SIZES = [field for field in WHOLE if field[0].endswith(("d_head", "rotary_dim", "top_k"))]
_COUNTS = [field for field in WHOLE if field[0].endswith(("steps", "top"))]
BOUNDS = [
    *_cases(WHOLE, _BEYOND, _MOST, "at most"),
    *_cases([x for x in WHOLE if x not in (*_SIZES, *_COUNTS) and not x[0].endswith("0")],
            (-(1 << 31) - 1, -(1 << 53), -(10**30)), _LEAST, "at least -2147483648"),
    *_cases(_SIZES, (0, -1), _LEAST, "at least 1"),
    *_cases(_COUNTS, (-1, -(1 << 40)), _LEAST, "at least"),
    *_cases(_COUNTS, (10**9, 65537), _MOST, "at most"),
    *_cases(NUMBERS, (Raw("1e400"), Raw("-1e400")), "finite_number", "finite"),
    *_cases(NUMBERS[1:3], (1e7, 1000001), _MOST, "at most 1000000"),
    *_cases(NUMBERS[1:3], (-1e7, -1000001), _LEAST, "at least -1000000"),
    *_cases(NUMBERS[:1], (-1, -1e-300), _LEAST, "at least 0"),
    *_cases(NUMBERS[3:], (0, -1, 1e-7), _LEAST, "at least 1e-06"),
    *_cases(TEXTS, ("",), "string_too_short", "at least 1"),
    *_cases(TEXTS, ("x" * 129, MARK * 40), "string_too_long", "at most 128"),
    *_cases(INDICES, ([], [0] * 8193), "wrong_length", "From 1 to 8192 indices"),
    *_cases(INDICES, ([(1 << 31) + 1], [-(1 << 62)], [10**30]), "out_of_range", "2^31", at="/0"),
    *_cases(TOKENS, (-1, 1 << 31, 10**30), "out_of_range", "from 0 to 2^31 - 1"),
    *_cases(TOKENS, ("", "A" * 129, MARK * 20), "wrong_length", "from 1 to 128"),
]  # fmt: skip
WORDED = [
    case
    for fields, words in WORDS
    for case in _cases(fields, (*words, "", MARK, 1, True, [], ["x"], {}), "literal_error")
]
