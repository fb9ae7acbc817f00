"""The README: every command in it runs and shows what the text says."""

import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
import orjson
import pytest
from safetensors.numpy import load_file
from starlette.testclient import TestClient

from near import near
from service.app import create_app
from service.settings import Settings

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
CURLS = [block for block in BLOCKS if block.startswith("curl")]
PYTHON, PRINTED = (
    "".join(re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL))
    for language in ("python", "text")
)
COMMANDS = [line for block in BLOCKS for line in block.splitlines() if ".venv/bin/" in line]


def answer(block: str) -> dict[str, Any]:
    """What a curl command of the README gets."""
    command, flag, url, header, content_type, data, body = shlex.split(block)
    assert (command, flag, header, data) == ("curl", "-s", "-H", "-d")
    path = url.removeprefix("http://127.0.0.1:8000")
    name, _, value = content_type.partition(": ")
    client = TestClient(create_app(Settings(models=[ROOT / "tests" / "parity"])))
    response = client.post(path, content=body, headers={name: value})
    assert response.status_code == 200, response.text
    found: dict[str, Any] = orjson.loads(response.content)
    return found


def shown(row: object, text: str) -> bool:
    """Whether a text shows these numbers."""
    return any(near(row, orjson.loads(told)) for told in re.findall(r"`(\[[^`]*\])`", text))


def test_readme_has_its_commands() -> None:
    assert (len(CURLS), len(COMMANDS)) == (10, 5)
    assert {"scripts/serve\n", "GLASSBLOCK_MODELS=tests/parity scripts/serve\n"} <= set(BLOCKS)


def test_first_curl_shows_the_mixture_and_the_update() -> None:
    tensors = answer(CURLS[0])["tensors"]
    rows = {
        name: tensors[f"blocks.0.{name}"]["data"]
        for name in ("attn.pattern", "attn.z", "attn_out", "resid_post")
    }
    text = README.partition("Let the output projection")[0]
    assert rows["attn.z"][0][2] == rows["attn_out"][2]
    for row in (rows["attn.pattern"][0][2], rows["attn.z"][0][2], rows["resid_post"][2]):
        assert shown(row, text)


def test_second_curl_shows_that_an_addition_can_take_away() -> None:
    assert shown(answer(CURLS[1])["tensors"]["blocks.0.resid_post"]["data"][2], README)


def test_third_curl_shows_each_head_and_the_next_letter() -> None:
    found = answer(CURLS[2])
    assert shown(found["tensors"]["blocks.0.attn.head_out"]["summary"]["norm"], README)
    assert f"`next_token` says `{found['next_token']['token']}`" in README


def test_fourth_curl_traces_a_block_written_by_hand() -> None:
    found = answer(CURLS[3])
    tensors = found["tensors"]
    assert shown(tensors["blocks.0.resid_post"]["data"][1], README)
    heads = tensors["blocks.0.attn.head_out"]["data"]
    assert heads[0][1] == [0, 0, 3, 0]
    assert heads[1][1] == [0, 2, 0, 0]
    holding = {identity["name"] for identity in found["identities"] if identity["holds"]}
    assert holding >= {"blocks.0.head_sum", "blocks.0.attn_addition"}
    assert "`blocks.0.head_sum`" in README
    assert "`blocks.0.attn_addition`" in README


def test_fourth_curl_without_none_reads_normalized_rows() -> None:
    off = """,
               "ffn": {"kind": "none"}, "norm": {"kind": "none"}"""
    assert off in CURLS[3]
    block = CURLS[3].replace(off, "").replace('"X"', '"X", "U", "Δ_ffn"')
    states = {
        name.removeprefix("blocks.0."): np.array(tensor["data"])
        for name, tensor in answer(block)["tensors"].items()
    }
    assert not np.allclose(states["norm1.out"], states["resid_pre"])
    assert states["attn.head_out"][0, 0, 2] == states["norm1.out"][0, 0]
    assert not states["ffn_out"].any()


def test_fifth_curl_shows_which_experts_each_token_goes_to() -> None:
    tensors = answer(CURLS[4])["tensors"]
    assert shown(tensors["blocks.0.ffn.experts"]["data"], README)
    assert shown(tensors["blocks.0.ffn.expert_weights"]["data"][-1], README)


def test_sixth_curl_shows_a_pattern_of_a_model_that_transformers_saved() -> None:
    found = answer(CURLS[5])
    (row,) = found["tensors"]["blocks.0.attn.pattern"]["data"][0]
    assert shown(row, README)
    theirs = load_file(ROOT / "tests" / "parity" / "gpt2" / "values.safetensors")
    assert found["input"]["token_ids"] == theirs["plain/input_ids"][0, :3].tolist()
    np.testing.assert_allclose(row, theirs["plain/float64/attn.0"][0, 0, 2, :3], rtol=1e-6)


def test_seventh_curl_shows_the_same_weights_with_post_norm() -> None:
    found = answer(CURLS[6])
    own = answer(CURLS[6].replace(', "config": {"norm": {"placement": "post"}}', ""))
    lengths, before = (
        [each["tensors"][f"blocks.{layer}.resid_post"]["summary"]["norm"] for layer in range(3)]
        for each in (found, own)
    )
    assert all(shown(row, README) for row in [*lengths, before[0], before[2]])
    assert f"`next_token` still says `{found['next_token']['token']}`" in README
    assert own["next_token"]["token"] == found["next_token"]["token"]


def test_eighth_curl_shows_the_head_that_wrote_the_answer() -> None:
    (at,) = answer(CURLS[7])["at"]
    first = at["parts"][0]
    told = f"Y leads U by {at['logit']['value']:.2f}, of which `{first['id']}` alone wrote"
    assert f"{told} {first['along']:.2f}" in README
    assert at["logit"]["holds"]


def test_ninth_curl_shows_what_follows_from_a_head_set_to_zero() -> None:
    (effect,) = answer(CURLS[8])["effects"]
    before, after = effect["before"], effect["total"]["after"]
    assert f"`effects` tells {before:.2f} before and {after:.2f} after" in README


Pasted = Callable[[str], subprocess.CompletedProcess[str]]


def test_tenth_curl_counts_gpt2_as_told() -> None:
    found = answer(CURLS[9])
    article = found["parameters"]["article"]
    numbers = (
        found["parameters"]["total"],
        article["total"],
        article["gap"],
        found["kv_cache"]["per_token"],
    )
    for number in numbers:
        assert f"{number['value']:,}" in README


def test_python_prints_what_stands_below_it(pasted: Pasted) -> None:
    done = pasted(PYTHON)
    assert done.stderr == ""
    assert done.stdout == PRINTED


def test_python_of_a_refused_request_raises_as_told(pasted: Pasted) -> None:
    assert "raises `urllib.error.HTTPError`, whose `read()` is" in README
    refused = PYTHON.replace('"n_heads": 1', '"n_heads": 0')
    start, posting = refused.split("answer = ")
    caught = """import urllib.error
try:
    urllib.request.urlopen(post)
except urllib.error.HTTPError as problem:
    print(json.load(problem)["type"])
"""
    assert posting
    assert pasted(start + caught).stdout == "/problems/invalid-request\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_without_a_server_run(command: str) -> None:
    here = command.replace(".venv/bin/glassblock", f"{shlex.quote(sys.executable)} -m service.cli")
    done = subprocess.run(["/bin/sh", "-c", here], cwd=ROOT, capture_output=True, check=True)
    assert done.stdout
    assert not done.stderr


def test_pages_the_readme_names_are_there() -> None:
    for target in re.findall(r"\]\((?!http)([^)]+)\)", README):
        assert (ROOT / target.partition("#")[0]).exists(), target


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number: int = taken.getsockname()[1]
    return number


def _answers(url: str, within: float) -> bytes:
    until = time.monotonic() + within
    while True:
        try:
            with urlopen(url) as response:
                body: bytes = response.read()
                return body
        except URLError:
            assert time.monotonic() < until, f"{url} does not answer"
            time.sleep(0.1)


def test_scripts_serve_answers_and_stops_when_told(port: int) -> None:
    serve = [ROOT / "scripts" / "serve", "--port", str(port)]
    server = subprocess.Popen(serve, cwd="/", stderr=subprocess.DEVNULL)
    try:
        assert _answers(f"http://127.0.0.1:{port}/healthz", within=300) == b'{"status":"ok"}'
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=10)
    finally:
        server.kill()
        server.wait()
