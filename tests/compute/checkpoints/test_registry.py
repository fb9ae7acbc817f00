"""Which family a model_type belongs to."""

import pytest

from compute.checkpoints.registry import BY_MODEL_TYPE, FAMILIES, family_for
from compute.errors import ModelError


def test_every_family_is_found_by_each_of_its_model_types() -> None:
    for family in FAMILIES:
        for model_type in family.model_types:
            assert family_for(model_type) is family
    assert len(BY_MODEL_TYPE) == sum(len(family.model_types) for family in FAMILIES)


@pytest.mark.parametrize(
    ("model_type", "nearest"), [("gpt-2", "gpt2"), ("lama", "llama"), ("BERT", None), ("", None)]
)
def test_unknown_model_type_is_refused_with_the_nearest_and_all(
    model_type: str, nearest: str | None
) -> None:
    with pytest.raises(ModelError) as refused:
        family_for(model_type)
    (fault,) = refused.value.faults
    assert fault.place == ("config.json", "model_type")
    assert ("Nearest" in fault.detail) == (nearest is not None)
    assert nearest is None or f"Nearest: {nearest}." in fault.detail
    assert all(name in fault.detail for name in BY_MODEL_TYPE)


@pytest.mark.parametrize("model_type", [None, 3, ["gpt2"], {}, "x" * 10_000_000])
def test_what_is_no_model_type_is_refused(model_type: object) -> None:
    with pytest.raises(ModelError) as refused:
        family_for(model_type)
    assert len(str(refused.value)) < 600
