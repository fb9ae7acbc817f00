"""Parts that others add: rows of tables, a pooler, readouts of classes and of hidden tokens."""

from collections.abc import Iterator

from compute.config import ModelConfig
from compute.sizing import architecture
from compute.sizing.holdings import Holding, holdings
from compute.sizing.quantity import Quantity, ceil_div, q
from compute.sizing.reconciling.differences import Change, Difference, less

_MULTIPLES = (64, 128, 256, 512, 1024)


def rows(config: ModelConfig) -> Iterator[Difference]:
    """The table of positions with two rows more or fewer."""
    if config.position.kind != "learned":
        return
    two = 2 * width(config)
    for name, word, added in (("less", "fewer", less(two)), ("more", "more", two)):
        words = f"The table of positions has two rows {word}."
        change = Change("pos_embed.W_pos", added)
        yield Difference(id=f"rows_{name}_2", group="rows", words=words, changes=(change,))


def width(config: ModelConfig) -> Quantity:
    """The width of a table."""
    return architecture.letters(config)["d_embed" if config.d_embed else "d"]


def parts(config: ModelConfig) -> Iterator[Difference]:
    """Parts that a model of this kind often has beside it."""
    letters = architecture.letters(config)
    d = letters["d"]
    is_encoder = config.attention.mask == "full" and config.encoder is None
    if is_encoder and not config.pooler:
        yield _part("with_pooler", "pooler", "With a pooler, d² + d.", "pooler", d**2 + d)
    if is_encoder and not config.classes:
        for count, word in ((2, "two"), (1000, "1000")):
            words = f"With a readout of {word} classes."
            made = d * count + count
            yield _part(f"with_{word}_classes", "classes", words, "classifier", made)
    if is_encoder and config.vocab is not None and not config.readout:
        made = (d + 3) * width(config) + letters["V"]
        words = "With the head that tells hidden tokens: a product, a norm, a bias of V."
        yield _part("with_mlm_head", "mlm", words, "mlm_head", made)


def _part(name: str, group: str, words: str, part: str, made: Quantity) -> Difference:
    return Difference(id=name, group=group, words=words, changes=(Change(part, made),))


def vocabularies(config: ModelConfig) -> Iterator[Difference]:
    """The vocabulary filled up to a multiple; of multiples that give the same, the smallest."""
    tables = [held for held in holdings(config) if held.id in ("embed.W_E", "unembed.W_U")]
    held_rows = architecture.letters(config)["V"]
    told = {held_rows.value}
    for multiple in _MULTIPLES:
        padded = ceil_div(held_rows, multiple) * multiple
        if padded.value not in told and tables:
            told.add(padded.value)
            changes = _more_rows(config, tables, padded - held_rows)
            words = f"The vocabulary is filled up to {padded.value}, a multiple of {multiple}."
            yield Difference(id=f"vocab_to_{multiple}", group="vocab", words=words, changes=changes)
    if config.vocab_padded_to is not None and config.vocab is not None:
        fewer = q("vocab", config.vocab) - held_rows
        words = "The vocabulary is counted as it is, not filled up."
        changes = _more_rows(config, tables, fewer)
        yield Difference(id="vocab_unpadded", group="vocab", words=words, changes=changes)


def _more_rows(config: ModelConfig, tables: list[Holding], more: Quantity) -> tuple[Change, ...]:
    return tuple(Change(held.id, more * width(config)) for held in tables)
