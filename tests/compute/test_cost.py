"""The estimate against real runs: elements, bytes, and products counted one by one."""

import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

import runs
from cases import small
from compute import config_json, cost, initial, selection, stages, tensors, weights
from compute.config import ModelConfig
from compute.cost import Cost
from compute.sizing import parameters
from compute.sizing.tracing import work
from compute.tensors import Tensor
from compute.trace import Run, identities_of, trace
from compute.types import DType, Selected
from oracle.configs import Case

DTYPES: tuple[DType, ...] = ("float32", "float64")


def estimate_of(run: Run, dtype: DType = "float64") -> Cost:
    return cost.estimate(selection.scene_for(run.config, run.inputs), run.selection, dtype)


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_elements_are_the_sizes_of_the_arrays_of_a_real_trace(first: int) -> None:
    rng = np.random.default_rng(first)
    for seed in range(first, first + 50):
        case = runs.case_of(seed)
        run = runs.run_of_case(case, select=runs.random_selection(rng, case))
        made = trace(run).made
        sizes = {
            m.wanted.name: 5 * m.values[..., 0].size if m.wanted.summary else m.values.size
            for m in made
        }
        estimated = estimate_of(run)
        assert estimated.by_stage == sizes, seed
        assert estimated.elements == sum(sizes.values())


def test_the_default_answers_elements_are_those_of_its_arrays() -> None:
    for seed in range(0, 500, 5):
        run = runs.run_of_case(runs.case_of(seed))
        assert estimate_of(run).elements == sum(m.values.size for m in trace(run).made)


def test_parameters_are_those_of_the_tensors() -> None:
    for seed in range(0, 500, 5):
        case = runs.case_of(seed)
        held = sum(values.size for values in case.weights.values())
        assert estimate_of(runs.run_of_case(case)).parameters == held


def fetched(case: Case, select: list[Selected] | None) -> tuple[Run, list[str]]:
    """A run after it was traced, and the tensors it asked for."""
    config, asked = config_json.from_json(case.config), []

    def source(tensor: Tensor) -> np.ndarray:
        asked.append(tensor.name)
        return np.asarray(case.weights[tensor.name])

    inputs = runs.inputs_of(case.inputs)
    wanted = selection.resolve(select, selection.scene_for(config, inputs))
    packed = weights.build(config, source, "float64")
    run = Run(config=config, weights=packed, inputs=inputs, selection=wanted)
    identities_of(trace(run))
    return run, asked


def each_stage(case: Case) -> Iterator[list[Selected]]:
    """Every stage of a case alone."""
    config = config_json.from_json(case.config)
    scene = selection.scene_for(config, runs.inputs_of(case.inputs))
    for name, stage in stages.in_order(config):
        if scene.absence(name) is None:
            where = {"position": (0,)} if stage.name == "attn.source_out" else {}
            yield [Selected(name=name, where=where)]


@pytest.mark.parametrize("first", range(0, 500, 100))
def test_weight_bytes_are_those_of_the_tensors_a_run_asks_for(first: int) -> None:
    rng = np.random.default_rng(first)
    for seed in range(first, first + 100):
        case = runs.case_of(seed)
        for select in (None, [], runs.random_selection(rng, case)):
            run, asked = fetched(case, select)
            read = sum(case.weights[name].size for name in asked)
            for dtype, width in (("float32", 4), ("float64", 8)):
                assert estimate_of(run, dtype).weight_bytes == width * read, (seed, select)


def test_each_stage_alone_costs_the_weights_it_asks_for() -> None:
    for seed in range(0, 500, 20):
        case = runs.case_of(seed)
        for select in each_stage(case):
            run, asked = fetched(case, select)
            read = sum(case.weights[name].size for name in asked)
            assert estimate_of(run).weight_bytes == 8 * read, (seed, select)


def test_kept_bytes_are_those_of_what_a_trace_keeps() -> None:
    for seed in range(0, 200, 5):
        for dtype in DTYPES:
            run = runs.run_of_case(runs.case_of(seed), dtype=dtype)
            kept = sum(values.nbytes for values in trace(run).whole.values())
            estimated = estimate_of(run, dtype)
            assert estimated.kept_bytes == kept
            total = estimated.weight_bytes + estimated.kept_bytes + estimated.work_bytes
            assert estimated.bytes == total


def test_parameters_are_counted_alike_by_tensors_and_by_sizing() -> None:
    for seed in range(500):
        config = config_json.from_json(runs.case_of(seed).config)
        held = tensors.parameter_counts(config)["total"]
        assert parameters.count(config) == held


# Flops: 2 m k n for each product of (m, k) by (k, n).


Products = Iterator[tuple[int, int, int]]


def of_block(config: small.Config, n: int, s: int = 0) -> Products:
    """(m, k, n) of every product of a block, head by head, expert by expert."""
    if config["attention"]["kind"] != "none":
        yield from of_heads(config, n, n)
    if config.get("cross_attention"):
        yield from of_heads(config, n, s)
    if config["ffn"]["kind"] != "none":
        yield from of_ffn(config["ffn"], config["d_model"], n)


def of_heads(config: small.Config, n: int, m: int) -> Products:
    """n queries, m keys."""
    heads, d = config["attention"], config["d_model"]
    k, v = heads["d_head"], heads["d_value"]
    for _ in range(heads["n_heads"]):
        yield n, d, k  # Q
        yield n, k, m  # scores
        yield n, m, v  # mixture
        yield n, v, d  # contribution
    for _ in range(heads["n_kv_heads"]):
        yield m, d, k  # K
        yield m, d, v  # V


def of_ffn(ffn: small.Config, d: int, n: int) -> Products:
    f, kind = ffn["d_ff"], ffn["kind"]
    if kind == "moe":
        yield n, d, ffn["n_experts"]  # the router
        for _ in range(n * ffn["top_k"]):
            yield from of_ffn({"kind": ffn["expert"], "d_ff": f}, d, 1)
        if ffn["d_shared"]:
            yield from of_ffn({"kind": ffn["expert"], "d_ff": ffn["d_shared"]}, d, n)
        if ffn["shared_gate"]:
            yield n, d, 1
        return
    yield n, d, f  # up
    yield n, f, d  # back
    if kind == "gated":
        yield n, d, f


def flops_of(products: Products) -> int:
    return sum(2 * m * k * n for m, k, n in products)


def cases() -> list[Case]:
    return [runs.case_of(seed) for seed in range(0, 500, 3)]


def counted(case: Case, *names: str) -> int:
    run = runs.run_of_case(case, select=[Selected(name=name) for name in names])
    return cost.flops(selection.scene_for(run.config, run.inputs), run.selection)


def lengths_of(case: Case) -> tuple[int, int, int]:
    """(b or 1, n, s or 0)."""
    *batch, n = runs.shape_of(case.inputs)
    memory = case.inputs.get("memory")
    return batch[0] if batch else 1, n, runs.shape_of(memory)[-1] if memory else 0


def encoder_flops(case: Case) -> int:
    """Of a whole encoder, for one example."""
    encoder, (_, _, s) = case.config["encoder"], lengths_of(case)
    return 0 if encoder is None else encoder["n_layers"] * flops_of(of_block(encoder, s))


def test_a_whole_run_costs_its_products() -> None:
    for case in cases():
        config, (b, n, s) = case.config, lengths_of(case)
        d = config["d_model"]
        blocks = config["n_layers"] * flops_of(of_block(config, n, s)) + encoder_flops(case)
        assert counted(case, f"blocks.{config['n_layers'] - 1}.resid_post") == b * blocks
        head = 2 * n * d * d if config["mlm_head"] else 0
        if config["mlm_head"]:
            assert counted(case, "mlm_head.up") == b * (blocks + head)
            assert counted(case, "mlm_norm.out") == b * (blocks + head)
        if config["final_norm"]:
            assert counted(case, "final_norm.out") == b * blocks
        if config["vocab"] is not None and config["readout"]:
            readout = 2 * n * d * config["vocab"]
            assert counted(case, "logits") == b * (blocks + head + readout), case.seed


def test_the_counted_runs_meet_every_product() -> None:
    configs = [case.config for case in cases()]
    kinds = {(c["ffn"]["kind"], c["ffn"].get("expert")) for c in configs}
    assert kinds >= {("mlp", None), ("gated", None), ("moe", "mlp"), ("moe", "gated")}
    for chosen in ("d_shared", "shared_gate"):
        assert any(c["ffn"].get(chosen) for c in configs)
    for chosen in ("cross_attention", "encoder", "mlm_head"):
        assert any(c[chosen] for c in configs)


def test_a_run_costs_the_blocks_it_reaches() -> None:
    for case in cases():
        b, n, s = lengths_of(case)
        one, below = b * flops_of(of_block(case.config, n, s)), b * encoder_flops(case)
        for layer in range(case.config["n_layers"]):
            assert counted(case, f"blocks.{layer}.resid_post") == (layer + 1) * one + below
            reached = counted(case, "blocks.0.resid_pre", f"blocks.{layer}.*")
            assert reached >= (layer + 1) * one + below
        if "token_ids" in case.inputs:
            assert counted(case, "embed") == below


def waits(case: Case, name: str) -> Iterator[tuple[str, Products]]:
    """(the first stage that waits for it, products) of the block that a stage is in, written out;
    a stage that the block lacks stands for the next one that it has."""
    encoder, (_, n, s) = name.startswith("encoder."), lengths_of(case)
    config = case.config["encoder"] if encoder else case.config
    n, d, heads, ffn = s if encoder else n, config["d_model"], config["attention"], config["ffn"]
    sublayers = [("attn", n)] * (heads["kind"] != "none")
    sublayers += [("cross", s)] * bool(config.get("cross_attention"))
    for kind, m in sublayers:
        k, v, h, g = (heads[x] for x in ("d_head", "d_value", "n_heads", "n_kv_heads"))
        yield f"{kind}.q", iter([(n, d, h * k)])
        # of self-attention queries, keys and values are one product
        yield f"{kind}.{'q' if kind == 'attn' else 'k'}", iter([(m, d, g * k), (m, d, g * v)])
        yield f"{kind}.scores", iter([(h * n, k, m)])
        yield f"{kind}.z", iter([(h * n, m, v)])
        yield f"{kind}.out_raw|{kind}_out", iter([(n, h * v, d)])
    if ffn["kind"] == "moe":
        f, u, twice = ffn["d_ff"], ffn["d_shared"], 1 + (ffn["expert"] == "gated")
        yield "ffn.router", iter([(n, d, ffn["n_experts"])])
        yield "ffn.expert_hidden", iter([(n * ffn["top_k"], d, f)] * twice)
        yield "ffn.expert_out", iter([(n * ffn["top_k"], f, d)])
        if u:
            yield "ffn.shared_weight|ffn.shared_out", iter([(n, d, 1)] * ffn["shared_gate"])
            yield "ffn.shared_out", iter([(n, d, u)] * twice + [(n, u, d)])
    elif ffn["kind"] != "none":
        yield "ffn.up", iter([(n, d, ffn["d_ff"])])
        if ffn["kind"] == "gated":
            yield "ffn.gate", iter([(n, d, ffn["d_ff"])])
        yield "ffn.out_raw|ffn_out", iter([(n, ffn["d_ff"], d)])


def products_until(case: Case, name: str, computed: list[str]) -> int:
    """Flops of the products of a block that are done when a stage of it is there, by the order in
    which a real run computed the block's stages."""
    prefix = name.removesuffix(stages.local_name(name))
    at, done = computed.index(name), 0
    for there, products in waits(case, name):
        first = next(x for x in there.split("|") if prefix + x in computed)
        done += flops_of(products) if computed.index(prefix + first) <= at else 0
    return done


@pytest.mark.parametrize("first", range(0, 500, 100))
def test_a_run_costs_the_products_up_to_its_last_stage(first: int) -> None:
    """Each stage alone, in the order in which the equations really come to it."""
    counted_stages = 0
    for seed in range(first, first + 100, 5):
        case = runs.case_of(seed)
        run = runs.run_of_case(case)
        scene = selection.scene_for(run.config, run.inputs)
        b, n, s = lengths_of(case)
        computed = list(trace(run).whole)
        for name in computed:
            layer, stage = stages.layer_of(name), stages.find(name)
            if layer is None or stage.derived:
                continue
            theirs = stages.stack_of(name)
            stack = case.config["encoder"] if theirs else case.config
            rows, memory = (s, 0) if theirs else (n, s)
            below = layer * flops_of(of_block(stack, rows, memory))
            below += 0 if theirs else encoder_flops(case)
            within = products_until(case, name, computed)
            wanted = selection.resolve([Selected(name=name)], scene)
            assert cost.flops(scene, wanted) == b * (below + within), (seed, name)
            counted_stages += 1
    assert counted_stages > 500


def test_a_run_that_stops_in_the_encoder_costs_the_blocks_it_reaches_there() -> None:
    for case in cases():
        if case.config["encoder"] is not None:
            b, _, s = lengths_of(case)
            one = b * flops_of(of_block(case.config["encoder"], s))
            for layer in range(case.config["encoder"]["n_layers"]):
                name = f"encoder.blocks.{layer}.resid_post"
                assert counted(case, name) == (layer + 1) * one, case.seed


def multiply_adds(config: ModelConfig, n: int, m: int, s: int) -> int:
    """Of one block, written out."""
    a, d, f = config.attention, config.d_model, config.ffn
    width = a.d_head + a.d_value
    attention = n * (d * (a.n_heads + a.n_kv_heads) * width + a.n_heads * m * width)
    across = n * a.n_heads * (d * width + s * width) + s * a.n_kv_heads * d * width
    matrices = 3 if f.kind == "gated" or (f.kind == "moe" and f.expert == "gated") else 2
    ffn = 0 if f.kind == "none" else matrices * d * f.d_ff
    if f.kind == "moe":
        shared = matrices * d * f.d_shared + (d if f.shared_gate else 0)
        ffn = d * f.n_experts + f.top_k * matrices * d * f.d_ff + shared
    return attention + (across if config.cross_attention else 0) + n * ffn


def test_a_block_costs_the_written_out_sum() -> None:
    for seed in range(500):
        config = config_json.from_json(runs.case_of(seed).config)
        for stack in filter(None, (config, config.encoder)):
            for n, m, s in ((1, 1, 1), (5, 5, 3), (2, 9, 0), (4096, 4096, 512)):
                one = work.products(
                    stack.d_model, stack.attention, stack.ffn, stack.cross_attention
                )
                far = s if stack.cross_attention else 0
                found = n * one.position + far * one.memory + n * (m + far) * one.pair
                assert found == multiply_adds(stack, n, m, s), seed


def test_a_past_costs_pairs_and_no_products() -> None:
    for seed in range(0, 500, 5):
        config = config_json.from_json(runs.case_of(seed).config)
        if config.vocab is None or config.cross_attention:
            continue
        lengths = stages.dimensions(config, 3, None, 0, past=8)
        scene = selection.Scene(config, True, lengths)
        name = f"blocks.{config.n_layers - 1}.resid_post"
        found = cost.flops(scene, selection.resolve([Selected(name=name)], scene))
        assert found == 2 * config.n_layers * multiply_adds(config, 3, 11, 0), seed


def test_contributions_cost_their_products_too() -> None:
    for case in filter(runs.has_attention, cases()):
        (b, n, s), heads = lengths_of(case), case.config["attention"]
        h, d = heads["n_heads"], case.config["d_model"]
        base = counted(case, "blocks.0.resid_post")
        head_out = 2 * b * h * n * heads["d_value"] * d
        assert counted(case, "blocks.0.resid_post", "blocks.0.attn.head_out") == base + head_out
        dots = 2 * b * h * n * n * heads["d_head"]
        assert counted(case, "blocks.0.resid_post", "blocks.0.attn.dots") == base + dots
        if case.config["cross_attention"]:
            found = counted(case, "blocks.0.resid_post", "blocks.0.cross.head_out")
            assert found == base + head_out
        if case.config["encoder"] is not None:
            theirs = case.config["encoder"]["attention"]
            if theirs["kind"] != "none":
                inner = theirs["n_heads"] * theirs["d_value"]
                found = counted(case, "blocks.0.resid_post", "encoder.blocks.0.attn.head_out")
                assert found == base + 2 * b * s * inner * d


def source_flops(rows: tuple[int, ...]) -> tuple[int, int]:
    """(what the estimate adds for attn.source_out, what its products cost at least)."""
    config = small.model(11, attention=small.attention(3, 2, d_value=5))
    run = small.run(
        config,
        small.values(config, {}),
        select=[
            Selected(name="attn_out"),
            Selected(name="attn.source_out", where={"position": rows}),
        ],
        tensor=np.zeros((7, 11)),
    )
    base = counted(
        Case(0, config, small.values(config, {}), {"tensor": np.zeros((7, 11))}), "attn_out"
    )
    scene = selection.scene_for(run.config, run.inputs)
    return cost.flops(scene, run.selection) - base, 2 * 3 * 7 * 5 * 11


@pytest.mark.parametrize("rows", [(6,), (0, 3, 6)])
def test_what_sources_give_costs_its_product_too(rows: tuple[int, ...]) -> None:
    estimated, products = source_flops(rows)
    assert estimated >= products


# Memory.


def peak(run: Run) -> int:
    """The most bytes alive at once during a run."""
    tracemalloc.start()
    try:
        trace(run)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


HEADS = small.attention(4, 6)
LONG = small.model(24, attention=HEADS | {"mask": "causal"}, ffn=small.mlp(96))
T5 = {"kind": "t5_bias", "n_buckets": 32, "max_distance": 128, "bidirectional": True}
GATED = small.moe(512, 8, 4, expert="gated", d_shared=512)
WIDE = {
    "long": LONG,
    "wide ffn": small.model(24, ffn=small.mlp(4096)),
    "rope": small.model(24, attention=HEADS, position=small.rope(6)),
    "alibi": small.model(
        24,
        attention=small.attention(4, 6),
        position={"kind": "alibi", "alibi_rule": "bloom"},
    ),
    "alibi, one head": small.model(
        24,
        attention=small.attention(1, 6),
        position={"kind": "alibi", "alibi_rule": "bloom"},
    ),
    "vocabulary": small.model(24, ffn=small.mlp(96)) | {"vocab": 20011},
    "t5": small.model(24, attention=HEADS, position=T5),
    "t5, one head": small.model(24, attention=small.attention(1, 6), position=T5),
    "sinks, capped": LONG | {"attention": HEADS | {"sinks": True, "softcap": 5.0}},
    "normalized heads": small.model(
        24, attention=HEADS | {"qk_norm": "full"}, norm=small.norm("rmsnorm")
    ),
    "sandwich": LONG
    | {"norm": small.norm("layernorm", placement="sandwich"), "residual_multiplier": 0.5},
    "parallel": LONG | {"norm": small.norm("layernorm", shared=True), "topology": "parallel"},
    "own windows": LONG
    | {
        "layers": [
            {"window": window, "scale": 0.4, "theta": None, "scaling": {"kind": "none"}}
            for window in (8, None)
        ]
    },
    "experts": small.model(24, ffn=small.moe(1024, 4, 2)),
    "gated experts": small.model(24, ffn=GATED),
    "many experts": small.model(24, ffn=small.moe(24, 2048, 8, renormalize=False)),
    "wide shared expert": small.model(24, ffn=small.moe(24, 4, 1, d_shared=4096)),
    "mlm head": small.model(24, ffn=small.mlp(96), norm=small.norm("layernorm"))
    | {"vocab": 20011, "mlm_head": True, "logit_softcap": 30.0},
    "types": LONG | {"token_types": 2, "vocab": 31, "norm": small.norm("layernorm")},
    "crossing": LONG | {"cross_attention": True},
    "encoder": LONG
    | {
        "cross_attention": True,
        "encoder": small.model(24, attention=HEADS, ffn=small.mlp(4096), position=T5),
    },
}


def asked_of(name: str, config: small.Config) -> list[Selected] | None:
    """What is asked: the default answer, a last row, or every block's largest stages."""
    last = "logits" if config["vocab"] else "blocks.1.resid_post"
    return {
        "default": None,
        "last row": [Selected(name=last, where={"position": (-1,)})],
        "every layer's pattern": [
            *(Selected(name="*.pattern"), Selected(name="*.hidden")),
            Selected(name="*.experts"),
        ],
    }[name]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("asked", ["default", "last row", "every layer's pattern"])
@pytest.mark.parametrize("name", WIDE)
def test_a_run_stays_within_its_estimated_memory(name: str, asked: str, dtype: DType) -> None:
    config = WIDE[name] | {"n_layers": 2}
    rows = np.random.default_rng(0).standard_normal((509, 24))
    run = small.run(
        config,
        small.drawn(config, 0),
        dtype=dtype,
        select=asked_of(asked, config),
        tensor=rows,
        memory={"tensor": rows[:487]} if config.get("cross_attention") else None,
    )
    estimated = estimate_of(run, dtype)
    # masks and tables of booleans, ids and small arrays come beside: a tenth, and 1 MB
    assert peak(run) <= 1.1 * estimated.bytes + 1e6
    # the weights are there now
    assert peak(run) <= 1.1 * (estimated.kept_bytes + estimated.work_bytes) + 1e6


ONE_HEAD = small.attention(1, 1, mask="causal")
WIDE_HEAD = small.attention(1, 256)
BY_BLOCK = {
    "windows": (ONE_HEAD, small.NONE, [{"window": at + 1, "theta": None} for at in range(16)]),
    "bases": (
        WIDE_HEAD,
        small.rope(256),
        [{"window": None, "theta": 10.0 + at} for at in range(16)],
    ),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("own", BY_BLOCK)
def test_blocks_that_all_differ_stay_within_the_estimate(own: str, dtype: DType) -> None:
    attention, position, layers = BY_BLOCK[own]
    plain = {"scale": 0.4, "scaling": {"kind": "none"}}
    config = small.model(
        2,
        n_layers=16,
        attention=attention,
        position=position,
        layers=[plain | layer for layer in layers],
    )
    batch, n = 3, 251
    run = small.run(
        config,
        small.drawn(config, 0),
        dtype=dtype,
        select=[Selected(name="blocks.15.resid_post", where={"position": (-1,)})],
        tensor=np.random.default_rng(0).standard_normal((batch, n, 2)),
        key_mask=np.arange(batch * n).reshape(batch, n) % 7 > 0,
        position_ids=np.arange(batch * n).reshape(batch, n),
    )
    assert peak(run) <= 1.1 * estimate_of(run, dtype).bytes + 1e6


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [1, 64])
@pytest.mark.parametrize("crosses", [False, True])
def test_packing_weights_stays_within_the_estimate(crosses: bool, count: int, dtype: DType) -> None:
    heads = small.attention(8, 64, n_kv_heads=8)
    config = small.model(512, attention=heads, ffn=small.mlp(256), norm=small.norm("rmsnorm"))
    config |= {"n_layers": 2, "cross_attention": crosses}
    resolved = config_json.from_json(config)
    rows = np.zeros((count, 512))
    read = runs.inputs_of({"tensor": rows} | ({"memory": {"tensor": rows}} if crosses else {}))
    source = initial.seeded(0, dtype, 0.0)
    run = Run(
        config=resolved,
        weights=weights.build(resolved, source, dtype),
        inputs=read,
        selection=selection.resolve(None, selection.scene_for(resolved, read)),
    )
    assert peak(run) <= 1.1 * estimate_of(run, dtype).bytes + 1e6


def test_an_estimate_of_a_large_model_allocates_nothing() -> None:
    heads = small.attention(128, 128, mask="causal")
    raw = small.model(16384, attention=heads, ffn=small.moe(65536, 128, 8))
    encoder = small.model(16384, attention=heads, ffn=small.mlp(65536))
    config = config_json.from_json(raw | {"cross_attention": True, "encoder": encoder})
    scene = selection.Scene(config, False, stages.dimensions(config, 1 << 20, 1 << 10, 1 << 19))
    wanted = selection.resolve(None, scene)
    tracemalloc.start()
    estimated = cost.estimate(scene, wanted, "float32")
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
    pattern = (1 << 10) * 128 * (1 << 20) ** 2
    assert estimated.by_stage["blocks.0.attn.pattern"] == pattern
    assert estimated.by_stage["blocks.0.cross.pattern"] == pattern // 2
    assert estimated.by_stage["encoder.blocks.0.attn.pattern"] == pattern // 4
    assert type(estimated.flops) is int
    assert estimated.flops > 1 << 63
