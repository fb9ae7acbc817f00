"""What is wrong before the body is looked at: types, addresses, methods, lengths."""

import gzip
from collections.abc import Iterator
from typing import Unpack

from door.case import GOOD, JSON, MARK, Case, More, encoded

_GOOD = encoded(GOOD)
_MOST = 16 << 20


def _headers(name: str, problem: str, says: str = "", **headers: str) -> Case:
    given = {key.replace("_", "-"): value for key, value in headers.items()}
    return Case(
        name=name, problem=problem, says=says, body=lambda: _GOOD, headers={**JSON, **given}
    )


def _media(content_type: str) -> Case:
    named = content_type or "an empty one"
    return _headers(f"media type: {named}", "unsupported-media-type", Content_Type=content_type)


def _at(
    method: str, path: str, problem: str = "not-found", says: str = "", **more: Unpack[More]
) -> Case:
    body = _GOOD if method == "POST" else b""
    shown = path if len(path) < 60 else f"{path[:20]} and {len(path) - 20} more"
    name = f"{method} {shown.encode('unicode_escape').decode()}"
    return Case(
        name=name, problem=problem, method=method, path=path, body=lambda: body, says=says, **more
    )


def _too_long() -> Iterator[bytes]:
    for _ in range(_MOST // 65536):
        yield b" " * 65536
    yield b" "


MEDIA = [
    Case(name="no media type", problem="unsupported-media-type", body=lambda: _GOOD, headers={}),
    *map(
        _media,
        ["", "text/plain", "text/json", "json", "application", "application/", "*/*", "{}",
         "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
         "application/octet-stream", "application/jsonl", "application/json-seq",
         "application/problem+json", "application/merge-patch+json", "application/yaml",
         "application/jsonx", "application/json, text/plain", f"text/{MARK}"],
    ),
    *(
        _headers(f"charset {name}", "unsupported-media-type", "UTF-8",
                 Content_Type=f"application/json; charset={name}")
        for name in ("latin-1", "utf-16", '"utf-16"', "us-ascii", "", MARK)
    ),
    *(
        _headers(f"content coding {name}", "unsupported-media-type", "compression",
                 Content_Encoding=name)
        for name in ("gzip", "br", "deflate", "zstd", "x-gzip", "gzip, identity", MARK)
    ),
    Case(
        name="128 MiB in 130 kB of gzip",
        problem="unsupported-media-type",
        body=lambda: gzip.compress(bytes(128 << 20), 1),
        headers={**JSON, "Content-Encoding": "gzip"},
    ),
    *(
        _headers(f"accepts {name}", "not-acceptable", "application/json", Accept=name)
        for name in ("text/html", "application/problem+json", "image/*", "application/json;q=0",
                     "*/*;q=0", "application/json-seq", f"text/{MARK}", "application/octet-stream")
    ),
]  # fmt: skip

ADDRESSES = [
    *(_at(method, "/v1/trace", "method-not-allowed", says="POST")
      for method in ("GET", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND")),
    *(_at("POST", path, "method-not-allowed", says="GET")
      for path in ("/", "/healthz", "/readyz", "/v1/stages", "/v1/models", "/v1/limits",
                   "/v1/presets", "/v1/models/letter-sort", "/openapi.json", "/docs",
                   "/problems/internal")),
    *(_at("POST", path)
      for path in ("/v1/trace/", "/v1/Trace", "/v1/traces", "/trace", "/v2/trace", "//v1/trace",
                   "/v1//trace", "/v1/trace/x", "/v1/trace%2F", "/v1/trace%20", "/v1/trace;x=1",
                   "/v1/trace%00", "/v1/%74race/x", f"/{MARK}", "/" + "x" * 4000)),
    *(_at("GET", path)
      for path in ("/v1", "/v1/", "/v1/models/", "/docs/", "/healthz/", "/favicon.ico", "/.git",
                   "/admin", "/metrics", "/redoc", "/static/x", "/v1/presets/gpt2",
                   f"/problems/{MARK}", "/problems/", "/problems/..%2f",
                   "/docs/..%2f..%2fREADME.md", "/docs/%2e%2e/%2e%2e/etc/passwd",
                   "/docs/....//x", f"/docs/{MARK}.js", "/v1/models/../../etc/passwd",
                   "/v1/models/letter-sort/config.json",
                   "/v1/models/letter-sort/../../README.md", "/%2e%2e/%2e%2e/etc/passwd")),
]  # fmt: skip

MODEL_NAMES = [
    _at("GET", f"/v1/models/{name}", "unknown-model", faults=(("", "unknown_model"),))
    for name in ("none", MARK, "LETTER-SORT", "letter-sort%00", "letter-sort%20", "%20", "%2e",
                 "letter-sort%0a", "..%5c..%5cx", "C:%5cx", "x" * 300, "%ff", "%F0%9F%92%A5", "*",
                 "letter%2Dsort%2e", "'%20OR%201=1", "__class__", "%7B%7D", "eiffel")
]  # fmt: skip

LENGTHS = [
    Case(name="header of 1 MiB", problem="head-too-large", method="GET", path="/healthz",
         headers={"X-Long": "a" * (1 << 20)}, wire=True),
    Case(name="ten thousand headers", problem="head-too-large", method="GET", path="/healthz",
         headers={f"X-{i}": MARK for i in range(10_000)}, wire=True),
    Case(name="path of 1 MiB", problem="head-too-large", method="GET", path="/" + "a" * (1 << 20),
         headers={}, wire=True),
    Case(name="method there is not", problem="malformed-http", method="BREW", wire=True,
         headers={**JSON, "Content-Length": "0"}),
    Case(name="a byte more than body_bytes", problem="body-too-large", says="16,777,216 bytes",
         body=lambda: b" " * (_MOST + 1)),
    Case(name="body_bytes and one byte in chunks", problem="body-too-large",
         says="16,777,216 bytes", body=_too_long),
    Case(name="JSON of 20 MiB", problem="body-too-large",
         body=lambda: b'{"a": "' + b"x" * (20 << 20) + b'"}'),
    *(
        Case(name=f"Content-Length {length}", problem="body-too-large", wire=True,
             headers={**JSON, "Content-Length": length}, says="16,777,216 bytes")
        for length in ("16777217", "999999999999", "9223372036854775807")
    ),
    *(
        Case(name=f"Content-Length {length}", problem="malformed-http", wire=True,
             headers={**JSON, "Content-Length": length})
        for length in ("-1", "abc", "1e3", "+5", "0x10", "1.5", "5, 6", "99999999999999999999999")
    ),
    Case(name="Content-Length and chunks", problem="malformed-http", wire=True,
         headers={**JSON, "Content-Length": "2", "Transfer-Encoding": "chunked"}),
]  # fmt: skip
