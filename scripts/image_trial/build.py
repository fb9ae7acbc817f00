"""The image, built from the Dockerfile on a base made of Debian packages."""

import re
import shutil
import time
from pathlib import Path

from scripts.image_trial.engine import Engine, Failed, output

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
BASE, IMAGE = "localhost/glassblock-base:trial", "localhost/glassblock:trial"
INCLUDE = "python3,python3-venv,ca-certificates"

# By these a machine says how it reaches its package index.
INDEX_SETTINGS = ("/etc/ssl/certs", "/etc/xdg/pip", "/etc/pip.conf")


def release(dockerfile: str) -> tuple[str, str]:
    """Python's version and Debian's name in the base that a Dockerfile asks for."""
    found = re.search(r"^ARG BASE_IMAGE=\S*python:([\d.]+)-slim-(\w+)", dockerfile, re.MULTILINE)
    if found is None:
        raise Failed("The Dockerfile's BASE_IMAGE is not a python:VERSION-slim-DEBIAN.")
    return found[1], found[2]


def mirror(targets: str) -> str | None:
    """Debian's own archive among apt's targets, each a line `label address`."""
    lines = (line.rpartition(" ") for line in targets.splitlines())
    return next((address for label, _, address in lines if label == "Debian"), None)


def debian_mirror() -> str | None:
    """The mirror of Debian that this machine's apt uses, if it uses one."""
    listing = ["apt-get", "indextargets", "--format", "$(LABEL) $(REPO_URI)"]
    return mirror(output([*listing, "Created-By: Packages"]))


def missing() -> list[str]:
    """What a base of Debian packages needs and this machine lacks."""
    return [] if debian_mirror() else ["a Debian archive among apt's sources"]


def bootstrap(engine: Engine, cache: Path) -> Path:
    """A file system of Debian with Python, made once: remove the file for a newer one."""
    _, debian = release(DOCKERFILE)
    kept = cache / f"{debian}.tar"
    if not kept.exists():
        cache.mkdir(parents=True, exist_ok=True)
        fresh = cache / f"fresh-{debian}.tar"
        packages = ["--quiet", "--variant=minbase", f"--include={INCLUDE}"]
        command = ["mmdebstrap", *packages, debian, str(fresh), debian_mirror() or ""]
        output(command, engine.environment)
        fresh.rename(kept)
    return kept


def import_base(engine: Engine, archive: Path) -> None:
    """The file system as the image BASE."""
    recipe = engine.folder / "base.Dockerfile"
    recipe.write_text(f"FROM scratch\nADD {archive.name} /\n", "utf-8")
    engine.output("buildah", "bud", "-f", str(recipe), "-t", BASE, str(archive.parent))


def copy_tracked(target: Path) -> Path:
    """A copy of the files that are or could be committed, as they are now."""
    listing = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in filter(None, output(["git", "-C", str(ROOT), *listing]).split("\0")):
        source, copy = ROOT / name, target / name
        if source.is_file():  # not deleted since the last commit
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)
    return target


def build(engine: Engine, context: Path) -> float:
    """Build IMAGE on BASE; the seconds that takes."""
    settings = [path for path in INDEX_SETTINGS if Path(path).exists()]
    mounts = [word for path in settings for word in ("--volume", f"{path}:{path}:ro")]
    how = ["--isolation", "chroot", "--format", "docker", "--network", "host", *mounts]
    what = ["--build-arg", f"BASE_IMAGE={BASE}", "-t", IMAGE, str(context)]
    begin = time.monotonic()
    engine.output("buildah", "bud", *how, *what)
    return time.monotonic() - begin
