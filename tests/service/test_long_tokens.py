"""A model whose tokenizer has long tokens, or is none: what is refused, what is answered."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

MakeClient = Callable[..., TestClient]
AssertProblem = Callable[..., dict[str, Any]]
PARITY = Path(__file__).parents[1] / "parity"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of models with one, of the longest tokens there may be."""
    (tmp_path / "models" / "long").mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        shutil.copy(PARITY / "llama" / name, tmp_path / "models" / "long" / name)
    write(tmp_path / "models", 512)
    return tmp_path / "models"


def write(folder: Path, length: int) -> None:
    model = {"type": "WordLevel", "vocab": {"a": 0, "\x00" * length: 1}, "unk_token": "a"}
    tokenizer = {"version": "1.0", "added_tokens": [], "model": model}
    (folder / "long" / "tokenizer.json").write_text(json.dumps(tokenizer))


def asked(batch: int, positions: int) -> dict[str, object]:
    rows = [[1] * positions] * batch
    select = [{"name": "logits", "position": [-1], "summary": True}]
    return {"model": {"name": "long"}, "input": {"token_ids": rows}, "select": select}


def test_tokens_too_long_for_an_answer_are_refused(
    make_client: MakeClient, folder: Path, assert_problem: AssertProblem
) -> None:
    client = make_client(models=str(folder), answer_elements=1000)
    problem = assert_problem(client.post("/v1/trace", json=asked(33, 32)), "beyond-limit")
    assert problem["limit"] == {"name": "answer_elements", "value": 1 << 19, "got": 33 * 32 * 512}
    assert "fewer positions" in problem["detail"]
    few = client.post("/v1/trace", json=asked(2, 8))
    assert few.json()["input"]["tokens"] == [["\x00" * 512] * 8] * 2


def test_ids_are_read_where_the_tokenizer_is_refused(
    make_client: MakeClient, folder: Path, assert_problem: AssertProblem
) -> None:
    write(folder, 513)
    client = make_client(models=str(folder))
    answer = client.post("/v1/trace", json=asked(1, 2))
    assert answer.status_code == 200
    assert answer.json()["input"]["tokens"] == [[None, None]]
    request = {"model": {"name": "long"}, "input": {"text": "a"}}
    problem = assert_problem(client.post("/v1/trace", json=request), "broken-model")
    assert "token of more than 512 characters" in problem["detail"]
