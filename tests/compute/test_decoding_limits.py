"""What decoding costs, and what it is refused for, before anything is run."""

import tracemalloc

import numpy as np
import pytest

import decoders
import runs
from cases import small
from compute import config_json, cost, decoding, selection
from compute.types import DType, Inputs, Past, Selected

PRICED = (("alibi", None, 5), ("rope", 3, 1), ("t5_bias", None, 2), ("learned", 3, 0))


@pytest.mark.parametrize(("kind", "window", "steps"), PRICED)
def test_the_price_of_all_steps_is_the_sum_of_theirs(
    kind: str, window: int | None, steps: int
) -> None:
    case = decoders.case_with(
        decoders.decoder(decoders.POSITIONS[kind], window), **decoders.LEFT_PADDED
    )
    config = config_json.from_json(case.config)
    given = runs.inputs_of(case.inputs)
    wanted = [Selected(name="*"), Selected(name="attn.dots")]

    def select(scene: selection.Scene) -> selection.Selection:
        return selection.resolve(wanted, scene)

    priced = decoding.price(decoding.scenes(config, given, steps), select, steps, "float64")
    run = decoders.run_with(case, given, wanted)
    ran = list(decoding.continued(run, steps, select))
    made = [{m.wanted.name: m.values.size for m in step.trace.made} for step in ran]
    assert priced.by_stage == {name: sum(one[name] for one in made) for name in made[0]}
    cached = [*ran[-1].past.keys, *ran[-1].past.values]
    assert priced.cache_elements == sum(array.size for array in cached)
    flops = [
        cost.flops(selection.scene_for(config, one.inputs), one.selection)
        for one in (step.trace.run for step in ran)
    ]
    assert priced.flops == sum(flops)


def test_a_row_after_a_past_costs_a_row_and_meets_every_key() -> None:
    config = config_json.from_json(decoders.decoder(decoders.POSITIONS["rope"], None))
    past = Past(keys=(), values=(), position_ids=np.arange(9))
    scene = selection.scene_for(config, Inputs(token_ids=np.zeros(1, int), past=past))
    of_block = 8 * 4 * (4 + 2 + 2) + 4 * 4 * 8 + 2 * 4 * 10 * 4 + 2 * 8 * 12
    found = cost.flops(scene, selection.resolve([Selected(name="logits")], scene))
    assert found == 2 * (2 * of_block + 8 * 11)


REFUSED = {
    "not_causal": (
        decoders.decoder(small.NONE, None, attention=small.attention(2, 4)),
        0,
        ("model",),
    ),
    "no_readout": (decoders.decoder(small.NONE, None, readout=False), 2, ("steps",)),
    "out_of_positions": (decoders.decoder(decoders.POSITIONS["learned"], None), 18, ("steps",)),
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_cannot_be_decoded_is_refused_with_its_place(code: str) -> None:
    config, steps, place = REFUSED[code]
    read = Inputs(token_ids=np.arange(3))
    (fault,) = decoding.faults(read, config_json.from_json(config), steps)
    assert (fault.code, fault.place) == (code, place)


def test_no_token_follows_rows_that_were_no_tokens_or_a_masked_last_row() -> None:
    config = config_json.from_json(decoders.decoder(small.NONE, None))
    rows = Inputs(tensor=np.zeros((3, 8)))
    assert [fault.code for fault in decoding.faults(rows, config, 1)] == ["no_tokens"]
    masked = Inputs(token_ids=np.arange(3), key_mask=np.array([True, True, False]))
    assert [fault.code for fault in decoding.faults(masked, config, 1)] == ["masked_last"]
    assert list(decoding.faults(masked, config, 0)) == []


def test_ids_end_where_readers_of_json_lose_count() -> None:
    config = config_json.from_json(decoders.decoder(small.NONE, None))
    past = Past(keys=(), values=(), position_ids=np.array([0, 2**53 - 2]))
    rows = Inputs(token_ids=np.arange(1), past=past)
    assert list(decoding.faults(rows, config, 1)) == []
    (fault,) = decoding.faults(rows, config, 2)
    assert (fault.code, fault.place) == ("out_of_positions", ("cache", "position_ids"))


def test_within_the_table_of_positions_a_run_goes_to_its_last_row() -> None:
    config = config_json.from_json(decoders.decoder(decoders.POSITIONS["learned"], None))
    assert list(decoding.faults(Inputs(token_ids=np.arange(3)), config, 17)) == []


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["rope", "alibi", "t5_bias"])
@pytest.mark.parametrize(("before", "rows", "steps"), [(6000, 1, 3), (400, 200, 2), (0, 300, 1)])
def test_steps_stay_within_their_estimated_memory(
    kind: str, before: int, rows: int, steps: int, dtype: DType
) -> None:
    case = decoders.case_with(decoders.decoder(decoders.POSITIONS[kind], None))
    ids = np.zeros(rows, np.int64)
    shape = (2, before, 4)
    cached = tuple(np.zeros(shape, dtype) for _ in range(2))
    past = Past(keys=cached, values=cached, position_ids=np.arange(before)) if before else None
    run = decoders.run_with(
        case, Inputs(token_ids=ids, past=past), [Selected(name="resid_post")], dtype
    )

    def select(scene: selection.Scene) -> selection.Selection:
        return selection.resolve([Selected(name="resid_post")], scene)

    scenes = decoding.scenes(run.config, run.inputs, steps)
    priced = decoding.price(scenes, select, steps, dtype)
    tracemalloc.start()
    try:
        for step in decoding.continued(run, steps, select):
            assert step.past.positions > before
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # masks of booleans, ids and small arrays come beside: a tenth, and 1 MB
    assert peak <= 1.1 * priced.bytes + 1e6
