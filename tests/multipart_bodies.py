"""Bodies of multipart/form-data made by hand, so that any byte of them can be wrong."""

import json
from collections.abc import Mapping

import checkpoint_files

BOUNDARY = "b0undary"
MULTIPART = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}


def model_files(seed: int = 0, **changes: object) -> dict[str, bytes]:
    """The files of a small model, its config changed."""
    config = {**checkpoint_files.LLAMA, **changes}
    return {
        "config.json": json.dumps(config).encode(),
        "model.safetensors": checkpoint_files.of_arrays(checkpoint_files.llama_arrays(seed)),
    }


def part(name: str, content: bytes) -> bytes:
    """One part, with the boundary before it."""
    disposition = f'Content-Disposition: form-data; name="file"; filename="{name}"'
    return f"--{BOUNDARY}\r\n{disposition}\r\n\r\n".encode() + content + b"\r\n"


def body(files: Mapping[str, bytes]) -> bytes:
    """A whole body of these files."""
    parts = b"".join(part(name, content) for name, content in files.items())
    return parts + f"--{BOUNDARY}--\r\n".encode()
