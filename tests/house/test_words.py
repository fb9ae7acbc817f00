"""No committed text points at one machine or at one place to download from."""

import re

import pytest

from house import checkout

# Each is put together here so that this file does not hold what it looks for.
HOSTS = [
    "pypi" + ".org",
    "python" + "hosted.org",
    "npm" + "js.org",
    "npm" + "js.com",
    "yarn" + "pkg.com",
    "deb." + "debian.org",
    "security." + "debian.org",
    "crates" + ".io",
    "ana" + "conda.org",
]
FOLDERS = ["root", "work", "home", "Users", "opt/pypi", "opt/wheels"]
MACHINE_PATH = rf"(?<![\w.$}}/-])/({'|'.join(FOLDERS)})/"


def lines_with(pattern: str) -> list[str]:
    """path:line of each match in the text files of the project."""
    return [
        f"{path}:{number}"
        for path, text in checkout.text_files().items()
        for number, line in enumerate(text.splitlines(), start=1)
        if re.search(pattern, line, re.IGNORECASE)
    ]


@pytest.mark.parametrize("host", HOSTS)
def test_no_text_names_the_host_of_a_registry(host: str) -> None:
    assert lines_with(re.escape(host)) == []


def test_no_text_names_a_folder_of_one_machine() -> None:
    assert lines_with(MACHINE_PATH) == []


def test_search_for_machine_folders_finds_them() -> None:
    found = [f"see /{folder}/x" for folder in FOLDERS]
    assert [line for line in found if not re.search(MACHINE_PATH, line)] == []
    assert not re.search(MACHINE_PATH, "GET ./work/x or $HOME/work/x or /v1/work/x")
