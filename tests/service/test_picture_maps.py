"""Heat maps: labelled, shaded with colours or without, cut where they are too long."""

import re

import numpy as np
import pytest

from pictures import CONFIGS, EIFFEL, SORT, Answer, ask, drawn, section
from service.picture import heatmaps, patterns, shades, words
from service.picture.fitting import Look
from service.picture.reading import readings


def test_row_of_the_article_stands_beside_its_tokens() -> None:
    lines = section(drawn(ask(EIFFEL)), "block 0")
    at = lines.index("head 0")
    assert lines[at + 1].split() == ["the", "Eiffel", "tower"]
    assert lines[at + 4].split() == ["2", "tower", "0.25▒", "0.50▓", "0.25▒"]


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


def pattern_of(*numbers: float) -> heatmaps.Map:
    """A map of one row."""
    values = np.array([numbers])
    keys = range(len(numbers))
    labels = [*map(str, keys)]
    masked = np.zeros(values.shape, np.bool_)
    return heatmaps.Map("head 0", values, masked, 1.0, words.weight, keys, ["0"], labels)


SHADES = {" ": 0.0, "░": 0.05, "▒": 0.25, "▓": 0.5, "█": 0.75}


def shade_of(number: float) -> str:
    """The shade that the legend promises."""
    return [shade for shade, least in SHADES.items() if number >= least][-1]


def test_legend_says_the_shades_of_these_tests() -> None:
    told = ", ".join(f"{shade} from {least:g}" for shade, least in SHADES.items() if least)
    assert told == shades.SHADES_SAY


@pytest.mark.parametrize("edge", [0.05, 0.25, 0.5, 0.75])
def test_shade_is_that_of_the_number_as_printed(edge: float) -> None:
    around = [edge + step / 1000 for step in range(-6, 7)]
    for number in around:
        plain = heatmaps.drawing(pattern_of(number), Look(80, coloured=False))[2].plain
        told, shade = plain[-5:-1], plain[-1]
        assert told == f"{number:.2f}"
        assert shade == shade_of(float(told)), number
        coloured = heatmaps.drawing(pattern_of(number), Look(80, coloured=True))[2]
        assert coloured.spans[-1].style == shades.colour(float(told))
        alone = heatmaps.drawing(pattern_of(number), Look(4, coloured=False))[2].plain
        assert alone[-2:] == shade * 2


def long(positions: int) -> Answer:
    rows = [[np.sin(at), np.cos(at)] for at in range(positions)]
    model = {"config": {"d_model": 2, "attention": {"n_heads": 1}}, "weights": {"seed": 2}}
    return {"model": model, "input": {"tensor": rows}}


def test_long_input_is_cut_and_says_so() -> None:
    text = drawn(ask(long(90)))
    assert "Left out: queries 15 to 73." in text
    assert "Left out: keys 15 to 73." in text
    assert re.search(r"Left out: positions \d+ to \d+\.", text)
    assert "norms, first to last" in text
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
    assert lines[at + 2].split() == ["2", "tower", "0.25▒", "0.50▓"]


def test_what_each_source_gives_is_a_map_of_norms() -> None:
    answer = ask({**EIFFEL, "select": [{"name": "source_out", "position": [2]}, "attn.dots"]})
    lines = section(drawn(answer), "block 0")
    assert any(line.startswith("a_ij v_j W_O^(r)  norm of what each") for line in lines)
    row = lines[lines.index("head 0") + 2]
    data = answer["tensors"]["blocks.0.attn.source_out"]["data"][0][0]
    exact = np.linalg.norm(data, axis=-1)
    assert [float(word.strip("░▒▓█")) for word in row.split()[2:]] == pytest.approx(exact, abs=5e-3)


SOURCES = {"name": "attn.source_out", "position": [5]}


def test_norms_are_shaded_by_the_largest_that_their_caption_says() -> None:
    lines = section(drawn(ask({**SORT, "select": [SOURCES]}), 120), "block 1")
    caption = next(line for line in lines if line.startswith("a_ij v_j W_O^(r)  norm"))
    largest = float(caption.rpartition("shaded by the largest, ")[2])
    found = re.findall(r"(\d\.\d\d)([ ░▒▓█])", "\n".join(lines[lines.index(caption) + 1 :]))
    assert len(found) == 3 * 6
    assert max(float(number) for number, _ in found) == largest
    for number, shade in found:
        assert shade == shade_of(float(number) / largest)


def test_legend_tells_the_scale_of_patterns_from_that_of_norms() -> None:
    said = {
        name: " ".join(" ".join(section(drawn(ask({**SORT, "select": select})), "how to")).split())
        for name, select in {"pattern": ["A"], "norms": [SOURCES], "neither": ["Z"]}.items()
    }
    assert f"maps patterns: {shades.SHADES_SAY} · masked" in said["pattern"]
    of_norms = f"maps norms: {shades.SHADES_SAY} of the largest, which their caption says · masked"
    assert of_norms in said["norms"]
    assert "maps" not in said["neither"]
    both = drawn(ask({**SORT, "select": ["A", SOURCES]}), 120, "256")
    assert "patterns: from 0 to 1, the lighter the more" in both
    assert "norms: from 0 to the largest, which their caption says, the lighter the more" in both


def test_maps_of_norms_that_are_all_zero_are_not_shaded() -> None:
    select = [{"name": "attn.source_out", "position": [0]}]
    edits = [{"tensor": "blocks.0.attn.W_O", "where": {}, "op": "scale", "value": 0}]
    model = {**EIFFEL["model"], "weights": {"edits": edits}}
    text = drawn(ask({**EIFFEL, "model": model, "select": select}))
    assert "shaded by the largest, 0\n" in " ".join(text.split(" ")).replace(" \n", "\n")
    assert not re.search("[░▒▓█]", text.partition("how to read it")[0])


def test_number_beyond_all_numbers_is_marked_in_a_map() -> None:
    one = pattern_of(np.nan, 1.0)
    plain = heatmaps.drawing(one, Look(80, coloured=False))[2].plain
    assert plain.split() == ["0", "nan!", "1.00█"]
    assert heatmaps.drawing(one, Look(80, coloured=True))[2].plain.split() == ["0", "nan", "1.00"]
    assert heatmaps.drawing(one, Look(10, coloured=False))[2].plain == "0 !!██"
