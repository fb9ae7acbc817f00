"""What a question about circuits costs, in whole numbers, before any weight is made.

Flops are 2 for each multiply-add of a product, and rounded up for decompositions.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from compute import tensors
from compute.circuits.asked import Question
from compute.circuits.baseline import SAMPLES
from compute.circuits.composition import KINDS
from compute.circuits.heads import HeadId
from compute.circuits.networks import last_read
from compute.circuits.reading import Reader
from compute.circuits.vocabulary import PIECE

_SVD, _EIGEN, _SYMMETRIC, _QR = 20, 30, 10, 2
"""Flops of a decomposition over (longer side) · (shorter side)²."""

LARGEST_PAIRS = 10
"""Pairs told by name for each kind of composition."""


def elements(question: Question) -> dict[str, int]:
    """Numbers of the answer, by what was asked."""
    counts = dict(_elements(question))
    return {name: counts[name] for name in sorted(question.ask)}


def _elements(question: Question) -> Iterator[tuple[str, int]]:
    attention, d = question.config.attention, question.config.d_model
    a, c, columns = len(question.heads), len(question.readers), len(question.columns)
    rank = min(attention.d_value, d)
    networks = len(question.blocks)
    columns_of_all = columns + networks * len(question.read_matrices)
    degrees = a * columns * rank if "angles" in question.ask else 0
    of_circuit = 3 * max(attention.d_head, attention.d_value) + question.tokens**2 + 4
    yield "rank", a
    yield "singular_values", a * rank
    yield "effective_rank", 6 * a
    yield "basis", a * rank * d
    yield "overlap", 3 * a * a
    yield "angles", a * (a - 1) // 2 * (rank + 2)
    yield "reads", (4 * a + 4) * columns_of_all + degrees
    yield "ffn", (4 * a + 4) * networks
    yield "qk", a * of_circuit
    yield "ov", a * of_circuit
    yield "token_copying", 3 * a
    yield "composition", len(KINDS) * (a * c + 5 * LARGEST_PAIRS + 3)


def flops(question: Question) -> int:
    """Of everything that was asked, and its baselines."""
    parts = dict(_flops(question))
    spans = question.ask - {"qk", "ov", "token_copying", "composition"}
    decomposed = parts["spans"] if spans else 0
    return decomposed + sum(parts[name] for name in question.ask if name in parts)


def _flops(question: Question) -> Iterator[tuple[str, int]]:
    attention, d = question.config.attention, question.config.d_model
    k, v, w = attention.d_head, attention.d_value, max(attention.d_head, attention.d_value)
    a, c, columns = len(question.heads), len(question.readers), len(question.columns)
    later = _later(question.heads, question.readers)
    read = _later(question.heads, question.columns)
    narrow, sampled = min(v, d), SAMPLES * (_EIGEN + _SVD) * w**3
    angle = (4 + 2 * _SVD) * d * narrow**2
    reading, writing = _networks(question)
    yield "spans", a * _decomposed(d, v, _SVD)
    yield "effective_rank", sampled
    yield "overlap", a * a * d * v**2
    yield "angles", a * a // 2 * angle + ("reads" in question.ask) * read * angle
    yield (
        "reads",
        columns * _decomposed(d, w, _SVD)
        + read * 2 * d * v * w
        + reading * len(question.read_matrices)
        + sampled * 2,
    )
    yield "ffn", writing + sampled
    of_circuit = 2 * d * w**2 + 2 * _decomposed(d, w, _QR) + (_EIGEN + _SVD) * w**3
    rows = 4 * question.tokens * d * w + 2 * question.tokens**2 * w
    yield "qk", a * (of_circuit + rows)
    yield "ov", a * (of_circuit + rows) + sampled
    vocab = question.config.vocab or 0
    yield "token_copying", 2 * d * d * (vocab + a * v) + a * of_circuit + sampled
    yield (
        "composition",
        later * 2 * d * v * (2 * k + v)
        + (a + 3 * c) * (_decomposed(d, w, _QR) + 2 * d * w**2)
        + 2 * sampled,
    )


def _later(writers: Sequence[HeadId], readers: Sequence[HeadId] | Sequence[Reader]) -> int:
    """Pairs of a writer and a reader of a later block."""
    blocks = Counter(reader.block for reader in readers)
    counts = {
        block: sum(count for other, count in blocks.items() if other > block)
        for block in {head.block for head in writers}
    }
    return sum(counts[head.block] for head in writers)


def _decomposed(d: int, w: int, factor: int) -> int:
    return factor * max(d, w) * min(d, w) ** 2


def _networks(question: Question) -> tuple[int, int]:
    """A matrix of every block that reads, and one that writes: each a Gram matrix, its directions,
    and each head that it meets against both."""
    config, d, blocks = question.config, question.config.d_model, question.blocks
    alone = 2 * d * d * _width(question) + _SYMMETRIC * d**3
    of_pair = 4 * d * d * min(config.attention.d_value, d)
    met = sum(
        head.block <= last
        for last in (last_read(config, block) for block in blocks)
        for head in question.heads
    )
    every = len(blocks) * len(question.heads)
    return len(blocks) * alone + met * of_pair, len(blocks) * alone + every * of_pair


def _width(question: Question) -> int:
    ffn = question.config.ffn
    return ffn.d_ff * max(ffn.n_experts, 1)


def held_bytes(question: Question, width: int) -> int:
    """The weights that are read, of `width` bytes a number, and float64 copies and products."""
    return width * _weights(question) + 8 * _temporaries(question)


def _weights(question: Question) -> int:
    """Numbers of whole blocks, which are fetched at once, and of the tokens' tables."""
    config = question.config
    read = tuple(f"blocks.{block}." for block in question.touched)
    with_tokens = question.tokens or "token_copying" in question.ask
    tables = ("embed.W_E", "unembed.W_U") if with_tokens else ()
    sizes = sum(
        tensor.size
        for name, tensor in tensors.tensors(config).items()
        if name.startswith((*read, *tables))
    )
    return sizes + tensors.packing_size(config)


def _temporaries(question: Question) -> int:
    """Float64 numbers held at once: spans or OV rows of every writer, some blocks of heads, their
    products, a network and its Gram matrices."""
    config, d = question.config, question.config.d_model
    w = max(config.attention.d_head, config.attention.d_value)
    heads, most = len(question.heads), config.attention.n_heads
    of_block = 10 * min(most, max(heads, len(question.readers))) * d * w + 2 * (most * w) ** 2
    networks = bool(question.ask & {"reads", "ffn"}) * (2 * d * _width(question) + 5 * d * d)
    through = ("token_copying" in question.ask) * 2 * (PIECE + d) * d
    return 2 * heads * d * w + of_block + networks + through + 2 * question.tokens * d * heads
