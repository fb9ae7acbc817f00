"""The inputs of each run, and what is kept of a model that runs on them."""

import zlib
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from parity.families import Family

POSITIONS = 6
TARGETS = 5  # positions of a decoder beside an encoder
MOVED = [5, 6, 7, 9, 10, 12]  # the positions of the run "offset": not from 0, and with gaps
PADS = 2

Tensors = dict[str, torch.Tensor]


def inputs(family: Family, run: str, config: Any) -> Tensors:  # noqa: ANN401 - a config
    """What the model is called with: token ids, and the masks and positions of the run."""
    generator = torch.Generator().manual_seed(zlib.crc32(f"{family.folder}/{run}".encode()))
    rows = 2 if run in ("right", "left") else 1
    ids = torch.randint(3, config.vocab_size, (rows, POSITIONS), generator=generator)
    given = {"input_ids": ids}
    if rows == 2:
        given["attention_mask"] = mask(run)
        ids[given["attention_mask"] == 0] = config.pad_token_id or 0
    if family.types:
        given["token_type_ids"] = (
            (torch.arange(POSITIONS) >= POSITIONS // 2).long().expand(rows, -1)
        )
    if family.positions:
        given |= positions(family, run, given)
    if config.is_encoder_decoder:
        shape = (rows, TARGETS)
        given["decoder_input_ids"] = torch.randint(3, config.vocab_size, shape, generator=generator)
    return {name: value.contiguous() for name, value in given.items()}


def mask(run: str) -> torch.Tensor:
    """(2, n): the second row lacks its last tokens (right) or its first ones (left)."""
    found = torch.ones(2, POSITIONS, dtype=torch.long)
    found[1, slice(-PADS, None) if run == "right" else slice(PADS)] = 0
    return found


def positions(family: Family, run: str, given: Tensors) -> Tensors:
    """position_ids where the run gives them; RoBERTa and OPT count real tokens themselves."""
    ids = given["input_ids"]
    if run == "offset":  # the mask, since upstream takes gaps without one for packed sequences
        return {"position_ids": torch.tensor([MOVED]), "attention_mask": torch.ones_like(ids)}
    if run == "left" and family.config.model_type not in ("roberta", "opt"):
        return {"position_ids": (given["attention_mask"].cumsum(-1) - 1).clamp(min=0)}
    return {}


def values(model: nn.Module, family: Family, given: Tensors) -> Tensors:
    """Every hidden state, attention, router's score and logit of one call."""
    found: Tensors = {}
    hooks = [hook for stack in stacks(model, family) for hook in watched(model, found, *stack)]
    asked = {"output_attentions": True, "output_hidden_states": True, "use_cache": False}
    if "output_router_logits" in vars(model.config):
        asked["output_router_logits"] = True
    with torch.no_grad():
        output = model(**given, **asked)
    for hook in hooks:
        hook.remove()
    found |= outputs(output, given["input_ids"].shape)
    check(found, output)
    return {name: value.detach().clone().contiguous() for name, value in found.items()}


def stacks(model: nn.Module, family: Family) -> list[tuple[str, str, str | None]]:
    """(prefix of the names, path of the blocks, path of the final norm) of each stack."""
    if not model.config.is_encoder_decoder:
        return [("", family.layers, family.final)]
    return [
        ("encoder.", "encoder.block", "encoder.final_layer_norm"),
        ("", "decoder.block", "decoder.final_layer_norm"),
    ]


def watched(
    model: nn.Module, found: Tensors, prefix: str, layers: str, final: str | None
) -> list[torch.utils.hooks.RemovableHandle]:
    """Hooks that keep what enters block 0 and what leaves each block and the final norm."""
    blocks = list(model.get_submodule(layers))

    def keep_entering(module: nn.Module, args: Any, kwargs: Any) -> None:  # noqa: ANN401
        found[f"{prefix}hidden.0"] = args[0] if args else kwargs["hidden_states"]

    def keeper(name: str) -> Callable[..., None]:
        def keep(module: nn.Module, args: Any, output: Any) -> None:  # noqa: ANN401
            found[name] = output[0] if isinstance(output, tuple) else output

        return keep

    hooks = [blocks[0].register_forward_pre_hook(keep_entering, with_kwargs=True)]
    for index, block in enumerate(blocks, start=1):
        hooks.append(block.register_forward_hook(keeper(f"{prefix}hidden.{index}")))
    if final:
        hooks.append(model.get_submodule(final).register_forward_hook(keeper(f"{prefix}final")))
    return hooks


NAMES = {
    "attentions": "attn",
    "encoder_attentions": "encoder.attn",
    "decoder_attentions": "attn",
    "cross_attentions": "cross",
}


def shortened(found: Tensors) -> Tensors:
    """Attentions, router scores, last hidden states: enough where masks are what differs."""
    last = max(int(name.rpartition(".")[2]) for name in found if name.startswith("hidden."))
    return {
        name: value
        for name, value in found.items()
        if name != "logits" and ("hidden" not in name or name.endswith(f".{last}"))
    }


def narrowed(found: Tensors) -> Tensors:
    """The last hidden states and the logits: enough where the dtype is what differs."""
    last = {name: value for name, value in shortened(found).items() if "attn" not in name}
    logits = {"logits": found["logits"]} if "logits" in found else {}
    return last | logits


def outputs(output: Any, shape: torch.Size) -> Tensors:  # noqa: ANN401 - a model's output
    """The attentions, router scores (before their softmax) and logits of a model's output."""
    found = {
        f"{name}.{layer}": value
        for key, name in NAMES.items()
        for layer, value in enumerate(output.get(key) or ())
    }
    for layer, value in enumerate(output.get("router_logits") or ()):
        found[f"router.{layer}"] = value.reshape(*shape, -1)
    if "logits" in output:
        found["logits"] = output.logits
    return found


def check(found: Tensors, output: Any) -> None:  # noqa: ANN401 - a model's output
    """Upstream's own hidden states are those that were kept, the last one after the final norm."""
    for key, prefix in [
        ("hidden_states", ""),
        ("decoder_hidden_states", ""),
        ("encoder_hidden_states", "encoder."),
    ]:
        states = output.get(key) or ()
        last = found.get(f"{prefix}final")
        for index, state in enumerate(states):
            kept = found[f"{prefix}hidden.{index}"]
            if index == len(states) - 1 and last is not None:
                kept = last
            torch.testing.assert_close(kept, state, rtol=0, atol=0, equal_nan=True)
