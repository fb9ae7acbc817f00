"""Write the small .gguf files of this folder, and what transformers computes from the same weights.

    python make_references.py LLAMA_CPP [NAME …]

LLAMA_CPP is a checkout of llama.cpp, whose converter writes the files: neither it nor transformers
knows anything of the reader that is tested. Needs torch, transformers and safetensors.
"""

import json
import logging
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import transformers as hf
from safetensors.torch import save_file

HERE = Path(__file__).parent
ALSO_FOLDERS, UNTIED = ("llama-wide",), ("t5-gated",)
VOCAB = 24
_SMALL: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": 16,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_PLAIN = {name: size for name, size in _SMALL.items() if name != "num_key_value_heads"}
_GPT2 = {"vocab_size": VOCAB, "n_embd": 16, "n_head": 4, "n_layer": 2, "n_positions": 32}
_IDS = {"bos_token_id": 1, "eos_token_id": 2}


def _llama3() -> dict[str, Any]:
    return {
        "rope_type": "llama3",
        "rope_theta": 5000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32,
    }


def _yarn() -> dict[str, Any]:
    return {
        "rope_type": "yarn",
        "rope_theta": 10000.0,
        "factor": 4.0,
        "original_max_position_embeddings": 16,
    }


def _part(turned: float) -> dict[str, Any]:
    return {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": turned}


def _t5(**changed: Any) -> Any:  # noqa: ANN401
    return hf.T5Config(
        vocab_size=VOCAB,
        d_model=16,
        d_kv=6,
        d_ff=20,
        num_layers=2,
        num_decoder_layers=1,
        num_heads=3,
        n_positions=64,
        decoder_start_token_id=0,
        **changed,
    )


def models() -> dict[str, Any]:
    """Name -> a model with its weights still to be drawn."""
    wide = {**_SMALL, "vocab_size": 32, "hidden_size": 32, "intermediate_size": 64}
    biased = {"head_dim": 12, "attention_bias": True, "mlp_bias": True}
    gemma = {"head_dim": 6, "sliding_window": 3}
    both_ropes = {
        "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
    }
    thin = {**_SMALL, "hidden_size": 8, "num_hidden_layers": 7, "num_key_value_heads": 1}
    return {
        "llama": hf.LlamaForCausalLM(hf.LlamaConfig(**_SMALL, rope_theta=5000.0)),
        "llama-wide": hf.LlamaForCausalLM(hf.LlamaConfig(**{**wide, "num_hidden_layers": 1})),
        "llama-biased-llama3": hf.LlamaForCausalLM(
            hf.LlamaConfig(**_SMALL, **biased, tie_word_embeddings=True, rope_parameters=_llama3())
        ),
        "llama-yarn": hf.LlamaForCausalLM(hf.LlamaConfig(**_SMALL, rope_parameters=_yarn())),
        "mistral": hf.MistralForCausalLM(hf.MistralConfig(**_SMALL, sliding_window=None)),
        "mixtral": hf.MixtralForCausalLM(
            hf.MixtralConfig(
                **_SMALL, num_local_experts=3, num_experts_per_tok=2, sliding_window=None
            )
        ),
        "qwen2": hf.Qwen2ForCausalLM(hf.Qwen2Config(**_SMALL, tie_word_embeddings=True)),
        "qwen3": hf.Qwen3ForCausalLM(hf.Qwen3Config(**_SMALL, head_dim=6)),
        "olmo2": hf.Olmo2ForCausalLM(hf.Olmo2Config(**_SMALL)),
        "gpt2": hf.GPT2LMHeadModel(hf.GPT2Config(**_GPT2, **_IDS, n_ctx=32)),
        "gptneox": hf.GPTNeoXForCausalLM(hf.GPTNeoXConfig(**_PLAIN, rope_parameters=_part(0.5))),
        "gptneox-sequential": hf.GPTNeoXForCausalLM(
            hf.GPTNeoXConfig(**_PLAIN, rope_parameters=_part(1.0), use_parallel_residual=False)
        ),
        "gemma2": hf.Gemma2ForCausalLM(hf.Gemma2Config(**_SMALL, **gemma, query_pre_attn_scalar=6)),
        "gemma3": hf.Gemma3ForCausalLM(
            hf.Gemma3TextConfig(
                **thin, **gemma, query_pre_attn_scalar=6, rope_parameters=both_ropes
            )
        ),
        "phi2": hf.PhiForCausalLM(
            hf.PhiConfig(**{**_PLAIN, "intermediate_size": 64}, rope_parameters=_part(0.5))
        ),
        "bert": hf.BertModel(hf.BertConfig(**_PLAIN)),
        "t5": hf.T5ForConditionalGeneration(_t5(feed_forward_proj="relu")),
        "t5-gated": hf.T5ForConditionalGeneration(
            _t5(feed_forward_proj="gated-gelu", tie_word_embeddings=False)
        ),
    }


def fill(model: Any, seed: int) -> None:  # noqa: ANN401
    """Noise: matrices of deviation 1/√fan_in, tables 1, biases 0.3, gains about 1 (Gemma's 0)."""
    noise = torch.Generator().manual_seed(seed)
    gain = 0.0 if "Gemma" in type(model).__name__ else 1.0
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            drawn = torch.randn(parameter.shape, generator=noise)
            if parameter.ndim == 1 and name.endswith("bias"):
                parameter.copy_(0.3 * drawn)
            elif parameter.ndim == 1:
                parameter.copy_(gain + 0.3 * drawn)
            elif any(part in name.lower() for part in ("emb", "wte", "wpe", "shared", "relative")):
                parameter.copy_(drawn)
            else:
                fan_in = parameter.shape[-2 if "Conv1D" in _owner(model, name) else -1]
                parameter.copy_(drawn / fan_in**0.5)


def _owner(model: Any, name: str) -> str:  # noqa: ANN401
    return type(model.get_submodule(name.rpartition(".")[0])).__name__


def values(model: Any) -> dict[str, torch.Tensor]:  # noqa: ANN401
    """What upstream computes in float32: the inputs, what enters and leaves blocks, the logits."""
    asked = {"input_ids": torch.tensor([[5, 17, 3, 20, 9, 1, 12]]) % model.config.vocab_size}
    if isinstance(model, hf.T5ForConditionalGeneration):
        asked["decoder_input_ids"] = torch.tensor([[0, 7, 21, 11]])
    with torch.no_grad():
        made = model(**asked, output_hidden_states=True)
    kept = {name: value[0] for name, value in asked.items()}
    decoder = "decoder_input_ids" in asked
    states = made.decoder_hidden_states if decoder else made.hidden_states
    kept |= {f"hidden.{at}": value[0] for at, value in enumerate(states)}
    if decoder:
        kept["memory"] = made.encoder_last_hidden_state[0]
    if hasattr(made, "logits"):
        kept["logits"] = made.logits[0]
    return {name: value.contiguous().clone() for name, value in kept.items()}


def convert(folder: Path, file: Path) -> None:
    """The converter's file of a folder, in F32, without a tokenizer."""
    import conversion  # noqa: PLC0415
    import gguf  # noqa: PLC0415
    from conversion.base import ModelBase  # noqa: PLC0415

    raw = ModelBase.load_hparams(folder, False)
    kind = conversion.get_model_class(raw["architectures"][0])
    kind.set_vocab = lambda self: None
    made = kind(folder, gguf.LlamaFileType.ALL_F32, file, eager=True)
    turned = (raw.get("rope_parameters") or {}).get("partial_rotary_factor")
    made.hparams.update(
        rotary_pct=turned, partial_rotary_factor=turned
    )  # where transformers 4 had it
    made.gguf_writer.add_tokenizer_model("none")
    made.write()


def write(name: str, model: Any, seed: int) -> None:  # noqa: ANN401
    """One file, and its values."""
    model = model.float().eval()
    if name in UNTIED:
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    model.set_attn_implementation("eager")
    fill(model, seed)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / name
        model.save_pretrained(folder)
        tokens = {"model": {"vocab": {str(x): x for x in range(VOCAB)}}, "added_tokens": []}
        (folder / "tokenizer.json").write_text(json.dumps(tokens))  # its length cuts Gemma's table
        convert(folder, HERE / f"{name}.gguf")
        if name in ALSO_FOLDERS:
            keep(folder, HERE / name)
    save_file(values(model), HERE / f"{name}.safetensors")
    (HERE / f"{name}.safetensors").chmod(0o644)


def keep(folder: Path, kept: Path) -> None:
    """What a folder of the model is read by."""
    kept.mkdir(exist_ok=True)
    for file in ("config.json", "model.safetensors"):
        (kept / file).write_bytes((folder / file).read_bytes())


def main(llama_cpp: str, *wanted: str) -> None:
    """Write every file, or those that are named."""
    sys.path[:0] = [f"{llama_cpp}/gguf-py", llama_cpp]
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    for seed, (name, model) in enumerate(models().items()):
        if not wanted or name in wanted:
            write(name, model, seed)


if __name__ == "__main__":
    main(*sys.argv[1:])
