"""A hash of what decides a model's numbers, cheap for large files.

sha256 over, in this order and each after its length in 8 bytes: config.json, tokenizer.json, the
headers, the files' sizes; then of each tensor, by the file's order, all bytes where the files
together have at most 64 MiB, else the first and the last 4 KiB. So a large file whose numbers were
changed in the midst of a tensor, and nowhere else, keeps its hash.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256

from compute.checkpoints.safetensors_file import Reader

WHOLE_UP_TO = 1 << 26
_END = 1 << 12
_PIECE = 1 << 20


def content_of(heads: Sequence[bytes], sizes: Sequence[int], reader: Reader) -> str:
    """The hash, as 64 hexadecimal digits. heads: small files and headers; sizes: of the files."""
    digest = sha256()
    for head in (*heads, ",".join(map(str, sizes)).encode()):
        digest.update(len(head).to_bytes(8, "little"))
        digest.update(head)
    whole = sum(sizes) <= WHOLE_UP_TO
    for name, entry in reader.entries.items():
        for begin, end in _pieces(entry.bytes) if whole else ends(entry.bytes):
            digest.update(reader.bytes_of(name, begin, end))
    return digest.hexdigest()


def ends(size: int) -> list[tuple[int, int]]:
    """Where the first and the last 4 KiB of so many bytes lie."""
    return [(0, min(size, _END)), (max(size - _END, 0), size)]


def _pieces(size: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + _PIECE, size)) for start in range(0, size, _PIECE))
