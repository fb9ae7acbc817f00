"""PyTorch's side: the block in plain modules, eager, every listed stage kept in a dictionary."""

from collections.abc import Callable
from math import sqrt

import torch
from torch import nn
from torch.nn import functional

from benchmarks.peers import conversions
from benchmarks.sides import kept

Kept = dict[str, torch.Tensor]


class Block(nn.Module):
    """A pre-norm block: (1, n, d) -> the listed stages, by name."""

    def __init__(self, d: int, heads: int, d_ff: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, d_ff), nn.Linear(d_ff, d)

    def forward(self, x: torch.Tensor) -> Kept:
        """Y = X + MHA(LN1(X)), Z = Y + FFN(LN2(Y)); stages in the order of the list."""
        norm1 = self.norm1(x)
        q, k, v = self.qkv(norm1).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        scores = (q / sqrt(q.shape[-1])) @ k.mT
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu_(1)
        scores.masked_fill_(later, -torch.inf)
        pattern = scores.softmax(-1)
        z = pattern @ v
        attn_out = self.out(z.transpose(1, 2).flatten(-2))
        resid_mid = x + attn_out
        norm2 = self.norm2(resid_mid)
        up = self.up(norm2)
        hidden = functional.gelu(up, approximate="tanh")
        ffn_out = self.down(hidden)
        made = (norm1, q, k, v, scores, pattern, z, attn_out, resid_mid, norm2, up, hidden, ffn_out)
        return dict(zip(kept.STAGES, (*made, resid_mid + ffn_out), strict=True))


def block(positions: int, layers: int = 1) -> Callable[[], Kept]:
    """Runs the blocks and keeps the stages of each."""
    stack = [_loaded(w) for w in conversions.packed(layers)]
    x = conversions.stream(positions)

    @torch.inference_mode()
    def forward() -> Kept:
        found: Kept = {}
        stream = x
        for layer, each in enumerate(stack):
            stages = each(stream)
            stream = stages["resid_post"]
            found.update((f"blocks.{layer}.{name}", value) for name, value in stages.items())
        return found

    return forward


def _loaded(w: Kept) -> Block:
    made = Block(kept.LARGE.d, kept.LARGE.heads, kept.LARGE.d_ff).eval()
    names = {
        "norm1": ("gain1", "bias1"),
        "norm2": ("gain2", "bias2"),
        "qkv": ("W_QKV", "b_QKV"),
        "out": ("W_O", "b_O"),
        "up": ("W_in", "b_in"),
        "down": ("W_out", "b_out"),
    }
    state: Kept = {}
    for name, (weight, bias) in names.items():
        state[f"{name}.weight"] = w[weight].T.contiguous() if weight[0] == "W" else w[weight]
        state[f"{name}.bias"] = w[bias]
    made.load_state_dict(state)
    return made


def stages(positions: int) -> Kept:
    """Once, by the names that the product gives them, without the batch."""
    return {name: value[0] for name, value in block(positions)().items()}
