"""What docker-compose.yml asks for, in podman's words."""

from collections.abc import Mapping
from typing import TypeAlias

Value: TypeAlias = str | int | float | bool | list[str] | dict[str, str]

WITH_A_VALUE = {
    "mem_limit": "--memory",
    "memswap_limit": "--memory-swap",
    "pids_limit": "--pids-limit",
    "cpus": "--cpus",
}
FOR_EACH = {
    "tmpfs": "--tmpfs",
    "volumes": "--volume",
    "cap_drop": "--cap-drop",
    "security_opt": "--security-opt",
}
# By itself podman would lay writable folders over a read-only image; compose does not.
SWITCHES = {"init": ["--init"], "read_only": ["--read-only", "--read-only-tmpfs=false"]}

# Not tried: what makes the image, brings it back and publishes it. The trial calls the image's own
# health check itself, and gives a stop less time.
ASIDE = {"build", "image", "restart", "ports", "healthcheck", "stop_grace_period"}


def options(service: Mapping[str, Value]) -> list[str]:
    """podman's options for a service; ValueError for a key that it has no word for."""
    return [word for key, value in service.items() if key not in ASIDE for word in _of(key, value)]


def _of(key: str, value: Value) -> list[str]:
    if key in WITH_A_VALUE:
        return [WITH_A_VALUE[key], str(value)]
    if key in FOR_EACH and isinstance(value, list):
        return [word for each in value for word in (FOR_EACH[key], each)]
    if key in SWITCHES:
        return SWITCHES[key] if value else []
    if key == "environment" and isinstance(value, dict):
        return [word for name, told in value.items() for word in ("--env", f"{name}={told}")]
    raise ValueError(f"scripts/image does not know how to try {key}: {value!r}")


def writable(service: Mapping[str, Value]) -> list[str]:
    """The folders that a read-only service may still write to."""
    temporary, lasting = (_listed(service.get(key, [])) for key in ("tmpfs", "volumes"))
    return sorted(
        [mount.partition(":")[0] for mount in temporary]
        + [mount.split(":")[1] for mount in lasting if not mount.endswith(":ro")]
    )


def _listed(mounts: Value) -> list[str]:
    return mounts if isinstance(mounts, list) else []
