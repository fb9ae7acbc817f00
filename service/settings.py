"""Every setting of the service, read from the environment: GLASSBLOCK_ and the field's name."""

import ipaddress
import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import orjson
from pydantic import BeforeValidator, Field, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

PREFIX = "GLASSBLOCK_"
MIB = 1 << 20


def _entries(raw: object, separator: str) -> object:
    """A JSON list, or words with a separator between them, as a list of words."""
    if not isinstance(raw, str):
        return raw
    if raw.lstrip().startswith("["):
        return orjson.loads(raw)
    return [word.strip() for word in raw.split(separator) if word.strip()]


Origins = Annotated[tuple[str, ...], NoDecode, BeforeValidator(partial(_entries, separator=","))]
Folders = Annotated[
    tuple[Path, ...], NoDecode, BeforeValidator(partial(_entries, separator=os.pathsep))
]


class Settings(BaseSettings):
    """What the service may be told. A field with a unit is a limit, published by /v1/limits."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, hide_input_in_errors=True
    )

    host: str = Field(default="127.0.0.1", description="The address to listen on.")
    port: int = Field(default=8000, ge=0, le=65535, description="The port to listen on.")
    open: bool = Field(
        default=False,
        description="Whether anyone who reaches the address may use the service: without it the "
        "service starts on a loopback address only.",
    )
    cors_origins: Origins = Field(
        default=(),
        description="Origins whose pages may read answers, separated by commas or as a JSON list; "
        "`*` for all.",
    )
    models: Folders = Field(
        default=(),
        description="More folders of models, or models, separated as in PATH or as a JSON list.",
    )
    uploads: Path | None = Field(
        default=None,
        description="The folder that keeps uploaded models; without it uploads are refused.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The least serious log lines that are written."
    )

    head_bytes: int = Field(
        default=64 << 10,
        ge=1024,
        description="The longest head of a request: its first line and headers.",
        json_schema_extra={"unit": "bytes"},
    )
    head_seconds: float = Field(
        default=30,
        gt=0,
        allow_inf_nan=False,
        description="The longest a client may take to send a head.",
        json_schema_extra={"unit": "seconds"},
    )
    body_bytes: int = Field(
        default=16 * MIB,
        ge=1,
        description="The largest body of a request.",
        json_schema_extra={"unit": "bytes"},
    )
    binary_body_bytes: int = Field(
        default=64 * MIB,
        ge=1,
        description="The largest body of a request in safetensors.",
        json_schema_extra={"unit": "bytes"},
    )
    body_lists: int = Field(
        default=1 << 19,
        ge=1,
        description="The most lists and objects in a body, counted before it is read as JSON.",
        json_schema_extra={"unit": "lists"},
    )
    body_keys: int = Field(
        default=1 << 17,
        ge=1,
        description="The most keys in a body, counted before it is read as JSON.",
        json_schema_extra={"unit": "keys"},
    )
    body_values: int = Field(
        default=4 * MIB,
        ge=1,
        description="The most numbers and other values in a body, counted before it is read as "
        "JSON; a tensor in base64 is one value.",
        json_schema_extra={"unit": "values"},
    )
    body_seconds: float = Field(
        default=30,
        gt=0,
        allow_inf_nan=False,
        description="The longest a client may take to send its body, or leave an upload without a "
        "byte.",
        json_schema_extra={"unit": "seconds"},
    )
    held_bytes: int = Field(
        default=256 * MIB,
        ge=1,
        description="The most bytes held at once in bodies and in answers being sent, of all "
        "requests together.",
        json_schema_extra={"unit": "bytes"},
    )
    send_seconds: float = Field(
        default=30,
        gt=0,
        allow_inf_nan=False,
        description="The longest a client may leave a part of its answer (512 KiB at most) "
        "untaken; over a whole answer it takes at least 32 KiB a second.",
        json_schema_extra={"unit": "seconds"},
    )
    stream_seconds: float = Field(
        default=300,
        gt=0,
        allow_inf_nan=False,
        description="The longest a stream of lines may take, its reader's time included.",
        json_schema_extra={"unit": "seconds"},
    )
    stream_bytes: int = Field(
        default=1 << 30,
        ge=1,
        description="The most memory of all streams that are open at once.",
        json_schema_extra={"unit": "bytes"},
    )
    answer_elements: int = Field(
        default=4 * MIB,
        ge=1,
        description="The most tensor elements in one answer.",
        json_schema_extra={"unit": "elements"},
    )
    binary_elements: int = Field(
        default=32 * MIB,
        ge=1,
        description="The most tensor elements in one answer as safetensors, base64 or JSON Lines.",
        json_schema_extra={"unit": "elements"},
    )
    work_flops: int = Field(
        default=200_000_000_000,
        ge=1,
        description="The most arithmetic of one request.",
        json_schema_extra={"unit": "floating point operations"},
    )
    memory_bytes: int = Field(
        default=1 << 30,
        ge=1,
        description="The most memory of one request: weights, stages, answer.",
        json_schema_extra={"unit": "bytes"},
    )
    kept_bytes: int = Field(
        default=1 << 30,
        ge=0,
        description="The most memory of models kept between requests; what a request needs comes "
        "first.",
        json_schema_extra={"unit": "bytes"},
    )
    deadline_seconds: float = Field(
        default=30,
        gt=0,
        allow_inf_nan=False,
        description="The longest a request may compute, and the longest it waits for its turn.",
        json_schema_extra={"unit": "seconds"},
    )
    positions: int = Field(
        default=4096,
        ge=1,
        description="The longest input.",
        json_schema_extra={"unit": "positions"},
    )
    d_model: int = Field(
        default=8192,
        ge=1,
        description="The widest residual stream.",
        json_schema_extra={"unit": "coordinates"},
    )
    blocks: int = Field(
        default=64,
        ge=1,
        description="The deepest stack.",
        json_schema_extra={"unit": "blocks"},
    )
    batch: int = Field(
        default=64,
        ge=1,
        description="The most inputs in one request.",
        json_schema_extra={"unit": "inputs"},
    )
    rank: int = Field(
        default=4,
        ge=1,
        description="The most axes of a tensor in a request.",
        json_schema_extra={"unit": "axes"},
    )
    faults: int = Field(
        default=20,
        ge=1,
        le=100,
        description="The most faults that one problem lists; it counts them all.",
        json_schema_extra={"unit": "faults"},
    )
    slots: int = Field(
        default=1,
        ge=1,
        description="How many requests compute at once.",
        json_schema_extra={"unit": "requests"},
    )
    queue: int = Field(
        default=200,
        ge=0,
        description="How many requests wait for their turn; the next one is refused.",
        json_schema_extra={"unit": "requests"},
    )

    upload_bytes: int = Field(
        default=2 << 30,
        ge=1,
        description="The largest upload of a model.",
        json_schema_extra={"unit": "bytes"},
    )
    upload_seconds: float = Field(
        default=600,
        gt=0,
        allow_inf_nan=False,
        description="The longest an upload may take to arrive.",
        json_schema_extra={"unit": "seconds"},
    )
    upload_slots: int = Field(
        default=1,
        ge=1,
        description="How many uploads are taken at once; the next one is refused.",
        json_schema_extra={"unit": "uploads"},
    )
    store_bytes: int = Field(
        default=8 << 30,
        ge=1,
        description="The most bytes of uploaded models on disk.",
        json_schema_extra={"unit": "bytes"},
    )
    store_models: int = Field(
        default=256,
        ge=1,
        description="The most uploaded models.",
        json_schema_extra={"unit": "models"},
    )

    @field_validator("held_bytes")
    @classmethod
    def _one_body_fits(cls, held_bytes: int, info: ValidationInfo) -> int:
        largest = max(info.data.get("body_bytes", 0), info.data.get("binary_body_bytes", 0))
        if held_bytes < largest:
            raise ValueError(
                "must be at least body_bytes and binary_body_bytes, or the largest body would "
                "never fit"
            )
        return held_bytes


def unknown_settings(environment: Iterable[str]) -> list[str]:
    """The names in an environment that look like settings and are none."""
    return sorted(
        name
        for name in environment
        if name.upper().startswith(PREFIX)
        and name[len(PREFIX) :].lower() not in Settings.model_fields
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host; a name other than localhost is not looked up."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def reason_not_to_listen(settings: Settings) -> str | None:
    """Why the service must not start on its host, or None where it may."""
    if settings.open or is_loopback(settings.host):
        return None
    return (
        f"{settings.host or 'An empty host'} can be reached from other machines, and anyone there "
        f"could use the service: set {PREFIX}OPEN=true if that is meant, "
        "or listen on 127.0.0.1."
    )
