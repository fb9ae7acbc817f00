"""Write values.safetensors beside this file: what TransformerLens finds in two shipped models.

Needs torch 2.13.0, transformer-lens 3.9.0, safetensors and NumPy; from the top of the repository:
`PYTHONPATH=tests python -m lens.make_references`. The same versions give the same file again.
README.md tells what it holds.
"""

import json
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from transformer_lens import ActivationCache, HookedTransformer, HookedTransformerConfig, patching
from transformer_lens.weight_processing import ProcessWeights

from lens.questions import CASES, PATCHED, VALUES, Case

Values = dict[str, torch.Tensor]
Labels = dict[str, list[str]]

RENAMED = (
    ("norm1.", "ln1."),
    ("norm2.", "ln2."),
    ("final_norm.", "ln_final."),
    (".weight", ".w"),
    (".bias", ".b"),
    (".ffn.", ".mlp."),
)
GROUPED = ("W_K", "W_V", "b_K", "b_V")
"""What TransformerLens keeps once for a group of heads, with `_` in front."""

BIASES = ("_b_K", "_b_V", "b_O", "b_Q", "b_V", "b_U", "b_in", "b_out")
BUFFERS = ("mask", "IGNORE", "rotary_sin", "rotary_cos")


def main() -> None:
    """All cases, into one file."""
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    torch.set_default_dtype(torch.float64)  # the tables of patching are of the default dtype
    values: Values = {}
    labels: Labels = {}
    for case in CASES.values():
        found, named = of_case(case)
        values |= {f"{case.model}/{name}": kept.contiguous() for name, kept in found.items()}
        labels |= {f"{case.model}/{name}": parts for name, parts in named.items()}
    save_file(values, VALUES, metadata={"labels": json.dumps(labels, sort_keys=True)})


def of_case(case: Case) -> tuple[Values, Labels]:
    """Every value of a case, and the labels of those that are stacks of parts."""
    model, without_norms = hooked(case), folded(case)
    tokens = ids(case.clean, case)
    logits, cache = model.run_with_cache(tokens)
    folded_logits, folded_cache = without_norms.run_with_cache(tokens)
    torch.testing.assert_close(folded_logits, logits, rtol=0, atol=1e-12)
    found: Values = {"logits": logits[0]}
    found["resid_post"] = torch.stack([cache["resid_post", i][0] for i in range(layers(model))])
    stacks, labels = vectors(cache)
    found |= {name: stack[:, 0, list(case.rows)] for name, stack in stacks.items()}
    found["lens"] = lens(model, cache)[:, 0, list(case.rows)]
    found |= attributions(case, folded_cache)
    for name, scored in (("plain", model), ("folded", without_norms)):
        for mode in "QKV":
            found[f"composition.{name}.{mode}"] = scored.all_composition_scores(mode)
    return found | tables(case, model, cache), labels


# --- the models


def hooked(case: Case) -> HookedTransformer:
    """A shipped model with its weights as they are."""
    config = json.loads((case.folder / "config.json").read_text("utf-8"))
    weights = {name: value.to(torch.float64) for name, value in renamed(case, config)}
    return loaded(configured(config), weights)


def folded(case: Case) -> HookedTransformer:
    """The same with the norms folded into what reads them, still in float64.

    `load_and_process_state_dict` does the same by way of float32.
    """
    plain, config = hooked(case), json.loads((case.folder / "config.json").read_text("utf-8"))
    words = configured(config)
    centres = words["normalization_type"] == "LN"
    weights = ProcessWeights.fold_layer_norm(plain.state_dict(), plain.cfg, centres, centres)
    return loaded(words | {"normalization_type": f"{words['normalization_type']}Pre"}, weights)


def loaded(words: Mapping[str, Any], weights: Mapping[str, torch.Tensor]) -> HookedTransformer:
    """A model of a config with these weights; a bias that they lack stays 0."""
    model = HookedTransformer(HookedTransformerConfig(**words))
    absent, left = model.load_state_dict(weights, strict=False)
    assert all(name.split(".")[-1] in (*BIASES, *BUFFERS) for name in absent), absent
    assert all(name.split(".")[-2] in ("ln1", "ln2", "ln_final") for name in left), left
    if words["positional_embedding_type"] == "rotary":
        lift_rotation(model)
    return model.eval()


def lift_rotation(model: HookedTransformer) -> None:
    """Make the table of angles again, in float64: it was made in float32, and widened."""
    for block in model.blocks:
        attention, words = block.attn, model.cfg
        attention.rotary_sin, attention.rotary_cos = attention.calculate_sin_cos_rotary(
            words.rotary_dim, words.n_ctx, words.rotary_base, torch.float64
        )


def configured(config: Mapping[str, Any]) -> dict[str, Any]:
    """Our config in TransformerLens' words."""
    attention, ffn, position = config["attention"], config["ffn"], config["position"]
    gated = ffn["kind"] == "gated"
    words = {
        "n_layers": config["n_layers"],
        "d_model": config["d_model"],
        "n_heads": attention["n_heads"],
        "d_head": attention["d_head"],
        "d_mlp": ffn["d_ff"],
        "d_vocab": config["vocab"],
        "n_ctx": position.get("n_positions", 52),
        "act_fn": {"gelu_tanh": "gelu_new", "silu": "silu"}[ffn["activation"]],
        "gated_mlp": gated,
        "eps": config["norm"]["eps"],
        "normalization_type": {"layernorm": "LN", "rmsnorm": "RMS"}[config["norm"]["kind"]],
        "attn_scale": 1 / attention["scale"],
        "positional_embedding_type": {"learned": "standard", "rope": "rotary"}[position["kind"]],
        "dtype": torch.float64,
        "device": "cpu",
        "seed": 0,
    }
    if attention["n_kv_heads"] != attention["n_heads"]:
        words["n_key_value_heads"] = attention["n_kv_heads"]
    if position["kind"] == "rope":
        words["rotary_base"] = position["theta"]
        words["rotary_dim"] = position["rotary_dim"]
        words["rotary_adjacent_pairs"] = position["pairing"] == "interleaved"
    return words


def renamed(case: Case, config: Mapping[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """Our weights under TransformerLens' names; the biases that ours lacks are its zeros."""
    grouped = config["attention"]["n_kv_heads"] != config["attention"]["n_heads"]
    stored = load_file(case.folder / "model.safetensors")
    for name, value in stored.items():
        theirs = reduce(lambda made, pair: made.replace(*pair), RENAMED, name)
        *path, last = theirs.split(".")
        yield ".".join([*path, f"_{last}" if grouped and last in GROUPED else last]), value
    if config["tied"]:
        yield "unembed.W_U", stored["embed.W_E"].T


def layers(model: HookedTransformer) -> int:
    """How many blocks."""
    return model.cfg.n_layers


def ids(text: str, case: Case) -> torch.Tensor:
    """(1, n): a token a letter."""
    tokenizer = json.loads((case.folder / "tokenizer.json").read_text("utf-8"))
    return torch.tensor([[tokenizer["model"]["vocab"][letter] for letter in text]])


# --- the values


def vectors(cache: ActivationCache) -> tuple[Values, Labels]:
    """Stacks of parts of the stream, (part, b, n, d), and what each part is called."""
    made = {
        "decompose.all": cache.decompose_resid(-1, mode="all", return_labels=True),
        "decompose.attn": cache.decompose_resid(-1, mode="attn", return_labels=True),
        "decompose.mlp": cache.decompose_resid(
            -1, mode="mlp", incl_embeds=False, return_labels=True
        ),
        "decompose.mid": cache.decompose_resid(1, mlp_input=True, return_labels=True),
        "accumulated": cache.accumulated_resid(-1, incl_mid=True, return_labels=True),
        "heads": cache.stack_head_results(-1, incl_remainder=True, return_labels=True),
        "heads.first": cache.stack_head_results(1, incl_remainder=True, return_labels=True),
    }
    stacks = {name: stack for name, (stack, _) in made.items()}
    return stacks, {name: labels for name, (_, labels) in made.items()}


def lens(model: HookedTransformer, cache: ActivationCache) -> torch.Tensor:
    """(part, b, n, V): every state of the stream read through the final norm's own scale."""
    return model.unembed(cache.accumulated_resid(-1, incl_mid=True, apply_ln=True))


def attributions(case: Case, cache: ActivationCache) -> Values:
    """(part, row): what parts add to a logit, and to the difference of two, by the kept scale.

    The cache is of the model with folded gains: `logit_attrs` leaves the final norm's gain out.
    """
    right, wrong = (ids(letter, case)[0, 0] for letter in (case.right, case.wrong))
    stacks = {
        "decompose": cache.decompose_resid(-1),
        "heads": cache.stack_head_results(-1, incl_remainder=True),
        "neurons": cache.stack_neuron_results(-1),
    }
    found: Values = {}
    for name, stack in stacks.items():
        alone = cache.logit_attrs(stack, right)
        minus = cache.logit_attrs(stack, right, incorrect_tokens=wrong)
        found[f"attrs.{name}"] = alone[:, 0, list(case.rows)]
        found[f"attrs.{name}.minus"] = minus[:, 0, list(case.rows)]
    return found


def tables(case: Case, model: HookedTransformer, clean: ActivationCache) -> Values:
    """The tables of patching: clean values in the corrupted run, read at the last position."""
    right, wrong = (ids(letter, case)[0, 0] for letter in (case.right, case.wrong))
    corrupted = ids(case.corrupted, case)

    def difference(logits: torch.Tensor) -> torch.Tensor:
        return logits[0, -1, right] - logits[0, -1, wrong]

    found = {
        f"patch.{table}": getattr(patching, f"get_act_patch_{table}")(
            model, corrupted, clean, difference
        )
        for table in PATCHED
    }
    found["patch.clean"] = difference(model(ids(case.clean, case)))
    found["patch.corrupted"] = difference(model(corrupted))
    return found


if __name__ == "__main__":
    main()
