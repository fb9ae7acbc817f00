"""Head and foot of a picture: what ran, what was checked, what it cost."""

import re

from pictures import (
    EIFFEL,
    SORT,
    ask,
    drawn,
    tokens_config,
)
from service.picture import foot


def test_head_tells_model_input_and_weights() -> None:
    answer = ask(SORT)
    head = drawn(answer, 140).partition("──")[0]
    assert re.search(r"^model +letter-sort", head, re.M)
    assert "3 blocks · d_model 48 · 3 heads of 16 · causal mask · layernorm (pre)" in head
    assert "learned positions · mlp ffn 192 gelu_tanh · vocab 3" in head
    assert "6 positions: C A B B A C" in head
    assert answer["model"]["digest"][:19] in head
    assert re.search(r"^weights +of the model", head, re.M)
    assert re.search(r"^dtype +float32", head, re.M)


def test_head_tells_what_was_given_and_edited() -> None:
    config = {"d_model": 2, "attention": {"n_heads": 1, "window": 3}, "norm": {"kind": "none"}}
    weights = {
        "seed": 7,
        "tensors": {"blocks.0.attn.W_V": [[[1, 0], [0, 1]]]},
        "edits": [{"tensor": "blocks.0.attn.W_O", "where": {}, "op": "scale", "value": 2}],
    }
    request = {"model": {"config": config, "weights": weights}, "input": {"tensor": [[1, 2]]}}
    head = drawn(ask(request), 140).partition("──")[0]
    assert "seeded, seed 7; given: blocks.0.attn.W_V; edited: blocks.0.attn.W_O" in head
    assert "causal mask, window 3 · no norm · no positions" in head
    assert "1 position of 2 numbers" in head


def test_preset_stands_where_there_is_no_name() -> None:
    answer = ask(tokens_config())
    answer["model"]["preset"] = "gpt2"
    assert re.search(r"^model +preset gpt2", drawn(answer), re.M)


def test_identities_are_counted_and_those_that_fail_named() -> None:
    answer = ask(SORT)
    assert re.search(r"^identities +23 of 23 hold\s*$", drawn(answer), re.M)
    answer["identities"][3].update(holds=False, max_abs=0.125, rel=0.5)
    told = dict(foot.identities(answer["identities"]))
    assert told["identities"] == "22 of 23 hold"
    assert told[""].startswith(f"FAILS {answer['identities'][3]['name']}: ")
    assert told[""].endswith("(off by 0.125, relative 0.5)")
    few = drawn(ask({**SORT, "select": ["A"]}), 120)
    assert re.search(r"identities +3 of 3 hold; not checked: not kept \(20\)", few)


def test_identities_turned_off_are_said_to_be() -> None:
    assert re.search(r"identities +turned off", drawn(ask({**EIFFEL, "identities": False})))


def test_absent_stages_come_with_their_reason() -> None:
    text = drawn(ask({**EIFFEL, "select": ["*"]}), 120)
    assert "attn.q_rot, attn.k_rot: position.kind = none rotates nothing" in text


def test_rows_without_a_key_are_told_once_for_all_blocks() -> None:
    request = {**SORT, "input": {"text": "CAB", "key_mask": [False, True, True]}}
    text = drawn(ask(request), 120)
    assert text.count("position 0: no key to attend to; pattern and mixture are zeros") == 1


def test_cost_is_told() -> None:
    answer = ask(SORT)
    (line,) = [line for line in drawn(answer, 120).splitlines() if line.startswith("cost ")]
    assert "85,584 parameters · " in line
    assert f"{answer['cost']['elements']:,} numbers in the answer" in line


def test_token_that_has_no_text_is_shown_by_its_id() -> None:
    answer = ask({**SORT, "input": {"text": ["C", "CAB"]}, "select": ["X", "logits"]})
    answer["input"]["tokens"] = [[None, None, None], [None, "A", "B"]]
    text = drawn(answer)
    assert "(pad) (pad) #2" in text.replace("\n", " ")
    assert "#2 A B" in text
