"""Where one cost overtakes another, as members of an answer."""

from collections.abc import Mapping
from types import MappingProxyType

from compute.config import ModelConfig
from compute.sizing.crossing import crossovers
from compute.sizing.crossing.attention_crossovers import Crossover
from compute.sizing.quantity import told
from compute.sizing.times.attention_traffic import Stored
from compute.sizing.vocabulary import Device

View = dict[str, object]

MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "attention_full": "From so many positions on, scores and mix of all pairs take as many "
        "FLOP as the products with weights W of all blocks; the readout is not among them.",
        "attention_exact": "The same where only visible pairs are counted.",
        "kv_cache": "From so many positions in each sequence on, the caches, as allocated, take "
        "as many bytes as the weights M_w; kv: bytes of a position.",
        "kv_cache_windowed": "The same of the positions that windows leave.",
        "decode_batch": "From so many sequences on, the products with weights of a cached step, "
        "rows in and out counted, take no longer to read than to compute.",
    }
)


def view(
    config: ModelConfig, batch: int, form: Stored, page: int = 0, device: Device | None = None
) -> View:
    """The member `crossovers`."""
    found = crossovers.of(config, batch, form, page, device)
    return {each.id: _view(each) for each in found}


def _view(found: Crossover) -> View:
    return {
        "value": found.value,
        "exact": None if found.value is None else told(found.value),
        "unit": found.unit,
        "ratio": found.ratio,
        "formula": found.formula or None,
        "substituted": found.substituted or None,
        "reason": found.reason or None,
        "meaning": MEANINGS[found.id],
    }
