"""The ways in which a published count of parameters parts from the exact one, the usual first.

What is stored beside a model's numbers (`stored_beside`), parts of it left out or added, and
shapes that it does not have (`assumed`).
"""

from collections.abc import Callable, Iterator
from functools import lru_cache

from compute.config import ModelConfig
from compute.sizing import architecture, parameters
from compute.sizing.holdings import Holding, holdings
from compute.sizing.quantity import q, total
from compute.sizing.reconciling import assumed, often_added, stored_beside
from compute.sizing.reconciling.differences import Change, Difference, less, removed, whole

_TABLES = ("embed.W_E", "pos_embed.W_pos", "unembed.W_U")
_READOUT = ("unembed", "unembed_projection", "mlm_head", "mlm_norm")

ORDER = (
    *("position_ids", "rotary_buffers", "tied_head_again", "without_readout", "with_pooler"),
    *("without_pooler", "without_classes", "rows_less_2", "active_experts", "mtp_layer"),
    *("fp8_scales", "fp8_scales_with_mtp", "causal_mask_buffers", "non_embedding"),
    *("without_input_table", "without_position_table", "vision_tower", "mtp_layer_without_copies"),
    *("vocab_to_64", "vocab_to_128", "vocab_to_256", "vocab_to_512", "vocab_to_1024"),
    *("vocab_unpadded", "with_mlm_head", "with_two_classes", "with_1000_classes"),
    *("mha_assumed", "d_head_assumed", "ffn_4d_assumed", "two_matrices_assumed"),
    *("biases_left_out", "norms_left_out", "article_ledger", "article_ledger_and_table"),
    *("without_token_types", "encoder_alone", "decoder_alone", "stack_tables_again"),
    *("stack_table_again", "without_router_bias", "blocks_alone", "rows_more_2"),
    *("mha_and_d_head_assumed", "ffn_4d_of_two_assumed", "gate_assumed", "without_extras"),
    *("rotary_buffer_once", "other_rows", "other_vocab", "other_heads", "other_d_head"),
    "other_blocks",
)
"""From the most to the least usual: how ties between explanations of a number are settled."""

GROUPS = (
    *("ids", "rotary", "mask", "readout", "copies", "prediction", "scales", "tower", "pooler"),
    *("classes", "rows", "experts", "tables", "types", "vocab", "mlm", "heads", "ffn", "biases"),
    *("norms", "router", "ledger", "stacks", "extras"),
)
"""Of each at most one difference holds."""


@lru_cache(maxsize=64)
def differences(config: ModelConfig) -> tuple[Difference, ...]:
    """Every difference that a model can have, in order; those that change nothing left out."""
    listed = (found for source in _SOURCES for found in source(config))
    found = [difference for difference in listed if difference.value]
    return tuple(sorted(found, key=lambda difference: ORDER.index(difference.id)))


def _left_out(config: ModelConfig) -> Iterator[Difference]:
    for name, group, words, is_out in _LEFT_OUT:
        changes = removed(held for held in holdings(config) if is_out(held))
        yield Difference(id=name, group=group, words=words, changes=changes)


def _is_readout(held: Holding) -> bool:
    return held.id.partition(".")[0] in _READOUT


def _is_norm(held: Holding) -> bool:
    return "norm" in held.id and held.role in ("gain", "bias")


_LEFT_OUT: tuple[tuple[str, str, str, Callable[[Holding], bool]], ...] = (
    ("without_readout", "readout", "The readout is left out.", _is_readout),
    (
        *("without_pooler", "pooler", "The pooler is left out."),
        lambda held: held.id.startswith("pooler."),
    ),
    (
        *("without_classes", "classes", "The readout of classes is left out: the backbone alone."),
        lambda held: held.id.startswith("classifier."),
    ),
    (
        *(
            "non_embedding",
            "tables",
            "Tables of tokens and positions and the readout's matrix are left out.",
        ),
        lambda held: held.id.removeprefix("encoder.") in _TABLES,
    ),
    (
        *("without_input_table", "tables", "The table of tokens is left out."),
        lambda held: held.id == "embed.W_E",
    ),
    (
        *("without_position_table", "rows", "The table of positions is left out."),
        lambda held: held.id.removeprefix("encoder.") == "pos_embed.W_pos",
    ),
    (
        *("without_token_types", "types", "The table of token types is left out."),
        lambda held: held.id.startswith("type_embed."),
    ),
    (
        *("biases_left_out", "biases", "Biases are left out, but those of norms."),
        lambda held: held.role == "bias" and not _is_norm(held),
    ),
    ("norms_left_out", "norms", "Norms are left out.", _is_norm),
    (
        *("without_router_bias", "router", "The router's bias is left out."),
        lambda held: held.id.endswith("b_router"),
    ),
    (
        *("blocks_alone", "tables", "Blocks alone are counted."),
        lambda held: "blocks." not in held.id,
    ),
    (
        *("without_extras", "extras", "Extra parts are left out."),
        lambda held: held.id.startswith("extras."),
    ),
)


def _experts(config: ModelConfig) -> Iterator[Difference]:
    changes = tuple(
        Change(held.id, q(held.letter, held.count) * held.used - whole(held))
        for held in holdings(config)
        if held.used.value != held.size.value
    )
    words = "Of the experts those alone that one token goes to are counted."
    yield Difference(id="active_experts", group="experts", words=words, changes=changes)


def _ledgers(config: ModelConfig) -> Iterator[Difference]:
    """The article's count, 12 d² a block: so much else changes that it stands alone."""
    changes = _two_stacks(config) if config.encoder else _gap(config)
    words = "The article's ledger alone: 12 d² a block"
    yield _ledger("article_ledger", f"{words}.", changes)
    if config.vocab is not None:
        table = Change(
            "article.table", architecture.letters(config)["V"] * often_added.width(config)
        )
        kept = tuple(change for change in changes if change.id != "embed")
        added = kept if len(kept) < len(changes) else (*changes, table)
        yield _ledger("article_ledger_and_table", f"{words}, and the table of tokens.", added)


def _gap(config: ModelConfig) -> tuple[Change, ...]:
    gap = parameters.article_ledger(config).gap
    return tuple(Change(part.id, less(part.each)) for part in gap)


def _two_stacks(config: ModelConfig) -> tuple[Change, ...]:
    """Of two stacks, whose letters are not the same numbers, the sums alone."""
    blocks = total(q(x.letter, x.config.n_layers) for x in architecture.stacks(config))
    ours = q("ours", parameters.count(config))
    return (Change("article", 12 * blocks * q("d", config.d_model) ** 2 - ours),)


def _ledger(name: str, words: str, changes: tuple[Change, ...]) -> Difference:
    return Difference(id=name, group="ledger", words=words, changes=changes, alone=True)


def _stacks(config: ModelConfig) -> Iterator[Difference]:
    if config.encoder is None:
        return
    listed = [held for held in holdings(config) if held.id != "embed.W_E"]
    inside = [held.id.startswith("encoder.") for held in listed]
    pairs = list(zip(listed, inside, strict=True))
    for name, gone in (("encoder", False), ("decoder", True)):
        changes = removed(held for held, within in pairs if within is gone)
        words = f"The {name} alone is counted, with the table."
        yield Difference(id=f"{name}_alone", group="stacks", words=words, changes=changes)


_SOURCES: tuple[Callable[[ModelConfig], Iterator[Difference]], ...] = (
    *(stored_beside.buffers, stored_beside.copies, stored_beside.prediction_layers),
    *(stored_beside.scales, stored_beside.towers, often_added.rows, often_added.parts),
    *(often_added.vocabularies, _left_out, _experts),
    *(_ledgers, _stacks, assumed.assumptions),
)
