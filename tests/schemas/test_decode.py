"""A cache and a decode request as sent: what is read, what is refused and where."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from compute.errors import QuestionError
from schemas.decode import CacheAsked, DecodeRequest

DIGEST = "sha256:" + "0" * 64
CACHE: dict[str, Any] = {
    "digest": DIGEST,
    "dtype": "float32",
    "position_ids": [0, 1],
    "blocks.0.attn.k": [[[1.0], [2.0]]],
    "blocks.0.attn.v": {"dtype": "float32", "shape": [1, 2, 1], "data": "AACAPwAAAEA="},
}
REQUEST: dict[str, Any] = {"model": {"name": "letter-sort"}, "input": {"token_ids": [0]}}


def test_keys_and_values_are_read_from_lists_and_from_bytes_alike() -> None:
    tensors = CacheAsked.model_validate(CACHE).tensors("float32")
    assert list(tensors) == ["blocks.0.attn.k", "blocks.0.attn.v"]
    for values in tensors.values():
        assert values.dtype == np.float32
        assert values.tolist() == [[[1.0], [2.0]]]


def test_a_request_has_its_defaults() -> None:
    asked = DecodeRequest.model_validate(REQUEST)
    assert (asked.cache, asked.steps, asked.top, asked.logits) == (None, 0, 5, True)
    assert (asked.cache_as, asked.dtype, asked.selected()) == ("base64", "float32", None)


FAULTY: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "no digest": ({"digest": None}, ("digest",)),
    "no hash": ({"digest": "sha256:12"}, ("digest",)),
    "another dtype": ({"dtype": "float16"}, ("dtype",)),
    "a fraction": ({"position_ids": [0.5, 1]}, ("position_ids",)),
    "a mask of numbers": ({"key_mask": [0, 1]}, ("key_mask",)),
    "too few axes": ({"blocks.0.attn.k": [[1.0]]}, ("blocks.0.attn.k",)),
    "a string": ({"blocks.0.attn.k": "AACAPw=="}, ("blocks.0.attn.k",)),
    "an unknown key": ({"blokcs": 1}, ("blokcs",)),
}


@pytest.mark.parametrize("change", FAULTY)
def test_a_fault_of_a_cache_is_where_it_is(change: str) -> None:
    made, place = FAULTY[change]
    with pytest.raises(ValidationError) as caught:
        CacheAsked.model_validate({**CACHE, **made})
    assert [error["loc"][: len(place)] for error in caught.value.errors()] == [place]


def test_a_number_beyond_the_dtype_is_told_by_its_place() -> None:
    cache = CacheAsked.model_validate({**CACHE, "blocks.0.attn.k": [[[1.0], [1e39]]]})
    with pytest.raises(QuestionError) as caught:
        cache.tensors("float32")
    (fault,) = caught.value.faults
    assert (fault.code, fault.place) == ("overflow", ("cache", "blocks.0.attn.k", 0, 1, 0))


def test_a_flood_of_tensors_is_one_fault() -> None:
    flood = {f"blocks.{layer}.attn.k": [[[1.0]]] for layer in range(2100)}
    with pytest.raises(ValidationError) as caught:
        CacheAsked.model_validate({**CACHE, **flood})
    assert [error["type"] for error in caught.value.errors()] == ["too_many_keys"]


@pytest.mark.parametrize(
    ("key", "value"), [("steps", -1), ("steps", True), ("top", 0), ("top", 101)]
)
def test_counts_are_bounded(key: str, value: object) -> None:
    with pytest.raises(ValidationError):
        DecodeRequest.model_validate({**REQUEST, key: value})
