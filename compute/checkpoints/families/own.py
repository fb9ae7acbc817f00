"""Our own form: config.json is the resolved config, tensors are stored by our names, as we have
them."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from compute import config_json
from compute.checkpoints.family import Family
from compute.checkpoints.fields import Fields
from compute.checkpoints.stored import Stored, one
from compute.config import ModelConfig
from compute.tensors import tensors


def _config(fields: Fields, names: AbstractSet[str]) -> ModelConfig:
    return config_json.from_json({k: x for k, x in fields.raw.items() if k != "model_type"})


def _stored(config: ModelConfig) -> Mapping[str, Stored]:
    listed = tensors(config).items()
    return {name: one(name, tensor.shape, lambda values: values) for name, tensor in listed}


OWN = Family(
    name="glassblock",
    model_types=("glassblock",),
    config=_config,
    stored=_stored,
)
