"""A picture of an answer shows what the answer says, in any width, and nothing but text."""

import re
import unicodedata

import numpy as np
import pytest

from compute import stages
from pictures import (
    CONFIGS,
    EIFFEL,
    SORT,
    ask,
    cells,
    drawn,
    line_of,
    numbers,
    section,
    tokens_config,
)
from service.picture import matrices, page, problem, words


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("width", [40, 80, 120])
def test_every_stage_appears_within_the_width(name: str, width: int) -> None:
    answer = ask(CONFIGS[name])
    text = drawn(answer, width)
    assert max(map(cells, text.splitlines())) <= width
    for full in answer["tensors"]:
        layer, stage = stages.layer_of(full), stages.local_name(full)
        block = "the blocks" if layer is None else f"block {layer}"
        title = block if layer is not None else r"(before|after) the blocks"
        assert re.search(title, text)
        assert re.search(rf"(^|\s){re.escape(stage)}(\s|$)", text, re.M), full
    for layer in range(2):
        assert section(text, f"block {layer}")


def test_block_lists_its_stages_in_the_order_of_computation() -> None:
    for request in CONFIGS.values():
        answer = ask(request)
        lines = section(drawn(answer), "block 1")
        asked = [name for name in answer["tensors"] if stages.layer_of(name) == 1]
        told = [lines.index(line_of(lines, stages.local_name(name))) for name in asked]
        assert told == sorted(told)


def test_small_tensors_are_written_out_in_four_digits() -> None:
    lines = section(drawn(ask(EIFFEL)), "block 0")
    at = next(i for i, line in enumerate(lines) if line.startswith("Z resid_post"))
    assert [line.split() for line in lines[at + 1 : at + 5]] == [
        ["0", "1"],
        ["0", "the", "0.3333", "0.3333"],
        ["1", "Eiffel", "0.5035", "1.248"],
        ["2", "tower", "1.248", "0.5035"],
    ]


def test_what_each_source_gives_is_written_out_where_it_is_small() -> None:
    negative = {
        "tensor": "blocks.0.attn.W_O",
        "where": {"d_model": [0]},
        "op": "scale",
        "value": -1,
    }
    model = {**EIFFEL["model"], "weights": {"edits": [negative]}}
    select = [{"name": "attn.source_out", "position": [0, 2]}]
    answer = ask({**EIFFEL, "model": model, "select": select})
    lines = drawn(answer, 40).splitlines()
    (head,) = answer["tensors"]["blocks.0.attn.source_out"]["data"]
    for place, received in zip(["0 the", "2 tower"], head, strict=True):
        at = lines.index(f"a_ij v_j W_O^(r), head 0, to {place}")
        assert lines[at + 1].split() == ["0", "1"]
        told = [line.split() for line in lines[at + 2 : at + 5]]
        assert [row[:2] for row in told] == [["0", "the"], ["1", "Eiffel"], ["2", "tower"]]
        exact = [[words.value(number) for number in row] for row in received]
        assert [row[2:] for row in told] == exact
    assert ["2", "tower", "-0.2483", "0"] in [line.split() for line in lines]


def test_what_many_sources_give_is_not_written_out() -> None:
    select = [{"name": "attn.source_out", "position": [5]}]
    assert "W_O^(r), head" not in drawn(ask({**tokens_config(), "select": select}))


def test_summary_of_what_sources_give_has_a_row_for_each_source() -> None:
    select = [{"name": "attn.source_out", "position": [5], "summary": True}]
    answer = ask({**SORT, "select": select})
    lines = section(drawn(answer), "block 1")
    assert line_of(lines, "attn.source_out").endswith("summary below")
    summary = answer["tensors"]["blocks.1.attn.source_out"]["summary"]
    for head in range(3):
        at = lines.index(f"a_ij v_j W_O^(r), head {head}, to 5 C")
        assert lines[at + 1].split() == ["norm", "rms", "mean", "min", "max"]
        norms = [float(line.split()[2]) for line in lines[at + 2 : at + 8]]
        assert norms == pytest.approx(summary["norm"][head][0], rel=5e-4)
    assert "maps" not in drawn(answer)


def test_summaries_that_are_too_many_are_counted() -> None:
    select = [{"name": "attn.source_out", "position": [*range(6)], "summary": True}]
    lines = section(drawn(ask({**SORT, "select": select})), "block 0")
    assert "\n".join(lines).count("W_O^(r), head") == matrices.MOST_MATRICES
    assert "Left out: 2 more of attn.source_out." in lines


@pytest.mark.parametrize("stage", ["resid_pre", "attn_out", "resid_mid", "ffn.hidden", "ffn_out"])
def test_norms_are_those_of_numpy(stage: str) -> None:
    answer = ask(SORT)
    line = line_of(section(drawn(answer), "block 1"), stage)
    exact = np.linalg.norm(answer["tensors"][f"blocks.1.{stage}"]["data"], axis=-1)
    assert numbers(line)[-6:] == pytest.approx(exact, rel=5e-3)


def test_norm_of_a_stage_with_heads_is_over_all_of_them() -> None:
    answer = ask(SORT)
    line = line_of(section(drawn(answer), "block 0"), "attn.q")
    exact = np.linalg.norm(answer["tensors"]["blocks.0.attn.q"]["data"], axis=(0, 2))
    assert numbers(line)[-6:] == pytest.approx(exact, rel=5e-3)


def test_each_head_has_its_line_of_norms() -> None:
    answer = ask(SORT)
    lines = section(drawn(answer), "block 2")
    at = lines.index(line_of(lines, "attn.head_out"))
    exact = np.linalg.norm(answer["tensors"]["blocks.2.attn.head_out"]["data"], axis=-1)
    for head, norms in enumerate(exact):
        line = lines[at + 1 + head]
        assert line.split()[:2] == ["head", str(head)]
        assert numbers(line)[-6:] == pytest.approx(norms, rel=5e-3)


def test_growth_of_the_stream_is_drawn_to_one_scale() -> None:
    answer = ask(SORT)
    lines = list(filter(None, section(drawn(answer), "the stream")))
    names = ["resid_pre", *["attn_out", "resid_mid", "ffn_out", "resid_post"] * 3]
    assert len(lines) == len(names)
    blocks = [0, *[layer for layer in range(3) for _ in range(4)]]
    means = [
        np.linalg.norm(answer["tensors"][f"blocks.{layer}.{name}"]["data"], axis=-1).mean()
        for layer, name in zip(blocks, names, strict=True)
    ]
    lengths = [line.count("█") for line in lines]
    for line, length, mean in zip(lines, lengths, means, strict=True):
        assert float(re.findall(r"\d+\.\d+", line)[0]) == pytest.approx(mean, rel=5e-3)
        assert length == pytest.approx(50 * mean / max(means), abs=1)


def test_each_row_of_a_batch_has_its_heading() -> None:
    strings = ["CABBAC", "AB", "C", "BA", "CC", "AA"]
    answer = ask({**SORT, "input": {"text": strings}, "select": ["A", "logits"]})
    text = drawn(answer)
    for at in range(page.MOST_BATCH_ROWS):
        assert f"row {at} of a batch of 6 ═══" in text
    assert "row 4 of" not in text
    assert "Left out of the batch: rows 4, 5." in text
    assert "6 positions: (pad) (pad) (pad) (pad) A B" in text
    padded = text.partition("row 1 of a batch")[2].partition("row 2 of a batch")[0]
    assert "masked keys   positions 0, 1, 2, 3" in padded
    assert "position ids  0 0 0 0 0 1" in padded
    assert padded.count("likeliest after position 5 B") == 1
    assert "row 2, positions 0, 1, 2, 3, 4: no key to attend to" in text


def test_rows_that_a_slice_leaves_out_of_a_batch_have_no_heading() -> None:
    select = [{"name": "A", "batch": [1]}]
    text = drawn(ask({**SORT, "input": {"text": ["CA", "AB"]}, "select": select}))
    assert "row 1 of a batch of 2" in text
    assert "row 0 of a batch of 2" not in text


def test_slices_show_which_entries_they_are() -> None:
    select = [
        {"name": "head_out", "head": [2], "position": [-1]},
        {"name": "Z", "position": [0, 5]},
    ]
    answer = ask({**SORT, "select": select})
    lines = section(drawn(answer), "block 1")
    assert "h=[2] n=[5] d=48" in line_of(lines, "attn.head_out")
    assert "n=[0 5] d=48" in line_of(lines, "resid_post")
    exact = np.linalg.norm(answer["tensors"]["blocks.1.resid_post"]["data"], axis=-1)
    assert numbers(line_of(lines, "resid_post"))[-2:] == pytest.approx(exact, rel=5e-3)
    assert any(line.split()[:2] == ["head", "2"] for line in lines)


def test_norm_of_one_position_among_many_is_a_number() -> None:
    positions = [[at, 1] for at in range(40)]
    request = {
        "model": {"config": {"d_model": 2, "attention": {"n_heads": 1}}},
        "input": {"tensor": positions},
        "select": [{"name": "X", "position": [20]}, {"name": "Z", "position": [3, 4]}],
    }
    lines = section(drawn(ask(request)), "block 0")
    assert line_of(lines, "resid_pre").endswith("  20.0 at position 20")
    assert re.search(r"   [▁▂▃▄▅▆▇]{2} .* \d\.\d\d to \d\.\d\d$", line_of(lines, "resid_post"))


def test_norms_that_are_all_the_same_are_told_once() -> None:
    config = {"d_model": 2, "attention": {"n_heads": 1}, "norm": {"kind": "none"}}
    request = {"model": {"config": config}, "input": {"tensor": [[3, 4]] * 40}, "select": ["X"]}
    assert line_of(section(drawn(ask(request)), "block 0"), "resid_pre").endswith("▇ 5.00")


def test_legend_explains_slices_where_there_are_any() -> None:
    sliced = drawn(ask({**SORT, "select": ["A", {"name": "Z", "position": [-1]}]}))
    assert re.search(r"^slices +n=\[5\]: which of the axis these are, counted from 0", sliced, re.M)
    assert "slices " not in drawn(ask({**SORT, "select": ["A", "Z"]}))


def test_summaries_are_shown_as_asked() -> None:
    select = [{"name": "head_out", "position": [-1], "summary": True}]
    answer = ask({**SORT, "select": select})
    lines = section(drawn(answer), "block 0")
    at = next(i for i, line in enumerate(lines) if line.endswith("head_out, position 5 C"))
    assert lines[at + 1].split() == ["norm", "rms", "mean", "min", "max"]
    summary = answer["tensors"]["blocks.0.attn.head_out"]["summary"]
    for head in range(3):
        told = lines[at + 2 + head].split()
        assert told[:2] == ["head", str(head)]
        exact = [summary[name][head][0] for name in ("norm", "rms", "mean", "min", "max")]
        assert [float(word) for word in told[2:]] == pytest.approx(exact, rel=5e-4)


def test_long_summary_is_cut_and_says_so() -> None:
    model = {"config": {"d_model": 2, "attention": {"n_heads": 1}}}
    request = {
        "model": model,
        "input": {"tensor": [[at, 1] for at in range(40)]},
        "select": [{"name": "Z", "summary": True}],
    }
    lines = section(drawn(ask(request)), "block 0")
    at = lines.index("Z resid_post")
    assert lines[at + 1].split() == ["norm", "rms", "mean", "min", "max"]
    rows = [line.split()[0] for line in lines[at + 2 : at + 18]]
    assert rows == [*map(str, range(7)), "…", *map(str, range(32, 40))]
    assert "… left out: rows 7 to 31" in lines


def test_likeliest_tokens_have_their_probabilities() -> None:
    answer = ask(EIFFEL)
    lines = section(drawn(answer), "after the blocks")
    at = lines.index("likeliest after position 2 tower")
    exact = np.exp(answer["tensors"]["logits"]["data"][2])
    told = [lines[at + 1 + place].split() for place in range(3)]
    assert [line[0] for line in told] == ["tower", "Eiffel", "the"]
    expected = sorted(exact / exact.sum(), reverse=True)
    assert [float(line[1].rstrip("%")) / 100 for line in told] == pytest.approx(expected, abs=5e-4)


def test_tokens_that_the_answer_does_not_name_have_their_ids() -> None:
    lines = section(drawn(ask(CONFIGS["no ffn"])), "after the blocks")
    at = lines.index("likeliest after position 5 #2")
    assert all(re.match(r"  id \d ", line) for line in lines[at + 1 : at + 6])
    assert lines[at + 6] == "4 tokens of the vocabulary left out."


def test_tokens_have_their_text_where_a_tokenizer_is_at_hand() -> None:
    pieces = {0: "\x1b[31m", 1: " b", 2: ""}
    answer = ask({**EIFFEL, "input": {"token_ids": [2]}})
    answer["input"]["tokens"], answer["next_token"]["token"] = None, None

    def token_of(model: str, token_id: int) -> str:
        assert model == "eiffel-toy"
        return pieces[token_id]

    lines = section(drawn(answer, token_of=token_of), "after the blocks")
    at = lines.index("likeliest after position 0 #2")
    told = {line.split("  ")[1].strip() for line in lines[at + 1 : at + 4]}
    assert told == {"\\x1b[31m", "␣b", "id 2"}
    answer["model"]["name"] = None
    assert "id 1" in drawn(answer, token_of=token_of)


def test_probabilities_are_not_made_of_a_part_of_the_vocabulary() -> None:
    select = [{"name": "logits", "vocabulary": [0, 1]}]
    assert "likeliest" not in drawn(ask({**EIFFEL, "select": select}))
    assert "likeliest" not in drawn(
        ask({**EIFFEL, "select": [{"name": "logits", "summary": True}]})
    )


def test_numbers_that_are_not_finite_are_told() -> None:
    config = {"d_model": 2, "attention": {"n_heads": 1}, "norm": {"kind": "none"}}
    rows = [[1, 2], [3e38, -3e38], [3, 4]]
    answer = ask({"model": {"config": config}, "input": {"tensor": rows}})
    assert "nonfinite" in answer["tensors"]["blocks.0.attn.pattern"]
    text = drawn(answer, 120)
    assert "nan" in line_of(section(text, "block 0"), "attn.z")
    assert "not finite" in line_of(section(text, "block 0"), "attn.scores")
    assert "nan!" in text
    assert "a stage is not finite (" in text


HOSTILE = [
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\u009b2J",
    "a\r\nb\b",
    "\u202egnp",
    "[bold red]markup[/]",
    ":smile:",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_texts_of_a_request_do_nothing_to_the_terminal(piece: str) -> None:
    answer = ask({**EIFFEL, "input": {"text": "the Eiffel tower"}})
    answer["input"]["tokens"] = [piece, piece, "tower"]
    answer["next_token"]["token"] = piece
    answer["model"]["name"] = piece
    answer["model"]["weights"]["given"] = [piece]
    answer["absent"] = {piece: piece}
    answer["identities"][0].update(name=piece, formula=piece, holds=False, max_abs=1.0)
    answer["identities"][1].update(reason=piece, holds=None)
    text = drawn(answer)
    assert not [x for x in text if unicodedata.category(x) in ("Cc", "Cf") and x != "\n"]
    assert re.search(rf"^model +{re.escape(words.safe(piece))}", text, re.M)
    said = problem.lines({
        "type": "", "title": piece, "status": 422, "detail": piece, "instance": "",
        "errors_total": 1,
        "errors": [{"pointer": piece, "code": "", "detail": piece, "expected": piece, "got": [1]}],
    })  # fmt: skip
    for line in said:
        assert not [x for x in line.plain if unicodedata.category(x) in ("Cc", "Cf")]


def test_spaces_of_a_token_are_seen_and_long_tokens_are_cut() -> None:
    answer = ask(EIFFEL)
    answer["input"]["tokens"] = [" the", "Eiffel" * 5, "塔" * 9]
    lines = drawn(answer).splitlines()
    assert any(line.startswith("0 ␣the ") for line in lines)
    assert any(line.startswith("1 EiffelEif… ") for line in lines)
    assert max(map(cells, lines)) <= 80
    at = lines.index("head 0")
    ends = {cells(line.rstrip()) for line in lines[at + 2 : at + 5]}
    assert len(ends) == 1
