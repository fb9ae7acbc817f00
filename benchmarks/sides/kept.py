"""The stages that every side keeps of a block, and the sizes of the blocks."""

from dataclasses import dataclass

STAGES = (
    "norm1.out",
    "attn.q",
    "attn.k",
    "attn.v",
    "attn.scores",
    "attn.pattern",
    "attn.z",
    "attn_out",
    "resid_mid",
    "norm2.out",
    "ffn.up",
    "ffn.hidden",
    "ffn_out",
    "resid_post",
)

HEADS = "attn.head_out"
"""Each head's contribution, (h, n, d), where it is asked for beside them."""


@dataclass(frozen=True, slots=True)
class Size:
    """A block's widths: of the stream, of the hidden layer, and its number of heads."""

    d: int
    heads: int
    d_ff: int


LARGE, SMALL = Size(768, 12, 3072), Size(64, 4, 256)
SMALL_POSITIONS = 8


def names(layers: int, *, contributions: bool = False) -> list[str]:
    """The full names of what is kept of so many blocks."""
    kept = (*STAGES, HEADS) if contributions else STAGES
    return [f"blocks.{layer}.{stage}" for layer in range(layers) for stage in kept]
