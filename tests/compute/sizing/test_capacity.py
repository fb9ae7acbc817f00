"""Capacity: the published answers, and that the answer fits and one more does not."""

import random

import pytest

import sized
from compute.config import ModelConfig
from compute.sizing import architecture, parameters
from compute.sizing.fitting import capacity, occupied, searching
from compute.sizing.fitting.capacity import Found
from compute.sizing.fitting.occupied import Held, Room
from compute.sizing.formats import CacheFormat, Format
from compute.sizing.memory import kv_cache, weight_bytes
from compute.sizing.vocabulary import Workload

BF16 = Format(name="bfloat16")
CACHE = CacheFormat(format=BF16)
HELD = Held(weights=BF16, cache=CACHE)
LLAMA = "llama-3(.1)-8b"


@pytest.mark.parametrize(
    ("truth", "model"),
    [
        ("llama-3-8b bf16 weights+KV only, budget 24 GiB, B=1", LLAMA),
        ("llama-2-7b same budget", "llama-1/2-7b"),
    ],
)
def test_longest_context_is_the_one_that_was_computed(truth: str, model: str) -> None:
    expected = sized.extra_truths()[truth]
    room = Room(budget=expected["input"]["budget"])
    assert capacity.context(sized.config_of(model), HELD, room, 1).tokens == expected["expected"]


def test_most_sequences_are_those_that_were_computed() -> None:
    expected = sized.extra_truths()["llama-3-8b, 80 GiB, 8192 tokens each"]
    room = Room(budget=expected["input"]["budget"])
    assert capacity.batch(sized.config_of(LLAMA), HELD, room, 8192).batch == expected["expected"]


def of_a_chance(rng: random.Random) -> tuple[ModelConfig, Held, Room]:
    config = sized.config_of(
        rng.choice([x for x in sized.truths() if not sized.config_of(x).patches])
    )
    include = rng.choice([("weights", "activations"), ("weights", "kv_cache", "activations")])
    if rng.random() < 0.3 or not architecture.caches(config):
        include = occupied.included(config)
    form = Format(name=rng.choice(["bfloat16", "q4_k", "int8"]))
    held = Held(
        include=include,
        weights=form,
        cache=CacheFormat(format=form, page=rng.choice([0, 0, 16, 256])),
        windows=rng.choice(["allocation", "lower_bound"]),
        source=rng.choice([None, 100]),
    )
    weights = int(weight_bytes.size(config, form).total)
    room = Room(
        budget=weights * rng.randint(50, 900) // 100,
        utilisation=rng.choice([1.0, 0.9, 0.37]),
        overhead=rng.choice([0, 12_345]),
    )
    return config, held, room


def check(found: Found, at: dict[str, int], following: dict[str, int], usable: int) -> None:
    assert found.parts == at
    if found.limit == "memory":
        assert sum(at.values()) <= usable < sum(following.values())
        assert found.following == following
    elif found.limit == "weights":
        assert found.batch == 0 or found.tokens == 0
        assert sum(at.values()) > usable
    else:
        assert sum(at.values()) <= usable
        assert found.following is None


@pytest.mark.parametrize("seed", range(60))
def test_the_answer_fits_and_one_more_does_not(seed: int) -> None:
    rng = random.Random(seed)
    config, held, room = of_a_chance(rng)
    many = rng.randint(1, 40)

    def parts(batch: int, tokens: int) -> dict[str, int]:
        return occupied.parts_at(config, held, room, batch, tokens)

    found = capacity.context(config, held, room, many)
    check(found, parts(many, found.tokens), parts(many, found.tokens + 1), room.usable)
    found = capacity.batch(config, held, room, many)
    check(found, parts(found.batch, many), parts(found.batch + 1, many), room.usable)
    assert capacity.fits(config, held, room, found.batch, many).fits is found.fits


@pytest.mark.parametrize("seed", range(40))
def test_search_finds_what_going_through_all_finds(seed: int) -> None:
    rng = random.Random(seed)
    bend, slope, start = rng.choice([0, 0, 1, 3]), rng.randint(0, 9), rng.randint(0, 50)
    page, most = rng.choice([1, 1, 16]), rng.choice([1, 2, 900])
    limit = rng.randint(0, 4000)

    def grown(x: int) -> int:
        whole = -(-x // page) * page
        return start + slope * whole + bend * whole * whole

    within = [x for x in range(most + 1) if grown(x) <= limit]
    assert searching.largest(grown, limit, most) == max(within, default=0)


def test_search_looks_few_times_over_a_wide_range() -> None:
    looks: list[int] = []

    def grown(x: int) -> int:
        looks.append(x)
        return 3 * x * x + 7 * x + 11

    assert grown(searching.largest(grown, 10**15, 1 << 40)) <= 10**15
    assert len(looks) < 20


def test_bytes_are_those_of_each_section() -> None:
    config = sized.config_of(LLAMA)
    parts = occupied.parts_at(config, HELD, Room(budget=0, overhead=5), 3, 100)
    assert parts["weights"] == 2 * parameters.count(config)
    assert parts["kv_cache"] == 3 * 100 * 131_072
    assert parts["overhead"] == 5


def test_nothing_fits_where_weights_do_not() -> None:
    config = sized.config_of(LLAMA)
    weights = 2 * parameters.count(config)
    for budget, tokens, limit in (
        (weights - 1, 0, "weights"),
        (weights, 0, "memory"),
        (weights + 131_071, 0, "memory"),
        (weights + 131_072, 1, "memory"),
    ):
        found = capacity.context(config, HELD, Room(budget=budget), 1)
        assert (found.tokens, found.limit) == (tokens, limit)


def test_a_learned_table_ends_a_context_that_memory_does_not() -> None:
    found = capacity.context(sized.config_of("gpt2-small"), HELD, Room(budget=1 << 40), 1)
    assert (found.tokens, found.limit, found.following) == (1024, "positions", None)


def test_a_context_that_nothing_ends_is_told_as_the_cap() -> None:
    held = Held(weights=BF16, cache=CACHE, windows="lower_bound")
    config = sized.config_of("mistral-7b-v0.1")
    found = capacity.context(config, held, Room(budget=24 << 30), 1)
    assert (found.tokens, found.limit) == (1 << 40, "cap")


def test_windows_leave_room_for_more_sequences_than_an_engine_allocates() -> None:
    config, room = sized.config_of("gpt-oss-20b"), Room(budget=80 << 30)
    kept = {"allocation": 0, "lower_bound": 0}
    for policy in kept:
        held = Held(weights=BF16, cache=CACHE, windows=policy)  # type: ignore[arg-type]
        kept[policy] = capacity.batch(config, held, room, 8192).batch
    left = room.budget - int(weight_bytes.size(config, BF16).total)
    one = kv_cache.size(config, Workload(tokens=8192), CACHE)
    assert kept["allocation"] == left // int(one.allocation.total)
    assert kept["lower_bound"] == left // int(one.lower_bound.total)
    assert kept["lower_bound"] > kept["allocation"]


def test_the_part_that_grows_most_is_named() -> None:
    config = sized.config_of(LLAMA)
    held = Held(include=("weights", "kv_cache", "activations"), weights=BF16, cache=CACHE)
    found = capacity.context(config, held, Room(budget=24 << 30), 1)
    assert found.part == "activations"  # n² pairs, and no longer 131,072 bytes a position
    assert capacity.context(config, HELD, Room(budget=24 << 30), 1).part == "kv_cache"


def test_an_encoder_is_bound_by_its_activations() -> None:
    config = sized.config_of("bert-base-uncased")
    held = Held(include=occupied.included(config), weights=BF16)
    assert held.include == ("weights", "activations")
    found = capacity.batch(config, held, Room(budget=1 << 32), 512)
    assert (found.limit, found.part) == ("memory", "activations")


def test_utilisation_is_meant_as_it_is_written() -> None:
    assert Room(budget=10**18, utilisation=0.9).usable == 9 * 10**17
    assert Room(budget=7, utilisation=0.5).usable == 3
