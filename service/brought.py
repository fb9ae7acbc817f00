"""What a request changes in a model's weights, and how its answer accounts for the model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from weakref import WeakKeyDictionary

import orjson

from compute import config_json
from compute.checkpoints.checkpoint import Checkpoint
from compute.config import ModelConfig
from compute.overriding import Fit
from compute.types import Array, Edit
from schemas.weights import WeightsAsked


@dataclass(frozen=True, slots=True, eq=False)
class Brought:
    """What a request changes in the weights: whole tensors, then edits; and its own account.

    fit: how a stored model's tensors serve the changed config.
    """

    asked: WeightsAsked
    tensors: Mapping[str, Array]
    edits: Sequence[Edit]
    fit: Fit = field(default_factory=Fit)

    @property
    def nothing(self) -> bool:
        """The weights are taken as they are."""
        return not self.tensors and not self.edits


def origin(brought: Brought, checkpoint: Checkpoint | None) -> Mapping[str, object]:
    """Where the weights came from: what made them, which were given whole, which were edited."""
    asked = brought.asked
    init = (asked.init or "seeded") if checkpoint is None else None
    return {
        "init": init,
        "seed": (asked.seed or 0) if init == "seeded" else None,
        "given": list(brought.tensors),
        "edited": list(dict.fromkeys(edit.tensor for edit in brought.edits)),
        "filled": brought.fit.filled,
        "unused": brought.fit.unused,
    }


@dataclass(frozen=True, slots=True)
class Told:
    """What answers say of a stored model as it is, worked out once for an opened one."""

    digest: str
    config: Mapping[str, object]


_TOLD: WeakKeyDictionary[Checkpoint, Told] = WeakKeyDictionary()


def told(checkpoint: Checkpoint) -> Told:
    """What answers say of a stored model."""
    found = _TOLD.get(checkpoint)
    if found is None:
        config, nothing = checkpoint.config, Brought(WeightsAsked(), {}, [])
        account = digest(config, nothing, checkpoint)
        found = _TOLD[checkpoint] = Told(account, config_json.as_json(config))
    return found


def digest(config: ModelConfig, brought: Brought, checkpoint: Checkpoint | None) -> str:
    """sha256 over what decides the model: its content or seed, its config, what was changed."""
    asked = brought.asked
    account = {
        "content": None if checkpoint is None else checkpoint.content,
        "made": {key: origin(brought, checkpoint)[key] for key in ("init", "seed")},
        "config": config_json.as_json(config),
        "tensors": {
            name: sha256(values.tobytes()).hexdigest() for name, values in asked.tensors.items()
        },
        "edits": [edit.account() for edit in asked.edits],
    }
    text = orjson.dumps(account, option=orjson.OPT_SORT_KEYS | orjson.OPT_SERIALIZE_NUMPY)
    return f"sha256:{sha256(text).hexdigest()}"
