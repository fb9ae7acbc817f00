"""The driver keeps, replaces, streams and stops; equations of three plain stages show it."""

import numpy as np
import pytest

from compute.driver import checked, prefixed, stream
from compute.types import Array, Equations

ROW = np.array([1.0, 2.0, 3.0])


class Told:
    """How far the equations got, and whether they were closed."""

    def __init__(self) -> None:
        self.reached: list[str] = []
        self.closed = False

    def equations(self, x: Array) -> Equations:
        """double = 2 x, square = double², total = square + x."""
        try:
            self.reached.append("double")
            double = yield "double", 2 * x
            self.reached.append("square")
            square = yield "square", double**2
            self.reached.append("total")
            return (yield "total", square + x)
        finally:
            self.closed = True


def kept(*keep: str, **patches: object) -> dict[str, list[float]]:
    made = stream(Told().equations(ROW), set(keep), patches)
    return {name: value.tolist() for name, value in made}


def test_the_stages_kept_come_in_the_order_of_computation() -> None:
    assert list(kept("total", "double")) == ["double", "total"]
    assert kept("square") == {"square": [4.0, 16.0, 36.0]}


def test_nothing_is_computed_after_the_last_stage_needed() -> None:
    told = Told()
    assert [name for name, _ in stream(told.equations(ROW), {"double"})] == ["double"]
    assert told.reached == ["double"]
    assert told.closed


def test_each_stage_comes_before_the_next_is_computed() -> None:
    told = Told()
    made = stream(told.equations(ROW), {"double", "total"})
    assert next(made)[0] == "double"
    assert told.reached == ["double"]
    assert next(made)[0] == "total"
    assert told.reached == ["double", "square", "total"]


def test_a_reader_that_leaves_ends_the_equations() -> None:
    told = Told()
    made = stream(told.equations(ROW), {"double", "total"})
    next(made)
    made.close()
    del made
    assert told.reached == ["double"]
    assert told.closed


def test_nothing_asked_for_is_nothing_computed() -> None:
    told = Told()
    assert list(stream(told.equations(ROW), set())) == []
    assert told.reached == []


def test_a_patch_is_what_is_kept_and_what_the_equations_go_on_with() -> None:
    patched = kept("double", "square", "total", double=lambda x: x + 1)
    assert patched["double"] == [3.0, 5.0, 7.0]
    assert patched["square"] == [9.0, 25.0, 49.0]
    assert patched["total"] == [10.0, 27.0, 52.0]


def test_a_patch_works_on_a_stage_that_nobody_keeps() -> None:
    assert kept("total", square=np.zeros_like) == {"total": ROW.tolist()}


def test_patches_of_two_stages_work_one_after_the_other() -> None:
    patched = kept("total", double=np.zeros_like, square=lambda x: x + 1)
    assert patched == {"total": [2.0, 3.0, 4.0]}


def test_a_patch_after_the_last_stage_needed_is_not_called() -> None:
    def fail(x: Array) -> Array:
        raise AssertionError

    assert kept("double", total=fail) == {"double": [2.0, 4.0, 6.0]}


def test_what_is_kept_cannot_be_written() -> None:
    for _, value in stream(Told().equations(ROW), {"double", "square", "total"}):
        with pytest.raises(ValueError, match="read-only"):
            value[0] = 0.0


def test_a_name_that_is_never_computed_is_a_lookup_error_that_names_it() -> None:
    with pytest.raises(LookupError, match="'cube'"):
        kept("double", "cube")


def test_finite_numbers_may_overflow_without_a_warning() -> None:
    made = dict(stream(Told().equations(np.array([1e200])), {"square", "total"}))
    assert made["square"].tolist() == [np.inf]


# A patch's own array is its owner's.


def in_place(x: Array) -> Equations:
    """Writes over its first stage where that is not frozen, as operations may."""
    first = yield "first", x + 0.0
    second = np.negative(first, out=first if first.flags.writeable else None)
    return (yield "second", second)


@pytest.mark.parametrize("keep", [{"second"}, {"first", "second"}])
def test_the_array_a_patch_gives_is_neither_written_nor_frozen(keep: set[str]) -> None:
    mine = np.array([5.0, 7.0, 11.0])
    made = dict(stream(in_place(ROW), keep, {"first": lambda x: mine}))
    assert made["second"].tolist() == [-5.0, -7.0, -11.0]
    assert mine.tolist() == [5.0, 7.0, 11.0]
    assert mine.flags.writeable


# Prefixes and checks.


def test_a_prefix_names_each_stage_and_passes_values_both_ways() -> None:
    equations = prefixed("blocks.3.", Told().equations(ROW))
    keep = {"blocks.3.double", "blocks.3.total"}
    made = dict(stream(equations, keep, {"blocks.3.double": np.zeros_like}))
    assert {name: value.tolist() for name, value in made.items()} == {
        "blocks.3.double": [0.0, 0.0, 0.0],
        "blocks.3.total": ROW.tolist(),
    }


def test_prefixed_equations_return_what_the_equations_return() -> None:
    def outer(x: Array) -> Equations:
        total = yield from prefixed("a.", Told().equations(x))
        return (yield "after", total + 1)

    assert dict(stream(outer(ROW), {"after"}))["after"].tolist() == [6.0, 19.0, 40.0]


def test_the_check_is_made_between_stages() -> None:
    told, seen = Told(), []
    made = stream(
        checked(told.equations(ROW), lambda: seen.append(list(told.reached))),
        {"double", "square", "total"},
    )
    assert [name for name, _ in made] == ["double", "square", "total"]
    assert seen == [[], ["double"], ["double", "square"]]


def test_the_drivers_own_check_is_made_before_each_stage_and_may_end_the_run() -> None:
    class TooLate(Exception):
        """The deadline has passed."""

    def check() -> None:
        seen.append(list(told.reached))
        if "square" in told.reached:
            raise TooLate

    told, seen = Told(), []
    with pytest.raises(TooLate):
        list(stream(told.equations(ROW), {"double", "square", "total"}, None, check))
    assert seen == [[], ["double"], ["double", "square"]]


def test_the_callers_floating_point_rules_hold_between_the_stages() -> None:
    with np.errstate(over="raise"):
        made = stream(Told().equations(np.array([1e200])), {"double", "square", "total"})
        for _ in made:
            with pytest.raises(FloatingPointError):
                np.array([1e200]) ** 2


def test_an_exception_in_the_check_ends_the_run_before_the_next_stage() -> None:
    class TooLate(Exception):
        """The deadline has passed."""

    def check() -> None:
        if "square" in told.reached:
            raise TooLate

    told = Told()
    made = stream(checked(told.equations(ROW), check), {"double", "square", "total"})
    assert [next(made)[0], next(made)[0]] == ["double", "square"]
    with pytest.raises(TooLate):
        next(made)
    assert told.reached == ["double", "square"]
    assert list(made) == []


def test_checked_equations_return_what_the_equations_return() -> None:
    def outer(x: Array) -> Equations:
        total = yield from checked(Told().equations(x), lambda: None)
        return (yield "after", total + 1)

    assert dict(stream(outer(ROW), {"after"}))["after"].tolist() == [6.0, 19.0, 40.0]
