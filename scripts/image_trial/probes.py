"""What is measured of the image and of a container of it."""

import json
import time
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from scripts.image_trial import readme
from scripts.image_trial.build import BASE, DOCKERFILE, IMAGE, ROOT, release
from scripts.image_trial.container import Container, free_port
from scripts.image_trial.engine import Engine
from scripts.image_trial.rows import Row, at_most, equal, listed

MB, MIB = 10**6, 2**20
IMAGE_MB, ADDED_MB, BUILD_SECONDS, START_SECONDS, STOP_SECONDS = 400, 200, 600, 20, 2
BOUNDARY = "part"
KILLED = 137  # 128 + SIGKILL
USER = "10001"
NEAR, BEYOND = 1984, 2080  # widths of five blocks that just fit memory_bytes, and do not
NO_CAPABILITY = "0" * 16  # 64 bits

# Files that would install, build or compile something.
INSTALLERS = ["pip", "pip3*", "pip-*", "ensurepip", "uv", "uvx", "uv-*", "setuptools", "wheel"]
BUILDERS = ["hatchling*", "cc", "c++", "*gcc*", "*g++*", "clang*", "cpp*", "as", "ld", "make"]
TOOLS = [*INSTALLERS, *BUILDERS, "rustc", "cargo", "go"]

# Where a process could write: each folder is tried but for those of the kernel.
WRITABLE = """
import os
for folder, below, _ in os.walk('/'):
    below[:] = [b for b in below if os.path.join(folder, b) not in ('/proc', '/sys', '/dev')]
    try:
        os.close(os.open(folder + '/.probe', os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except OSError:
        continue
    os.remove(folder + '/.probe')
    print(folder)
"""
THREADS = """
import os, threading
stay = threading.Event()
try:
    for started in range(1000):
        threading.Thread(target=stay.wait).start()
except RuntimeError:
    pass
print(started, flush=True)
os._exit(0)
"""
ALLOCATE = "len(b'x' * {})"  # each page is written, so each page counts
# Older kernels with cgroup v2 do not tell.
PEAK = """
for path in ('memory.peak', 'memory/memory.max_usage_in_bytes'):
    try:
        print(open('/sys/fs/cgroup/' + path).read())
    except OSError:
        continue
"""


def of_the_image(engine: Engine, build_seconds: float) -> Iterator[Row]:
    """How large the image is, how long it took, and what is not in it."""
    whole, base = (int(_field(engine, name, "{{.Size}}")) / MB for name in (IMAGE, BASE))
    yield at_most("time of the build", build_seconds, BUILD_SECONDS, "s")
    yield at_most("size of the image", whole, IMAGE_MB, "MB")
    yield at_most("size of what it adds to its base", whole - base, ADDED_MB, "MB")
    yield equal("user of the image", _field(engine, IMAGE, "{{.Config.User}}"), f"{USER}:{USER}")
    files = Path(engine.output("podman", "image", "mount", IMAGE))
    yield listed("installers and compilers in it", tools_in(files), [])


def _field(engine: Engine, image: str, template: str) -> str:
    return engine.output("podman", "image", "inspect", "--format", template, image)


def tools_in(files: Path) -> list[str]:
    """Paths in a file system that would install, build or compile something."""
    found = (path for path in files.rglob("*") if any(fnmatch(path.name, tool) for tool in TOOLS))
    return sorted(f"/{path.relative_to(files)}" for path in found if _usable(path))


def _usable(path: Path) -> bool:
    runs = path.parent.name in {"bin", "sbin"}
    return runs or path.suffix in {".whl", ".dist-info"} or (path / "__init__.py").is_file()


def of_the_start(container: Container) -> Iterator[Row]:
    """Whether the service comes up, and whether its health check can tell."""
    seconds = container.seconds_to_healthy(START_SECONDS)
    yield at_most("time until its HEALTHCHECK passes", seconds, START_SECONDS, "s")
    yield equal("HEALTHCHECK passes where nothing listens", container.healthy(free_port()), False)
    wanted, _ = release(DOCKERFILE)
    version = container.python("import platform; print(platform.python_version())").stdout.strip()
    yield Row("version of Python", version, f"{wanted}.*", version.startswith(f"{wanted}."))


def of_its_rights(container: Container, writable: list[str]) -> Iterator[Row]:
    """What the kernel lets the container's processes do."""
    users = container.status("Uid", "Gid", "Groups")
    yield listed("users and groups of its processes", users, [USER])
    capabilities = container.status("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
    yield listed("capabilities, in any of the five sets", capabilities, [NO_CAPABILITY])
    yield listed("no new privileges", container.status("NoNewPrivs"), ["1"])
    yield listed("seccomp (2: a filter)", container.status("Seccomp"), ["2"])
    tried = (container.python(WRITABLE, options=["--user", user]) for user in ("0", USER))
    folders = sorted({folder for run in tried for folder in run.stdout.split()})
    yield listed("folders in which its user or root could write", folders, writable)


def of_its_answers(container: Container) -> Iterator[Row]:
    """Whether the README's first trace has the README's numbers."""
    text = readme.README.read_text("utf-8")
    status, answer = container.traced(readme.first_request(text))
    yield equal("status of the README's first trace", status, 200)
    found = readme.last_rows(answer) if status == 200 else []
    distance = readme.distance(found, readme.told_rows(text))
    yield at_most("distance from the README's numbers", distance, readme.PRECISION, "")


def of_its_uploads(container: Container) -> Iterator[Row]:
    """Whether a model that ships is taken in under another name, answers, and goes."""
    path = "/v1/models/uploaded"
    body = multipart(sorted((ROOT / "models" / "letter-sort").glob("*.*")))
    kind = f"multipart/form-data; boundary={BOUNDARY}"
    asked = json.dumps({"model": {"name": "uploaded"}, "input": {"token_ids": [0]}})
    yield equal("status of an upload", container.answer("PUT", path, body, kind)[0], 201)
    yield equal("status of a trace of it", container.traced(asked)[0], 200)
    yield equal("status of its removal", container.answer("DELETE", path, b"")[0], 204)


def multipart(files: list[Path]) -> bytes:
    """The body of an upload: the files that a model is read from."""
    told = (file for file in files if file.suffix in {".json", ".safetensors", ".md"})
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{{}}"\r\n\r\n'
    parts = [
        head.format(file.name).encode() + file.read_bytes()
        for file in told
        if file.name != "split.json"
    ]
    return b"\r\n".join([*parts, f"--{BOUNDARY}--\r\n".encode()])


def of_its_threads(container: Container) -> Iterator[Row]:
    """Whether there is an end to the processes and threads."""
    limit = int(container.inspect("{{.HostConfig.PidsLimit}}"))
    started = int(container.python(THREADS).stdout or "1000")
    yield at_most("threads that could be started", started, limit, "")


def of_its_memory(container: Container) -> Iterator[Row]:
    """Whether the limit holds, whom it hits, and that the largest trace fits below it."""
    limit, before = int(container.inspect("{{.HostConfig.Memory}}")), container.processes()
    yield equal("status of a trace near memory_bytes", container.traced(trace(NEAR))[0], 200)
    yield equal("status of a trace beyond memory_bytes", container.traced(trace(BEYOND))[0], 413)
    for peak in container.python(PEAK).stdout.split():
        yield at_most("most memory the container held", int(peak) / MIB, limit / MIB, "MiB")
    within = container.python(ALLOCATE.format(limit // 2)).returncode
    yield equal("exit status of an allocation of half the limit", within, 0)
    beyond = container.python(ALLOCATE.format(limit)).returncode
    yield equal("exit status of one beyond the limit", beyond, KILLED)
    yield equal("status of /healthz after that", container.answer("GET", "/healthz")[0], 200)
    yield equal("service is the same process as before", container.processes() == before, True)


def trace(d_model: int) -> str:
    """A request for five seeded blocks; their weights are nearly all of its memory."""
    config = {"d_model": d_model, "n_layers": 5, "attention": {"n_heads": 16}}
    asked = {"name": "Z", "summary": True}
    model = {"config": config, "weights": {"seed": 1}}
    return json.dumps({"model": model, "input": {"tensor": [[0.5] * d_model]}, "select": [asked]})


def of_its_stop(container: Container) -> Iterator[Row]:
    """Whether the image's stop signal ends it soon and well."""
    begin = time.monotonic()
    container.engine.output("podman", "stop", "--time", "20", container.identity)
    yield at_most("time to stop", time.monotonic() - begin, STOP_SECONDS, "s")
    yield equal("exit status of the service", container.inspect("{{.State.ExitCode}}"), 0)
