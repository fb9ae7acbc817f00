"""Where one cost overtakes another, as answered."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from compute.sizing.vocabulary import Unit


class CrossoverAnswer(TypedDict):
    """The least whole number from which it holds."""

    value: Annotated[int | None, Field(description="The number; null: there is none.")]
    exact: Annotated[str | None, Field(description="Every digit of it.")]
    unit: Annotated[Unit, Field(description="tokens or sequences.")]
    ratio: Annotated[
        float | None, Field(description="What it is before it is made whole, or about.")
    ]
    formula: Annotated[str | None, Field(description="By letters.")]
    substituted: Annotated[str | None, Field(description="With the numbers in it.")]
    reason: Annotated[str | None, Field(description="Why there is none; null: there is one.")]
    meaning: Annotated[str, Field(description="What holds from there on.")]


class CrossoversAnswer(TypedDict):
    """Attention and products, cache and weights, reading and computing."""

    attention_full: Annotated[
        CrossoverAnswer, Field(description="Attention takes as much as products, all pairs.")
    ]
    attention_exact: Annotated[
        CrossoverAnswer, Field(description="The same with the pairs that are visible.")
    ]
    kv_cache: Annotated[CrossoverAnswer, Field(description="The cache is as large as weights.")]
    kv_cache_windowed: Annotated[
        CrossoverAnswer, Field(description="The same of what windows leave of the cache.")
    ]
    decode_batch: Annotated[
        CrossoverAnswer, Field(description="A step's products are bound by computing.")
    ]
