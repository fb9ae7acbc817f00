"""The predicted trace against the answer of POST /v1/trace: numbers, bytes, characters, limits."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np
import orjson
import pytest
from pydantic import ValidationError
from starlette.testclient import TestClient

import sized
from compute import selection, stages
from compute.config import ModelConfig
from compute.errors import QuestionError
from compute.selection import Scene
from compute.sizing.tracing import json_bytes, traced
from compute.sizing.vocabulary import Workload
from compute.types import DType
from oracle.configs import random_config
from schemas.config import ConfigAsked
from schemas.model import ModelAsked
from schemas.sizing.trace import SizedTraceAsked
from service.errors import ServiceError, refusal_of
from service.settings import Settings
from service.sizing.sized import Sized
from service.sizing.traced import view

MakeClient = Callable[..., TestClient]
Drawn = dict[str, Any]

CASES, AT_ONCE = 320, 40
_DATA = re.compile(rb'"([a-zA-Z0-9_.]+)":\{"symbol"[^{}]*?"data":([\[\]0-9.,enul+-]*\])')


@dataclass(frozen=True)
class Asked:
    """A trace that is asked for, and the same to be sized."""

    request: Drawn
    config: ModelConfig
    workload: Workload
    sized: SizedTraceAsked

    def predicted(self, settings: Settings | None = None) -> Drawn:
        return view(sized_model(self.config), self.workload, self.sized, settings or Settings())


def sized_model(config: ModelConfig) -> Sized:
    """A config as a request's that names it."""
    return Sized(ModelAsked(preset="gpt2-tiny"), config, [])


def asked_of(seed: int) -> Asked:
    """A random config of any arrangement, with an input of about 20 to 50 positions."""
    rng = np.random.default_rng(seed)
    config, _ = random_config(rng)
    resolved = ConfigAsked.model_validate(config).to_compute()
    n, s = rows_of(rng, resolved), 0
    if resolved.cross_attention:
        s = rows_of(rng, resolved.encoder)
    batch = int(rng.integers(2, 4)) if rng.random() < 0.25 else None
    reads: Literal["token_ids", "tensor"] = "tensor"
    if resolved.vocab is not None and rng.random() < 0.6:
        reads = "token_ids"
    dtype: DType = "float64" if seed % 2 else "float32"
    inputs = rows(rng, resolved, batch, n, reads)
    if resolved.cross_attention:
        of_memory = reads if resolved.encoder is not None else "tensor"
        inputs["memory"] = rows(rng, resolved, batch, s, of_memory)
    select = selections(rng, resolved) if seed % 3 == 0 else None
    return Asked(
        request={
            "model": {"config": config},
            "input": inputs,
            "dtype": dtype,
            **({} if select is None else {"select": select}),
        },
        config=resolved,
        workload=Workload(batch=batch or 1, tokens=n, source=s),
        sized=SizedTraceAsked.model_validate({"select": select, "dtype": dtype, "input": reads}),
    )


def rows_of(rng: np.random.Generator, config: ModelConfig | None) -> int:
    count = int(rng.integers(20, 50))
    if config is None or config.position.kind != "learned":
        return count
    return min(count, config.position.n_positions)


def rows(
    rng: np.random.Generator, config: ModelConfig, batch: int | None, n: int, reads: str
) -> Drawn:
    shape = (n,) if batch is None else (batch, n)
    if reads == "token_ids":
        return {"token_ids": rng.integers(0, config.vocab or 1, shape).tolist()}
    return {"tensor": rng.standard_normal((*shape, config.d_model)).tolist()}


def selections(rng: np.random.Generator, config: ModelConfig) -> list[Any]:
    """Stages of every block and of one, sliced, summed up, met by a wildcard."""
    last = f"blocks.{config.n_layers - 1}"
    chosen: list[Any] = [
        "blocks.*.resid_post",
        {"name": f"{last}.resid_pre", "position": [0, -1, 3]},
        "*out*",
    ]
    if config.attention.kind != "none":
        chosen += [
            {"name": "attn.pattern", "head": [0], "position": [-1, 2]},
            {"name": "attn.scores", "summary": True},
            {"name": f"{last}.attn.source_out", "position": [4]},
            f"{last}.attn.dots",
        ]
    if config.ffn.kind == "moe":
        chosen += [{"name": "ffn.experts", "summary": bool(rng.random() < 0.5)}]
    if config.encoder is not None:
        chosen += ["encoder.blocks.0.*"]
    return chosen


def traced_(client: TestClient, asked: Asked) -> tuple[bytes, Drawn]:
    response = client.post("/v1/trace", json=asked.request)
    assert response.status_code == 200, response.text[:500]
    return response.content, orjson.loads(response.content)


def kind_of(name: str) -> str:
    """blocks.3.attn.z -> blocks.attn.z."""
    return re.sub(r"blocks\.[0-9]+\.", "blocks.", name)


def by_kind(tensors: Mapping[str, Drawn], count: Callable[[Drawn], int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, tensor in tensors.items():
        found[kind_of(name)] = found.get(kind_of(name), 0) + count(tensor)
    return found


def parts(ledger: Drawn) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in ledger["parts"]:
        name = kind_of(part["id"])
        found[name] = found.get(name, 0) + part["value"]
    return found


def numbers_of(tensor: Drawn) -> int:
    count = prod(tensor["shape"])
    return 5 * count if "summary" in tensor else count


def bytes_of(tensor: Drawn) -> int:
    width = np.dtype(tensor["dtype"]).itemsize
    return width * numbers_of(tensor)


@pytest.mark.parametrize("first", range(0, CASES, AT_ONCE))
def test_predicted_trace_is_the_one_that_is_answered(client: TestClient, first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        asked = asked_of(seed)
        body, answer = traced_(client, asked)
        found, tensors = asked.predicted(), answer["tensors"]
        assert parts(found["elements"]) == by_kind(tensors, numbers_of), seed
        assert found["elements"]["total"]["value"] == answer["cost"]["elements"]
        assert found["bytes"]["value"] == sum(by_kind(tensors, bytes_of).values()), seed
        assert found["flops"]["value"] == answer["cost"]["flops"], seed
        assert found["memory"]["value"] > answer["cost"]["bytes"] + len(body)
        assert len(body) <= found["json_bytes_at_most"]["value"], seed
        if answer["cost"]["elements"] > 10_000:
            assert found["json_bytes"]["value"] == pytest.approx(len(body), rel=0.15), seed


def test_the_sized_traces_meet_every_arrangement() -> None:
    configs = [asked_of(seed).config for seed in range(CASES)]
    assert {c.norm.placement for c in configs} >= {"pre", "post", "sandwich", "output"}
    assert {c.ffn.kind for c in configs} == {"mlp", "gated", "moe", "none"}
    assert {c.attention.kind for c in configs} == {"softmax", "none"}
    for chosen in ("cross_attention", "encoder", "mlm_head", "layers", "token_types", "embed_norm"):
        assert any(getattr(c, chosen) for c in configs), chosen
    assert any({layer.theta is None for layer in c.layers} == {True, False} for c in configs), (
        "some blocks turn, some do not"
    )
    assert any(asked_of(seed).workload.batch > 1 for seed in range(20))


@pytest.mark.parametrize("first", range(0, 80, AT_ONCE))
def test_no_tensor_is_longer_than_its_bound(client: TestClient, first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        asked = asked_of(seed)
        if asked.sized.select is not None:
            continue
        body, answer = traced_(client, asked)
        scene = scene_of(asked)
        told = {name.decode(): len(data) for name, data in _DATA.findall(body)}
        assert told.keys() == answer["tensors"].keys()
        for wanted in selection.resolve(None, scene).wanted:
            shape = answer["tensors"][wanted.name]["shape"]
            lengths = scene.lengths_of(wanted.name)
            most = json_bytes.data_at_most(wanted, shape, lengths, asked.sized.dtype)
            assert told[wanted.name] <= most, wanted.name


def scene_of(asked: Asked) -> Scene:
    tokens = asked.sized.input == "token_ids"
    of_memory = tokens and asked.config.encoder is not None
    return traced.scene_of(asked.config, asked.workload, tokens=tokens, memory_tokens=of_memory)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("values", ["longest", "nonfinite", "overflowing"])
def test_bound_holds_for_the_longest_numbers_and_for_runs_of_nulls(
    client: TestClient, dtype: DType, values: str
) -> None:
    config = {"d_model": 3, "attention": {"n_heads": 1}, "norm": {"kind": "none"}}
    most = 3.4e38 if dtype == "float32" else 1.7e308
    longest = -1.2345679e-06 if dtype == "float32" else -1.2345678901234567e-05
    entries = {"longest": [longest], "nonfinite": [most, 0.1, -most], "overflowing": [most]}
    row = (entries[values] * 3)[:3]
    request = {
        "model": {"config": config, "weights": {"init": "identity"}},
        "input": {"tensor": [row, [longest] * 3] * 40},
        "dtype": dtype,
        "select": ["*", "attn.dots"],
    }
    asked = SizedTraceAsked.model_validate({"select": request["select"], "dtype": dtype})
    resolved = ConfigAsked.model_validate(config).to_compute()
    found = view(sized_model(resolved), Workload(tokens=80), asked, Settings())
    response = client.post("/v1/trace", json=request)
    kinds = {type(x.get("nonfinite")) for x in response.json()["tensors"].values()}
    assert (dict in kinds) == (values != "longest")
    assert len(response.content) <= found["json_bytes_at_most"]["value"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("masks", ["key_mask", "attention_mask", "none"])
def test_admission_never_counts_less_text_than_there_is(
    make_client: MakeClient, assert_problem: Callable[..., Drawn], dtype: str, masks: str
) -> None:
    config = {"d_model": 2, "attention": {"n_heads": 1}, "n_layers": 2, "norm": {"kind": "none"}}
    longest = -1.2345679e-06 if dtype == "float32" else -1.2345678901234567e-05
    given: dict[str, Drawn] = {
        "key_mask": {"key_mask": [False] * 50},
        "attention_mask": {"attention_mask": [[bool(i % 2)] * 50 for i in range(50)]},
        "none": {},
    }
    request = {
        "model": {"config": config, "weights": {"init": "identity"}},
        "input": {"tensor": [[longest] * 2] * 50, **given[masks]},
        "dtype": dtype,
    }
    refused = make_client(memory_bytes=1).post("/v1/trace", json=request)
    got = assert_problem(refused, "beyond-limit")["limit"]["got"]
    answered = make_client().post("/v1/trace", json=request)
    rest = got - answered.json()["cost"]["bytes"]
    assert len(answered.content) <= rest


def sized_(config: Drawn, tokens: int, **asked: object) -> Drawn:
    resolved = ConfigAsked.model_validate(config).to_compute()
    said = SizedTraceAsked.model_validate(asked)
    return view(sized_model(resolved), Workload(tokens=tokens), said, Settings())


def test_fits_where_the_service_answers_and_not_where_it_refuses(make_client: MakeClient) -> None:
    config = {"d_model": 8, "attention": {"n_heads": 2}, "n_layers": 2}
    request = {"model": {"config": config}, "input": {"tensor": [[0.5] * 8] * 5}}
    resolved = ConfigAsked.model_validate(config).to_compute()
    plain = view(sized_model(resolved), Workload(tokens=5), SizedTraceAsked(), Settings())
    assert (plain["fits"], plain["limits"]) == (True, [])
    needs = {
        "answer_elements": plain["elements"]["total"]["value"],
        "memory_bytes": plain["memory"]["value"],
        "work_flops": plain["flops"]["value"],
        "positions": 5,
        "d_model": 8,
        "blocks": 2,
    }
    for name, needed in needs.items():
        for most, status in ((needed, 200), (needed - 1, 413)):
            settings = Settings(**{name: most})
            found = view(sized_model(resolved), Workload(tokens=5), SizedTraceAsked(), settings)
            response = make_client(**{name: most}).post("/v1/trace", json=request)
            assert response.status_code == status, name
            assert found["fits"] == (status == 200), name
            if status == 413:
                assert found["limits"] == [
                    {"name": name, "value": most, "got": needed, "exact": str(needed)}
                ]
                assert response.json()["limit"]["got"] == needed


def test_gpt_2_of_1024_positions_is_beyond_the_answers_limit() -> None:
    gpt2 = sized_model(sized.config_of("gpt2-small"))
    found = view(gpt2, Workload(tokens=1024), SizedTraceAsked(), Settings())
    assert not found["fits"]
    assert {limit["name"] for limit in found["limits"]} == {
        *("answer_elements", "memory_bytes", "work_flops")
    }


LATENT = {"q_lora_rank": None, "kv_lora_rank": 4, "d_nope": 4, "d_rope": 2}
SIZED_ONLY = {
    "latent attention": ({"attention": {"n_heads": 2, "mla": LATENT}}, "attention", "mla"),
    "padded vocabulary": ({"vocab": 10, "vocab_padded_to": 16}, "vocab_padded_to"),
}


@pytest.mark.parametrize("name", SIZED_ONLY)
def test_model_that_is_only_sized_has_no_trace(name: str) -> None:
    changed, *place = SIZED_ONLY[name]
    with pytest.raises(QuestionError) as raised:
        sized_({"d_model": 8, "attention": {"n_heads": 2}, **changed}, 5)
    (fault,) = raised.value.faults
    assert ".".join(place) in fault.detail
    assert (fault.code, fault.place) == ("sized_only", ("model", "preset"))


def test_token_ids_of_a_model_without_a_vocab_are_refused() -> None:
    config = {"d_model": 8, "attention": {"n_heads": 2}}
    with pytest.raises(QuestionError) as raised:
        sized_(config, 5, input="token_ids")
    assert raised.value.faults[0].place == ("trace", "input")
    assert raised.value.faults[0].code == "no_vocab"
    assert sized_({**config, "vocab": 7}, 5)["input"] == "token_ids"
    assert sized_(config, 5)["input"] == "tensor"


@pytest.mark.parametrize(
    ("select", "code", "place"),
    [
        (["nothing_so_called"], "unknown_stage", (0,)),
        (["resid_post", {"name": "attn.z", "vocabulary": [1]}], "no_such_axis", (1, "vocabulary")),
        ([{"name": "blocks.0.attn.z", "position": [9]}], "index_out_of_range", (0, "position", 0)),
        (["ffn.gate"], "stage_absent", (0,)),
    ],
)
def test_selection_that_a_trace_refuses_is_refused(
    select: list[Any], code: str, place: tuple[str | int, ...]
) -> None:
    with pytest.raises(ServiceError) as raised:
        sized_({"d_model": 8, "attention": {"n_heads": 2}}, 5, select=select)
    fault = refusal_of(raised.value).faults[0]
    assert (fault.code, fault.place) == (code, ("trace", "select", *place))


@pytest.mark.parametrize("asked", [{"dtype": "float16"}, {"input": "text"}, {"select": [3]}])
def test_fields_of_another_kind_are_refused(asked: Drawn) -> None:
    with pytest.raises(ValidationError):
        SizedTraceAsked.model_validate(asked)


def test_what_is_left_out_is_said() -> None:
    found = sized_({"d_model": 8, "attention": {"n_heads": 2}}, 5)
    assert any("cached" in line for line in found["excluded"])
    assert found["json_bytes"]["kind"] == "estimate"
    assert found["json_bytes_at_most"]["kind"] == "upper_bound"
    assert all(
        stages.find("blocks.0." + p["id"].removeprefix("blocks."))
        for p in found["elements"]["parts"]
    )
