"""What training holds beside activations: weights, gradients, and what the optimizer remembers.

Each is so many bytes a parameter. ZeRO divides them among R ranks: stage 1 the optimizer's, 2 the
gradients too, 3 the weights too. Rajbhandari et al., arXiv:1910.02054, section 5 and table 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from compute.config import ModelConfig
from compute.sizing import parameters
from compute.sizing.ledger import Ledger, Part, joined
from compute.sizing.quantity import Quantity, ceil_div, q
from compute.sizing.vocabulary import Optimizer, ZeroStage

RULE = "A part that is divided takes ceil(P · bytes / R) bytes on the fullest rank."


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingState:
    """Bytes that each parameter takes. `master`: the copy in full precision that is updated."""

    weights: int
    gradients: int
    master: int = 0
    first_moment: int = 0
    second_moment: int = 0

    @property
    def total(self) -> int:
        """Bytes a parameter."""
        return sum(self.by_name().values())

    def by_name(self) -> dict[str, int]:
        """Name -> bytes, in the order of a ledger."""
        return {
            "weights": self.weights,
            "gradients": self.gradients,
            "master": self.master,
            "first_moment": self.first_moment,
            "second_moment": self.second_moment,
        }


PRESETS: Mapping[Optimizer, TrainingState] = MappingProxyType(
    {
        "mixed_adam": TrainingState(
            weights=2, gradients=2, master=4, first_moment=4, second_moment=4
        ),
        "mixed_adam_fp32_grads": TrainingState(
            weights=2, gradients=4, master=4, first_moment=4, second_moment=4
        ),
        "fp32_adam": TrainingState(weights=4, gradients=4, first_moment=4, second_moment=4),
        "mixed_adam_8bit": TrainingState(
            weights=2, gradients=2, master=4, first_moment=1, second_moment=1
        ),
        "fp32_momentum": TrainingState(weights=4, gradients=4, first_moment=4),
        "fp32_sgd": TrainingState(weights=4, gradients=4),
    }
)
"""Optimizer -> bytes of a parameter. mixed_adam: 16, Rajbhandari et al., section 3.1."""

_DIVIDED_FROM: Mapping[str, int] = MappingProxyType({"gradients": 2, "weights": 3})
"""The first stage that divides a part; the optimizer's are divided from stage 1 on."""


def size(config: ModelConfig, state: TrainingState, stage: ZeroStage = 0, ranks: int = 1) -> Ledger:
    """Bytes on one of `ranks` ranks: P parameters, each so many bytes, divided by the stage."""
    return of_parameters(q("P", parameters.count(config)), state, stage, ranks)


def of_parameters(
    held: Quantity, state: TrainingState, stage: ZeroStage = 0, ranks: int = 1
) -> Ledger:
    """The same of so many parameters."""
    parts = (
        Part(id=name, each=_on_rank(name, held * q(f"b_{name}", size_), stage, ranks))
        for name, size_ in state.by_name().items()
        if size_
    )
    return Ledger(unit="bytes", parts=joined((parts,)))


def _on_rank(name: str, whole: Quantity, stage: ZeroStage, ranks: int) -> Quantity:
    divided = stage >= _DIVIDED_FROM.get(name, 1)
    return ceil_div(whole, q("R", ranks)) if divided else whole
