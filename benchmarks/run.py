"""Every bar in one table: what was measured, what to reach, whether it is met.

    python benchmarks/run.py                     all bars; other packages go into benchmarks/.peers
    python benchmarks/run.py --short             without the other packages, against the baseline
    python benchmarks/run.py --only block small  some of them, by name or its beginning

Writes benchmarks/results/full.json and full.md (short.*, part.* for the others), and after a full
run the table of docs/speed.md. A ratio is made
of two processes that take turns within a round, in a random order; the number is the median of
the rounds, with its quartiles. docs/speed.md says how to read it.
"""

import argparse
import sys
import time
from datetime import UTC, datetime

import settled


def main(asked: argparse.Namespace) -> int:
    """Measure, print, write; exit 1 where the short form got slower than the baseline."""
    from benchmarks import bars, comparing, installing, measuring, paired, results  # noqa: PLC0415

    peers = None if asked.short else installing.peers()
    effort = paired.Effort(
        rounds=asked.rounds, fresh=asked.fresh, python=sys.executable, peers=peers
    )
    start = time.perf_counter()
    head = measuring.head(effort)
    lines = []
    for bar in bars.chosen(asked.only, peers is not None):
        lines.append(measuring.line(bar, effort))
        print(results.row(lines[-1]), flush=True)
    head |= {"date": datetime.now(UTC).date().isoformat()}
    head |= {"minutes": round((time.perf_counter() - start) / 60, 1)}
    results.write(settled.ROOT / "benchmarks" / "results" / _name(asked), lines, head)
    if _name(asked) == "full":
        results.into_page(settled.ROOT / "docs" / "speed.md", lines, head)
    if asked.store_baseline:
        results.write(settled.ROOT / "benchmarks" / "baseline", lines, head)
    stored = measuring.baseline()
    print(*comparing.changes(lines, stored), sep="\n")
    return int(asked.short and comparing.slower(lines, stored))


def _name(asked: argparse.Namespace) -> str:
    if asked.only:
        return "part"
    return "short" if asked.short else "full"


def arguments() -> argparse.Namespace:
    """The words of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--short", action="store_true", help="without the other packages")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="some of the bars")
    parser.add_argument("--rounds", type=int, default=15, help="of each ratio (default: 15)")
    parser.add_argument("--fresh", type=int, default=3, help="fresh processes a side (default: 3)")
    parser.add_argument("--store-baseline", action="store_true", help="keep what was measured")
    return parser.parse_args()


if __name__ == "__main__":
    settled.restart()
    sys.exit(main(arguments()))
