"""nnsight's side: one block of transformers' GPT-2 with the outputs of its modules saved."""

from collections.abc import Callable
from typing import Any

import torch
from nnsight import NNsight

from benchmarks.peers import conversions, gpt2

Saved = dict[str, Any]


def block(positions: int) -> Callable[[], Saved]:
    """Runs one block and saves what its modules give: eight values."""
    model: Any = NNsight(gpt2.model(1).transformer)
    x = conversions.stream(positions)

    def forward() -> Saved:
        with torch.inference_mode(), model.trace(inputs_embeds=x):
            each = model.h[0]
            norm1 = each.ln_1.output.save()
            qkv = each.attn.c_attn.output.save()
            attn_out = each.attn.c_proj.output.save()
            norm2 = each.ln_2.output.save()
            up = each.mlp.c_fc.output.save()
            hidden = each.mlp.act.output.save()
            ffn_out = each.mlp.c_proj.output.save()
            resid_post = each.output.save()
        made = (norm1, qkv, attn_out, norm2, up, hidden, ffn_out, resid_post)
        return dict(zip(_NAMES, made, strict=True))

    return forward


_NAMES = (
    "norm1.out",
    "qkv",
    "attn_out",
    "norm2.out",
    "ffn.up",
    "ffn.hidden",
    "ffn_out",
    "resid_post",
)


def stages(positions: int) -> dict[str, torch.Tensor]:
    """Once, by the product's names, without the batch; Q, K and V are one there."""
    saved = block(positions)()
    found = {name: _tensor(value)[0] for name, value in saved.items() if name != "qkv"}
    return {f"blocks.0.{name}": value for name, value in found.items()}


def _tensor(value: torch.Tensor | tuple[torch.Tensor, ...]) -> torch.Tensor:
    return value[0] if isinstance(value, tuple) else value
