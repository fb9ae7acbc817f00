"""Pages that are generated are as `scripts/docs` would write them now."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = {
    "stages.md": "stages_page.py",
    "names.md": "names_page.py",
    "openapi.json": "openapi_file.py",
}


@pytest.mark.parametrize(("page", "script"), PAGES.items(), ids=PAGES)
def test_generated_page_is_up_to_date(page: str, script: str) -> None:
    command = [sys.executable, ROOT / "scripts" / script]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    assert printed == (ROOT / "docs" / page).read_bytes(), "run scripts/docs"
