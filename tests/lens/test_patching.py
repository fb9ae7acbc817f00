"""A sweep gives the tables of TransformerLens' activation patching."""

from typing import Any

import numpy as np
import pytest

from lens.questions import CASES, PATCHED, Case
from lens.references import ALLOWED, TOLD, apart, post, value

pytestmark = pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))


def swept(case: Case, table: str, **changed: object) -> Any:  # noqa: ANN401 - plain JSON
    """The sweep of a table: clean values in the corrupted run."""
    stage, over = PATCHED[table]
    asked = {
        "clean": {"text": case.clean},
        "corrupted": {"text": case.corrupted},
        "stage": stage,
        "over": list(over),
        "measure": {"logit": case.right, "minus": case.wrong},
    }
    return post("sweep", case, **{**asked, **changed})


@pytest.mark.parametrize("table", PATCHED)
def test_sweep_is_the_table(case: Case, table: str) -> None:
    answer = swept(case, table)
    theirs = value(case, f"patch.{table}")
    assert answer["axes"] == list(PATCHED[table][1])
    assert apart(answer["data"], theirs) < ALLOWED
    whole = value(case, "patch.clean"), value(case, "patch.corrupted")
    assert apart([answer["clean"], answer["corrupted"]], np.stack(whole)) < ALLOWED
    off = (theirs - whole[1]) / (whole[0] - whole[1])
    assert apart(answer["normalized"], off) < ALLOWED


@pytest.mark.parametrize("table", PATCHED)
def test_no_other_table_passes_for_it(case: Case, table: str) -> None:
    theirs = value(case, f"patch.{table}")
    data = np.array(swept(case, table)["data"])
    for axis, length in enumerate(data.shape):
        if length > 1:
            assert apart(np.roll(data, 1, axis), theirs) > TOLD
    assert apart(swept(case, table, base="clean")["data"], theirs) > TOLD
    measure = {"logit": case.right, "minus": case.wrong, "position": -2}
    assert apart(swept(case, table, measure=measure)["data"], theirs) > TOLD


def test_what_a_change_does_by_itself_is_another_table(case: Case) -> None:
    direct = swept(case, "attn_head_out_all_pos", path="direct")["data"]
    assert apart(direct, value(case, "patch.attn_head_out_all_pos")) > TOLD
