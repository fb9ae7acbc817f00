"""POST /v1/sizing/inverse: which models of a style hold, take or compute so much."""

from fractions import Fraction
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from compute.sizing.formats import NumberFormat
from schemas.base import Asked, exactly_one, of_form
from schemas.bounds import Size
from schemas.model import ModelAsked
from schemas.resolved import ConfigAnswer
from schemas.sizing.answer import SizedModelAnswer
from schemas.sizing.ledger import Amount

MOST_BEST = 20
_MOST = 10**18

Goal = Annotated[int, Field(ge=1, le=_MOST)]
_RATIO = r"^[1-9][0-9]{0,5}(/[1-9][0-9]{0,5})?$"
_RATIO_RULE = 'A ratio is text: a whole number as "4", or a fraction as "8/3".'
Ratio = Annotated[
    str,
    AfterValidator(of_form(_RATIO, _RATIO_RULE)),
    WithJsonSchema({"type": "string", "pattern": _RATIO}),
]
MEASURED = ("parameters", "kv_bytes_per_token", "flops_per_token", "weight_bytes")
Measured = Literal["parameters", "kv_bytes_per_token", "flops_per_token", "weight_bytes"]


def _refuse(code: str, rule: str) -> None:
    raise PydanticCustomError(code, "{rule}", {"rule": rule})


def _ordered(low: int, high: int) -> None:
    if low > high:
        _refuse("bounds", "least is at most most.")


class TargetAsked(Asked):
    """What is to be so much: exactly one number, with a dtype where bytes are meant."""

    parameters: Goal | None = Field(default=None, description="Numbers that the model holds.")
    kv_bytes_per_token: Goal | None = Field(
        default=None, description="Bytes that one more position adds to the cache of a sequence."
    )
    flops_per_token: Goal | None = Field(
        default=None, description="FLOPs of a forward pass of one position that sees itself alone."
    )
    weight_bytes: Goal | None = Field(default=None, description="Bytes of the weights.")
    dtype: NumberFormat | None = Field(
        default=None, description="Of bytes: how numbers are stored. Default: float16."
    )

    @model_validator(mode="after")
    def _one_number(self) -> Self:
        exactly_one(self, *MEASURED)
        if self.dtype is not None and self.kv_bytes_per_token is None and self.weight_bytes is None:
            _refuse("dtype", "dtype belongs to kv_bytes_per_token and weight_bytes.")
        return self


class WidthAsked(Asked):
    """Which widths d of the stream are allowed."""

    multiple_of: Size = Field(default=128, description="d is a multiple of it.")
    least: Size = Field(default=1, description="The smallest d.")
    most: Size = Field(default=1 << 20, description="The largest d.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        _ordered(self.least, self.most)
        return self


class AspectAsked(Asked):
    """Which shapes are allowed: least <= d / L <= most, compared exactly."""

    least: Size = Field(default=48, description="The smallest width for each block.")
    most: Size = Field(default=128, description="The largest width for each block.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        _ordered(self.least, self.most)
        return self


class FfnWidthAsked(Asked):
    """d_ff = ceil(ratio · d / round_to) · round_to; the same rounding for other ffn widths."""

    ratio: Ratio | Annotated[int, Field(ge=1, le=1024)] | None = Field(
        default=None,
        description='d_ff / d: a whole number, or a fraction as "8/3". Default: as in the style.',
    )
    round_to: Size = Field(default=1, description="Rounded up to a multiple of it.")

    @property
    def exact(self) -> Fraction | None:
        """The ratio."""
        return None if self.ratio is None else Fraction(self.ratio)


class InverseRequest(Asked):
    """POST /v1/sizing/inverse: the sizes whose exact count is nearest to a target."""

    target: TargetAsked = Field(description="What is to be so much.")
    style: ModelAsked = Field(
        description="A model of which everything but its sizes is kept: vocab, norms, biases, "
        "positions, kind of ffn, experts."
    )
    d_model: WidthAsked = Field(default=WidthAsked(), description="Which widths d.")
    aspect: AspectAsked = Field(default=AspectAsked(), description="Which d / L.")
    d_head: Size | None = Field(
        default=None,
        description="Width of a head: n_heads = d / d_head, which is whole. Default: d_head as in "
        "the style, and as many heads for a width as it has.",
    )
    kv_ratio: Size | None = Field(
        default=None,
        description="Heads for each key/value head; a whole number of kv heads. Default: as in "
        "the style.",
    )
    d_ff: FfnWidthAsked = Field(
        default=FfnWidthAsked(), description="How the ffn's width follows d."
    )
    best: Annotated[int, Field(ge=1, le=MOST_BEST)] = Field(
        default=5, description="How many models are answered."
    )


class TargetAnswer(TypedDict):
    """What was to be so much."""

    measured: Annotated[Measured, Field(description="Which number.")]
    value: Annotated[Amount, Field(description="How much.")]
    dtype: Annotated[NumberFormat | None, Field(description="Of bytes: the format.")]


class HitAnswer(TypedDict):
    """A model that was found."""

    d_model: Annotated[int, Field(description="d.")]
    n_layers: Annotated[int, Field(description="L.")]
    value: Annotated[Amount, Field(description="What the target is about, counted exactly.")]
    error: Annotated[Amount, Field(description="value - target, signed.")]
    relative_error: Annotated[float, Field(description="error / target.")]
    parameters: Annotated[Amount, Field(description="Numbers that it holds.")]
    config: Annotated[ConfigAnswer, Field(description="As a request may send it.")]


class GridEndAnswer(TypedDict):
    """The smallest or the largest model of the grid."""

    d_model: Annotated[int, Field(description="d.")]
    n_layers: Annotated[int, Field(description="L.")]
    value: Annotated[Amount, Field(description="What the target is about.")]


class GridAnswer(TypedDict):
    """Sizes that the rule allows, and the ends of their range."""

    multiple_of: Annotated[
        int, Field(description="Every d is a multiple: multiple_of, and heads are whole.")
    ]
    widths: Annotated[int, Field(description="Widths that could come near the target.")]
    candidates: Annotated[int, Field(description="Models whose value was compared.")]
    smallest: Annotated[GridEndAnswer | None, Field(description="null: the grid is empty.")]
    largest: Annotated[GridEndAnswer | None, Field(description="null: the grid is empty.")]
    width_below: Annotated[
        int | None, Field(description="Of an empty grid: the next d below its bounds, if any.")
    ]
    width_above: Annotated[
        int | None, Field(description="Of an empty grid: the next d above its bounds, if any.")
    ]


class InverseAnswer(TypedDict):
    """The nearest models of a style."""

    style: Annotated[SizedModelAnswer, Field(description="The style, resolved.")]
    target: Annotated[TargetAnswer, Field(description="The target.")]
    best: Annotated[
        list[HitAnswer], Field(description="Nearest first; of equals the narrower, the flatter.")
    ]
    nearest_below: Annotated[
        HitAnswer | None, Field(description="The nearest at or below the target.")
    ]
    nearest_above: Annotated[
        HitAnswer | None, Field(description="The nearest at or above the target.")
    ]
    unique: Annotated[
        Literal[False], Field(description="Never: a number does not say which model has it.")
    ]
    grid: Annotated[GridAnswer, Field(description="What was looked at.")]
    reason: Annotated[
        str | None, Field(description="Why there is none, or none on one side; else null.")
    ]
