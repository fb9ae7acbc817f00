"""The Dockerfile and the compose file keep what they promise."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
import yaml

from house import checkout

INSTRUCTIONS = [line.split(maxsplit=1) for line in checkout.logical_lines("Dockerfile")]
STARTS = [i for i, (keyword, _) in enumerate(INSTRUCTIONS) if keyword == "FROM"]
BUILD = INSTRUCTIONS[STARTS[0] : STARTS[-1]]
FINAL = INSTRUCTIONS[STARTS[-1] :]
COMPOSE = yaml.safe_load(checkout.text("docker-compose.yml"))
SERVICES = COMPOSE["services"].values()


def said(keyword: str, stage: list[list[str]] = FINAL) -> list[str]:
    """The arguments of each instruction of that name in a stage."""
    return [rest for word, rest in stage if word == keyword]


def image_environment() -> dict[str, str]:
    return dict(pair.split("=", 1) for line in said("ENV") for pair in line.split())


def health_command() -> list[str]:
    (check,) = said("HEALTHCHECK")
    command: list[str] = json.loads(check.split("CMD", 1)[1])
    return command


@contextmanager
def service_that_answers(status: int) -> Iterator[int]:
    """The port of a server that gives every request the same status."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/healthz" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server.server_port
        server.shutdown()


def health_check(port: int) -> int:
    environment = os.environ | {"GLASSBLOCK_PORT": str(port), "http_proxy": "http://127.0.0.1:9"}
    command = [sys.executable, *health_command()[1:]]
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode


def test_image_is_built_in_two_stages_from_one_base() -> None:
    assert len(STARTS) == 2
    assert {rest.split()[0] for keyword, rest in INSTRUCTIONS if keyword == "FROM"} == {
        "${BASE_IMAGE}"
    }


def test_final_stage_takes_nothing_but_the_installed_folder() -> None:
    assert said("COPY") == ["--from=build /opt/glassblock /opt/glassblock"]
    assert said("ADD") == []


def test_final_stage_installs_and_compiles_nothing() -> None:
    tools = re.compile(r"install|\b(uv|gcc|cc|make|apt|apt-get|apk|curl|wget)\b")
    assert [line for line in said("RUN") if tools.search(line)] == []


def test_final_stage_removes_the_installer_of_the_base() -> None:
    assert any("rm -rf" in line and "site-packages/pip*" in line for line in said("RUN"))


def test_build_stage_installs_only_what_is_hashed_or_built_here() -> None:
    steps = [step for line in said("RUN", BUILD) for step in line.split("&&")]
    installs = [step for step in steps if " install" in step]
    assert len(installs) == 3
    assert all("--require-hashes" in step or "--no-index --no-deps" in step for step in installs)


def test_image_needs_no_recent_builder() -> None:
    lines = [" ".join(instruction) for instruction in INSTRUCTIONS]
    assert [line for line in lines if re.search(r"--link|<<|--mount|--from=(?!build )", line)] == []


def test_image_runs_as_a_numbered_user_that_is_not_root() -> None:
    assert said("USER") == ["10001:10001"]


def test_image_starts_and_stops_without_a_shell() -> None:
    (entry,), (command,) = said("ENTRYPOINT"), said("CMD")
    assert [*json.loads(entry), *json.loads(command)] == ["/opt/glassblock/bin/glassblock", "serve"]
    assert said("STOPSIGNAL") == ["SIGTERM"]


def test_image_sets_what_scripts_serve_sets() -> None:
    exports = re.findall("^export (.*)", checkout.text("scripts/serve"), re.M)
    served = re.findall(r"(\w+)=(\S+)", " ".join(exports))
    own = {"GLASSBLOCK_HOST": "0.0.0.0", "GLASSBLOCK_PORT": "8000"}
    assert image_environment() == dict(served) | own
    assert said("EXPOSE") == [own["GLASSBLOCK_PORT"]]


def test_image_by_itself_is_not_open_to_everyone() -> None:
    assert "GLASSBLOCK_OPEN" not in checkout.text("Dockerfile")


def test_image_and_compose_carry_the_version_of_the_project() -> None:
    version = checkout.PROJECT["project"]["version"]
    assert f'org.opencontainers.image.version="{version}"' in " ".join(said("LABEL"))
    assert {service["image"] for service in SERVICES} == {f"glassblock:{version}"}


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (404, False), (503, False)])
def test_health_check_follows_the_answer_of_the_service(status: int, healthy: bool) -> None:
    with service_that_answers(status) as port:
        assert (health_check(port) == 0) is healthy


def test_health_check_fails_where_nothing_listens() -> None:
    with service_that_answers(200) as port:
        pass
    assert health_check(port) != 0


@pytest.mark.parametrize("service", SERVICES)
def test_compose_takes_away_what_the_service_does_not_need(service: dict[str, object]) -> None:
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "network_mode", "pid"} & service.keys()


@pytest.mark.parametrize("service", SERVICES)
def test_compose_keeps_uploads_in_a_volume_and_nothing_else(service: dict[str, list[str]]) -> None:
    folder = service["environment"]["GLASSBLOCK_UPLOADS"]  # type: ignore[call-overload]
    assert service["volumes"] == [f"uploads:{folder}"]
    assert COMPOSE["volumes"] == {"uploads": None}
    assert any(f"chown 10001:10001 {folder}" in line for line in said("RUN"))


@pytest.mark.parametrize("service", SERVICES)
def test_compose_bounds_what_the_service_can_use(service: dict[str, object]) -> None:
    assert service["mem_limit"] == service["memswap_limit"] == "1536m"
    assert service["pids_limit"] == 128
    assert service["cpus"] == 2
    assert service["init"] is True
    assert service["stop_grace_period"] == "20s"
    assert isinstance(service["healthcheck"], dict)


@pytest.mark.parametrize("service", SERVICES)
def test_compose_bounds_every_folder_that_can_be_written(service: dict[str, list[str]]) -> None:
    assert [mount for mount in service["tmpfs"] if "size=" not in mount] == []


@pytest.mark.parametrize("service", SERVICES)
def test_compose_publishes_on_this_machine_only(service: dict[str, list[str]]) -> None:
    assert service["ports"] == ["127.0.0.1:8000:8000"]
