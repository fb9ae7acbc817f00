"""Commands to buildah and podman that keep all they store in one folder."""

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

TOOLS = ("buildah", "podman", "runc", "catatonit", "mmdebstrap", "apt-get")
LIBEXEC = "/usr/libexec/podman"  # where podman also looks for the init it puts into a container
CGROUPS = Path("/sys/fs/cgroup")
LAST_LINES = 20

# Without a limit of its own podman asks for more than a root without CAP_SYS_RESOURCE can give.
CONTAINERS_CONF = '[containers]\ndefault_ulimits = ["nofile=20000:20000", "nproc=4096:4096"]\n'


class Failed(Exception):
    """A command that the trial cannot do without ended badly."""


def missing() -> list[str]:
    """What a trial needs and this machine lacks."""
    path = f"{os.environ.get('PATH', os.defpath)}{os.pathsep}{LIBEXEC}"
    lacking = [tool for tool in TOOLS if shutil.which(tool, path=path) is None]
    return lacking if os.geteuid() == 0 else [*lacking, "root"]


def attempt(
    words: Sequence[str],
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """A command run to its end, with what it printed, however it ended."""
    with subprocess.Popen(  # noqa: S603 the words are this project's own, and no shell reads them
        words,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        process_group=0,
    ) as process:
        try:
            printed, told = process.communicate()
        except BaseException:  # an interruption ends what a build has started as well
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(words, process.returncode, printed, told)


def output(
    words: Sequence[str],
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> str:
    """What a command printed; Failed, with its last words, where it ended badly."""
    done = attempt(words, environment, folder)
    if done.returncode:
        lines = (done.stdout + done.stderr).splitlines()[-LAST_LINES:]
        raise Failed("\n".join([f"exit status {done.returncode}: {' '.join(words)}", *lines]))
    return done.stdout.strip()


@dataclass(frozen=True, slots=True)
class Engine:
    """buildah and podman on one storage, which is gone when the folder is."""

    folder: Path

    def prepare(self) -> None:
        """Make what the commands expect to find."""
        (self.folder / "tmp").mkdir()
        (self.folder / "containers.conf").write_text(CONTAINERS_CONF, "utf-8")

    @property
    def environment(self) -> dict[str, str]:
        """Beside the environment of this process."""
        return {
            "CONTAINERS_CONF": str(self.folder / "containers.conf"),
            "TMPDIR": str(self.folder / "tmp"),
        }

    def words(self, tool: str, *words: str) -> list[str]:
        """The command of a tool on this storage."""
        storage = ["--root", f"{self.folder}/storage", "--runroot", f"{self.folder}/run"]
        runtime = ["--runtime", "runc", "--runtime-flag", f"root={self.folder}/runc"]
        state = ["--tmpdir", f"{self.folder}/libpod", "--cgroup-manager", "cgroupfs", *runtime]
        own = state if tool == "podman" else []
        return [tool, *storage, "--storage-driver", "vfs", *own, *words]

    def attempt(self, tool: str, *words: str) -> subprocess.CompletedProcess[str]:
        """A command of a tool, however it ends."""
        # In the folder: where memory runs out, podman leaves a file `oom` where it was started.
        return attempt(self.words(tool, *words), self.environment, self.folder)

    def output(self, tool: str, *words: str) -> str:
        """What a command of a tool prints; Failed where it ends badly."""
        return output(self.words(tool, *words), self.environment, self.folder)

    def discard(self) -> None:
        """Stop and remove every container, and the groups of processes that podman leaves."""
        self.attempt("podman", "rm", "--all", "--force", "--time", "0")
        self.attempt("buildah", "rm", "--all")
        for top in [*CGROUPS.glob(self.folder.name), *CGROUPS.glob(f"*/{self.folder.name}")]:
            for group in sorted(top.glob("**/"), reverse=True):  # the innermost first
                with suppress(OSError):
                    group.rmdir()

    def mounts(self) -> list[str]:
        """What is still mounted in the folder: while there is something it must not be removed."""
        lines = Path("/proc/self/mountinfo").read_text("utf-8").splitlines()
        return [line.split()[4] for line in lines if line.split()[4].startswith(f"{self.folder}/")]
