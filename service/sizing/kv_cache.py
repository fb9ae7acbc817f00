"""The KV cache as members of an answer."""

from collections.abc import Iterator

from compute.config import ModelConfig
from compute.sizing import architecture
from compute.sizing.formats import CacheFormat
from compute.sizing.memory import kv_cache
from compute.sizing.memory.kv_cache import Expanded
from compute.sizing.memory.stored import RULE
from compute.sizing.quantity import told
from compute.sizing.vocabulary import Workload
from service.sizing import ledgers, storage

View = dict[str, object]

NOTES = (
    RULE,
    "A tensor here is the keys, or the values, of all sequences in one block.",
    "Pages round a block's positions up to whole pages; source positions are not paged.",
    "Cross-attention keeps the keys and values of a source position once; per_token is without it.",
)
EXCLUDED = (
    "Tables of pages, and pages that are free or shared between sequences.",
    "What an encoder or a prompt's pass holds while it runs; see activations.",
)


def view(config: ModelConfig, workload: Workload, cache: CacheFormat) -> View:
    """The member `kv_cache`; a QuestionError where nothing is cached."""
    found = kv_cache.size(config, workload, cache)
    kind, source = found.per_token_kind, found.per_source_token
    return {
        "dtype": cache.format.name,
        "bits": told(cache.format.bits),
        "page": cache.page,
        "tokens": found.tokens,
        "positions": found.positions,
        "per_token": ledgers.amount(found.per_token.value, "bytes", kind),
        "per_token_per_block": ledgers.amount(found.per_token_per_block.value, "bytes", kind),
        "per_source_token": None if source is None else ledgers.amount(source.value, "bytes", kind),
        "lower_bound": ledgers.ledger(found.lower_bound),
        "allocation": ledgers.ledger(found.allocation),
        "expanded": _expanded(found.expanded),
        "symbols": list(_symbols(config, found.tokens, cache)),
        "notes": list(NOTES),
        "excluded": list(EXCLUDED),
    }


def _expanded(found: Expanded | None) -> View | None:
    if found is None:
        return None
    per_token = ledgers.amount(found.per_token.value, "bytes", found.per_token_kind)
    return {**ledgers.ledger(found.ledger), "per_token": per_token}


def _symbols(config: ModelConfig, tokens: int, cache: CacheFormat) -> Iterator[View]:
    yield {"letter": "T", "meaning": "cached + tokens + new_tokens", "value": tokens}
    if cache.page:
        yield {"letter": "page", "meaning": "cache.page", "value": cache.page}
    yield storage.symbol(cache.format, "kv")
    windows = architecture.windows(config)
    for window, count in windows:
        if window is not None:
            letter = kv_cache.window_letter(window)
            yield {"letter": letter, "meaning": "a block's window", "value": window}
        if len(windows) > 1:
            meaning = "blocks without a window" if window is None else f"blocks of window {window}"
            letter = kv_cache.count_letter(window, windows)
            yield {"letter": letter, "meaning": meaning, "value": count}
