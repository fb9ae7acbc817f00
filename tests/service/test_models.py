"""GET /v1/models and the store behind it."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tokenizers import Tokenizer, models, pre_tokenizers

import checkpoint_files
from service.errors import NAME_RULE

pytestmark = pytest.mark.usefixtures("look_each_time")

SHIPPED = Path(__file__).parents[2] / "models"
MakeClient = Callable[..., TestClient]
AssertProblem = Callable[..., dict[str, Any]]


def listed(client: TestClient) -> dict[str, str]:
    """Name -> origin of every model that is listed."""
    return {line["name"]: line["origin"] for line in client.get("/v1/models").json()["models"]}


def test_models_that_ship_are_listed(client: TestClient) -> None:
    answer = client.get("/v1/models").json()
    assert [(line["name"], line["parameters"]) for line in answer["models"]] == [
        ("eiffel-toy", 22),
        ("induction", 77_568),
        ("letter-sort", 85_584),
    ]
    assert {line["family"] for line in answer["models"]} == {"glassblock"}
    assert {line["origin"] for line in answer["models"]} == {"shipped"}
    assert answer["broken"] == {}


def test_model_is_described_with_its_parts(client: TestClient) -> None:
    answer = client.get("/v1/models/letter-sort").json()
    parts = dict(answer["parameters"])
    total = parts.pop("total")
    assert sum(parts.values()) == total
    assert parts["matrices"] == 3 * 12 * 48 * 48
    assert (answer["family"], answer["origin"], answer["dtypes"]) == (
        "glassblock",
        "shipped",
        ["F32"],
    )
    assert answer["tensors"]["blocks.2.attn.W_O"] == [3, 16, 48]
    assert (answer["left_out"], answer["left_out_total"]) == ({}, 0)
    tokenizer = {"type": "WordLevel", "vocabulary": 3, "special": {}, "tokens": ["A", "B", "C"]}
    assert answer["tokenizer"] == tokenizer
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
    broken = client.get("/v1/models").json()["broken"]
    assert broken == {"no name!": NAME_RULE}
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


def test_folder_that_comes_changes_and_goes_does_so_without_a_restart(
    make_client: MakeClient, tmp_path: Path, assert_problem: AssertProblem
) -> None:
    client = make_client(models=(tmp_path,))
    asked = {"model": {"name": "mine"}, "input": {"token_ids": [1, 2]}, "select": ["logits"]}
    unknown = assert_problem(client.post("/v1/trace", json=asked), "unknown-model")
    assert unknown["models"] == ["eiffel-toy", "induction", "letter-sort"]

    checkpoint_files.folder(
        tmp_path / "mine", checkpoint_files.LLAMA, checkpoint_files.llama_arrays(0)
    )
    assert listed(client)["mine"] == "folder"
    first = client.post("/v1/trace", json=asked).json()

    checkpoint_files.folder(
        tmp_path / "mine", checkpoint_files.LLAMA, checkpoint_files.llama_arrays(1)
    )
    second = client.post("/v1/trace", json=asked).json()
    assert second["tensors"] != first["tensors"]
    assert second["model"]["digest"] != first["model"]["digest"]

    shutil.rmtree(tmp_path / "mine")
    assert "mine" not in listed(client)
    assert_problem(client.post("/v1/trace", json=asked), "unknown-model")


def test_model_without_a_tokenizer_takes_ids_and_refuses_text(
    make_client: MakeClient, tmp_path: Path, assert_problem: AssertProblem
) -> None:
    checkpoint_files.folder(
        tmp_path / "mine", checkpoint_files.LLAMA, checkpoint_files.llama_arrays()
    )
    client = make_client(models=(tmp_path,))
    detail = client.get("/v1/models/mine").json()
    assert (detail["tokenizer"], detail["card"], detail["family"]) == (None, "", "llama")
    assert {"attn.q_rot", "ffn.gate"} <= set(detail["stages"])
    asked = {"model": {"name": "mine"}, "input": {"token_ids": [1, 2]}}
    answer = client.post("/v1/trace", json=asked).json()
    assert (answer["input"]["tokens"], answer["next_token"]["token"]) == (None, None)
    response = client.post("/v1/trace", json={**asked, "input": {"text": "one"}})
    (fault,) = assert_problem(response, "invalid-input")["errors"]
    assert fault["code"] == "no_tokenizer"


def test_tensors_that_are_not_read_are_told(make_client: MakeClient, tmp_path: Path) -> None:
    arrays = checkpoint_files.llama_arrays()
    arrays["model.layers.0.self_attn.rotary_emb.inv_freq"] = arrays["model.norm.weight"]
    checkpoint_files.folder(tmp_path / "mine", checkpoint_files.LLAMA, arrays)
    detail = make_client(models=(tmp_path,)).get("/v1/models/mine").json()
    assert list(detail["left_out"]) == ["model.layers.0.self_attn.rotary_emb.inv_freq"]
    assert detail["left_out_total"] == 1


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [("letter_sort", " Nearest: letter-sort."), ("Eiffel-Toy", " Nearest: eiffel-toy."), ("x", ""),
     ("x" * 128, "")],
)  # fmt: skip
def test_unknown_model_is_told_the_nearest_and_where_models_are_looked_for(
    client: TestClient, assert_problem: AssertProblem, asked: str, nearest: str
) -> None:
    request = {"model": {"name": asked}, "input": {"token_ids": [0]}}
    detail = assert_problem(client.post("/v1/trace", json=request), "unknown-model")["detail"]
    assert detail.startswith(f"There is no model of this name.{nearest} Besides")
    assert {"GLASSBLOCK_MODELS", "GLASSBLOCK_UPLOADS"} <= set(detail.split())
    told = assert_problem(client.get(f"/v1/models/{asked}"), "unknown-model")["detail"]
    assert told == detail


def _with_tokenizer(folder: Path, words: list[str]) -> None:
    """A Llama of 7 tokens, and a tokenizer of these."""
    checkpoint_files.folder(folder, checkpoint_files.LLAMA, checkpoint_files.llama_arrays())
    tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(words)}))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))


def test_tokenizer_of_more_tokens_than_the_vocab_is_told(
    make_client: MakeClient, tmp_path: Path, assert_problem: AssertProblem
) -> None:
    _with_tokenizer(tmp_path / "mine", list("abcdefghij"))
    client = make_client(models=(tmp_path,))
    asked = {"model": {"name": "mine"}, "input": {"text": "a b"}}
    assert client.post("/v1/trace", json=asked).status_code == 200
    response = client.post("/v1/trace", json={**asked, "input": {"text": ["a b", "a j"]}})
    (fault,) = assert_problem(response, "invalid-input")["errors"]
    assert (fault["pointer"], fault["code"], fault["got"]) == (
        "/input/text/1",
        "out_of_vocabulary",
        9,
    )
    assert fault["detail"] == (
        "The model's tokenizer has more tokens than its vocab. "
        "A token id is a whole number from 0 to 6."
    )
    response = client.post("/v1/trace", json={**asked, "input": {"token_ids": [9]}})
    (fault,) = assert_problem(response, "invalid-input")["errors"]
    assert fault["detail"] == "A token id is a whole number from 0 to 6."


def test_id_that_the_tokenizer_lacks_has_null_for_its_text(
    make_client: MakeClient, tmp_path: Path
) -> None:
    _with_tokenizer(tmp_path / "mine", ["a", "b"])
    client = make_client(models=(tmp_path,))
    detail = client.get("/v1/models/mine").json()
    assert (detail["tokenizer"]["vocabulary"], detail["config"]["vocab"]) == (2, 7)
    asked = {"model": {"name": "mine"}, "input": {"token_ids": [1, 4, 6]}}
    answer = client.post("/v1/trace", json=asked).json()
    assert answer["input"]["tokens"] == ["b", None, None]
    following = answer["next_token"]
    assert following["token"] == (["a", "b"][following["token_id"] :] or [None])[0]
