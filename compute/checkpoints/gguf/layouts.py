"""How tensors lie in a GGUF file where they do not lie as a torch Linear has them.

Q, K and V may lie in one matrix, rows of Q first, then K, then V; the experts of a block in one
tensor, (e, out, in), gate before up where both lie in it; and Q and K of Llama with the two halves
of each head interleaved, since GGML turns neighbours where we turn halves.
"""

from compute.checkpoints.stored import Layout, Stored, as_is, one, transposed
from compute.config import AttentionConfig
from compute.tensors import Tensor
from compute.types import Array


def stream(name: str, tensor: Tensor) -> Stored:
    """A matrix (out, in), or a bias."""
    return (as_is if tensor.role == "bias" else transposed)(name, tensor)


def rows_of_qkv(attention: AttentionConfig, which: str, inner: Layout) -> Layout:
    """Q, K or V out of one matrix (h k + g k + g v, d), or out of one bias."""
    q = attention.n_heads * attention.d_head
    k = attention.n_kv_heads * attention.d_head
    v = attention.n_kv_heads * attention.d_value
    first = {"Q": 0, "K": q, "V": q + k}[which]

    def layout(name: str, tensor: Tensor) -> Stored:
        part = inner(name, tensor)
        (count, *rest) = part.shapes[0]
        shape = (q + k + v, *rest)
        return one(name, shape, lambda values: part.make(values[first : first + count]))

    return layout


def interleaved(inner: Layout) -> Layout:
    """Rows of each head 0 k/2 1 k/2+1 … put back in order: (h k, …) from (h k/2 2, …)."""

    def layout(name: str, tensor: Tensor) -> Stored:
        part, heads = inner(name, tensor), tensor.shape[0]

        def make(values: Array) -> Array:
            pairs = values.reshape(heads, -1, 2, *values.shape[1:])
            return part.make(pairs.swapaxes(1, 2).reshape(values.shape))

        return one(name, part.shapes[0], make)

    return layout


def experts(name: str, tensor: Tensor) -> Stored:
    """(e, in, out) from (e, out, in)."""
    e, rows, columns = tensor.shape
    return one(name, (e, columns, rows), lambda values: values.swapaxes(1, 2))


def half_of_experts(upper: bool) -> Layout:
    """(e d f) from the first or the second half of (e, 2 f, d)."""

    def layout(name: str, tensor: Tensor) -> Stored:
        e, d, f = tensor.shape
        mine = slice(f, 2 * f) if upper else slice(f)
        return one(name, (e, 2 * f, d), lambda values: values[:, mine].swapaxes(1, 2))

    return layout
