"""FLOPs as asked for and as answered: by which conventions, part by part, and by others' rules."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from compute.sizing.vocabulary import (
    Causal,
    ConventionPreset,
    Conventions,
    Elementwise,
    Head,
    Kernel,
    Lookup,
    Mla,
    Recompute,
    conventions_of,
)
from schemas.base import Asked
from schemas.sizing.ledger import Amount, LedgerAnswer, LedgerPartAnswer, SymbolAnswer


class ConventionsAsked(Asked):
    """How operations are counted: a named way, and what of it is otherwise."""

    preset: ConventionPreset = Field(
        default="exact", description="The conventions that the other fields change."
    )
    multiply_add: Annotated[int, Field(ge=1, le=2)] | None = Field(
        default=None, description="2: FLOP. 1: MACs, of products alone."
    )
    causal: Causal | None = Field(
        default=None,
        description="Pairs under a causal mask: exact, the visible ones; full, all; half of all. "
        "full and half take no notice of windows.",
    )
    head: Head | None = Field(
        default=None,
        description="Positions read out. Default: all, and in generation the prompt's last.",
    )
    embedding_lookup: Lookup | None = Field(
        default=None, description="free, or counted as a product with every row of the table."
    )
    elementwise: Elementwise | None = Field(
        default=None, description="Softmax, norms, activations and sums: none, or counted."
    )
    bias_adds: bool | None = Field(default=None, description="Whether to count them.")
    backward_factor: Annotated[int, Field(ge=0, le=16)] | None = Field(
        default=None, description="FLOPs backward / FLOPs forward; 2 in every preset."
    )
    recompute: Recompute | None = Field(
        default=None,
        description="What training computes again: none; selective, attention; full, blocks.",
    )
    attention_kernel: Kernel | None = Field(
        default=None, description="flash computes the scores again in the backward pass."
    )
    mla: Mla | None = Field(
        default=None, description="Latent attention: keys and values expanded, or absorbed."
    )

    @model_validator(mode="after")
    def _macs_alone(self) -> Self:
        if self.multiply_add == 1 and (self.elementwise == "counted" or self.bias_adds):
            rule = "MACs are of products alone: leave elementwise and bias_adds out."
            raise PydanticCustomError("macs_alone", "{rule}", {"rule": rule})
        return self

    def to_compute(self) -> Conventions:
        """The preset's conventions with what was said otherwise."""
        return conventions_of(self.preset, self.model_dump(exclude_none=True, exclude={"preset"}))


class ConventionsAnswer(TypedDict):
    """How operations were counted, nothing left out."""

    multiply_add: Annotated[int, Field(description="2: FLOP; 1: MACs.")]
    causal: Annotated[Causal, Field(description="Which pairs a causal mask leaves.")]
    head: Annotated[
        Head | None,
        Field(description="Positions read out; null: all, in generation the prompt's last."),
    ]
    embedding_lookup: Annotated[Lookup, Field(description="free, or a product.")]
    elementwise: Annotated[Elementwise, Field(description="none, or counted.")]
    bias_adds: Annotated[bool, Field(description="Whether they are counted.")]
    backward_factor: Annotated[int, Field(description="Backward / forward.")]
    recompute: Annotated[Recompute, Field(description="What is computed again.")]
    attention_kernel: Annotated[Kernel, Field(description="materialised or flash.")]
    mla: Annotated[Mla, Field(description="expanded or absorbed.")]


class FlopsViewAnswer(TypedDict):
    """A sum of some parts."""

    total: Annotated[Amount, Field(description="The sum.")]
    meaning: Annotated[str, Field(description="What it is the sum of.")]


class PassAnswer(LedgerAnswer):
    """Operations of a pass, part by part; `views`: sums of some parts, by name."""

    views: Annotated[dict[str, FlopsViewAnswer], Field(description="Sums of some parts, by name.")]


class CachedStepAnswer(PassAnswer):
    """A cached step, whose formulas have an n and a past of their own."""

    symbols: Annotated[list[SymbolAnswer], Field(description="n and past, as here.")]


class TrainTokensAnswer(TypedDict):
    """Training over so many tokens, in sequences as in the workload."""

    tokens: Annotated[int, Field(description="As asked.")]
    model: Annotated[Amount, Field(description="A fraction where the steps do not come out.")]
    hardware: Annotated[Amount, Field(description="With what is computed again.")]


class TrainFlopsAnswer(TypedDict):
    """One step of training over the workload, nothing cached."""

    model: Annotated[Amount, Field(description="(1 + backward_factor)·F.")]
    hardware: Annotated[Amount, Field(description="And what is computed again.")]
    parts: Annotated[
        list[LedgerPartAnswer],
        Field(description="Of the hardware's; F: forward, F_…: that part of it."),
    ]
    train_tokens: Annotated[
        TrainTokensAnswer | None, Field(description="null: no number of tokens was asked for.")
    ]


class ApproximationAnswer(TypedDict):
    """A rule of thumb and how far it is off."""

    name: Annotated[str, Field(description="Which rule; N: parameters, D: tokens.")]
    of: Annotated[Literal["forward", "train"], Field(description="What it stands for.")]
    value: Annotated[Amount, Field(description="By the rule, in FLOP.")]
    formula: Annotated[str, Field(description="By letters.")]
    substituted: Annotated[str, Field(description="With the numbers in it.")]
    relative_error: Annotated[float, Field(description="(rule - exact) / exact.")]
    source: Annotated[str, Field(description="Where the rule stands.")]


class PricedAnswer(TypedDict):
    """The same pass by another set of conventions."""

    preset: Annotated[ConventionPreset, Field(description="Which.")]
    conventions: Annotated[ConventionsAnswer, Field(description="What it means.")]
    forward: Annotated[Amount, Field(description="The pass.")]
    train: Annotated[Amount, Field(description="Forward and backward.")]
    train_tokens: Annotated[
        Amount | None, Field(description="The same over train_tokens; null: not asked.")
    ]


class FlopsAnswer(TypedDict):
    """Operations of a pass, a cached step, a generation and a step of training."""

    conventions: Annotated[ConventionsAnswer, Field(description="How they were counted.")]
    forward: Annotated[PassAnswer, Field(description="tokens positions behind cached ones.")]
    decode: Annotated[
        CachedStepAnswer | None,
        Field(description="One step behind cached + tokens; null without a causal mask."),
    ]
    generation: Annotated[
        PassAnswer | None,
        Field(description="The prompt and a step for each later token; null: new_tokens is 0."),
    ]
    train: Annotated[TrainFlopsAnswer, Field(description="A step of training.")]
    approximations: Annotated[list[ApproximationAnswer], Field(description="Rules of thumb.")]
    symbols: Annotated[list[SymbolAnswer], Field(description="Letters of these formulas alone.")]
    side_by_side: Annotated[
        list[PricedAnswer] | None, Field(description="By other conventions; null: not asked.")
    ]
    elementwise_costs: Annotated[
        dict[str, int], Field(description="Operations each counts as, where they are counted.")
    ]
    excluded: Annotated[list[str], Field(description="What is not counted.")]
