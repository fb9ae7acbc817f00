"""The parts of a state, and what each gives a logit, are TransformerLens'."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from lens.questions import CASES, Case
from lens.references import ALLOWED, TOLD, Array, apart, parts, post, value

pytestmark = pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))

DIRECTIONS = [("", ("token",)), (".minus", ("token", "minus"))]


def asked(case: Case, by: str, **more: object) -> list[Any]:
    """The answers at the kept rows."""
    rows = {"positions": list(case.rows), "input": {"text": case.clean}, "by": by}
    return list(post("contributions", case, **rows, **more)["at"])


def vectors(case: Case, by: str, of: str | None = None) -> dict[str, Array]:
    """Each part's vectors at the kept rows, (row, d)."""
    rows = asked(case, by, of=of, vectors=True)
    return _by_part([{part["id"]: part["vector"] for part in row["parts"]} for row in rows])


def along(case: Case, by: str, keys: tuple[str, ...] = ("token", "minus"), **more: object) -> Any:  # noqa: ANN401
    """What each part gives along a direction at the kept rows, (row,)."""
    letters = {"token": case.right, "minus": case.wrong}
    rows = asked(case, by, direction={key: letters[key] for key in keys}, **more)
    return _by_part([{part["id"]: part["along"] for part in row["parts"]} for row in rows])


def _by_part(rows: list[Mapping[str, Any]]) -> dict[str, Array]:
    return {name: np.array([row[name] for row in rows], np.float64) for name in rows[0]}


def as_theirs(found: Mapping[str, Array]) -> dict[str, Array]:
    """Heads with what b_V brings through them, and all others as one: the remainder."""
    heads = {name: found[name] + found.get(f"{name}.b_V", 0.0) for name in found if _is_head(name)}
    rest = [found[name] for name in found if ".head." not in name and _is_of_the_state(name)]
    return {**heads, "remainder": np.sum(rest, axis=0)}


def _is_head(name: str) -> bool:
    return ".head." in name and not name.endswith(".b_V")


def _is_of_the_state(name: str) -> bool:
    return name not in ("final_norm.bias", "unembed.b_U")


def stacked(found: Mapping[str, Array], names: list[str]) -> Array:
    """Parts under these names; no other may be there but what the readout adds."""
    assert sorted(filter(_is_of_the_state, found)) == sorted(names)
    return np.stack([found[name] for name in names])


@pytest.mark.parametrize(
    ("stack", "of"), [("decompose.all", None), ("decompose.mid", "blocks.1.resid_mid")]
)
def test_sublayers_write_what_theirs_write(case: Case, stack: str, of: str | None) -> None:
    found = stacked(vectors(case, "sublayer", of), parts(case, stack))
    assert apart(found, value(case, stack)) < ALLOWED
    assert apart(np.roll(found, 1, axis=0), value(case, stack)) > TOLD


@pytest.mark.parametrize(("stack", "of"), [("heads", None), ("heads.first", "blocks.0.resid_post")])
def test_heads_write_what_theirs_write(case: Case, stack: str, of: str | None) -> None:
    found = stacked(as_theirs(vectors(case, "head", of)), parts(case, stack))
    assert apart(found, value(case, stack)) < ALLOWED
    assert apart(np.roll(found, 1, axis=0), value(case, stack)) > TOLD


def test_every_bias_and_update_is_in_the_remainder(case: Case) -> None:
    found = vectors(case, "head")
    whole = value(case, "heads")[-1]
    others = [name for name in found if ".head." not in name]
    assert ("blocks.0.b_O" in others) is (case.model == "letter-sort")
    for missing in others:
        less = {name: vector for name, vector in found.items() if name != missing}
        assert apart(as_theirs(less)["remainder"], whole) > TOLD, missing


@pytest.mark.parametrize(("suffix", "keys"), DIRECTIONS)
def test_sublayers_give_a_logit_what_theirs_give(
    case: Case, suffix: str, keys: tuple[str, ...]
) -> None:
    found = stacked(along(case, "sublayer", keys), parts(case, "decompose.all"))
    assert apart(found, value(case, f"attrs.decompose{suffix}")) < ALLOWED


@pytest.mark.parametrize(("suffix", "keys"), DIRECTIONS)
def test_heads_give_a_logit_what_theirs_give(
    case: Case, suffix: str, keys: tuple[str, ...]
) -> None:
    found = stacked(as_theirs(along(case, "head", keys)), parts(case, "heads"))
    theirs = value(case, f"attrs.heads{suffix}")
    assert apart(found, theirs) < ALLOWED
    assert apart(np.roll(found, 1, axis=0), theirs) > TOLD


@pytest.mark.parametrize(("suffix", "keys"), DIRECTIONS)
def test_neurons_give_a_logit_what_theirs_give(
    case: Case, suffix: str, keys: tuple[str, ...]
) -> None:
    found = along(case, "neuron", keys)
    ours = np.stack([values for name, values in found.items() if ".neuron." in name])
    theirs = value(case, f"attrs.neurons{suffix}")
    assert apart(ours, theirs) < ALLOWED
    assert apart(ours[::-1], theirs) > TOLD


def test_another_direction_is_told_apart(case: Case) -> None:
    theirs = value(case, "attrs.decompose.minus")
    alone = stacked(along(case, "sublayer", ("token",)), parts(case, "decompose.all"))
    assert apart(alone, theirs) > TOLD


def test_a_scale_that_is_not_held_is_told_apart(case: Case) -> None:
    held = along(case, "sublayer")
    below = [held.pop(name) for name in ("embed", "pos_embed") if name in held]
    updates = [name for name in held if _is_of_the_state(name)]
    theirs = value(case, "attrs.decompose.minus")
    theirs = np.stack([theirs[: len(below)].sum(axis=0), *theirs[len(below) :]])
    ours = np.stack([np.sum(below, axis=0), *(held[name] for name in updates)])
    assert apart(ours, theirs) < ALLOWED
    free = along(case, "sublayer", norm_scale="recomputed")
    assert list(free) == ["blocks.0.resid_pre", *updates]
    assert apart(np.stack(list(free.values())), theirs) > TOLD


def test_lens_reads_what_theirs_reads(case: Case) -> None:
    letters = {"token": case.right, "minus": case.wrong}
    rows = asked(case, "sublayer", direction=letters, norm_scale="recomputed")
    right, wrong = (_id(case, letter) for letter in (case.right, case.wrong))
    theirs = value(case, "lens")
    ours = np.array([[state["value"] for state in row["lens"]] for row in rows]).T
    assert apart(ours, theirs[..., right] - theirs[..., wrong]) < ALLOWED
    for at, row in enumerate(rows):
        for layer, state in enumerate(row["lens"]):
            shown = np.array([top["logit"] for top in state["top"]])
            assert apart(shown, np.sort(theirs[layer, at])[::-1][: len(shown)]) < ALLOWED
            ids = [top["token_id"] for top in state["top"]]
            assert apart(shown, theirs[layer, at, ids]) < ALLOWED


def _id(case: Case, letter: str) -> int:
    """Both tokenizers count the alphabet from A."""
    return ord(letter) - ord("A")
