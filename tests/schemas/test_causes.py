"""Where a broken rule is told: at what the request says, not at what it never sent."""

from typing import Any

import pytest

from compute.errors import ConfigError, Fault, Place
from schemas import causes, overrides
from schemas.config import ConfigAsked

Json = dict[str, Any]

STORED = {
    "d_model": 12,
    "n_layers": 2,
    "attention": {"n_heads": 4, "d_head": 5},
    "position": {"kind": "rope", "rotary_dim": 4},
    "vocab": 7,
    "mlm_head": True,
}


def told(changes: Json, base: Json = STORED) -> list[Fault]:
    """The faults of changes laid over a stored config, at their places."""
    stored = overrides.written(ConfigAsked.model_validate(base).to_compute())
    asked = ConfigAsked.model_validate(changes)
    with pytest.raises(ConfigError) as refused:
        overrides.merged(stored, asked).to_compute()
    return list(causes.at_changes(refused.value.faults, stored, asked, "stored model"))


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"attention": {"n_heads": 2}}, ("attention", "n_heads")),
        ({"n_layers": 3, "attention": {"n_heads": 2}}, ("attention", "n_heads")),
        ({"attention": {"n_heads": 2, "n_kv_heads": 3}}, ("attention", "n_kv_heads")),
        ({"attention": {"n_kv_heads": 3}}, ("attention", "n_kv_heads")),
        ({"attention": {"d_head": 3}}, ("attention", "d_head")),
        ({"readout": False, "mlm_head": True}, ("mlm_head",)),
        ({"ffn": {"kind": "moe", "top_k": 1}}, ("ffn", "n_experts")),
    ],
)
def test_fault_stands_at_what_was_sent(changes: Json, place: Place) -> None:
    assert [fault.place for fault in told(changes)] == [place]


def test_fault_that_was_moved_says_whose_the_other_number_is() -> None:
    (fault,) = told({"attention": {"n_heads": 2}})
    assert fault.detail == (
        "n_heads = 2 is not a multiple of n_kv_heads = 4: every key/value head serves the same "
        "number of heads. n_kv_heads is the stored model's."
    )
    assert (fault.code, fault.expected, fault.got) == ("config_rule", None, None)


def test_fault_inside_an_encoder_stands_at_what_was_sent() -> None:
    base = {**STORED, "encoder": {"attention": {"n_heads": 4, "bias": True}}}
    (fault,) = told({"encoder": {"attention": {"n_heads": 6}}}, base)
    assert fault.place == ("encoder", "attention", "n_heads")


def test_fault_that_no_change_alone_makes_stays_where_it_is() -> None:
    changes = {"topology": "parallel", "cross_attention": True, "norm": {"placement": "sandwich"}}
    assert ("topology",) in [fault.place for fault in told(changes)]
