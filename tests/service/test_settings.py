"""Settings come from the environment, are documented, and are published where they are limits."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError
from starlette.testclient import TestClient

from service.settings import Settings, is_loopback, reason_not_to_listen, unknown_settings

DOCS = Path(__file__).parents[2] / "docs" / "settings.md"


def documented() -> dict[str, tuple[str, ...]]:
    """Name -> the other cells of its row."""
    rows = re.findall(r"^\| (\w+) \|(.+)\|$", DOCS.read_text("utf-8"), re.M)
    cells = {name: tuple(cell.strip() for cell in rest.split("|")) for name, rest in rows}
    return {name: cell for name, cell in cells.items() if name != "name"}


def written(value: object) -> str:
    """A default as the table has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value in ((), None) else f"{value:g}" if isinstance(value, float) else str(value)


def expected_row(name: str) -> tuple[str, ...]:
    field = Settings.model_fields[name]
    extra = field.json_schema_extra
    unit = (str(extra["unit"]),) if isinstance(extra, dict) else ()
    return (written(getattr(Settings(), name)), *unit, field.description or "")


def test_every_setting_is_documented_as_it_is_and_nothing_else_is() -> None:
    assert documented() == {name: expected_row(name) for name in Settings.model_fields}


def test_limits_call_lists_every_limit_with_the_value_of_this_service(
    client: TestClient,
) -> None:
    limits = {limit["name"]: limit for limit in client.get("/v1/limits").json()["limits"]}
    with_units = {name: row for name, row in documented().items() if len(row) == 3}
    assert limits.keys() == with_units.keys()
    for name, (default, unit, meaning) in with_units.items():
        assert limits[name] == {
            "name": name,
            "value": pytest.approx(float(default)),
            "unit": unit,
            "meaning": meaning,
        }


def test_environment_sets_what_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSBLOCK_POSITIONS", "7")
    monkeypatch.setenv("GLASSBLOCK_OPEN", "true")
    monkeypatch.setenv("GLASSBLOCK_PORT", "")
    found = Settings()
    assert (found.positions, found.open, found.port) == (7, True, 8000)


@pytest.mark.parametrize(
    "text", ["http://a.example, http://b.example", '["http://a.example","http://b.example"]']
)
def test_origins_are_words_between_commas_or_a_json_list(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("GLASSBLOCK_CORS_ORIGINS", text)
    assert Settings().cors_origins == ("http://a.example", "http://b.example")


def test_model_folders_are_separated_as_in_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSBLOCK_MODELS", "one:two")
    assert Settings().models == (Path("one"), Path("two"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PORT", "70000"),
        ("SLOTS", "0"),
        ("DEADLINE_SECONDS", "inf"),
        ("CORS_ORIGINS", "[x"),
        ("HELD_BYTES", "16777215"),
        ("SEND_SECONDS", "0"),
    ],
)
def test_value_that_cannot_be_used_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.setenv(f"GLASSBLOCK_{name}", text)
    with pytest.raises(ValidationError):
        Settings()


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError):
        Settings().port = 1  # type: ignore[misc]


def test_misspelt_settings_are_found() -> None:
    names = ["GLASSBLOCK_PORT", "glassblock_port", "GLASSBLOCK_PROT", "PORT"]
    assert unknown_settings(names) == ["GLASSBLOCK_PROT"]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_needs_no_leave(host: str) -> None:
    assert is_loopback(host)
    assert reason_not_to_listen(Settings(host=host)) is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "lab.example", ""])
def test_other_addresses_need_the_open_flag(host: str) -> None:
    reason = reason_not_to_listen(Settings(host=host))
    assert reason is not None
    assert "GLASSBLOCK_OPEN=true" in reason
    assert reason_not_to_listen(Settings(host=host, open=True)) is None
