"""GET /v1/models and the store behind it."""

import shutil
from collections.abc import Callable
from pathlib import Path

from starlette.testclient import TestClient

SHIPPED = Path(__file__).parents[2] / "models"
MakeClient = Callable[..., TestClient]


def test_models_that_ship_are_listed(client: TestClient) -> None:
    answer = client.get("/v1/models").json()
    assert [(line["name"], line["parameters"]) for line in answer["models"]] == [
        ("eiffel-toy", 22),
        ("induction", 77_568),
        ("letter-sort", 85_584),
    ]
    assert answer["broken"] == {}


def test_model_is_described_with_its_parts(client: TestClient) -> None:
    answer = client.get("/v1/models/letter-sort").json()
    parts = dict(answer["parameters"])
    total = parts.pop("total")
    assert sum(parts.values()) == total
    assert parts["matrices"] == 3 * 12 * 48 * 48
    assert answer["tensors"]["blocks.2.attn.W_O"] == [3, 16, 48]
    assert answer["tokenizer"] == {"vocabulary": 3, "tokens": ["A", "B", "C"]}
    assert "attn.q_rot" not in answer["stages"]
    assert {"embed", "attn.pattern", "logits"} <= set(answer["stages"])
    assert "\n# letter-sort\n" in answer["card"]


def test_models_of_more_folders_are_there_and_shipped_names_stay(
    make_client: MakeClient, tmp_path: Path
) -> None:
    for name in ("mine", "letter-sort"):
        shutil.copytree(SHIPPED / "eiffel-toy", tmp_path / name)
    (tmp_path / "no name!").mkdir()
    (tmp_path / "no name!" / "config.json").write_text("{}")
    client = make_client(models=(tmp_path, tmp_path / "nowhere"))
    assert client.get("/v1/models").json()["broken"] == {}
    assert client.get("/v1/models/mine").json()["config"]["d_model"] == 2
    assert client.get("/v1/models/letter-sort").json()["config"]["d_model"] == 48


def test_broken_folder_is_told_and_hides_nothing(make_client: MakeClient, tmp_path: Path) -> None:
    shutil.copytree(SHIPPED / "eiffel-toy", tmp_path / "torn")
    (tmp_path / "torn" / "config.json").write_text("{")
    client = make_client(models=(tmp_path,))
    answer = client.get("/v1/models").json()
    assert answer["broken"] == {"torn": "config.json is not JSON."}
    assert len(answer["models"]) == 3
    request = {"model": {"name": "torn"}, "input": {"text": "the"}}
    response = client.post("/v1/trace", json=request)
    assert response.json()["type"] == "/problems/broken-model"
