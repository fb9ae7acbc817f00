"""TransformerLens' side: run_with_cache over transformers' GPT-2, or over its own model.

The stream is given and the run stops after the blocks, so that neither embedding nor readout is
in the time.
"""

from collections.abc import Callable
from typing import Any

import torch
from transformer_lens.config import TransformerBridgeConfig
from transformer_lens.model_bridge import TransformerBridge
from transformer_lens.model_bridge.sources._bridge_builder import build_bridge_from_module

from benchmarks.peers import conversions, gpt2
from benchmarks.sides import kept

NAMES = {
    "norm1.out": "ln1.hook_out",
    "attn.q": "attn.hook_q",
    "attn.k": "attn.hook_k",
    "attn.v": "attn.hook_v",
    "attn.scores": "attn.hook_attn_scores",
    "attn.pattern": "attn.hook_pattern",
    "attn.z": "attn.hook_z",
    "attn_out": "hook_attn_out",
    "resid_mid": "hook_resid_mid",
    "norm2.out": "ln2.hook_out",
    "ffn.up": "mlp.hook_pre",
    "ffn.hidden": "mlp.hook_post",
    "ffn_out": "hook_mlp_out",
    "resid_post": "hook_resid_post",
    kept.HEADS: "attn.hook_result",
}
"""The product's name of a stage -> TransformerLens'."""

_HEADS_SECOND = ("attn.q", "attn.k", "attn.v", "attn.z", kept.HEADS)


def block(
    positions: int, layers: int = 1, *, contributions: bool = False, ours_alone: bool = False
) -> Callable[[], Any]:
    """Runs the blocks with a cache of everything, or of the product's stages alone."""
    bridge = _over_gpt2(layers)
    if contributions:
        bridge.set_use_attn_result(True)
    names = [_name(f"blocks.{layer}.{stage}") for layer in range(layers) for stage in kept.STAGES]
    return _cached(bridge, positions, layers, {"names_filter": names} if ours_alone else {})


def native(positions: int) -> Callable[[], Any]:
    """One block of TransformerLens' own model, with weights of its own."""
    bridge = TransformerBridge.boot_native(
        TransformerBridgeConfig(
            architecture="TransformerLensNative",
            d_model=kept.LARGE.d,
            d_head=kept.LARGE.d // kept.LARGE.heads,
            n_heads=kept.LARGE.heads,
            d_mlp=kept.LARGE.d_ff,
            n_layers=2,
            n_ctx=1024,
            d_vocab=8,
            act_fn="gelu_new",
            normalization_type="LN",
            seed=0,
        )
    )
    return _cached(bridge, positions, 1, {})


def _over_gpt2(layers: int) -> TransformerBridge:
    model = gpt2.model(layers, more=1)
    return build_bridge_from_module(model, "GPT2LMHeadModel", hf_config=model.config)


def _cached(
    bridge: TransformerBridge, positions: int, layers: int, more: dict[str, list[str]]
) -> Callable[[], Any]:
    x = conversions.stream(positions)

    @torch.inference_mode()
    def forward() -> object:
        return bridge.run_with_cache(x, start_at_layer=0, stop_at_layer=layers, **more)

    return forward


def _name(full: str) -> str:
    prefix = full[: full.index(".", len("blocks.")) + 1]
    return prefix + NAMES[full.removeprefix(prefix)]


def stages(positions: int) -> dict[str, torch.Tensor]:
    """Once, by the names and in the axes that the product gives them, without the batch."""
    _, cache = block(positions, contributions=True)()
    found = {}
    for full in kept.names(1, contributions=True):
        value = cache[_name(full)][0]
        swapped = full.removeprefix("blocks.0.") in _HEADS_SECOND
        found[full] = value.transpose(0, 1) if swapped else value
    return found
