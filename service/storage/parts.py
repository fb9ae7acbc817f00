"""The parts of an upload: which files a model may be made of, written to disk as they arrive.

For one worker thread. A part's file name says what it is; the form's field names say nothing.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

from multipart import MultipartError, MultipartSegment, PushMultipartParser

from compute.checkpoints import shards
from compute.checkpoints.folder import CARD, CONFIG, LARGEST_CARD, TOKENIZER
from compute.checkpoints.header import MOST_HEADER_BYTES
from compute.checkpoints.json_file import LARGEST_JSON
from compute.checkpoints.text import LARGEST_TOKENIZER
from compute.errors import Fault
from service import errors

GGUF = "model.gguf"
"""What a .gguf file is called once it is here, whatever it was called."""

OFFERED = (
    f"{CONFIG} with {shards.WHOLE} (or shards and {shards.INDEX}) and, if there are, {TOKENIZER} "
    f"and {CARD}; or one .gguf file alone."
)
"""What an upload is made of."""

_SMALL = MappingProxyType(
    {
        CONFIG: LARGEST_JSON,
        TOKENIZER: LARGEST_TOKENIZER,
        CARD: LARGEST_CARD,
        shards.INDEX: MOST_HEADER_BYTES,
    }
)
"""File name -> the most bytes it may have."""

LEFT_OUT = (
    *("generation_config.json", "tokenizer_config.json", "special_tokens_map.json"),
    *("added_tokens.json", "vocab.json", "vocab.txt", "merges.txt", "tokenizer.model"),
    *("spiece.model", "sentencepiece.bpe.model", "chat_template.jinja", "chat_template.json"),
    *("preprocessor_config.json", ".gitattributes", "LICENSE", "LICENSE.txt", "LICENSE.md"),
    "USE_POLICY.md",
)
"""What lies beside a model in a folder of transformers or of the hub: taken, and not kept."""

LARGEST_LEFT_OUT = 1 << 26
"""Bytes of each of them."""

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
MOST_PARTS = shards.MOST_SHARDS + len(_SMALL) + len(LEFT_OUT)
_HEADER_BYTES, _HEADERS = 1024, 4


class Parts:
    """The files of one upload, written to a folder."""

    def __init__(self, folder: Path, boundary: str) -> None:
        self._folder = folder
        self._parser = PushMultipartParser(
            boundary,
            max_header_size=_HEADER_BYTES,
            max_header_count=_HEADERS,
            max_segment_count=MOST_PARTS,
        )
        self._digests: dict[str, bytes] = {}
        self._left_out: set[str] = set()
        self._part: _Part | None = None

    def feed(self, chunk: bytes | bytearray) -> None:
        """Take the next bytes of the body; MalformedMultipart, or InvalidUpload for a part."""
        try:
            for event in self._parser.parse(chunk):
                self._take(event)
        except MultipartError as error:
            raise errors.MalformedMultipart from error

    def end(self) -> str:
        """The body is whole: the sha256 of its content, or InvalidUpload with what is missing."""
        try:
            self._parser.close()
        except MultipartError as error:
            raise errors.MalformedMultipart from error
        missing = list(_faults_of_all(self._digests))
        if missing:
            raise errors.InvalidUpload(missing)
        digest = sha256()
        for name, own in sorted(self._digests.items()):
            digest.update(name.encode() + b"\0" + own)
        return digest.hexdigest()

    def close(self) -> None:
        """Close what is open."""
        if self._part is not None:
            with suppress(OSError):  # the upload has failed, perhaps for a full disk
                self._part.close()

    def _take(self, event: MultipartSegment | bytes | None) -> None:
        if isinstance(event, MultipartSegment):
            self._part = self._begun(event)
        elif self._part is not None and event is not None:
            self._part.write(event)
        elif self._part is not None:
            self._part.close()
            self._end(self._part)
            self._part = None

    def _end(self, part: "_Part") -> None:
        if part.file is None:
            self._left_out.add(part.name)
        else:
            self._digests[part.name] = part.digest.digest()

    def _begun(self, segment: MultipartSegment) -> "_Part":
        disposition = segment.header("Content-Disposition") or ""
        name = segment.filename or ""
        fault = _fault_of(name, "\\" in disposition)
        if fault is not None:
            raise errors.InvalidUpload([fault])
        kept = GGUF if name.endswith(".gguf") else name
        if kept in self._digests or kept in self._left_out:
            raise errors.InvalidUpload([_fault("duplicate_part", name, "This part came before.")])
        return _Part(kept, self._folder)


class _Part:
    """One file on its way; none of what is left out."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.digest = sha256()
        self.file: BinaryIO | None = None if name in LEFT_OUT else (folder / name).open("xb")
        self._bytes = 0

    def close(self) -> None:
        if self.file is not None:
            self.file.close()

    def write(self, piece: bytes) -> None:
        most = LARGEST_LEFT_OUT if self.file is None else _SMALL.get(self.name, inf)
        self._bytes += len(piece)
        if self._bytes > most:
            detail = f"{self.name} has more than {most} bytes."
            raise errors.InvalidUpload([_fault("part_too_large", self.name, detail, most)])
        if self.file is not None:
            self.digest.update(piece)
            self.file.write(piece)


def _fault_of(name: str, slanted: bool) -> Fault | None:
    """What is wrong with the name of a part's file."""
    if not name:
        detail = "Each part is a file: it needs a filename in its Content-Disposition."
        return Fault(code="no_file_name", detail=detail)
    if name in LEFT_OUT and not slanted:
        return None
    if slanted or not _PLAIN.fullmatch(name):
        detail = "A part's file name is plain: letters, digits, '.', '_' and '-', without folders."
        return _fault("bad_part_name", name, detail)
    if name.endswith(_PICKLES):
        detail = "A pickle can run code and is not read; save the model as safetensors."
        return _fault("unknown_part", name, detail)
    if name in _SMALL or name.endswith((".safetensors", ".gguf")):
        return None
    return _fault("unknown_part", name, f"This file belongs to no upload. Send {OFFERED}")


def _faults_of_all(names: dict[str, bytes]) -> Iterator[Fault]:
    """What is missing, or too much, among the parts."""
    tensors = {name for name in names if name.endswith(".safetensors")}
    if GGUF in names:
        for name in sorted(names.keys() - {GGUF}):
            yield _fault("unknown_part", name, "A .gguf file says all by itself: send it alone.")
        return
    if CONFIG not in names:
        yield _fault("missing_part", CONFIG, f"There is no {CONFIG}. Send {OFFERED}")
    if not tensors:
        yield _fault("missing_part", shards.WHOLE, f"There are no tensors. Send {OFFERED}")
    elif shards.WHOLE in tensors:
        for name in sorted((tensors - {shards.WHOLE}) | ({shards.INDEX} & names.keys())):
            detail = f"Besides {shards.WHOLE} this is not read: leave one of them out."
            yield _fault("unknown_part", name, detail)
    elif shards.INDEX not in names:
        detail = f"Shards need {shards.INDEX}, which says what is in which."
        yield _fault("missing_part", shards.INDEX, detail)


def _fault(code: str, name: str, detail: str, expected: object = None) -> Fault:
    return Fault(code=code, detail=detail, place=(name,), expected=expected)
