"""Write hugging_face.json: what three small models of transformers store and compute.

Needs the `reference` extra: python tests/docs/hugging_face.py. Weights are multiples of 1/16, so
that they print short and are the same in every dtype; the models run in float64.
"""

import json
from pathlib import Path
from typing import Any

import torch
import transformers

FAMILIES: dict[str, tuple[type, type, dict[str, Any]]] = {
    "GPT-2": (
        transformers.GPT2Config,
        transformers.GPT2LMHeadModel,
        {
            "n_embd": 4,
            "n_head": 2,
            "n_layer": 2,
            "n_inner": 6,
            "n_positions": 5,
            "vocab_size": 7,
            "activation_function": "gelu_new",
            "layer_norm_epsilon": 1e-5,
            "scale_attn_weights": True,
        },
    ),
    "BERT": (
        transformers.BertConfig,
        transformers.BertForMaskedLM,
        {
            "hidden_size": 4,
            "num_attention_heads": 2,
            "num_hidden_layers": 1,
            "intermediate_size": 6,
            "hidden_act": "gelu",
            "layer_norm_eps": 1e-12,
            "max_position_embeddings": 5,
            "type_vocab_size": 2,
            "vocab_size": 7,
        },
    ),
    "Llama": (
        transformers.LlamaConfig,
        transformers.LlamaForCausalLM,
        {
            "hidden_size": 8,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 4,
            "num_hidden_layers": 1,
            "intermediate_size": 5,
            "hidden_act": "silu",
            "rms_norm_eps": 1e-6,
            "attention_bias": False,
            "mlp_bias": False,
            "tie_word_embeddings": False,
            "vocab_size": 7,
        },
    ),
}
TOKENS = [[3, 1, 4, 1]]
TYPES = [[0, 0, 1, 1]]


def main() -> None:
    found = {"transformers": transformers.__version__}
    found |= {family: reference(family) for family in FAMILIES}
    path = Path(__file__).with_name("hugging_face.json")
    path.write_text(json.dumps(found, separators=(",", ":")) + "\n", encoding="utf-8")


def reference(family: str) -> dict[str, Any]:
    """A family's config, stored weights, and every hidden state, attention and logit of a run."""
    config_type, model_type, sizes = FAMILIES[family]
    config = config_type(**sizes, bos_token_id=None, eos_token_id=None, pad_token_id=None)
    config._attn_implementation = "eager"
    model = model_type(config).double().eval()
    fill(model)
    with torch.no_grad():
        types = {"token_type_ids": torch.tensor(TYPES)} if family == "BERT" else {}
        ids = torch.tensor(TOKENS)
        out = model(ids, **types, output_hidden_states=True, output_attentions=True)
    return {
        "config": sizes,
        "stored": {name: value.tolist() for name, value in model.state_dict().items()},
        "token_ids": TOKENS[0],
        "token_types": TYPES[0] if family == "BERT" else None,
        "hidden_states": [rounded(state[0]) for state in out.hidden_states],
        "attentions": [rounded(pattern[0]) for pattern in out.attentions],
        "logits": rounded(out.logits[0]) if "logits" in out else None,
    }


def fill(model: torch.nn.Module) -> None:
    """Seeded multiples of 1/16, gains around 1."""
    generator = torch.Generator().manual_seed(0)
    for name, value in model.named_parameters():
        drawn = torch.randint(-16, 17, value.shape, generator=generator).double() / 16
        is_gain = value.ndim == 1 and name.endswith("weight")
        value.data = 1 + drawn / 2 if is_gain else drawn


def rounded(values: torch.Tensor) -> Any:  # noqa: ANN401 - nested lists
    return json.loads(json.dumps(values.tolist()), parse_float=lambda text: round(float(text), 9))


if __name__ == "__main__":
    main()
