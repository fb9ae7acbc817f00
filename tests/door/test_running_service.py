"""The table over HTTP, to a process that serves; `measure` adds the floods.

    scripts/test tests/door/test_running_service.py -s

prints the figures.
"""

from itertools import chain
from pathlib import Path

import pytest

from door import floods, over_http
from door.case import MARK
from door.over_http import MIB
from door.table import cases

MOST_HELD = 128 * MIB
"""Held at any time beyond what was held before: a body of 16 MiB and what is made of it."""

MOST_LEFT = 48 * MIB
"""Held after the table beyond what was held before: the parser's and the allocator's pools."""

MOST_GROWN = 16 * MIB
"""Held after the table a second time beyond what was held after the first."""

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="needs /proc to read memory from"
)


def test_every_bad_request_is_refused_soon_and_leaves_nothing_behind(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    with log.open("wb") as written, over_http.service(written) as service:
        figures = over_http.twice(service, chain(cases(), floods.counted()))
    print(f"\n{figures}")
    assert figures.first.wrong == {}
    assert figures.second.wrong == {}
    assert figures.same
    assert {name: t for name, t in figures.first.seconds.items() if t > 1} == {}
    before, between, after = figures.held
    assert figures.peak - before < MOST_HELD
    assert between - before < MOST_LEFT
    assert after - between < MOST_GROWN
    lines = log.read_text()
    assert MARK not in lines
    assert "Traceback" not in lines
