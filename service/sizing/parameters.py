"""Parameters as members of an answer."""

from compute.config import ModelConfig
from compute.sizing import parameters
from compute.sizing.parameters import ArticleLedger
from service.sizing import ledgers

View = dict[str, object]

EXCLUDED = (
    "Buffers: rotary frequencies, masks, position ids. A checkpoint may count them.",
    "A shared table's second copy; see untied.",
    "Scales of quantised weights; see weights.",
)


def view(config: ModelConfig) -> View:
    """The member `parameters`."""
    found = parameters.ledger(config)
    return {
        **ledgers.ledger(found),
        "per_block": [
            {"id": block.id, "count": block.count, "parameters": block.parameters}
            for block in parameters.per_block(config)
        ],
        "views": {
            name: {"total": ledgers.amount(value, "parameters"), "meaning": meaning}
            for name, (value, meaning) in parameters.counts(config).items()
        },
        "article": _article(parameters.article_ledger(config)),
        "excluded": list(EXCLUDED),
    }


def _article(found: ArticleLedger) -> View:
    total = found.total
    return {
        "formula": f"{found.letter}·(3d² + d² + 8d²) = {total.formula}",
        "substituted": total.substituted,
        "blocks": found.blocks,
        "total": ledgers.amount(total.value, "parameters"),
        "parts": ledgers.lines(found.parts, total.value),
        "gap": ledgers.amount(found.gap_total, "parameters"),
        "gap_parts": ledgers.lines(found.gap, found.gap_total),
    }
