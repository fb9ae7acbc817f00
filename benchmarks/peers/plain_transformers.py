"""transformers' side: the patterns and the stream, which is all that it returns by itself."""

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.peers import conversions, gpt2


def block(positions: int) -> Callable[[], Any]:
    """Runs one block, with output_attentions and output_hidden_states."""
    model = gpt2.model(1).transformer
    x = conversions.stream(positions)

    @torch.inference_mode()
    def forward() -> object:
        return model(inputs_embeds=x, output_attentions=True, output_hidden_states=True)

    return forward


def stages(positions: int) -> dict[str, torch.Tensor]:
    """Once, by the product's names, without the batch."""
    return {"blocks.0.attn.pattern": block(positions)().attentions[0][0]}
