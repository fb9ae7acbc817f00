"""FLOPs of a pass, of cached steps, of generation: exact under the conventions that are said.

A product of B·n rows with a matrix of p numbers takes 2·B·n·p; attention 2·B·h·(k + v)·S more,
where S is the number of (query, key) pairs. Parts sum to the total, to the unit.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from compute.config import ModelConfig
from compute.errors import Fault, QuestionError
from compute.sizing import architecture
from compute.sizing.ledger import Ledger, Part, joined
from compute.sizing.operations import elementwise, passes, products
from compute.sizing.operations.passes import Pass
from compute.sizing.operations.products import VIEWS, Alike
from compute.sizing.vocabulary import Causal, Conventions, Unit, Workload

_OF_GENERATION = ("prefill", "decode")


@lru_cache(maxsize=64)
def forward(config: ModelConfig, workload: Workload, conventions: Conventions) -> Ledger:
    """One pass over `tokens` positions of each sequence behind `cached` ones.

    Behind cached positions the memory is cached too: neither the encoder nor W_K and W_V of
    cross-attention are run again.
    """
    return _ledger(config, passes.forward(config, workload, conventions), conventions)


def decode(config: ModelConfig, workload: Workload, conventions: Conventions) -> Ledger:
    """One step of one position behind the workload's `cached` + `tokens` positions."""
    behind = workload.cached + workload.tokens
    return forward(config, replace(workload, tokens=1, cached=behind), conventions)


def generation(config: ModelConfig, workload: Workload, conventions: Conventions) -> Ledger:
    """A prompt's pass, which gives the first new token, and a step for each of the others.

    prefill(n) + Σ_j step(past + n + j), j = 0 … new - 2, in closed form. Of the prompt the last
    position is read out, or what the conventions say. Parts: `prefill.…` and `decode.…`.
    QuestionError for a model without a causal mask: it generates nothing.
    """
    if not decodes(config):
        detail = "A model without a causal mask generates no tokens: leave new_tokens out."
        raise QuestionError([Fault(code="no_generation", detail=detail, place=("new_tokens",))])
    last = replace(conventions, head=conventions.head or "last")
    groups = {
        "prefill": forward(config, workload, last),
        "decode": _ledger(config, passes.steps(config, workload, conventions), conventions),
    }
    parts = [
        replace(part, id=f"{name}.{part.id}", views=part.views | {name})
        for name, found in groups.items()
        for part in found.parts
    ]
    return Ledger(unit=unit(conventions), parts=parts, views=(*_OF_GENERATION, *VIEWS))


def decodes(config: ModelConfig) -> bool:
    """Whether the positions that are there do not change as others follow: a causal mask."""
    return config.attention.kind == "none" or config.attention.mask == "causal"


def pairs(config: ModelConfig, workload: Workload, causal: Causal = "exact") -> tuple[Alike, ...]:
    """(query, key) pairs of one head of one block, for the blocks of each window; all stacks."""
    run = passes.forward(config, workload, Conventions())
    return tuple(
        found
        for stack in architecture.stacks(config)
        for found in products.alike(stack, run, causal)
    )


def unit(conventions: Conventions) -> Unit:
    """FLOP, or MAC where a multiply and an add count as one."""
    return "FLOP" if conventions.multiply_add == 2 else "MAC"


def _ledger(config: ModelConfig, run: Pass, conventions: Conventions) -> Ledger:
    parts = joined(_groups(config, run, conventions))
    return Ledger(unit=unit(conventions), parts=parts, views=tuple(VIEWS))


def _groups(config: ModelConfig, run: Pass, conventions: Conventions) -> Iterator[Iterator[Part]]:
    yield products.shared(config, run, conventions)
    for stack in architecture.stacks(config):
        yield products.of_stack(config, stack, run, conventions)
    yield products.tied_readout(config, run, conventions)
    for stack in architecture.stacks(config):
        if conventions.elementwise == "counted":
            yield elementwise.of_stack(config, stack, run, conventions)
        if conventions.bias_adds:
            yield elementwise.bias_adds(config, stack, run)
