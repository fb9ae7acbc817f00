"""FLOPs of training: what the model needs, and what the hardware does for it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from compute.config import ModelConfig
from compute.sizing.ledger import Ledger, Part
from compute.sizing.operations import flops
from compute.sizing.quantity import Exact, number, q, whole
from compute.sizing.vocabulary import Conventions, Workload


@dataclass(frozen=True, slots=True)
class TrainingFlops:
    """Of one step over the workload's B sequences of n tokens.

    model: forward and backward, (1 + backward_factor)·F. hardware: and what is done again. Uses of
    the first alone are comparable: model FLOPs utilisation takes it.
    """

    model: Ledger
    hardware: Ledger
    tokens: int

    def over(self, tokens: int) -> tuple[Exact, Exact]:
        """(model, hardware) of so many tokens, cut into sequences of n: whole or a fraction."""
        steps = Fraction(tokens, self.tokens)
        return whole(steps * self.model.total), whole(steps * self.hardware.total)


def train(config: ModelConfig, workload: Workload, conventions: Conventions) -> TrainingFlops:
    """One step of training over `tokens` positions of each sequence; nothing is cached.

    Done again: with recompute = full what blocks do forward, with selective the two products of
    attention (and its softmax, where that is counted); with a flash kernel Q Kᵀ in the backward
    pass, besides. Korthikanti et al., arXiv:2205.05198; Dao et al., arXiv:2205.14135.
    """
    found = flops.forward(config, replace(workload, cached=0), conventions)
    once, unit = q("F", found.total), flops.unit(conventions)
    model = (
        Part(id="forward", each=once),
        Part(id="backward", each=number(conventions.backward_factor) * once),
    )
    again = tuple(part for part in _again(found, conventions) if part.value)
    return TrainingFlops(
        Ledger(unit=unit, parts=model),
        Ledger(unit=unit, parts=(*model, *again)),
        workload.batch * workload.tokens,
    )


def _again(found: Ledger, conventions: Conventions) -> Iterator[Part]:
    if conventions.recompute == "full":
        yield Part(id="recompute.blocks", each=q("F_blocks", found.view("blocks")))
    elif conventions.recompute == "selective":
        core = found.sum_of(_is_core)
        yield Part(id="recompute.attention", each=q("F_attention", core))
    if conventions.attention_kernel == "flash":
        yield Part(id="flash.scores", each=q("F_scores", found.sum_of(_is_scores)))


def _is_core(part: Part) -> bool:
    return "attention" in part.views or ".softmax" in part.id


def _is_scores(part: Part) -> bool:
    return "attention" in part.views and ".scores" in part.id
