"""What a question about contributions is answered. All sums are of float64."""

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from schemas.answers import Entry, InputAnswer, ModelAnswer, Row
from schemas.contributions import NormScale, Split


class DirectionAnswer(TypedDict):
    """The direction as understood; of a vector the tokens are null."""

    token_id: Annotated[int | None, Field(description="The token whose logit it is.")]
    token: Annotated[str | None, Field(description="As text, where the tokenizer has one.")]
    minus_id: Annotated[int | None, Field(description="The token whose logit is taken off.")]
    minus: Annotated[str | None, Field(description="As text.")]
    after_norm: Annotated[bool, Field(description="Whether it is read behind the final norm.")]


class StateAnswer(TypedDict):
    """What was split."""

    norm: Annotated[Entry, Field(description="‖state‖.")]
    along: Annotated[
        Entry,
        Field(description="Its dot product with the direction; null without one, and in a lens."),
    ]
    vector: NotRequired[Annotated[Row, Field(description="Itself, if asked.")]]


class PartAnswer(TypedDict):
    """One part. A readout's bias is part of a logit and of no state: it has `along` alone."""

    id: Annotated[str, Field(description="What wrote it; rest: all that is not shown, as one.")]
    source: NotRequired[
        Annotated[int, Field(description="By source: the position that the head read.")]
    ]
    count: NotRequired[Annotated[int, Field(description="Of the rest: how many parts it is.")]]
    norm: Annotated[Entry, Field(description="‖part‖.")]
    projection: Annotated[
        Entry, Field(description="part · state / ‖state‖; null where the state is zero.")
    ]
    share: Annotated[
        Entry, Field(description="part · state / ‖state‖²: of all parts they sum to 1.")
    ]
    cosine: Annotated[
        Entry,
        Field(
            description="A summary: part · state / (‖part‖ ‖state‖). It does not say how large a "
            "part is: a large one of low cosine may matter more than a small one of high."
        ),
    ]
    along: Annotated[
        Entry,
        Field(
            description="What the part gives along the direction, so of a logit; null without one. "
            "In a lens: what the value changes by as the part is added."
        ),
    ]
    vector: NotRequired[Annotated[Row, Field(description="The part itself, if asked.")]]


class SumAnswer(TypedDict):
    """Whether the parts add up."""

    max_abs: Annotated[Entry, Field(description="Largest |Σ parts - state|; null: not finite.")]
    rel: Annotated[Entry, Field(description="That over the largest |state|; null: 0/0.")]
    tolerance: Annotated[Entry, Field(description="What the arithmetic's rounding allows.")]
    holds: Annotated[bool | None, Field(description="Whether max_abs is within it.")]


class LogitAnswer(SumAnswer):
    """The logit, or the difference, before any cap; and whether all `along` add up to it."""

    value: Annotated[Entry, Field(description="As the run has it.")]
    sum: Annotated[Entry, Field(description="Σ along, of all parts and the readout's biases.")]


class TopAnswer(TypedDict):
    """One of the largest logits of a state."""

    token_id: Annotated[int, Field(description="The token.")]
    token: Annotated[str | None, Field(description="As text, where the tokenizer has one.")]
    logit: Annotated[Entry, Field(description="Its logit.")]
    probability: Annotated[Entry, Field(description="Of the softmax over all logits.")]


class LensAnswer(TypedDict):
    """One state, read out by itself."""

    state: Annotated[str, Field(description="Its full name.")]
    value: Annotated[
        Entry, Field(description="The logit, difference or product; null without a direction.")
    ]
    change: Annotated[Entry, Field(description="value less that of the state before; null: none.")]
    top: Annotated[
        list[TopAnswer], Field(description="The five largest logits; none without a readout.")
    ]


class RowAnswer(TypedDict):
    """The answer at one position of one row of the batch."""

    position: Annotated[int, Field(description="The receiving position.")]
    batch: NotRequired[
        Annotated[int, Field(description="Row of the batch; absent without a batch.")]
    ]
    state: Annotated[
        StateAnswer | None, Field(description="null: a lens of a post-norm stack has no sum.")
    ]
    parts: Annotated[
        list[PartAnswer],
        Field(description="In the order they were added; with top_k the largest first."),
    ]
    sum: Annotated[SumAnswer | None, Field(description="null where there is no sum.")]
    logit: Annotated[
        LogitAnswer | None,
        Field(description="Frozen, of what the readout reads, along a token; else null."),
    ]
    lens: Annotated[
        list[LensAnswer] | None,
        Field(description="Recomputed: each state from the first block's input on; else null."),
    ]


class ContributionsAnswer(TypedDict):
    """What wrote a state, part by part."""

    model: Annotated[ModelAnswer, Field(description="Which model ran.")]
    input: Annotated[InputAnswer, Field(description="The input as read.")]
    of: Annotated[str, Field(description="The full name of what was split.")]
    by: Annotated[Split, Field(description="As asked.")]
    norm_scale: Annotated[NormScale, Field(description="As asked.")]
    direction: Annotated[DirectionAnswer | None, Field(description="As understood.")]
    at: Annotated[
        list[RowAnswer],
        Field(description="One for each row of the batch and position, positions as asked."),
    ]
