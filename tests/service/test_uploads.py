"""PUT and DELETE /v1/models/{name}: what is taken, what is refused, what stays on disk."""

import errno
import json
import os
import shutil
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import anyio
import httpx2 as httpx
import numpy as np
import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.testclient import TestClient

import checkpoint_files
from multipart_bodies import BOUNDARY, MULTIPART, body, model_files, part
from service import errors, state
from service.problems import KINDS
from service.settings import Settings
from service.storage import uploading
from service.storage.locks import Lock
from service.storage.parts import LARGEST_LEFT_OUT, LEFT_OUT, MOST_PARTS
from service.storage.store import Store
from service.storage.uploads import Uploads

pytestmark = pytest.mark.usefixtures("look_each_time")

MakeClient = Callable[..., TestClient]
AssertProblem = Callable[..., dict[str, Any]]
TESTS = Path(__file__).parents[1]
SHIPPED = TESTS.parent / "models"
OWN = {
    name: (SHIPPED / "letter-sort" / name).read_bytes()
    for name in ("config.json", "model.safetensors", "tokenizer.json", "README.md")
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "uploads"


@pytest.fixture
def client(make_client: MakeClient, folder: Path) -> TestClient:
    return make_client(uploads=folder)


def put(
    client: TestClient, files: Mapping[str, bytes], name: str = "mine", **headers: str
) -> httpx.Response:
    return put_body(client, body(files), name, **headers)


def put_body(
    client: TestClient, content: bytes, name: str = "mine", **headers: str
) -> httpx.Response:
    given = {key.replace("_", "-"): value for key, value in headers.items()}
    return client.put(f"/v1/models/{name}", content=content, headers={**MULTIPART, **given})


def on_disk(folder: Path) -> list[str]:
    """Every file and folder below a folder, but for the three that are always there."""
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*"))
    return sorted(set(found) - {"contents", "names", "incoming"})


def trace(client: TestClient, name: str = "mine") -> httpx.Response:
    asked = {"model": {"name": name}, "input": {"token_ids": [1, 2]}, "select": ["logits"]}
    return client.post("/v1/trace", json=asked)


# What is taken


def test_upload_is_a_model_like_any_other(client: TestClient) -> None:
    response = put(client, OWN)
    assert response.status_code == 201
    assert response.json() == client.get("/v1/models/mine").json()
    assert response.json()["origin"] == "uploaded"
    assert response.json()["tokenizer"]["tokens"] == ["A", "B", "C"]
    lines = {line["name"]: line for line in client.get("/v1/models").json()["models"]}
    assert lines["mine"]["origin"] == "uploaded"
    asked = {"model": {"name": "letter-sort"}, "input": {"text": "CABBAC"}}
    shipped = client.post("/v1/trace", json=asked).json()
    asked["model"] = {"name": "mine"}
    mine = client.post("/v1/trace", json=asked).json()
    assert mine["tensors"] == shipped["tensors"]
    assert mine["model"]["name"] == "mine"


def test_shards_are_taken_with_their_index(client: TestClient) -> None:
    arrays = checkpoint_files.llama_arrays()
    first = dict(list(arrays.items())[:9])
    second = dict(list(arrays.items())[9:])
    shards = {"a.safetensors": first, "b.safetensors": second}
    weight_map = {tensor: name for name, part in shards.items() for tensor in part}
    files = {
        "config.json": model_files()["config.json"],
        "model.safetensors.index.json": json.dumps({"weight_map": weight_map}).encode(),
        **{name: checkpoint_files.of_arrays(part) for name, part in shards.items()},
    }
    assert put(client, files).status_code == 201
    assert put(client, model_files(), "whole").status_code == 201
    assert trace(client).json()["tensors"] == trace(client, "whole").json()["tensors"]
    response = put(client, {**files, "c.safetensors": files["a.safetensors"]}, "other")
    assert response.json()["errors"][0]["pointer"] == "/c.safetensors"


def test_gguf_file_is_taken_alone_under_any_name(client: TestClient, folder: Path) -> None:
    files = {"what-ever_q4.gguf": (TESTS / "parity_gguf" / "gpt2.gguf").read_bytes()}
    response = put(client, files)
    assert response.status_code == 201, response.text
    assert (response.json()["family"], response.json()["origin"]) == ("gpt2", "uploaded")
    assert any(name.endswith("/model.gguf") for name in on_disk(folder))
    assert trace(client).status_code == 200
    assert put(client, {"another.gguf": files["what-ever_q4.gguf"]}).status_code == 200


def test_same_upload_again_is_no_new_model_and_takes_no_more_disk(
    client: TestClient, folder: Path
) -> None:
    files = model_files()
    assert put(client, files).status_code == 201
    before = on_disk(folder)
    assert put(client, dict(reversed(files.items()))).status_code == 200
    assert on_disk(folder) == before
    assert put(client, files, "twin").status_code == 201
    assert on_disk(folder) == sorted([*before, "names/twin"])


def test_another_model_under_the_same_name_takes_its_place(
    client: TestClient, folder: Path
) -> None:
    put(client, model_files(0))
    old, before = trace(client).json(), on_disk(folder)
    assert put(client, model_files(1)).status_code == 200
    new = trace(client).json()
    assert new["tensors"] != old["tensors"]
    assert new["model"]["digest"] != old["model"]["digest"]
    assert len(on_disk(folder)) == len(before)
    assert set(on_disk(folder)) & set(before) == {"names/mine"}


def test_model_is_there_after_a_restart_and_for_every_process(
    make_client: MakeClient, client: TestClient, folder: Path
) -> None:
    other = make_client(uploads=folder)
    put(client, model_files(0))
    assert trace(other).json() == trace(client).json()
    put(other, model_files(1))
    assert trace(other).json() == trace(client).json()
    assert other.delete("/v1/models/mine").status_code == 204
    assert trace(client).status_code == 404


def test_parts_may_have_more_headers_and_any_field_name(client: TestClient) -> None:
    whole = body(model_files())
    changed = whole.replace(b'name="file"', b'name="any[]"').replace(
        b"\r\n\r\n", b"\r\nContent-Type: application/octet-stream\r\n\r\n", 1
    )
    assert put_body(client, b"a preamble\r\n" + changed + b"an epilogue").status_code == 201


def test_body_of_chunks_without_a_length_is_taken(client: TestClient) -> None:
    whole = body(model_files())

    def chunks() -> Iterator[bytes]:
        yield from (whole[at : at + 100] for at in range(0, len(whole), 100))

    assert client.put("/v1/models/mine", content=chunks(), headers=MULTIPART).status_code == 201


def test_what_lies_beside_a_model_is_taken_and_left_out(client: TestClient, folder: Path) -> None:
    beside = dict.fromkeys(LEFT_OUT, b"any")
    assert put(client, {**beside, **model_files()}).status_code == 201
    before = on_disk(folder)
    assert not any(path.endswith(tuple(LEFT_OUT)) for path in before)
    assert put(client, model_files()).status_code == 200
    assert on_disk(folder) == before
    gguf = (TESTS / "parity_gguf" / "gpt2.gguf").read_bytes()
    assert put(client, {"x.gguf": gguf, **beside}, "gguf").status_code == 201


def test_as_many_parts_are_taken_as_the_problem_says() -> None:
    assert f"at most {MOST_PARTS} parts" in KINDS["malformed-multipart"].meaning


# Removing


def test_removed_model_is_gone_with_its_files(
    client: TestClient, folder: Path, assert_problem: AssertProblem
) -> None:
    put(client, model_files())
    trace(client)
    response = client.delete("/v1/models/mine")
    assert (response.status_code, response.content) == (204, b"")
    assert on_disk(folder) == []
    assert_problem(trace(client), "unknown-model")
    assert_problem(client.delete("/v1/models/mine"), "unknown-model")


def test_content_stays_as_long_as_a_name_means_it(client: TestClient, folder: Path) -> None:
    put(client, model_files(), "one")
    put(client, model_files(), "two")
    client.delete("/v1/models/one")
    assert trace(client, "two").status_code == 200
    client.delete("/v1/models/two")
    assert on_disk(folder) == []


def test_run_that_began_goes_on_with_a_model_that_is_replaced_and_removed(
    folder: Path,
) -> None:
    here = Store(Settings(uploads=folder))
    assert here.uploads is not None
    _publish(here.uploads, "mine", model_files(0))
    checkpoint = here.get("mine")
    weights = here.packed(checkpoint, "float32")
    _publish(here.uploads, "mine", model_files(1))
    assert here.get("mine") is not checkpoint
    here.remove("mine")
    assert weights.blocks[1].attention.W_QKV.size  # read from the disk only now
    assert len(list((folder / "contents").iterdir())) == 1
    del checkpoint, weights
    here.tidy()
    assert on_disk(folder) == []


def _publish(uploads: Uploads, name: str, files: Mapping[str, bytes]) -> None:
    incoming = uploads.begin()
    inner = incoming.folder / name
    inner.mkdir()
    for file, content in files.items():
        (inner / file).write_bytes(content)
    digest = f"{hash(tuple(files.values())) & (1 << 255) - 1:064x}"
    uploads.publish(inner, digest, name)
    incoming.close()


@pytest.mark.parametrize("name", ["letter-sort", "lab"])
def test_other_models_are_neither_replaced_nor_removed(
    make_client: MakeClient, tmp_path: Path, assert_problem: AssertProblem, name: str
) -> None:
    shutil.copytree(SHIPPED / "eiffel-toy", tmp_path / "models" / "lab")
    client = make_client(uploads=tmp_path / "uploads", models=(tmp_path / "models",))
    assert_problem(put(client, model_files(), name), "fixed-model")
    assert_problem(client.delete(f"/v1/models/{name}"), "fixed-model")
    assert client.get(f"/v1/models/{name}").status_code == 200


# What is refused before the body is read


def test_without_a_folder_uploads_are_refused_and_told_the_setting(
    make_client: MakeClient, assert_problem: AssertProblem
) -> None:
    client = make_client()
    assert_problem(put(client, model_files()), "uploads-off")
    assert "GLASSBLOCK_UPLOADS" in client.get("/problems/uploads-off").json()["meaning"]
    assert_problem(client.delete("/v1/models/mine"), "unknown-model")
    assert_problem(client.delete("/v1/models/letter-sort"), "fixed-model")


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_folder_that_may_not_be_written_to_is_told(
    client: TestClient,
    monkeypatch: pytest.MonkeyPatch,
    assert_problem: AssertProblem,
    number: int,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, "not here")

    monkeypatch.setattr(Path, "mkdir", refuse)
    told = assert_problem(put(client, model_files()), "uploads-off")
    assert "GLASSBLOCK_UPLOADS" in told["detail"]


def test_upload_that_is_removed_before_it_is_answered_is_still_told(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = Uploads.publish

    def and_remove(uploads: Uploads, folder: Path, content: str, name: str) -> bool:
        known = publish(uploads, folder, content, name)
        assert uploads.remove(name)
        return known

    monkeypatch.setattr(Uploads, "publish", and_remove)
    answer = put(client, model_files())
    assert answer.status_code == 201
    assert answer.json()["name"] == "mine"
    assert client.get("/v1/models/mine").status_code == 404


@pytest.mark.parametrize("name", ["-x", ".x", "a%20b", "x" * 65, "%2e%2e", "a%5cb", "a%00", "%F0"])
def test_name_that_no_model_can_have_is_refused(
    client: TestClient, folder: Path, assert_problem: AssertProblem, name: str
) -> None:
    problem = assert_problem(put(client, model_files(), name), "invalid-request")
    assert problem["errors"][0]["code"] == "bad_model_name"
    assert not folder.exists()


@pytest.mark.parametrize(
    "media",
    ["", "application/json", "multipart/mixed; boundary=x", "multipart/form-data",
     "multipart/form-data; boundary=", f"multipart/form-data; boundary={'x' * 71}"],
)  # fmt: skip
def test_other_media_are_told_what_is_offered(
    client: TestClient, assert_problem: AssertProblem, media: str
) -> None:
    response = put(client, model_files(), Content_Type=media)
    problem = assert_problem(response, "unsupported-media-type")
    assert "multipart/form-data" in problem["detail"]
    assert response.headers["accept"] == "multipart/form-data"


def test_coded_body_and_an_answer_nobody_takes_are_refused(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    response = put(client, model_files(), Content_Encoding="gzip")
    assert_problem(response, "unsupported-media-type")
    assert_problem(put(client, model_files(), Accept="text/html"), "not-acceptable")


def test_upload_beyond_its_limit_is_refused_with_and_without_a_length(
    make_client: MakeClient, folder: Path, assert_problem: AssertProblem
) -> None:
    client = make_client(uploads=folder, upload_bytes=1000)
    problem = assert_problem(put(client, model_files()), "body-too-large")
    assert problem["limit"]["name"] == "upload_bytes"
    chunks = iter([body(model_files())])
    response = client.put("/v1/models/mine", content=chunks, headers=MULTIPART)
    assert_problem(response, "body-too-large")
    assert on_disk(folder) == []


def test_store_takes_no_more_bytes_and_models_than_its_limits(
    make_client: MakeClient, folder: Path, assert_problem: AssertProblem
) -> None:
    size = len(body(model_files()))
    client = make_client(uploads=folder, store_bytes=2 * size, store_models=3)
    assert put(client, model_files(0), "one").status_code == 201
    assert put(client, model_files(1), "two").status_code == 201
    before = on_disk(folder)
    problem = assert_problem(put(client, model_files(2), "more"), "store-full")
    assert problem["limit"]["name"] == "store_bytes"
    chunks = iter([body(model_files(2))])
    response = client.put("/v1/models/more", content=chunks, headers=MULTIPART)
    assert_problem(response, "store-full")
    assert on_disk(folder) == before
    assert put(client, model_files(2), "two").status_code == 200  # in the place of another
    client.delete("/v1/models/one")
    many = make_client(uploads=folder, store_models=1)
    problem = assert_problem(put(many, model_files(0), "three"), "store-full")
    assert problem["limit"] == {"name": "store_models", "value": 1, "got": 2}


def test_full_disk_is_told_and_leaves_nothing(
    client: TestClient, folder: Path, assert_problem: AssertProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: object, __: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(uploading.Parts, "feed", full)
    problem = assert_problem(put(client, model_files()), "store-full")
    assert problem["detail"] == "The disk is full."
    assert on_disk(folder) == []


def test_stopping_service_takes_no_upload(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    client.app.state.glassblock.admission.drain()  # type: ignore[attr-defined]
    assert_problem(put(client, model_files()), "draining")


# What is refused for its parts


def faults(client: TestClient, files: Mapping[str, bytes]) -> dict[str, str]:
    """Pointer -> code of an upload that is refused."""
    response = put(client, files)
    assert response.json()["type"] == "/problems/invalid-upload", response.text
    return {fault["pointer"]: fault["code"] for fault in response.json()["errors"]}


BAD_NAMES = [
    "../config.json",
    "/etc/passwd",
    "a/b.safetensors",
    "..",
    ".hidden",
    "C:\\x\\config.json",
    "\\\\host\\config.json",
    "..\\config.json",
    "con fig.json",
    "config.json%00",
    "x" * 200,
    "cönfig.json",
]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_name_of_a_part_is_plain(client: TestClient, folder: Path, name: str) -> None:
    response = put(client, {name: b"{}", **model_files()})
    (fault,) = response.json()["errors"]
    assert (response.status_code, fault["code"]) == (422, "bad_part_name")
    assert on_disk(folder) == []


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "x.ckpt", "x.pkl"])
def test_pickles_are_refused_by_name(client: TestClient, name: str) -> None:
    response = put(client, {"config.json": model_files()["config.json"], name: b"\x80\x04"})
    (fault,) = response.json()["errors"]
    assert (fault["code"], fault["pointer"]) == ("unknown_part", f"/{name}")
    assert "pickle" in fault["detail"]


FILES = model_files()
SETS = {
    "nothing": ({}, {"/config.json": "missing_part", "/model.safetensors": "missing_part"}),
    "no config": ({"model.safetensors": b""}, {"/config.json": "missing_part"}),
    "no tensors": ({"config.json": b"{}"}, {"/model.safetensors": "missing_part"}),
    "a stranger": ({**FILES, "notes.txt": b""}, {"/notes.txt": "unknown_part"}),
    "shards alone": (
        {"config.json": b"{}", "a.safetensors": b""},
        {"/model.safetensors.index.json": "missing_part"},
    ),
    "whole and shards": ({**FILES, "a.safetensors": b""}, {"/a.safetensors": "unknown_part"}),
    "gguf and config": ({"x.gguf": b"", **FILES}, {"/config.json": "unknown_part",
                                                  "/model.safetensors": "unknown_part"}),
    "a large file that is left out": ({**FILES, "LICENSE": bytes(LARGEST_LEFT_OUT + 1)},
                                      {"/LICENSE": "part_too_large"}),
    "two gguf": ({"x.gguf": b"", "y.gguf": b""}, {"/y.gguf": "duplicate_part"}),
    "a large config": ({"config.json": b" " * (1 << 24) + b"{}"},
                       {"/config.json": "part_too_large"}),
}  # fmt: skip


@pytest.mark.parametrize("case", SETS)
def test_parts_together_are_a_model(client: TestClient, folder: Path, case: str) -> None:
    files, expected = SETS[case]
    if files:
        assert faults(client, files) == expected
    else:
        assert put(client, files).status_code in (400, 422)
    assert on_disk(folder) == []


def test_part_that_comes_twice_is_refused(client: TestClient) -> None:
    config = part("config.json", b"{}")
    response = put_body(client, config + config + f"--{BOUNDARY}--".encode())
    assert [fault["code"] for fault in response.json()["errors"]] == ["duplicate_part"]


def test_part_that_is_left_out_comes_once_too(client: TestClient) -> None:
    vocab = part("vocab.txt", b"a")
    response = put_body(client, vocab + vocab + f"--{BOUNDARY}--".encode())
    assert [fault["code"] for fault in response.json()["errors"]] == ["duplicate_part"]


def test_rule_that_the_config_breaks_as_it_is_read_is_told_at_its_file(client: TestClient) -> None:
    config = model_files(num_key_value_heads=3, num_attention_heads=4)["config.json"]
    (fault, *_) = put(client, {**FILES, "config.json": config}).json()["errors"]
    assert fault["pointer"] == "/config.json"
    assert fault["detail"].startswith("config.json, as it is read here: attention.n_kv_heads: ")


def test_rule_that_our_own_form_breaks_is_told_at_its_field(client: TestClient) -> None:
    config = json.loads(OWN["config.json"])
    config["attention"]["n_kv_heads"] = 2
    files = {**OWN, "config.json": json.dumps(config).encode()}
    assert faults(client, files).keys() == {"/config.json/attention/n_kv_heads"}


def test_part_without_a_file_name_is_refused(client: TestClient) -> None:
    whole = body(FILES).replace(b'; filename="config.json"', b"")
    (fault,) = put_body(client, whole).json()["errors"]
    assert (fault["pointer"], fault["code"]) == ("", "no_file_name")


DISPOSITION = b'Content-Disposition: form-data; name="file"; filename="config.json"'


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\r\n",
        b"{}",
        b"--b0undary",
        b"--b0undary\n" + DISPOSITION + b"\n\n{}\n--b0undary--",
        b"--b0undaryX\r\n" + DISPOSITION + b"\r\n\r\n{}\r\n--b0undary--",
        b"--b0undary\r\n\r\n{}\r\n--b0undary--",
        b"--b0undary\r\nContent-Disposition: attachment\r\n\r\n{}\r\n--b0undary--",
        b"--b0undary\r\n" + DISPOSITION + b"\r\nno header\r\n\r\n{}\r\n--b0undary--",
        b"--b0undary\r\n" + DISPOSITION + b"\r\nX: " + b"x" * 2000 + b"\r\n\r\n{}\r\n--b0undary--",
        b"--b0undary\r\n" + DISPOSITION + b"\r\nX: x" * 9 + b"\r\n\r\n{}\r\n--b0undary--",
        b"--b0undary\r\n" + DISPOSITION + b"\r\nContent-Length: 9\r\n\r\n{}\r\n--b0undary--",
        b"--b0undary\r\n" + b"X" * 5000,
        b"\xff\xfe" * 3000,
    ],
)
def test_what_is_no_multipart_is_refused(
    client: TestClient, folder: Path, assert_problem: AssertProblem, content: bytes
) -> None:
    assert_problem(put_body(client, content), "malformed-multipart")
    assert on_disk(folder) == []


def test_more_parts_than_any_model_has_are_refused(
    client: TestClient, assert_problem: AssertProblem
) -> None:
    many = body({f"{at}.safetensors": b"" for at in range(600)})
    assert_problem(put_body(client, many), "malformed-multipart")


# What is refused for what the parts hold


def _file(change: Callable[[dict[str, Any]], None], data: int | None = None) -> bytes:
    """A model.safetensors whose header was changed, and as many bytes of data as before."""
    arrays = checkpoint_files.llama_arrays()
    layouts = {name: ("F32", array.shape) for name, array in arrays.items()}
    raw = checkpoint_files.header(layouts)
    size = max(entry["data_offsets"][1] for entry in raw.values())
    change(raw)
    return checkpoint_files.of_header(raw, bytes(size if data is None else data))


def _changed(tensor: str, **fields: object) -> bytes:
    return _file(lambda raw: raw[tensor].update(fields))


def _renamed(name: str) -> bytes:
    def rename(raw: dict[str, Any]) -> None:
        raw[name] = raw.pop(NORM)

    return _file(rename)


def _nan() -> bytes:
    arrays = checkpoint_files.llama_arrays()
    arrays[NORM][3] = np.nan
    return checkpoint_files.of_arrays(arrays)


def _twice() -> bytes:
    content = _file(lambda raw: None)
    length = int.from_bytes(content[:8], "little")
    header = content[8 : 8 + length]
    twice = b"{" + header[1:-1].replace(b'"lm_head.weight"', f'"{NORM}"'.encode()) + b"}"
    return checkpoint_files.with_header(twice, content[8 + length :])


def test_name_that_comes_twice_is_told(client: TestClient) -> None:
    response = put(client, {**FILES, "model.safetensors": _twice()})
    assert response.json()["errors"][0]["detail"] == (
        "model.safetensors has a key twice in one object."
    )


def _empty_tensors() -> bytes:
    entry = '{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    header = ",".join(f'"t{at}":{entry}' for at in range(200_000))
    return checkpoint_files.with_header(f"{{{header}}}".encode())


NORM = "model.norm.weight"
HOSTILE: dict[str, Callable[[], bytes]] = {
    "nothing": bytes,
    "seven bytes": lambda: b"\0" * 7,
    "a header beyond the file": lambda: struct.pack("<Q", 1 << 40) + b"{}",
    "the longest header there is": lambda: struct.pack("<Q", 2**64 - 1) + b"{}",
    "a header of nothing": lambda: struct.pack("<Q", 0),
    "a header that is no JSON": lambda: checkpoint_files.with_header(b"{"),
    "a header that is a list": lambda: checkpoint_files.with_header(b"[]"),
    "a header that is deep": lambda: checkpoint_files.with_header(b"[" * 100_000),
    "no tensors": lambda: checkpoint_files.with_header(b"{}"),
    "200,000 empty tensors": _empty_tensors,
    "a wrong shape": lambda: _changed(NORM, shape=[2, 3]),
    "a shape of more bytes than there are": lambda: _changed(NORM, shape=[7]),
    "a shape beyond 64 bits": lambda: _changed(NORM, shape=[1 << 62, 1 << 62]),
    "a negative length": lambda: _changed(NORM, shape=[-6]),
    "nine axes": lambda: _changed(NORM, shape=[6, 1, 1, 1, 1, 1, 1, 1, 1]),
    "an unknown dtype": lambda: _changed(NORM, dtype="F8_E4M3"),
    "a dtype that is no text": lambda: _changed(NORM, dtype=["F32"]),
    "whole numbers for a weight": lambda: _changed(NORM, dtype="I32"),
    "offsets backwards": lambda: _changed(NORM, data_offsets=[24, 0]),
    "offsets over another tensor": lambda: _changed(NORM, data_offsets=[0, 24]),
    "more keys": lambda: _changed(NORM, more=1),
    "a name with a path": lambda: _renamed("../../etc/passwd"),
    "a name of nothing": lambda: _renamed(""),
    "a name of 300 letters": lambda: _renamed("x" * 300),
    "a name with a line break": lambda: _renamed("a\nb"),
    "a name that is not known": lambda: _renamed("model.norm.wieght"),
    "a name that comes twice": _twice,
    "data cut short": lambda: _file(lambda raw: None, 100),
    "data too long": lambda: _file(lambda raw: None, 10_000),
    "a number that is not finite": _nan,
    "a pickle": lambda: b"\x80\x04\x95" + b"x" * 100,
    "a zip": lambda: b"PK\x03\x04" + b"x" * 100,
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_tensors_are_refused_and_change_nothing(
    client: TestClient, folder: Path, assert_problem: AssertProblem, case: str
) -> None:
    put(client, model_files(), "other")
    before = on_disk(folder)
    response = put(client, {**FILES, "model.safetensors": HOSTILE[case]()}, "other")
    problem = assert_problem(response, "invalid-upload")
    files = {fault["pointer"].split("/")[1] for fault in problem["errors"]}
    assert files <= {"model.safetensors", "config.json"}  # which the config wants, or names
    assert on_disk(folder) == before
    assert trace(client, "other").status_code == 200


CONFIGS: dict[str, bytes] = {
    "no JSON": b"{",
    "a list": b"[]",
    "no type": b"{}",
    "an unknown type": b'{"model_type": "unheard-of"}',
    "a type that is no text": b'{"model_type": [1]}',
    "a key twice": b'{"model_type": "llama", "model_type": "llama"}',
    "a width of nothing": model_files(hidden_size=0)["config.json"],
    "a width of text": model_files(hidden_size="6")["config.json"],
    "a width that tensors lack": model_files(hidden_size=8)["config.json"],
    "a billion blocks": model_files(num_hidden_layers=10**9)["config.json"],
    "a vocabulary beyond 64 bits": model_files(vocab_size=1 << 80)["config.json"],
    "heads that do not divide": model_files(num_key_value_heads=3)["config.json"],
}


@pytest.mark.parametrize("case", CONFIGS)
def test_hostile_config_is_refused(
    client: TestClient, folder: Path, assert_problem: AssertProblem, case: str
) -> None:
    response = put(client, {**FILES, "config.json": CONFIGS[case]})
    problem = assert_problem(response, "invalid-upload")
    files = {fault["pointer"].split("/")[1] for fault in problem["errors"]}
    assert files <= {"config.json", "model.safetensors"}
    assert on_disk(folder) == []


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"model": {"type": "BPE"}}', b"\xff"])
def test_tokenizer_that_is_none_is_refused(client: TestClient, content: bytes) -> None:
    assert faults(client, {**FILES, "tokenizer.json": content}).keys() == {"/tokenizer.json"}


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGUF" + b"\xff" * 40, b"GGML" + bytes(100)])
def test_gguf_that_is_none_is_refused(client: TestClient, folder: Path, content: bytes) -> None:
    assert faults(client, {"tiny.gguf": content}).keys() == {"/model.gguf"}
    assert on_disk(folder) == []


# Uploads that end early


def cuts(whole: bytes) -> list[int]:
    """Every 97th byte, and the bytes around each boundary and the end of each header."""
    marks = [b"--" + BOUNDARY.encode(), b"\r\n\r\n", b'{"model_type"', b"__"]
    around: set[int] = set()
    for mark in marks:
        at = whole.find(mark)
        while at >= 0:
            around |= set(range(at - 2, at + len(mark) + 3))
            at = whole.find(mark, at + 1)
    end = range(len(whole) - 8, len(whole) - 4)
    return sorted({x for x in chain(range(0, len(whole), 97), around, end) if 0 <= x < len(whole)})


def test_upload_cut_anywhere_is_refused_and_leaves_nothing(
    client: TestClient, folder: Path
) -> None:
    whole = body(FILES)
    for at in cuts(whole):
        if at >= len(whole) - 2:  # only the line break after the last boundary is missing
            continue
        response = put_body(client, whole[:at])
        assert response.status_code in (400, 422), at
        assert on_disk(folder) == [], at


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_client_that_goes_away_leaves_nothing(folder: Path, share: float) -> None:
    whole = body(FILES)

    async def upload() -> None:
        here = state.make(Settings(uploads=folder))
        assert here.uploading is not None
        sent = iter([{"type": "http.request", "body": whole[: int(share * len(whole))],
                      "more_body": True}, {"type": "http.disconnect"}])  # fmt: skip
        with pytest.raises(ClientDisconnect):
            await here.uploading.take(Request(_scope(), _receiving(sent)), "mine")

    anyio.run(upload)
    assert on_disk(folder) == []


@pytest.mark.parametrize("limit", ["body_seconds", "upload_seconds"])
def test_client_that_stalls_or_drips_is_cut(folder: Path, limit: str) -> None:
    async def drip() -> dict[str, object]:
        await anyio.sleep(0.02 if limit == "upload_seconds" else 9)
        return {"type": "http.request", "body": b"-", "more_body": True}

    async def upload() -> None:
        here = state.make(Settings(uploads=folder, **{limit: 0.2}))
        assert here.uploading is not None
        with pytest.raises(errors.SlowBody):
            await here.uploading.take(Request(_scope(), drip), "mine")  # type: ignore[arg-type]

    anyio.run(upload)
    assert on_disk(folder) == []


def test_upload_beside_another_is_told_to_come_again(folder: Path) -> None:
    whole, first = body(FILES), anyio.Event

    async def upload() -> None:
        here = state.make(Settings(uploads=folder))
        assert here.uploading is not None
        begun, go_on = first(), first()

        async def slowly() -> dict[str, object]:
            begun.set()
            await go_on.wait()
            return {"type": "http.request", "body": whole, "more_body": False}

        async with anyio.create_task_group() as tasks:
            request = Request(_scope(), slowly)  # type: ignore[arg-type]
            tasks.start_soon(here.uploading.take, request, "mine")
            await begun.wait()
            with pytest.raises(errors.Busy):
                await here.uploading.take(Request(_scope(), slowly), "two")  # type: ignore[arg-type]
            go_on.set()
        assert here.store.get("mine").name == "mine"

    anyio.run(upload)


def _scope() -> dict[str, Any]:
    headers = [(key.lower().encode(), value.encode()) for key, value in MULTIPART.items()]
    return {"type": "http", "method": "PUT", "path": "/v1/models/mine", "headers": headers}


def _receiving(messages: Iterator[dict[str, object]]) -> Any:  # noqa: ANN401
    async def receive() -> dict[str, object]:
        return next(messages)

    return receive


# What ended processes leave


def test_what_a_killed_process_left_goes_at_the_next_start(
    make_client: MakeClient, client: TestClient, folder: Path
) -> None:
    put(client, model_files())
    before = on_disk(folder)
    for left in ("incoming/tmp1/mine", "contents/" + "0" * 64):
        (folder / left).mkdir(parents=True)
        (folder / left / "model.safetensors").write_bytes(b"x")
    (folder / "names" / ".tmp2").write_text("0")
    taken = folder / "incoming" / "taken"
    taken.mkdir()
    lock = Lock(taken)
    Store(Settings(uploads=folder)).tidy()
    assert on_disk(folder) == sorted([*before, "incoming/taken"])  # another process is at it
    lock.release()
    Store(Settings(uploads=folder)).tidy()
    assert on_disk(folder) == before


def test_service_tidies_when_it_starts(make_client: MakeClient, folder: Path) -> None:
    (folder / "incoming" / "tmp1").mkdir(parents=True)
    client = make_client(uploads=folder)
    for _ in range(200):
        client.get("/healthz")
        if on_disk(folder) == []:
            break
        threading.Event().wait(0.01)
    assert on_disk(folder) == []


@pytest.mark.parametrize("written", ["", "..", "0" * 63, "Z" * 64, "\0" * 64])
def test_name_that_means_no_content_is_no_model(
    client: TestClient, folder: Path, written: str
) -> None:
    put(client, model_files())
    (folder / "names" / "mine").write_text(written)
    assert trace(client).status_code == 404


def test_content_that_was_taken_away_is_no_model(client: TestClient, folder: Path) -> None:
    put(client, model_files())
    shutil.rmtree(folder / "contents")
    assert trace(client).status_code == 404
    assert client.get("/v1/models").status_code == 200


def use(store: Store, name: str) -> None:
    """Read all of a model from the disk."""
    assert [block.ffn for block in store.packed(store.get(name), "float32").blocks]


def publish_and_remove(store: Store, seed: int, wrong: list[str]) -> None:
    """Upload, use and remove models that others upload, use and remove, too."""
    assert store.uploads is not None
    for step in range(12):
        name = f"m{(seed + step) % 4}"
        try:
            _publish(store.uploads, name, model_files((seed * step) % 3))
            use(store, name)
            if step % 3 == 0:
                store.remove(name)
        except errors.UnknownModel:  # another thread removed it
            pass
        except Exception as error:
            wrong.append(repr(error))


def test_uploads_and_removals_of_many_threads_leave_whole_models(folder: Path) -> None:
    stores = [Store(Settings(uploads=folder)) for _ in range(3)]
    wrong: list[str] = []
    threads = [
        threading.Thread(target=publish_and_remove, args=(stores[seed % 3], seed, wrong))
        for seed in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    for name in stores[0].names():
        use(stores[0], name)
    assert os.listdir(folder / "incoming") == []
