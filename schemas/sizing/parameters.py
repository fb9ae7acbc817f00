"""Parameters as answered: part by part, by other counts, and beside the article's ledger."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from schemas.sizing.ledger import Amount, LedgerAnswer, LedgerPartAnswer


class BlockAnswer(TypedDict):
    """One block of a kind."""

    id: Annotated[str, Field(description="blocks, encoder.blocks, or a mixture's dense blocks.")]
    count: Annotated[int, Field(description="How many the stack goes through.")]
    parameters: Annotated[int, Field(description="Numbers of one.")]


class CountAnswer(TypedDict):
    """What else is called a model's parameters."""

    total: Annotated[Amount, Field(description="The count.")]
    meaning: Annotated[str, Field(description="What is counted.")]


class CountsAnswer(TypedDict):
    """The counts that published numbers mean."""

    all: Annotated[CountAnswer, Field(description="Every number once.")]
    non_embedding: Annotated[CountAnswer, Field(description="Without tables and readout.")]
    blocks: Annotated[CountAnswer, Field(description="In blocks.")]
    matmul: Annotated[CountAnswer, Field(description="What positions are multiplied with.")]
    active: Annotated[CountAnswer, Field(description="What one token meets.")]
    untied: Annotated[CountAnswer, Field(description="A shared table counted twice.")]


class ArticleLedgerAnswer(TypedDict):
    """The article's count of the six large matrices, and what it leaves out."""

    formula: Annotated[str, Field(description="3d² + d² + 8d² = 12d² a block.")]
    substituted: Annotated[str, Field(description="The same with the numbers in it.")]
    blocks: Annotated[int, Field(description="L: blocks of all stacks.")]
    total: Annotated[Amount, Field(description="12 L d².")]
    parts: Annotated[
        list[LedgerPartAnswer], Field(description="Queries, keys, values; W_O; the ffn.")
    ]
    gap: Annotated[Amount, Field(description="The exact count less this one.")]
    gap_parts: Annotated[list[LedgerPartAnswer], Field(description="The gap, taken apart exactly.")]


class ParametersAnswer(LedgerAnswer):
    """Numbers that a model holds, shared ones once."""

    per_block: Annotated[list[BlockAnswer], Field(description="One block of each kind.")]
    views: Annotated[CountsAnswer, Field(description="Other counts that go by the same name.")]
    article: Annotated[ArticleLedgerAnswer, Field(description="12 L d² beside the exact sum.")]
    excluded: Annotated[list[str], Field(description="What is not counted.")]
