"""transformers' GPT-2 with the product's seeded weights: what three of the other sides run."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from benchmarks.peers import conversions
from benchmarks.sides import kept

_NAMES = {
    "attn.c_attn": ("W_QKV", "b_QKV"),
    "attn.c_proj": ("W_O", "b_O"),
    "mlp.c_fc": ("W_in", "b_in"),
    "mlp.c_proj": ("W_out", "b_out"),
    "ln_1": ("gain1", "bias1"),
    "ln_2": ("gain2", "bias2"),
}


def model(layers: int, more: int = 0) -> GPT2LMHeadModel:
    """So many blocks with the product's weights, and `more` blocks after them that do not run."""
    config = GPT2Config(
        vocab_size=8,
        n_positions=1024,
        n_embd=kept.LARGE.d,
        n_head=kept.LARGE.heads,
        n_inner=kept.LARGE.d_ff,
        n_layer=layers + more,
        attn_implementation="eager",
        bos_token_id=0,
        eos_token_id=0,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
    made = GPT2LMHeadModel(config).eval()
    state = dict(made.state_dict())
    for layer, w in enumerate(conversions.packed(layers)):
        for name, (weight, bias) in _NAMES.items():
            state[f"transformer.h.{layer}.{name}.weight"] = w[weight]
            state[f"transformer.h.{layer}.{name}.bias"] = w[bias]
    state["transformer.wpe.weight"] = torch.zeros_like(state["transformer.wpe.weight"])
    made.load_state_dict(state)
    return made
