"""The KV cache: what a run keeps of earlier positions, so that a new one meets them.

A block keeps a key (k numbers) and a value (v) of each of its g kv heads, of each position;
latent attention keeps r_kv + k_rope numbers and no more. Cross-attention keeps the keys and values
of s source positions, once. B sequences, T = cached + tokens + new positions in each.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from compute.config import ModelConfig
from compute.errors import Fault, QuestionError
from compute.sizing import architecture
from compute.sizing.formats import CacheFormat, Format
from compute.sizing.ledger import Ledger, Part, joined
from compute.sizing.memory.stored import is_rounded, stored
from compute.sizing.quantity import Quantity, ceil_div, least, q, total
from compute.sizing.vocabulary import Kind, Workload

Windows = Sequence[tuple[int | None, int]]
"""(window, how many blocks have it)."""

_BOUNDS: Mapping[bool, tuple[Kind, Kind]] = MappingProxyType(
    {True: ("lower_bound", "upper_bound"), False: ("exact", "exact")}
)
"""Whether any block has a window -> what its two sizes are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expanded:
    """Latent attention's keys and values kept as its heads read them, every block t positions."""

    ledger: Ledger
    per_token: Quantity
    per_token_kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCache:
    """Bytes of the caches of all sequences, and what one more position adds to one of them.

    lower_bound: a block with a window w keeps min(T, w) positions. allocation: every block keeps
    T, as in an engine whose pages are alike in all blocks. The two are equal without windows.
    per_token: in all blocks, as allocated; per_source_token: by cross-attention, once. tokens: T;
    positions: T in whole pages.
    """

    tokens: int
    positions: int
    lower_bound: Ledger
    allocation: Ledger
    per_token: Quantity
    per_token_per_block: Quantity
    per_token_kind: Kind
    per_source_token: Quantity | None
    expanded: Expanded | None


def size(config: ModelConfig, workload: Workload, cache: CacheFormat) -> KvCache:
    """Bytes of a cache; QuestionError `no_cache` where nothing is cached."""
    _refuse_without(config)
    kept, form = _kept(config), cache.format
    t, of_block = _positions(workload), _of_token(kept, form)
    narrow = architecture.windows(config)
    bounds = _BOUNDS[any(window is not None for window, _ in narrow)]
    cross = tuple(_cross(config, workload, form))
    capped = _blocks(kept, narrow, workload, cache)
    whole = _blocks(kept, _all_blocks(config), workload, cache)
    return KvCache(
        tokens=int(t.value),
        positions=int(_paged(t, cache.page).value),
        lower_bound=_ledger((capped, cross), bounds[0]),
        allocation=_ledger((whole, cross), bounds[1]),
        per_token=q("L", config.n_layers) * of_block,
        per_token_per_block=of_block,
        per_token_kind=_kind_of_token(kept, form),
        per_source_token=_per_source_token(config, form),
        expanded=_expanded(config, workload, cache),
    )


def _refuse_without(config: ModelConfig) -> None:
    if config.attention.kind == "none":
        detail = "This model has no attention: no keys or values are cached."
    elif config.attention.mask == "full":
        detail = (
            "Every position attends to all others: a new one changes the keys of all, and nothing "
            "is cached."
        )
    else:
        return
    fault = Fault(
        code="no_cache",
        detail=detail,
        place=("ask",),
        expected="attention.kind softmax with attention.mask causal",
        got={"kind": config.attention.kind, "mask": config.attention.mask},
    )
    raise QuestionError([fault])


def _kept(config: ModelConfig) -> dict[str, Quantity]:
    """Name -> numbers of one position in one block.

    Latent: c_KV and the shared k_R. DeepSeek-V2, arXiv:2405.04434, section 2.1.3.
    """
    letters = architecture.letters(config)
    if config.attention.mla is not None:
        return {"attn.kv_latent": letters["r_kv"], "attn.k_rope": letters["k_rope"]}
    return {"attn.k": letters["g"] * letters["k"], "attn.v": letters["g"] * letters["v"]}


def _expanded(config: ModelConfig, workload: Workload, cache: CacheFormat) -> Expanded | None:
    if config.attention.mla is None:
        return None
    letters = architecture.letters(config)
    kept = {"attn.k": letters["h"] * letters["k"], "attn.v": letters["h"] * letters["v"]}
    parts = _blocks(kept, _all_blocks(config), workload, cache)
    per_token = q("L", config.n_layers) * _of_token(kept, cache.format)
    kind = _kind_of_token(kept, cache.format)
    return Expanded(ledger=_ledger((parts,)), per_token=per_token, per_token_kind=kind)


def _all_blocks(config: ModelConfig) -> Windows:
    return ((None, config.n_layers),)


def _of_token(kept: Mapping[str, Quantity], form: Format) -> Quantity:
    """Bytes of one position in one block."""
    return total(stored(numbers, form, "kv") for numbers in kept.values())


def _kind_of_token(kept: Mapping[str, Quantity], form: Format) -> Kind:
    """A position that ends within a byte adds less than it takes alone."""
    rounded = any(is_rounded(numbers, form) for numbers in kept.values())
    return "upper_bound" if rounded else "exact"


def _positions(workload: Workload) -> Quantity:
    return q("T", workload.cached + workload.tokens + workload.new)


def _paged(positions: Quantity, page: int) -> Quantity:
    """ceil(t / page) · page."""
    return ceil_div(positions, q("page", page)) * q("page", page) if page else positions


def count_letter(window: int | None, windows: Windows) -> str:
    """What stands for the number of blocks with a window."""
    if len(windows) == 1:
        return "L"
    return f"L_window_{'none' if window is None else window}"


def window_letter(window: int) -> str:
    """What stands for a window: w_1024."""
    return f"w_{window}"


def _blocks(
    kept: Mapping[str, Quantity],
    windows: Windows,
    workload: Workload,
    cache: CacheFormat,
) -> Iterator[Part]:
    """A part for each kind of tensor and each window: its blocks keep min(T, w) positions."""
    for window, count in windows:
        seen, letter = _positions(workload), count_letter(window, windows)
        if window is not None:
            seen = least(seen, q(window_letter(window), window))
        held = q("B", workload.batch) * _paged(seen, cache.page)
        suffix = "" if window is None else f".window_{window}"
        for name, numbers in kept.items():
            each = stored(held * numbers, cache.format, "kv")
            yield Part(id=f"blocks.{name}{suffix}", each=each, count=count, letter=letter)


def _cross(config: ModelConfig, workload: Workload, form: Format) -> Iterator[Part]:
    if not config.cross_attention:
        return
    letters = architecture.letters(config)
    source = q("B", workload.batch) * q("s", workload.source) * letters["g"]
    for name, width in (("k", letters["k"]), ("v", letters["v"])):
        each = stored(source * width, form, "kv")
        yield Part(id=f"blocks.cross.{name}", each=each, count=config.n_layers)


def _per_source_token(config: ModelConfig, form: Format) -> Quantity | None:
    if not config.cross_attention:
        return None
    letters = architecture.letters(config)
    kept = {"cross.k": letters["g"] * letters["k"], "cross.v": letters["g"] * letters["v"]}
    return q("L", config.n_layers) * _of_token(kept, form)


def _ledger(groups: Iterable[Iterable[Part]], kind: Kind = "exact") -> Ledger:
    return Ledger(unit="bytes", parts=joined(groups), kind=kind)
