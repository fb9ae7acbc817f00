"""What a question about derivatives answers. Every key is there, but for two of a tensor."""

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from compute.types import DType
from schemas.answers import (
    CostAnswer,
    Entry,
    InputAnswer,
    Matrix,
    ModelAnswer,
    Nonfinite,
    Numbers,
    Row,
)


class NormsAnswer(TypedDict):
    """Sizes of a matrix."""

    frobenius: Annotated[Entry, Field(description="Square root of the sum of squares.")]
    spectral: Annotated[Entry, Field(description="Largest singular value.")]


class MapAnswer(TypedDict):
    """A matrix of derivatives, shown as asked; null where not asked."""

    matrix: Annotated[Matrix | None, Field(description="Row i, column j: ∂ output i / ∂ input j.")]
    singular_values: Annotated[
        Row | None, Field(description="Largest first; of a matrix that is not finite null.")
    ]
    norms: Annotated[NormsAnswer | None, Field(description="Its sizes.")]


class SplitAnswer(TypedDict):
    """identity · I + branch."""

    identity: Annotated[
        int,
        Field(
            description="How many ways lead from the source to the state over additions alone, "
            "each with the derivative I: 1, or 0 (always at another position)."
        ),
    ]
    whole: Annotated[MapAnswer, Field(description="All of it: identity · I + branch.")]
    branch: Annotated[
        MapAnswer | None,
        Field(description="What comes through the branches; null: identity_part was not asked."),
    ]


class FactorsAnswer(TypedDict):
    """Post-norm's J = norm · sum."""

    stage: Annotated[str, Field(description="The sum that is normalized.")]
    norm: Annotated[
        MapAnswer, Field(description="J_LN: of the state by the sum, at the receiving position.")
    ]
    sum: Annotated[SplitAnswer, Field(description="I + dF/dx: of the sum by the source.")]


class PairOfStates(SplitAnswer):
    """A state by an earlier one."""

    of: Annotated[str, Field(description="The state's full name.")]
    by: Annotated[str, Field(description="The earlier one's.")]
    position: Annotated[int, Field(description="Whose row of the state.")]
    source: Annotated[int, Field(description="Whose row of the earlier one.")]
    batch: Annotated[int | None, Field(description="Which row of the batch; null without one.")]
    factors: Annotated[
        FactorsAnswer | None, Field(description="Post-norm's; null where there are none.")
    ]
    not_factored: Annotated[
        str | None, Field(description="Why there are none; null where there are, or not asked.")
    ]


class DerivedTensor(TypedDict):
    """A tensor in the shape of a stage, or of a slice of it."""

    axes: Annotated[list[str], Field(description="What each axis counts.")]
    shape: Annotated[list[int], Field(description="Length of each axis.")]
    dtype: Annotated[DType, Field(description="Of the arithmetic and of the data.")]
    index: NotRequired[
        Annotated[dict[str, list[int]], Field(description="Sliced axes: which entries these are.")]
    ]
    rounded: NotRequired[
        Annotated[int, Field(description="Significant digits of the data, if asked for.")]
    ]
    data: Annotated[
        Numbers | str,
        Field(
            description="Nested lists of numbers, null where one is not finite; or base64 of their "
            "little-endian bytes in row order, where that was asked."
        ),
    ]
    nonfinite: NotRequired[
        Annotated[
            Literal["-inf"] | Nonfinite, Field(description="Which nulls stand for what, if any.")
        ]
    ]


class AttributionAnswer(DerivedTensor):
    """activation · gradient, element by element."""

    sum: Annotated[Entry, Field(description="Of all its numbers, in float64.")]


class MeasuredAnswer(TypedDict):
    """The number that is differentiated."""

    stage: Annotated[str, Field(description="Whose row is read.")]
    position: Annotated[int, Field(description="Which row.")]
    batch: Annotated[int | None, Field(description="Which row of the batch; null without one.")]
    value: Annotated[Entry, Field(description="The number; null if not finite.")]


class JacobianAnswer(TypedDict):
    """Derivatives of one run: `jacobian` of a pair of states, the others of a measure."""

    model: Annotated[ModelAnswer, Field(description="Which model ran.")]
    input: Annotated[InputAnswer, Field(description="The input as read.")]
    dtype: Annotated[DType, Field(description="The arithmetic.")]
    jacobian: Annotated[PairOfStates | None, Field(description="null for a measure.")]
    measure: Annotated[MeasuredAnswer | None, Field(description="null for a pair of states.")]
    gradients: Annotated[
        dict[str, DerivedTensor] | None,
        Field(description="Stage -> ∂ measure / ∂ each of its numbers; null for a pair."),
    ]
    attribution: Annotated[
        dict[str, AttributionAnswer] | None,
        Field(description="Stage -> its values · its gradient; null for a pair."),
    ]
    absent: Annotated[
        dict[str, str], Field(description="Stages met among others: why they have no gradient.")
    ]
    cost: Annotated[CostAnswer, Field(description="What it cost, known before it ran.")]
