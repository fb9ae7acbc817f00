"""Heat maps: labelled, shaded with colours or without, cut where they are too long."""

import re

import numpy as np
import pytest

from pictures import CONFIGS, EIFFEL, SORT, Answer, ask, drawn, section
from service.picture import heatmaps, patterns
from service.picture.fitting import Look
from service.picture.reading import readings


def test_row_of_the_article_stands_beside_its_tokens() -> None:
    lines = section(drawn(ask(EIFFEL)), "block 0")
    at = lines.index("head 0")
    assert lines[at + 1].split() == ["the", "Eiffel", "tower"]
    assert lines[at + 4].split() == ["2", "tower", "0.25░", "0.50▓", "0.25░"]


def test_masked_cells_are_points_and_zeros_are_numbers() -> None:
    lines = section(drawn(ask(SORT)), "block 0")
    first = lines[lines.index("head 0") + 2]
    assert first.split() == ["0", "C", "1.00█", *"·····"]
    zero = {"d_model": 2, "attention": {"n_heads": 1, "mask": "full"}, "norm": {"kind": "none"}}
    tensors = {"blocks.0.attn.W_Q": [[[400, 0], [0, 400]]], "blocks.0.attn.W_K": [[[1, 0], [0, 1]]]}
    request = {
        "model": {"config": zero, "weights": {"init": "zeros", "tensors": tensors}},
        "input": {"tensor": [[1, 0], [0, 1], [1, 1]], "key_mask": [True, True, False]},
        "select": ["A"],
    }
    lines = section(drawn(ask(request)), "block 0")
    at = lines.index("head 0")
    assert [line.split() for line in lines[at + 2 : at + 4]] == [
        ["0", "1.00█", "0", "·"],
        ["1", "0", "1.00█", "·"],
    ]


@pytest.mark.parametrize("select", [["A"], ["A", "S"]])
def test_mask_is_known_with_the_scores_and_without(select: list[str]) -> None:
    attention = {"n_heads": 1, "window": 2}
    model = {"config": {"d_model": 2, "attention": attention}, "weights": {"seed": 1}}
    rows = [[1, 2], [3, 4], [5, 6], [7, 9]]
    answer = ask({"model": model, "input": {"tensor": rows}, "select": select})
    (reading,) = readings(answer)  # type: ignore[arg-type]
    pattern = next(one for one in reading.tensors if one.stage == "attn.pattern")
    expected = [[0, 1, 1, 1], [0, 0, 1, 1], [1, 0, 0, 1], [1, 1, 0, 0]]
    assert patterns.masked_pairs(pattern, reading)[0].astype(int).tolist() == expected


def test_shared_keys_are_named_with_the_head() -> None:
    text = drawn(ask(CONFIGS["rope and a gated ffn"]))
    assert "head 1 (kv_head 0)" in text
    assert "head 3 (kv_head 1)" in text


def test_maps_stand_side_by_side_where_there_is_room() -> None:
    answer = ask(SORT)
    titles = {w: sorted(set(re.findall(r"^head.*$", drawn(answer, w), re.M))) for w in (60, 140)}
    assert [title.split() for title in titles[140]] == [["head", "0", "head", "1", "head", "2"]]
    assert titles[60] == ["head 0", "head 1", "head 2"]


@pytest.mark.parametrize("system", ["256", "truecolor"])
def test_colours_shade_the_cells_of_a_terminal_that_has_them(system: str) -> None:
    text = drawn(ask(EIFFEL), colours=system)
    assert re.search(r"\x1b\[38;[\d;]+48;[\d;]+m +0\.50\x1b", text)
    assert not re.search("[░▒▓]", text)


def test_characters_shade_where_there_are_few_colours_or_none() -> None:
    for system in (None, "standard"):
        assert "0.50▓" in drawn(ask(EIFFEL), colours=system)


def long(positions: int) -> Answer:
    rows = [[np.sin(at), np.cos(at)] for at in range(positions)]
    model = {"config": {"d_model": 2, "attention": {"n_heads": 1}}, "weights": {"seed": 2}}
    return {"model": model, "input": {"tensor": rows}}


def test_long_input_is_cut_and_says_so() -> None:
    text = drawn(ask(long(90)))
    assert "Left out: queries 15 to 73." in text
    assert "Left out: keys 15 to 73." in text
    assert re.search(r"Left out: positions \d+ to \d+\.", text)
    assert "norm by position, first to last" in text
    rows = [line.split()[0] for line in section(text, "block 0") if re.match(r"\d+ .*…", line)]
    assert rows[:2] == ["0", "1"]
    assert rows[-1] == "89"


def test_input_of_middle_length_is_shaded_whole() -> None:
    text = drawn(ask({**long(20), "select": ["A"]}))
    assert "Left out" not in text
    lines = section(text, "block 0")
    at = lines.index("head 0")
    assert lines[at + 1].split() == ["0", "5", "10", "15"]
    assert lines[at + 2] == "0  ██" + "· " * 18 + "·"


def test_many_heads_are_cut_and_say_so() -> None:
    config = {"d_model": 4, "attention": {"n_heads": 20, "d_head": 1}}
    request = {"model": {"config": config}, "input": {"tensor": [[1, 2, 3, 4]]}}
    text = drawn(ask(request))
    assert "Left out: heads 16 to 19." in text
    assert "Left out: 4 heads." in text


def test_sliced_pattern_is_labelled_by_what_is_left() -> None:
    select = [{"name": "A", "position": [2], "key_position": [0, 1]}]
    lines = section(drawn(ask({**EIFFEL, "select": select})), "block 0")
    at = lines.index("head 0")
    assert lines[at + 1].split() == ["the", "Eiffel"]
    assert lines[at + 2].split() == ["2", "tower", "0.25░", "0.50▓"]


def test_what_each_source_gives_is_a_map_of_norms() -> None:
    answer = ask({**EIFFEL, "select": [{"name": "source_out", "position": [2]}, "attn.dots"]})
    lines = section(drawn(answer), "block 0")
    at = next(i for i, line in enumerate(lines) if line.startswith("a_ij v_j W_O^(r)  norm"))
    row = lines[at + 3]
    data = answer["tensors"]["blocks.0.attn.source_out"]["data"][0][0]
    exact = np.linalg.norm(data, axis=-1)
    assert [float(word.strip("░▒▓█")) for word in row.split()[2:]] == pytest.approx(exact, abs=5e-3)


def test_number_beyond_all_numbers_is_marked_in_a_map() -> None:
    values = np.array([[np.nan, 1.0]])
    one = heatmaps.Map("head 0", values, np.zeros((1, 2), np.bool_), 1.0, [0, 1], ["0"], ["0", "1"])
    plain = heatmaps.drawing(one, Look(80, coloured=False))[2].plain
    assert plain.split() == ["0", "nan!", "1.00█"]
    assert heatmaps.drawing(one, Look(80, coloured=True))[2].plain.split() == ["0", "nan", "1.00"]
    assert heatmaps.drawing(one, Look(10, coloured=False))[2].plain == "0 !!██"
