"""Pictures of blocks unlike the article's: an encoder and a memory, experts, sinks, more norms."""

import re

import numpy as np
import pytest

from oracle.configs import Case, random_case
from pictures import (
    CONFIGS,
    READ,
    Answer,
    ask,
    cells,
    drawn,
    line_of,
    numbers,
    section,
    tokens_config,
    with_memory,
)
from service.picture import words

ROWS = [[1, 2, 3, 4, 5, 6], [0, 1, 0, -1, 0, 1]]


def headings(text: str) -> list[str]:
    """The titles of a picture's parts, in order."""
    return re.findall(r"^(\S.*?) [─═]{3}", text, re.M)


def test_encoder_is_drawn_before_the_stack_that_reads_it() -> None:
    told = [title.partition(": mean")[0] for title in headings(drawn(ask(READ)))]
    assert told == [
        "encoder: before the blocks",
        "encoder: block 0",
        "encoder: block 1",
        "encoder: after the blocks",
        "encoder: the stream",
        "before the blocks",
        "block 0",
        "block 1",
        "after the blocks",
        "the stream",
        "checks and cost",
        "how to read it",
    ]


def test_encoder_has_its_own_positions_and_tokens() -> None:
    lines = section(drawn(ask(READ), 100), "encoder: block 0")
    assert lines[0].split() == ["#7", "#8", "#7", "#2"]
    assert "n=4" in line_of(lines, "attn.q")
    assert len(numbers(line_of(lines, "resid_pre"))) == 4


def test_columns_of_a_cross_pattern_are_the_memorys_tokens() -> None:
    lines = section(drawn(ask(READ), 100), "block 0")
    at = next(i for i, line in enumerate(lines) if line.startswith("cross.pattern  pattern: "))
    assert "takes from each row of the memory (column)" in lines[at]
    assert lines[at + 2].split() == 3 * ["#7", "#8", "#7", "#2"]
    assert lines[at + 3].split()[:3] == ["0", "#3", "·"]


def test_masked_rows_of_a_memory_are_known_without_the_scores() -> None:
    lines = section(drawn(ask({**READ, "select": ["cross.pattern"]}), 100), "block 0")
    assert all(line.split()[2] == "·" for line in lines if re.match(r"\d #\d", line))


def test_rows_of_a_memory_have_their_numbers_for_columns() -> None:
    answer = ask(with_memory({"tensor": ROWS}))
    text = drawn(answer, 100)
    lines = section(text, "block 0")
    at = next(i for i, line in enumerate(lines) if line.startswith("cross.pattern  pattern: "))
    assert lines[at + 2].split() == 3 * ["0", "1"]
    assert re.search(r"^memory +2 positions of 6 numbers", text, re.M)
    keys = np.array(answer["tensors"]["blocks.0.cross.k"]["data"])
    lengths = np.sqrt(np.square(keys).sum(axis=(0, 2)))
    told = "norms of the memory's rows: " + " to ".join(map(words.size, sorted(lengths)))
    assert told in line_of(lines, "cross.k")


def test_head_tells_the_encoder_and_what_it_reads() -> None:
    head = drawn(ask(READ), 160).partition("──")[0]
    assert re.search(r"^config .*causal mask · cross-attention · layernorm \(pre\)", head, re.M)
    assert re.search(r"^encoder +2 blocks · d_model 6 · 2 heads of 3 · full mask", head, re.M)
    assert re.search(r"^memory +4 positions: #7 #8 #7 #2", head, re.M)
    assert re.search(r"^its masked keys +positions 0", head, re.M)


def test_positions_without_a_key_say_who_would_read_them() -> None:
    memory = {"token_ids": [7, 8], "key_mask": [False, False]}
    text = drawn(ask({**READ, "input": {**READ["input"], "memory": memory}}), 120)
    assert re.search(r"^fully masked +cross-attention, positions 0, 1, 2, 3, 4, 5: ", text, re.M)
    assert re.search(r"^ +encoder, positions 0, 1: no key to attend to", text, re.M)


def test_blocks_of_their_own_windows_are_told_apart() -> None:
    request = tokens_config(layers=[{"window": 1}, {}])
    request["input"]["key_mask"] = [True, True, True, False, True, True]
    text = drawn(ask(request), 120)
    assert re.search(r"^by block +window 1 \(0\), no window \(1\)", text, re.M)
    assert re.search(r"^fully masked +blocks 0, position 3: no key", text, re.M)
    alone = section(drawn(ask({**request, "select": ["A"]}), 120), "block 0")
    first = next(line for line in alone if line.startswith("1 #1"))
    assert first.split()[2:8] == ["·", "1.00█", "·", "·", "·", "·"]


def test_parallel_block_has_no_stream_between_its_parts() -> None:
    text = drawn(ask(CONFIGS["a parallel block"]), 120)
    assert "2 parallel blocks" in text
    assert "layernorm" not in text
    assert "rmsnorm (pre, shared)" in text
    assert not re.search(r"^Y? +resid_mid", text, re.M)
    grown = section(text, "the stream")
    assert [line.split()[-3] for line in grown[:4]] == ["X", "Δ_attn", "Δ_ffn", "Z"]
    assert "resid_mid: topology = parallel: attention and ffn both read resid_pre" in drawn(
        ask({**CONFIGS["a parallel block"], "select": ["*"]}), 120
    )


def test_tokens_stand_beside_their_experts_and_what_those_count() -> None:
    answer = ask(CONFIGS["experts"])
    lines = section(drawn(answer, 100), "block 0")
    at = next(i for i, line in enumerate(lines) if line.startswith("experts: "))
    experts = answer["tensors"]["blocks.0.ffn.experts"]["data"]
    weights = answer["tensors"]["blocks.0.ffn.expert_weights"]["data"]
    for row, (numbers_, shares) in enumerate(zip(experts, weights, strict=True)):
        told = re.findall(r"(\d) (\d\.\d\d)", lines[at + 1 + row][4:])
        assert told == [(str(n), f"{w:.2f}") for n, w in zip(numbers_, shares, strict=True)]
    used = {expert for chosen in experts for expert in chosen}
    assert lines[at + 7].startswith(f"Chosen: {len(used)} of 5 experts: ")


def test_each_choice_of_an_expert_has_its_line_of_norms() -> None:
    answer = ask(CONFIGS["experts"])
    lines = section(drawn(answer, 100), "block 0")
    at = lines.index(line_of(lines, "ffn.expert_out"))
    out = np.array(answer["tensors"]["blocks.0.ffn.expert_out"]["data"])
    for choice in (0, 1):
        line = lines[at + 1 + choice]
        assert line.split()[:2] == ["choice", str(choice)]
        norms = np.linalg.norm(out[:, choice], axis=-1)
        assert line.split()[2:] == [words.size(norm) for norm in norms]


def test_many_choices_are_cut_and_say_so() -> None:
    ffn = {"kind": "moe", "n_experts": 40, "top_k": 20}
    answer = ask({**tokens_config(ffn=ffn), "select": ["ffn.experts", "ffn.expert_weights"]})
    lines = section(drawn(answer, 100), "block 0")
    at = next(i for i, line in enumerate(lines) if line.startswith("experts: "))
    assert all(line.endswith("…") for line in lines[at + 1 : at + 7])
    assert re.search(r", and \d+ more\.$", " ".join(lines[at + 7 :]).rstrip())


def test_map_has_a_column_for_what_a_sink_takes() -> None:
    answer = ask(CONFIGS["sinks and normed queries"])
    text = drawn(answer, 120)
    lines = section(text, "block 0")
    at = lines.index("head 2") if "head 2" in lines else 0
    assert "the last column is what the head's sink takes" in text
    sink = answer["tensors"]["blocks.0.attn.sink"]["data"][2]
    told = [re.findall(r"\d\.\d\d", line)[-1] for line in lines[at + 2 : at + 8]]
    assert told == [f"{share:.2f}" for share in sink]
    assert "(sink)" not in drawn(ask({**CONFIGS["sinks and normed queries"], "select": ["A"]}))


def test_sinks_are_told_as_weights_head_by_head() -> None:
    answer = ask(CONFIGS["sinks and normed queries"])
    lines = section(drawn(answer, 100), "block 0")
    at = lines.index(line_of(lines, "attn.sink"))
    for head, shares in enumerate(answer["tensors"]["blocks.0.attn.sink"]["data"]):
        assert lines[at + 1 + head].split() == ["head", str(head), *map(words.size, shares)]


def test_head_says_what_is_unlike_the_articles_block() -> None:
    request = tokens_config(
        attention={"n_heads": 3, "qk_norm": "full", "softcap": 50},
        position={"kind": "rope", "scaling": {"kind": "linear", "factor": 2}},
        ffn={"kind": "moe", "n_experts": 7, "top_k": 2, "expert": "mlp", "d_ff": 5, "d_shared": 9},
        layers=[{"theta": None}, {"scale": 0.25}],
        norm={"placement": "output"},
        embed_norm=True,
        token_types=2,
        residual_multiplier=0.5,
        embed_multiplier=3,
        logit_multiplier=0.125,
        logit_softcap=30,
        mlm_head=True,
    )
    request["input"]["token_types"] = [0, 0, 0, 1, 1, 1]
    head = " ".join(drawn(ask(request), 400).partition("──")[0].split())
    for said in (
        "queries and keys normed over all heads · scores capped at 50",
        "layernorm (output) · rope positions, linear scaling by 2",
        "2 of 7 experts (mlp) and a shared one of 9, ffn 5 gelu",
        "2 token types · embedding normed · embedding times 3 · updates times 0.5",
        "vocab 9 · mlm head · logits times 0.125 · logits capped at 30",
        "scale 0.7071 (0), scale 0.25 (1)",
        "nothing turns (0), theta 10000 with linear scaling by 2 (1)",
        "token types 0 0 0 1 1 1",
    ):
        assert said in head
    assert "no readout" in drawn(ask(tokens_config(readout=False)), 200)


def request_of(case: Case) -> Answer:
    def listed(given: Answer) -> Answer:
        return {k: listed(v) if isinstance(v, dict) else v.tolist() for k, v in given.items()}

    tensors = {name: values.tolist() for name, values in case.weights.items()}
    model = {"config": case.config, "weights": {"tensors": tensors}}
    return {"model": model, "input": listed(case.inputs), "dtype": "float64"}


@pytest.mark.parametrize("seed", range(10))
def test_any_arrangement_is_drawn_within_the_width(seed: int) -> None:
    asked = request_of(random_case(seed))
    for more in ({}, {"select": [{"name": "*", "summary": True}]}):
        answer = ask({**asked, **more})
        for width in (46, 110):
            assert max(map(cells, drawn(answer, width).splitlines())) <= width
