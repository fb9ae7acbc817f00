"""A check for Schemathesis: what fits the schema is refused only by rules a schema cannot say."""

from typing import Any

import schemathesis
from schemathesis.checks import CheckContext
from schemathesis.core.failures import Failure
from schemathesis.core.transport import Response
from schemathesis.generation import GenerationMode

ACROSS_FIELDS = {
    "config-rule",
    "shape-mismatch",
    "invalid-input",
    "invalid-selection",
    "invalid-intervention",
    "unanswerable",
}
BY_MEANING = {"unknown-model", "not-found", "beyond-limit", "fixed-model", "invalid-upload"}
OF_FIELDS = {
    "exactly_one",  # one of name, preset and config; of tensor, token_ids and text
    "missing",  # d_model and n_heads, without a preset
    "init_with_name",
    "seed_unused",
    "special_tokens",
    "edit_value",
    "ragged",
    "rank_mismatch",  # of a packed tensor: the length of its shape
    "wrong_length",
    "not_base64",
    "not_finite",
    "out_of_range",  # of packed whole numbers
    "text",
    "text_too_long",  # all strings together
    "measure",  # stage with direction, minus with logit
    "sweep",  # corrupted with patch; each axis once
    "block",  # with model
    "vectors",  # two of them
    "direction",  # minus with token, after_norm with vector
    "tokens",  # with qk or ov
    "jacobian",  # of with by, measure with gradients
    "no_device",  # a name, or both rates
    "too_much_memory",  # a value with its unit
    "macs_alone",  # multiply_add with elementwise or bias_adds
    "published",  # a count with its suffix
    "bounds",  # least up to most
    "dtype",  # of bytes; grouped with it
    "grouped",  # beside a format that has scales of its own
    *("ask", "twice", "include", "keep"),  # each once
    "labels",  # each of its own
    "optimizer",  # by name or in numbers
}
"""Rules between the fields, or the entries, of one object."""


@schemathesis.check
def refused_only_beyond_the_schema(
    ctx: CheckContext, response: Response, case: schemathesis.Case
) -> None:
    """A well-formed request fits, but for rules between fields, meaning and limits."""
    made = case.meta.generation.mode if case.meta else None
    if made != GenerationMode.POSITIVE or response.status_code < 400:
        return
    problem = response.json()
    code = problem["type"].removeprefix("/problems/")
    rules = {f["code"] for f in problem["errors"] if not _is_whole_float(case.body, f["pointer"])}
    if code in ACROSS_FIELDS | BY_MEANING or (code == "invalid-request" and rules <= OF_FIELDS):
        return
    raise Failure(
        operation=case.operation.label,
        title="Well-formed request refused by a rule that the schema should say",
        message=f"{code}: {sorted(rules - OF_FIELDS)}",
    )


def _is_whole_float(body: object, pointer: str) -> bool:
    """Whether 1.0 stands there: a schema's integer, and no whole number to a strict reader."""
    here: Any = body
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        try:
            here = here[int(key) if isinstance(here, list) else key]
        except (KeyError, IndexError, TypeError, ValueError):
            return False
    return isinstance(here, float) and here.is_integer()
