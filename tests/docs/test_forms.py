"""docs/forms.md: requests get what is shown, the Python runs, decoders are those of examples/."""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from starlette.testclient import TestClient

from schemas.form import FormAsked
from service.app import COMPUTING, create_app
from service.forms import form, lines
from service.settings import Settings
from shown import holds, page

ROOT = Path(__file__).parents[2]
PAGE = page("forms.md")
TEXT = " ".join(PAGE.split())
STEPS = re.findall(r"```sh\n(.*?)^```$[^`]*?```(jsonl?)\n(.*?)^```$", PAGE, re.M | re.S)
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))
BINARY = SECTIONS["A safetensors body"]
RUN = re.findall(r"```python\n((?:(?!```).*\n)*)```\n+```text\n((?:(?!```).*\n)*)```", PAGE)
SCRIPTS = re.findall(r"```js\n(.*?)^```$", PAGE, re.M | re.S)


def answer(curl: str) -> httpx.Response:
    """The response to a curl command."""
    words = shlex.split(curl.partition(" > ")[0])
    url, body = words[2], words[-1]
    headers = dict(re.findall(r"-H '([^:]+): ([^']+)'", curl))
    client = TestClient(create_app(Settings()))
    path = url.removeprefix("http://127.0.0.1:8000")
    response = client.post(path, content=body.encode(), headers=headers)
    assert response.status_code == 200, response.text
    return response


def header_of(body: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(body[8 : 8 + int.from_bytes(body[:8], "little")])
    return found


def test_every_request_stands_beside_its_answer() -> None:
    assert len(STEPS) == PAGE.count("```sh") == 6


@pytest.mark.parametrize(("curl", "kind", "shown"), STEPS, ids=range(len(STEPS)))
def test_request_gets_what_is_shown(curl: str, kind: str, shown: str) -> None:
    response = answer(curl)
    if "safetensors" in curl:
        header = header_of(response.content)
        del header["__metadata__"]
        assert header == json.loads(shown)
    elif kind == "jsonl":
        found, wanted = (
            [json.loads(x) for x in text.splitlines()] for text in (response.text, shown)
        )
        assert len(found) == len(wanted)
        assert holds(found, wanted), found
    else:
        assert holds(response.json(), json.loads(shown)), response.json()


def test_rest_of_the_answer_is_in_the_header_as_shown() -> None:
    (curl,) = re.findall(r"```sh\n(.*?)^```$", BINARY, re.M | re.S)
    _, rest = re.findall(r"```json\n(.*?)^```$", BINARY, re.M | re.S)
    header = header_of(answer(curl).content)
    assert holds(json.loads(header["__metadata__"]["answer"]), json.loads(rest))


def test_all_python_but_the_decoder_is_run() -> None:
    assert len(RUN) == PAGE.count("```text") == PAGE.count("```python") - 1


@pytest.mark.parametrize(("code", "printed"), RUN, ids=range(len(RUN)))
def test_python_prints_what_stands_below_it(
    pasted: Callable[[str], subprocess.CompletedProcess[str]], code: str, printed: str
) -> None:
    done = pasted(code)
    assert done.stderr == ""
    assert done.stdout == printed


@pytest.mark.parametrize("name", ["decode.mjs", "decode.py"])
def test_decoder_of_the_page_is_that_of_the_examples(name: str) -> None:
    code = (ROOT / "examples" / name).read_text("utf-8")
    assert f"`examples/{name}`" in PAGE
    assert f"```{'js' if name.endswith('mjs') else 'python'}\n{code}```\n" in PAGE


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_fetch_of_the_page_gives_the_pattern_it_tells(tmp_path: Path) -> None:
    code, use = SCRIPTS
    request = re.search(r"JSON\.stringify\((.*)\),", use)
    assert request is not None
    asked = subprocess.run(
        ["node", "-p", f"JSON.stringify({request[1]})"], capture_output=True, text=True, check=True
    ).stdout
    response = TestClient(create_app(Settings())).post(
        "/v1/trace",
        content=asked,
        headers=dict(re.findall(r'"?([\w-]+)"?: "(application/[\w.]+)"', use)),
    )
    (tmp_path / "body").write_bytes(response.content)
    media = response.headers["content-type"]
    script = tmp_path / "use.mjs"
    script.write_text(
        f'{code}\nconst response = {{ headers: new Map([["Content-Type", "{media}"]]),\n'
        f"  arrayBuffer: async () => Uint8Array.from(fs.readFileSync(process.argv[2])).buffer }};\n"
        'import fs from "node:fs";\n'
        + use[use.index("const tensors") :]
        + "\nconsole.log(JSON.stringify(shape), data.constructor.name, data.length);"
    )
    command = ["node", str(script), str(tmp_path / "body")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[3,6,6] Float32Array 108\n"
    assert "// [3, 6, 6], a Float32Array" in use


def test_page_names_every_form_setting_and_call() -> None:
    for media in form.ALL[1:]:
        assert f"`{media}`" in PAGE or f"`Accept: {media}`" in PAGE
    for name in FormAsked.model_fields:
        assert f'"{name}"' in PAGE
    for name in ("answer_elements", "binary_elements"):
        assert f"`{name}`: {Settings.model_fields[name].default:,} numbers" in PAGE
    offering = {
        route.path.rpartition("/")[2]
        for module in COMPUTING
        for route in module.router.routes
        if form.LINES in route.responses[200]["content"]  # type: ignore[attr-defined]
    }
    (told,) = re.findall(r"offer all of them: (.*?);", TEXT)
    assert set(re.findall(r"`(\w+)`", told)) == offering


def test_pieces_are_as_large_as_the_page_says() -> None:
    assert f"more than {lines.PIECE_ELEMENTS:,} numbers" in TEXT
