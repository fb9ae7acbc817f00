"""Build the image without Docker, run it as docker-compose.yml does, and measure what it promises.

Needs Linux, root, buildah, podman with runc and catatonit, and mmdebstrap on a Debian; where one is
missing it says so and does nothing.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from scripts.image_trial import build, probes
from scripts.image_trial.container import start
from scripts.image_trial.engine import Engine, Failed, missing
from scripts.image_trial.options import options, writable
from scripts.image_trial.rows import Row, line


def main() -> int:
    """Print the table; 1 where a figure is not as it should be."""
    keep = parser().parse_args().keep
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        if lacking := missing() or build.missing():
            print(f"Skipped: to try the image takes {', '.join(lacking)}.")
            return 0
        with engine(keep) as own:
            return tell(trial(own))
    except Failed as failure:
        print(failure, file=sys.stderr)
        return 1


def parser() -> argparse.ArgumentParser:
    """What the command line takes."""
    command = argparse.ArgumentParser(prog="scripts/image", description=__doc__)
    command.add_argument("--keep", action="store_true", help="keep the image, and say where it is")
    return command


@contextmanager
def engine(keep: bool) -> Iterator[Engine]:
    """An engine on a folder that is gone afterwards, unless it is kept."""
    own = Engine(Path(tempfile.mkdtemp(prefix="glassblock-image-")))
    try:
        own.prepare()
        yield own
    finally:
        own.discard()
        if keep or own.mounts():
            print(f"Kept in {own.folder}: {' '.join(own.words('podman', 'image', 'ls'))}")
        else:
            shutil.rmtree(own.folder)


def tell(rows: Iterator[Row]) -> int:
    """Print rows as they come; 1 where one failed."""
    print(line("name", "measured", "limit", "ok"))
    failed = 0
    for row in rows:
        print(row, flush=True)
        failed += not row.ok
    return min(failed, 1)


def trial(own: Engine) -> Iterator[Row]:
    """Build, run, measure, stop."""
    build.import_base(own, build.bootstrap(own, cache()))
    context = build.copy_tracked(own.folder / "context")
    yield from probes.of_the_image(own, build.build(own, context))
    compose = yaml.safe_load((build.ROOT / "docker-compose.yml").read_text("utf-8"))
    (service,) = compose["services"].values()
    container = start(own, build.IMAGE, options(service))
    yield from probes.of_the_start(container)
    yield from probes.of_its_rights(container, writable(service))
    yield from probes.of_its_answers(container)
    yield from probes.of_its_uploads(container)
    yield from probes.of_its_threads(container)
    yield from probes.of_its_memory(container)
    yield from probes.of_its_stop(container)


def cache() -> Path:
    """Where the base stays from one trial to the next."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "glassblock-image"


if __name__ == "__main__":
    sys.exit(main())
