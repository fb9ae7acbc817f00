"""What a trace answers. Keys that may be missing are NotRequired; all others are always there."""

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from compute.types import DType
from schemas.intervention_answers import EffectAnswer, InterventionAnswer
from schemas.resolved import ConfigAnswer

SHA256 = "^sha256:[0-9a-f]{64}$"
Sha256 = Annotated[str, Field(pattern=SHA256)]
Entry = float | None
"""null where there is no finite number."""

Rank2 = list[list[Entry]]
Rank3 = list[Rank2]
Rank4 = list[Rank3]
Numbers = list[Entry] | Rank2 | Rank3 | Rank4 | list[Rank4]
"""Nested lists of numbers, as deep as the tensor has axes (spelled out: not all tools that make
types from this can follow a type that names itself)."""


class PackedAnswer(TypedDict):
    """A list of numbers where base64 was asked: the bytes, as a request takes them too."""

    dtype: Annotated[DType, Field(description="What the bytes are: little-endian, in row order.")]
    shape: Annotated[list[int], Field(description="Length of each axis.")]
    data: Annotated[str, Field(description="Base64, padded with =.")]


Row = list[Entry] | PackedAnswer
Matrix = Rank2 | PackedAnswer
Whole = list[int] | list[list[int]]
Flags = list[bool] | list[list[bool]]
Pieces = list[str | None] | list[list[str | None]]
OffsetAndLength = Annotated[list[int], Field(min_length=2, max_length=2)]


Nonfinite = TypedDict(
    "Nonfinite",
    {
        "-inf": NotRequired[Annotated[list[OffsetAndLength], Field(description="Runs of -inf.")]],
        "+inf": NotRequired[Annotated[list[OffsetAndLength], Field(description="Runs of +inf.")]],
        "nan": NotRequired[Annotated[list[OffsetAndLength], Field(description="Runs of nan.")]],
    },
)
"""Which nulls stand for what: runs of [offset, length] in row order."""


class Summary(TypedDict):
    """Measures of each row over its finite entries: nested like the tensor, less its last axis."""

    norm: Annotated[Numbers | PackedAnswer, Field(description="Square root of the sum of squares.")]
    rms: Annotated[Numbers | PackedAnswer, Field(description="Square root of the mean of squares.")]
    mean: Annotated[Numbers | PackedAnswer, Field(description="Mean.")]
    min: Annotated[Numbers | PackedAnswer, Field(description="Least entry.")]
    max: Annotated[Numbers | PackedAnswer, Field(description="Largest entry.")]


class TensorAnswer(TypedDict):
    """One stage. Numbers print in the shortest form that reads back to the same bits."""

    symbol: Annotated[str | None, Field(description="The article's symbol.")]
    axes: Annotated[list[str], Field(description="What each axis counts.")]
    shape: Annotated[list[int], Field(description="Length of each axis.")]
    dtype: Annotated[
        DType | Literal["int64"],
        Field(description="Of the arithmetic and of the data; int64: numbers of experts."),
    ]
    index: NotRequired[
        Annotated[dict[str, list[int]], Field(description="Sliced axes: which entries these are.")]
    ]
    rounded: NotRequired[
        Annotated[int, Field(description="Significant digits of the data, if asked for.")]
    ]
    data: NotRequired[
        Annotated[
            Numbers | str,
            Field(
                description="Nested lists of numbers, null where there is no finite number; or "
                "base64 of their little-endian bytes in row order, where that was asked."
            ),
        ]
    ]
    summary: NotRequired[Annotated[Summary, Field(description="In the place of data, if asked.")]]
    nonfinite: NotRequired[
        Annotated[
            Literal["-inf"] | Nonfinite,
            Field(
                description='"-inf": all that are not finite are -inf, masked scores. Absent: none.'
            ),
        ]
    ]


class WeightsAnswer(TypedDict):
    """Where the weights came from; init, or the model, has what is not given, edited or filled."""

    init: Annotated[
        Literal["seeded", "identity", "zeros"] | None, Field(description="null: a named model.")
    ]
    seed: Annotated[int | None, Field(description="Of seeded weights.")]
    given: Annotated[list[str], Field(description="Tensors the request brought whole.")]
    edited: Annotated[list[str], Field(description="Tensors the request changed in part.")]
    filled: Annotated[
        list[str],
        Field(
            description="Tensors that the changed config needs and the named model lacks: gains "
            "of 1 and biases of 0."
        ),
    ]
    unused: Annotated[
        list[str],
        Field(description="The named model's tensors that the changed config does not read."),
    ]


class ModelAnswer(TypedDict):
    """The model that ran."""

    name: Annotated[str | None, Field(description="Of a stored model; null for others.")]
    preset: Annotated[str | None, Field(description="Whose config it is; null for others.")]
    digest: Annotated[
        Sha256, Field(description="Of the content or seed, the config, and what was changed.")
    ]
    config: Annotated[ConfigAnswer, Field(description="Resolved, nothing optional.")]
    weights: Annotated[WeightsAnswer, Field(description="Where the weights came from.")]
    overrides: Annotated[
        list[str],
        Field(
            description="Fields of the preset's or the named model's config that the request "
            "changed, and those that went with a change: norm.placement, final_norm."
        ),
    ]


class RowsAnswer(TypedDict):
    """Rows as a stack read them."""

    positions: Annotated[int, Field(description="Rows.")]
    batch: Annotated[int | None, Field(description="null where the input has no batch axis.")]
    tokens: Annotated[
        Pieces | None,
        Field(
            description="The ids as text, for a model with a tokenizer; null where padding is, and "
            "where the tokenizer has no token of an id."
        ),
    ]
    token_ids: Annotated[Whole | None, Field(description="As used; null for a tensor.")]
    position_ids: Annotated[Whole, Field(description="As used.")]
    key_mask: Annotated[
        Flags | None, Field(description="As used; padding and a given mask joined.")
    ]
    token_types: Annotated[Whole | None, Field(description="As sent; null: all 0.")]


class InputAnswer(RowsAnswer):
    """The input as the model read it."""

    memory: Annotated[
        RowsAnswer | None, Field(description="What cross-attention read; null: nothing was sent.")
    ]


class MaskedRows(TypedDict):
    """Positions whose every key is masked: their pattern and mixture are zeros."""

    stage: Annotated[str, Field(description="The pattern whose rows are zeros.")]
    batch: NotRequired[
        Annotated[int, Field(description="Row of the batch; absent without a batch.")]
    ]
    position: Annotated[list[int], Field(description="The positions.")]


class NextToken(TypedDict):
    """The greedy continuation's first token."""

    position: Annotated[int, Field(description="The last row that may be attended to.")]
    token_id: Annotated[int, Field(description="Its id.")]
    token: Annotated[str | None, Field(description="As text, where the tokenizer has one.")]
    logit: Annotated[float | None, Field(description="Its logit; null if not finite.")]


class IdentityAnswer(TypedDict):
    """Two routes to one state, and how far they are apart."""

    name: Annotated[str, Field(description="Which identity, of which block.")]
    formula: Annotated[str, Field(description="What is equal to what.")]
    max_abs: Annotated[float | None, Field(description="Largest |left - right|.")]
    rel: Annotated[float | None, Field(description="That over the largest |right|.")]
    norm_ratio: Annotated[float | None, Field(description="Norm of left over norm of right.")]
    holds: Annotated[bool | None, Field(description="null: not checked, for the reason given.")]
    reason: Annotated[str | None, Field(description="Why it was not checked; null where it was.")]


class CostAnswer(TypedDict):
    """What the run cost, known before it ran."""

    parameters: Annotated[int, Field(description="Numbers the model holds.")]
    flops: Annotated[
        int,
        Field(
            description="2 for each multiply-add of a matrix product, up to the last stage that "
            "is needed; attention's of all pairs, masked or not."
        ),
    ]
    elements: Annotated[
        int,
        Field(description="Numbers in `tensors`; and in `before` and `delta`, where those are."),
    ]
    bytes: Annotated[int, Field(description="Weights, kept stages and temporaries.")]


class TraceAnswer(TypedDict):
    """The states asked for, in the order they were computed, and what ties them together."""

    model: Annotated[ModelAnswer, Field(description="Which model ran.")]
    input: Annotated[InputAnswer, Field(description="The input as read.")]
    tensors: Annotated[
        dict[str, TensorAnswer], Field(description="Stage -> tensor, in the order of computation.")
    ]
    absent: Annotated[
        dict[str, str], Field(description="Stages only a wildcard met: why there are none.")
    ]
    fully_masked_rows: Annotated[
        list[MaskedRows], Field(description="Positions with no key to attend to.")
    ]
    next_token: Annotated[
        NextToken | list[NextToken] | None,
        Field(description="One for each row of a batch; null where logits were not selected."),
    ]
    identities: Annotated[
        list[IdentityAnswer] | None, Field(description="null where they were turned off.")
    ]
    interventions: NotRequired[
        Annotated[
            list[InterventionAnswer],
            Field(
                description="The changes made, in order. This and the next three are there where "
                "interventions or measures were asked for."
            ),
        ]
    ]
    before: NotRequired[
        Annotated[
            dict[str, TensorAnswer] | None,
            Field(description="The same stages without the interventions; null if clean = false."),
        ]
    ]
    delta: NotRequired[
        Annotated[
            dict[str, TensorAnswer] | None,
            Field(description="tensors - before; 0 where both are the same infinity."),
        ]
    ]
    effects: NotRequired[
        Annotated[
            list[EffectAnswer],
            Field(description="One for each of `measures`, in their order."),
        ]
    ]
    cost: Annotated[
        CostAnswer, Field(description="What the run cost; all runs, where there are several.")
    ]
