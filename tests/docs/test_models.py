"""docs/models.md: its requests run, its lists are those of the code."""

import re
import shlex
from pathlib import Path
from typing import Any

import orjson
import pytest
from starlette.testclient import TestClient

from compute.checkpoints import folder
from compute.checkpoints.gguf.architectures import ARCHITECTURES
from compute.checkpoints.gguf.quantized import NUMBERS
from compute.checkpoints.gguf.tokenizer_kinds import MAKERS
from compute.checkpoints.registry import BY_MODEL_TYPE
from compute.checkpoints.safetensors_file import FLOATS
from near import near
from service.app import create_app
from service.settings import Settings
from service.storage import parts

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "models.md").read_text("utf-8")
TEXT = " ".join(PAGE.split())
PARITY = ROOT / "tests" / "parity"
STEP = re.compile(
    r"```sh\n(curl -s .*?)^```$(?:\n+(?:[a-z, ]+\n+)?```json\n(.*?)^```$)?", re.M | re.S
)
STEPS = STEP.findall(PAGE)
LETTERS = {"name": "letter-sort"}


def client(*models: Path) -> TestClient:
    return TestClient(create_app(Settings(models=list(models))))


def answer(curl: str) -> Any:  # noqa: ANN401 - plain JSON
    """What a curl command of the page gets, with the folder that the page names."""
    assert "with `GLASSBLOCK_MODELS=tests/parity`" in PAGE
    command, flag, url, *others = shlex.split(curl)
    assert (command, flag) == ("curl", "-s")
    path = url.removeprefix("http://127.0.0.1:8000")
    if not others:
        return client(PARITY).get(path).json()
    assert others[:3] == ["-H", "Content-Type: application/json", "-d"]
    return client(PARITY).post(path, json=orjson.loads(others[3])).json()


def of(shown: Any, found: Any) -> Any:  # noqa: ANN401 - plain JSON
    """What was found, less the keys that are not shown."""
    if isinstance(shown, dict):
        return {key: of(value, found[key]) for key, value in shown.items()}
    if isinstance(shown, list) and shown and isinstance(shown[0], dict):
        return [of(*pair) for pair in zip(shown, found, strict=True)]
    return found


def test_page_has_its_requests() -> None:
    assert len(STEPS) == PAGE.count("\ncurl -s ") == 5


@pytest.mark.parametrize("at", range(len(STEPS)))
def test_request_gets_the_answer_that_is_shown(at: int) -> None:
    curl, shown = STEPS[at]
    found = answer(curl)
    assert shown or "tensors" in found, found
    expected = orjson.loads(shown or "{}")
    assert near(of(expected, found), expected)


def test_logits_before_and_after_the_change_are_told() -> None:
    request = {"model": LETTERS, "input": {"text": "CABBAC"}, "select": ["logits"]}
    found = client().post("/v1/trace", json=request).json()["next_token"]
    assert f"It still says {found['token']}, where it said so with `{found['logit']}`" in TEXT


def changed(config: dict[str, Any], **weights: object) -> Any:  # noqa: ANN401 - plain JSON
    """letter-sort with another block."""
    request = {"model": {**LETTERS, "config": config, "weights": weights},
               "input": {"text": "CABBAC"}, "select": ["Z"]}  # fmt: skip
    return client().post("/v1/trace", json=request).json()


def test_norms_that_the_model_lacks_are_filled_as_told() -> None:
    weights = changed({"norm": {"placement": "sandwich"}})["model"]["weights"]
    assert weights["filled"] == [
        f"blocks.{layer}.norm{which}_post.{part}"
        for layer in range(3)
        for which in (1, 2)
        for part in ("weight", "bias")
    ]


def test_tensors_of_a_block_less_are_unused_as_told() -> None:
    assert '`unused`: with `"n_layers": 2` those of the third block.' in TEXT
    unused = changed({"n_layers": 2})["model"]["weights"]["unused"]
    assert unused
    assert all(name.startswith("blocks.2.") for name in unused)


@pytest.mark.parametrize("config", [{"attention": {"n_heads": 6}}, {"n_layers": 4}])
def test_weights_of_another_shape_are_refused_as_told(config: dict[str, Any]) -> None:
    assert {fault["code"] for fault in changed(config)["errors"]} == {"weights_cannot_serve"}


def test_sinks_are_given_or_refused_as_told() -> None:
    assert "A sink is no neutral bias" in PAGE
    sinks = {"attention": {"sinks": True}}
    assert changed(sinks)["errors"][0]["code"] == "weights_cannot_serve"
    given = {f"blocks.{layer}.attn.sinks": [0, 0, 0] for layer in range(3)}
    assert changed(sinks, tensors=given)["model"]["weights"]["filled"] == []


@pytest.mark.parametrize("said", [{}, {"final_norm": True}])
def test_final_norm_goes_with_post_norm_unless_it_is_kept_as_told(said: dict[str, Any]) -> None:
    assert '`"final_norm": true` keeps it' in PAGE
    config = changed({"norm": {"placement": "post"}, **said})["model"]["config"]
    assert config["final_norm"] is bool(said)


def cells(heading: str) -> list[list[str]]:
    section = PAGE.partition(f"\n## {heading}\n")[2]
    (table, *_) = re.findall(r"(?:^\|.*\n)+", section, re.M)
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]
    ]


@pytest.mark.parametrize(
    ("name", "off"), [("gpt2", {}), ("bert", {"token_types": 0, "embed_norm": False})]
)
def test_rows_as_they_enter_the_first_block_go_on_as_tokens_do(
    name: str, off: dict[str, Any]
) -> None:
    assert '`"token_types": 0` and `"embed_norm": false`' in PAGE
    service = client(PARITY)
    request = {"model": {"name": name}, "input": {"token_ids": [3, 1, 4]}, "select": ["X", "Z"]}
    first = service.post("/v1/trace", json=request).json()["tensors"]
    rows = first["blocks.0.resid_pre"]["data"]
    model = {"name": name, "config": {"position": {"kind": "none"}, **off}}
    request |= {"model": model, "input": {"tensor": rows}}
    assert service.post("/v1/trace", json=request).json()["tensors"] == first


def test_every_family_is_in_the_table() -> None:
    told = {name for row in cells("Families") for name in re.findall("`([^`]+)`", row[1])}
    assert told == set(BY_MODEL_TYPE)


def test_every_architecture_type_and_tokenizer_of_gguf_is_told() -> None:
    section = PAGE.partition("### A GGUF file\n")[2].partition("What such a file loses")[0]
    types, _, others = section.partition("Architectures:")
    architectures, _, tokenizers = others.partition("Tokenizers:")
    assert set(re.findall(r"\b[A-Z]+[0-9]+(?:_[A-Z0-9]+)*\b", types)) - {"F"} == set(NUMBERS)
    assert set(re.findall("`([^`]+)`", architectures)) == set(ARCHITECTURES)
    assert set(re.findall("`([^`]+)`", tokenizers)) == set(MAKERS)


@pytest.mark.parametrize(
    ("word", "on_the_page"),
    [
        ("activation", "the activation"),
        ("scale of attention", "the scale of attention"),
        ("window", "whether there is a window"),
        ("base", "the base of RoPE"),
    ],
)
def test_what_gguf_does_not_say_is_told(word: str, on_the_page: str) -> None:
    unsaid = {name for name, each in ARCHITECTURES.items() if word in each.unsaid.lower()}
    told = re.search(rf"{on_the_page} \(([^)]*)\)", TEXT)
    assert told is not None
    assert set(re.findall("`([^`]+)`", told[1])) == unsaid


def test_dtypes_of_safetensors_are_told() -> None:
    (row,) = [line for line in PAGE.splitlines() if line.startswith("| `model.safetensors` |")]
    assert set(re.findall(r"\bB?F\d\d\b", row)) == set(FLOATS)


def test_a_model_of_the_own_form_needs_what_is_told(tmp_path: Path) -> None:
    made = tmp_path / "copy"
    made.mkdir()
    shipped = ROOT / "models" / "eiffel-toy"
    for name in (folder.CONFIG, "model.safetensors"):
        (made / name).write_bytes((shipped / name).read_bytes())
    broken = client(tmp_path).get("/v1/models").json()["broken"]
    assert "tokenizer.json" in broken["copy"]
    assert "README.md" in broken["copy"]


def test_folder_that_is_no_model_is_told_as_the_page_says(tmp_path: Path) -> None:
    for name, content in (("unknown", b'{"model_type": "lama"}'), ("pickled", b"")):
        (tmp_path / name).mkdir()
        made = tmp_path / name / folder.CONFIG
        made.write_bytes(content or (PARITY / "gpt2" / folder.CONFIG).read_bytes())
    (tmp_path / "pickled" / "pytorch_model.bin").touch()
    service = client(tmp_path)
    broken = service.get("/v1/models").json()["broken"]
    assert broken["unknown"].endswith("Nearest: llama.")
    assert "is a pickle, which can run code" in broken["pickled"]
    request = {"model": {"name": "unknown"}, "input": {"token_ids": [1]}}
    assert service.post("/v1/trace", json=request).json()["type"] == "/problems/broken-model"


def test_link_to_a_folder_is_a_model(tmp_path: Path) -> None:
    assert "works as it is, by a link in `my-models`" in TEXT
    (tmp_path / "linked").symlink_to(PARITY / "gpt2")
    assert client(tmp_path).get("/v1/models/linked").json()["family"] == "gpt2"


def test_gguf_file_is_a_model_alone_and_in_a_folder(tmp_path: Path) -> None:
    content = (ROOT / "tests" / "parity_gguf" / "qwen3.gguf").read_bytes()
    (tmp_path / "alone.gguf").write_bytes(content)
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "any.gguf").write_bytes(content)
    service = client(tmp_path)
    for name in ("alone", "inside"):
        assert service.get(f"/v1/models/{name}").json()["family"] == "qwen3"


def test_files_that_an_upload_leaves_out_are_told() -> None:
    told = re.search(r"Taken and left out, (\d+) MiB each at most, (.*?)\. Every other file", TEXT)
    assert told is not None
    assert int(told[1]) << 20 == parts.LARGEST_LEFT_OUT
    listed = [name for name in re.findall("`([^`]+)`", told[2]) if name != "upload_bytes"]
    assert listed == list(parts.LEFT_OUT)


def test_what_is_left_out_of_a_file_is_told() -> None:
    assert '`{"embeddings.position_embeddings.weight": "rows 0 to 1"}`' in TEXT
    found = client(PARITY).get("/v1/models/roberta").json()["left_out"]
    assert {"rows 0 to 1"} <= set(found.values())


def test_last_logits_summed_up_keep_the_next_token() -> None:
    assert '`{"name": "logits", "position": [-1]}`' in TEXT
    asked = {"model": LETTERS, "input": {"text": "CABBAC"}, "identities": False}
    whole = client().post("/v1/trace", json={**asked, "select": ["logits"]}).json()
    select = [{"name": "logits", "position": [-1], "summary": True}]
    summed = client().post("/v1/trace", json={**asked, "select": select}).json()
    assert summed["next_token"] == whole["next_token"] is not None
    assert summed["cost"]["elements"] == 5


def test_special_tokens_of_a_tokenizer_without_any_change_nothing() -> None:
    assert "makes the same ids with it and without" in TEXT
    texts = ({"text": "CAB"}, {"text": "CAB", "special_tokens": True})
    first, second = (
        client().post("/v1/trace", json={"model": LETTERS, "input": text}).json()["input"]
        for text in texts
    )
    assert first == second


def test_model_itself_may_be_named_as_told() -> None:
    assert "It may name a model itself in place of the folder around it" in TEXT
    lines = client(PARITY / "gpt2").get("/v1/models").json()["models"]
    assert [line["name"] for line in lines if line["origin"] == "folder"] == ["gpt2"]
