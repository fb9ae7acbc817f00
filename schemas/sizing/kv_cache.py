"""The KV cache as asked for and as answered: by the token, as a bound, and as engines allocate."""

from typing import Annotated, Self

from pydantic import Field, model_validator
from typing_extensions import TypedDict

from compute.sizing.formats import CacheFormat, Format, NumberFormat, computed_in
from schemas.base import Asked
from schemas.sizing.ledger import Amount, LedgerAnswer, SymbolAnswer
from schemas.sizing.weights import Grouping, ungrouped_by_itself

_MOST_IN_PAGE = 1 << 20


class CacheFormatAsked(Asked):
    """How keys and values are stored."""

    dtype: NumberFormat | None = Field(
        default=None,
        description="Of each number. Default: the request's dtype, or float16 where that is a "
        "format of weights alone, as int4 is.",
    )
    grouped: Grouping | None = Field(
        default=None, description="Numbers in groups that share a scale. null: none."
    )
    page: Annotated[int, Field(ge=0, le=_MOST_IN_PAGE)] = Field(
        default=0, description="Positions of a page; a sequence takes whole pages. 0: no pages."
    )

    @model_validator(mode="after")
    def _scales_once(self) -> Self:
        ungrouped_by_itself(self.dtype, self.grouped)
        return self

    def to_compute(self, dtype: NumberFormat) -> CacheFormat:
        """The format; `dtype`: the request's."""
        name = self.dtype or computed_in(dtype)
        form = Format(name=name) if self.grouped is None else self.grouped.of(name)
        return CacheFormat(format=form, page=self.page)


class ExpandedAnswer(LedgerAnswer):
    """Latent attention's cache, were keys and values of all heads kept."""

    per_token: Annotated[Amount, Field(description="What a further position adds.")]


class KvCacheAnswer(TypedDict):
    """Bytes of the caches of all sequences."""

    dtype: Annotated[NumberFormat, Field(description="Of each number.")]
    bits: Annotated[str, Field(description="Bits of a number, its share of scales included.")]
    page: Annotated[int, Field(description="Positions of a page; 0: no pages.")]
    tokens: Annotated[int, Field(description="T: cached + tokens + new_tokens of a sequence.")]
    positions: Annotated[int, Field(description="T in whole pages.")]
    per_token: Annotated[
        Amount,
        Field(
            description="What a further position adds to one sequence in all blocks, as allocated. "
            "upper_bound: it ends within a byte."
        ),
    ]
    per_token_per_block: Annotated[Amount, Field(description="The same in one block.")]
    per_source_token: Annotated[
        Amount | None,
        Field(description="With cross-attention: what a source position takes, once; else null."),
    ]
    lower_bound: Annotated[
        LedgerAnswer, Field(description="A block with a window w keeps min(T, w) positions.")
    ]
    allocation: Annotated[
        LedgerAnswer,
        Field(description="Every block keeps T, as where pages are alike in all blocks."),
    ]
    expanded: Annotated[
        ExpandedAnswer | None,
        Field(description="Of latent attention: were its heads' keys and values kept; else null."),
    ]
    symbols: Annotated[list[SymbolAnswer], Field(description="Letters of these formulas alone.")]
    notes: Annotated[list[str], Field(description="The rules that the numbers follow.")]
    excluded: Annotated[list[str], Field(description="What is not counted.")]
