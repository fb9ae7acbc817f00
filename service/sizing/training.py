"""What training holds beside activations, as members of an answer."""

from typing import get_args

from compute.config import ModelConfig
from compute.sizing import parameters
from compute.sizing.memory import training_state
from compute.sizing.memory.training_state import PRESETS, RULE, TrainingState
from compute.sizing.vocabulary import Optimizer, ZeroStage
from schemas.sizing.training import TrainingAsked
from service.sizing import ledgers

View = dict[str, object]

NOTES = (
    RULE,
    "Stage 1 divides what the optimizer remembers, master copy too; 2 gradients as well; 3 weights "
    "as well.",
    "Every parameter is trained.",
)
EXCLUDED = (
    "Activations; see there.",
    "Buffers of communication, and the layer's weights that stage 3 gathers while it runs.",
    "Scales of 8-bit moments.",
)

_DEFAULT: Optimizer = "mixed_adam"


def view(config: ModelConfig, asked: TrainingAsked) -> View:
    """The member `training`."""
    state, ranks, held = state_of(asked), asked.data_parallel, parameters.count(config)
    stages: tuple[ZeroStage, ...] = get_args(ZeroStage)
    given = asked.bytes_per_parameter is not None
    whole = training_state.size(config, state)
    return {
        "optimizer": None if given else asked.optimizer or _DEFAULT,
        "bytes_per_parameter": {**state.by_name(), "total": state.total},
        "data_parallel": ranks,
        "all_ranks": ledgers.amount(whole.total, "bytes"),
        "stages": [
            {"stage": x, **ledgers.ledger(training_state.size(config, state, x, ranks))}
            for x in stages
        ],
        "symbols": _symbols(held, ranks, state),
        "notes": list(NOTES),
        "excluded": list(EXCLUDED),
    }


def state_of(asked: TrainingAsked) -> TrainingState:
    """Bytes of a parameter, as named or given."""
    given = asked.bytes_per_parameter
    if given is None:
        return PRESETS[asked.optimizer or _DEFAULT]
    return TrainingState(**given.model_dump())


def _symbols(held: int, ranks: int, state: TrainingState) -> list[View]:
    return [
        {"letter": "P", "meaning": "parameters", "value": ledgers.number(held)},
        {"letter": "R", "meaning": "data_parallel", "value": ranks},
        *(
            {"letter": f"b_{name}", "meaning": f"bytes of a parameter's {name}", "value": size}
            for name, size in state.by_name().items()
        ),
    ]
