"""TransformerLens' decompositions are stages of ours, and its parts sum to them."""

import numpy as np
import pytest

from lens.questions import CASES, Case
from lens.references import ALLOWED, TOLD, Array, apart, last_block, parts, stages, value

pytestmark = pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))

STACKS = ["decompose.all", "decompose.attn", "decompose.mlp", "decompose.mid", "accumulated"]


def rows(values: Array, case: Case) -> Array:
    """(…, n, d) -> (…, row, d): the positions that are kept."""
    return values[..., list(case.rows), :]


def heads(case: Case, before: int) -> Array:
    """(head, row, d): what each head of the first blocks adds."""
    found = stages(case, "attn.head_out")
    return rows(np.concatenate([found[f"blocks.{i}.attn.head_out"] for i in range(before)]), case)


def test_both_run_the_same_model(case: Case) -> None:
    found = stages(case, "resid_post", "logits")
    stream = [found[f"blocks.{layer}.resid_post"] for layer in range(last_block(case) + 1)]
    assert apart(stream, value(case, "resid_post")) < ALLOWED
    assert apart(found["logits"], value(case, "logits")) < ALLOWED


@pytest.mark.parametrize("stack", STACKS)
def test_parts_of_the_stream_are_our_stages(case: Case, stack: str) -> None:
    names = parts(case, stack)
    found = stages(case, *names)
    ours = np.stack([rows(found[name], case) for name in names])
    assert apart(ours, value(case, stack)) < ALLOWED
    assert apart(np.roll(ours, 1, axis=0), value(case, stack)) > TOLD


@pytest.mark.parametrize(("stack", "before"), [("heads", None), ("heads.first", 1)])
def test_what_a_head_adds_is_its_own(case: Case, stack: str, before: int | None) -> None:
    blocks = last_block(case) + 1 if before is None else before
    theirs = value(case, stack)
    ours = heads(case, blocks)
    names = [
        f"blocks.{i}.head.{head}" for i in range(blocks) for head in range(len(ours) // blocks)
    ]
    assert parts(case, stack) == [*names, "remainder"]
    assert apart(ours, theirs[:-1]) < ALLOWED
    assert apart(ours[::-1], theirs[:-1]) > TOLD


def test_what_no_head_adds_is_the_rest_of_the_stream(case: Case) -> None:
    stream = f"blocks.{last_block(case)}.resid_post"
    whole = rows(stages(case, stream)[stream], case)
    rest = whole - heads(case, last_block(case) + 1).sum(axis=0)
    assert apart(rest, value(case, "heads")[-1]) < ALLOWED
