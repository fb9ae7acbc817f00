"""Which family a model_type belongs to."""

from collections.abc import Mapping

from compute.checkpoints.families.bert import BERT
from compute.checkpoints.families.distilbert import DISTILBERT
from compute.checkpoints.families.gemma2 import GEMMA2
from compute.checkpoints.families.gemma3 import GEMMA3
from compute.checkpoints.families.gpt2 import GPT2
from compute.checkpoints.families.gpt_neox import GPT_NEOX
from compute.checkpoints.families.llama import LLAMA, MISTRAL
from compute.checkpoints.families.mixtral import MIXTRAL
from compute.checkpoints.families.olmo2 import OLMO2
from compute.checkpoints.families.opt import OPT
from compute.checkpoints.families.own import OWN
from compute.checkpoints.families.phi import PHI
from compute.checkpoints.families.qwen2 import QWEN2
from compute.checkpoints.families.qwen3 import QWEN3
from compute.checkpoints.families.roberta import ROBERTA
from compute.checkpoints.families.t5 import T5
from compute.checkpoints.family import Family
from compute.checkpoints.faults import nearest, refused, shown

FAMILIES: tuple[Family, ...] = (
    OWN,
    GPT2,
    BERT,
    ROBERTA,
    DISTILBERT,
    LLAMA,
    MISTRAL,
    MIXTRAL,
    QWEN2,
    QWEN3,
    GEMMA2,
    GEMMA3,
    GPT_NEOX,
    OLMO2,
    OPT,
    PHI,
    T5,
)

BY_MODEL_TYPE: Mapping[str, Family] = {
    model_type: family for family in FAMILIES for model_type in family.model_types
}


def family_for(model_type: object) -> Family:
    """The family of a config.json's model_type, or a ModelError with those there are."""
    there = sorted(BY_MODEL_TYPE)
    if isinstance(model_type, str) and model_type in BY_MODEL_TYPE:
        return BY_MODEL_TYPE[model_type]
    near = nearest(model_type, there) if isinstance(model_type, str) else ""
    detail = f"model_type {shown(model_type)} is no family there is: {', '.join(there)}.{near}"
    raise refused(("config.json", "model_type"), detail, there, shown(model_type))
