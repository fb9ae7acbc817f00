"""The model of a sizing request: its config alone, whatever its size; weights are not read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compute import config_json
from compute.config import ModelConfig
from compute.errors import ConfigError, Fault, refuse_if
from compute.sizing import architecture, parameters
from compute.sizing.architecture import Blocks
from schemas.model import ModelAsked
from service import modelled
from service.state import State

View = dict[str, object]

MOST_PARAMETERS = 10**18
MOST_WINDOWS = 32


@dataclass(frozen=True, slots=True)
class Sized:
    """A config to be sized; the fields that the request changed of what it named."""

    asked: ModelAsked
    config: ModelConfig
    overrides: Sequence[str]


def of(asked: ModelAsked, state: State) -> Sized:
    """The model that a request means, or the error that says why there is none."""
    checkpoint = None if asked.name is None else state.store.get(asked.name)
    config, overrides = modelled.config_of(asked, checkpoint)
    held = parameters.count(config)
    if held >= MOST_PARAMETERS:
        detail = "A model of 10^18 parameters or more is not sized."
        raise ConfigError([Fault(code="too_many_parameters", detail=detail, got=held)])
    refuse_if(ConfigError, list(_too_many_windows(config)))
    return Sized(asked, config, overrides)


def _too_many_windows(config: ModelConfig) -> Iterator[Fault]:
    for stack in architecture.stacks(config):
        found = len(architecture.windows(stack.config))
        if found > MOST_WINDOWS:
            place = ("encoder", "layers") if stack.is_encoder else ("layers",)
            yield Fault(
                code="too_many_windows",
                detail=f"At most {MOST_WINDOWS} different windows are sized.",
                place=place,
                expected=f"at most {MOST_WINDOWS}",
                got=found,
            )


def model(sized: Sized) -> View:
    """The member `model` of an answer."""
    return {
        "name": sized.asked.name,
        "preset": sized.asked.preset,
        "overrides": list(sized.overrides),
        "config": config_json.as_json(sized.config),
    }


_MEANINGS = {
    "d": "d_model",
    "h": "attention.n_heads",
    "g": "attention.n_kv_heads",
    "k": "attention.d_head",
    "v": "attention.d_value",
    "f": "ffn.d_ff",
    "e": "ffn.n_experts",
    "c": "ffn.top_k",
    "u": "ffn.d_shared",
    "t": "token_types",
    "r": "position.n_buckets",
    "V": "vocab, or vocab_padded_to",
    "n_positions": "position.n_positions",
    "d_embed": "d_embed",
    "C": "classes",
    "r_q": "attention.mla.q_lora_rank",
    "r_kv": "attention.mla.kv_lora_rank",
    "k_nope": "attention.mla.d_nope",
    "k_rope": "attention.mla.d_rope",
    "channels": "patches.channels",
    "patch": "patches.patch_size",
}


def symbols(sized: Sized) -> list[View]:
    """The letters of the formulas that come from the config, with their numbers."""
    return [*_counts(sized), *_widths(sized)]


def _counts(sized: Sized) -> Iterator[View]:
    for stack in architecture.stacks(sized.config):
        total = stack.config.n_layers
        yield {"letter": stack.letter, "meaning": f"{stack.prefix}n_layers", "value": total}
        for kind in architecture.by_ffn(stack):
            yield from _of_kind(kind, total)


def _of_kind(kind: Blocks, total: int) -> Iterator[View]:
    """The letters of blocks that are not all of a stack's, or share their weights."""
    dense = kind.prefix == "ffn.dense."
    if kind.count != total or dense:
        meaning = "blocks with a dense ffn" if dense else "blocks with experts"
        yield {"letter": kind.letter, "meaning": meaning, "value": kind.count}
    if dense:
        yield {"letter": "f_dense", "meaning": "ffn.d_dense", "value": kind.ffn.d_ff}
    if kind.distinct != kind.count:
        letter = f"{kind.letter}_distinct"
        yield {"letter": letter, "meaning": "distinct_blocks", "value": kind.distinct}


def _widths(sized: Sized) -> Iterator[View]:
    """The model's own widths, and the encoder's where they are others."""
    own = architecture.letters(sized.config)
    for stack in reversed([*architecture.stacks(sized.config)]):
        for letter, quantity in architecture.letters(stack.config).items():
            is_told = stack.is_encoder and quantity == own[letter]
            if quantity.value and not is_told:
                meaning = stack.prefix + _MEANINGS[letter]
                yield {"letter": letter, "meaning": meaning, "value": quantity.value}
