"""The whole table and the floods of up to 16 MiB, twice, over HTTP: prints the figures.

    scripts/fuzz

runs it; it ends with status 1 where a request was answered wrong or late, or memory did not come
back.
"""

import sys
from itertools import chain
from tempfile import TemporaryFile

from door import floods, over_http
from door.over_http import MIB
from door.table import cases

MOST_HELD = 320 * MIB
MOST_LEFT = 48 * MIB
MOST_GROWN = 24 * MIB


def main() -> int:
    """The exit status."""
    with TemporaryFile() as log, over_http.service(log) as service:
        figures = over_http.twice(service, chain(cases(), floods.cases()))
    print(figures)
    before, between, after = figures.held
    late = {name: f"{t:.2f} s" for name, t in figures.first.seconds.items() if t > 1}
    wrong = {**figures.first.wrong, **figures.second.wrong, **late}
    for name, found in wrong.items():
        print(f"{name}: {found[:500]}")
    kept = (
        figures.peak - before > MOST_HELD
        or between - before > MOST_LEFT
        or after - between > MOST_GROWN
    )
    return 1 if wrong or kept or not figures.same else 0


if __name__ == "__main__":
    sys.exit(main())
