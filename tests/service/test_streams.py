"""Lines share a turn where they are quickly made, and none is lost."""

import time
from collections.abc import Iterator

import pytest

from service.pieces import CHUNK_BYTES
from service.streams import GATHERED_SECONDS, Step, gathered


def told(lines: Iterator[bytes]) -> list[bytes]:
    return [step.lines for step in gathered(lines)]


def test_lines_that_are_quickly_made_go_out_together() -> None:
    assert told(iter([b"1\n", b"2\n", b"3\n"])) == [b"1\n2\n3\n"]


def test_empty_line_sends_out_what_was_made_before() -> None:
    assert told(iter([b"", b"1\n", b"", b"", b"2\n", b""])) == [b"1\n", b"2\n"]


def test_chunk_is_enough() -> None:
    large = b"1" * CHUNK_BYTES
    assert told(iter([b"1\n", large, b"2\n", large])) == [b"1\n" + large, b"2\n" + large]


def test_line_does_not_wait_for_more_than_one_that_is_slow() -> None:
    def slow() -> Iterator[bytes]:
        for line in (b"1\n", b"2\n", b"3\n"):
            yield line
            time.sleep(2 * GATHERED_SECONDS)

    assert told(slow()) == [b"1\n2\n", b"3\n"]


def test_what_was_made_is_told_before_the_failure() -> None:
    def failing() -> Iterator[bytes]:
        yield b"1\n"
        raise ZeroDivisionError

    steps = gathered(failing())
    assert next(steps) == Step(b"1\n")
    with pytest.raises(ZeroDivisionError):
        next(steps)
