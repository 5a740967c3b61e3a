"""Dockerfile and docker-compose.yml say nothing that the program does not know: commands, options, ports, variables."""

import json
import re
from typing import Any

import pytest

from skyrocket.cli.broker import BROKER_SECTIONS
from skyrocket.cli.commands import load
from skyrocket.cli.namesrv import NAME_SERVER_SECTIONS
from skyrocket.config.sections import BrokerConfig, MetricsExporter, NameServerConfig
from skyrocket.config.sources import environment_name, keys_of
from skyrocket.remoting.addresses import VIP_PORT_DISTANCE, Address
from tests import ROOT

METRICS_PORT = BrokerConfig().metrics_port
NAME_SERVER_PORT, BROKER_PORT = NameServerConfig().listen_port, BrokerConfig().listen_port
PORTS = {
    "namesrv": {NAME_SERVER_PORT},
    "broker": {BROKER_PORT, BROKER_PORT - VIP_PORT_DISTANCE},
    "standalone": {NAME_SERVER_PORT, BROKER_PORT, BROKER_PORT - VIP_PORT_DISTANCE},
}
VARIABLES = {
    environment_name(key, prefix)
    for sections, prefix in ((BROKER_SECTIONS, "SKYROCKET_BROKER_"), (NAME_SERVER_SECTIONS, "SKYROCKET_NAMESRV_"))
    for section in sections
    for key in keys_of(section)
}


def instructions(text: str) -> list[tuple[str, str]]:
    """Each instruction of a Dockerfile with its arguments."""
    joined = re.sub(r"\\\n\s*", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1].strip()) for line in joined.splitlines() if line.strip()]


DOCKERFILE = instructions((ROOT / "Dockerfile").read_text())


def of_kind(kind: str) -> list[str]:
    return [arguments for name, arguments in DOCKERFILE if name == kind]


def parse_command(arguments: list[str]) -> Any:
    """The context of a command, parsed as the program does; raises a usage error for what it does not know."""
    return load(arguments[0]).make_context(arguments[0], arguments[1:])


def test_this_test_notices_what_the_program_does_not_have() -> None:
    with pytest.raises(Exception, match="No such option"):
        parse_command(["broker", "--name-server", "x"])


def checked_port(healthcheck: str) -> int:
    found = re.search(r"create_connection\(\('127\.0\.0\.1', (\d+)\)", healthcheck)
    assert found is not None, healthcheck
    return int(found[1])


# ── the image ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_image_runs_standalone_with_its_ports_and_an_ordinary_user() -> None:
    assert json.loads(of_kind("ENTRYPOINT")[0]) == ["skyrocket"]
    assert parse_command(json.loads(of_kind("CMD")[0])).info_name == "standalone"
    assert {int(port) for port in of_kind("EXPOSE")[0].split()} == PORTS["standalone"] | {METRICS_PORT}
    assert f"http://127.0.0.1:{METRICS_PORT}/ready" in of_kind("HEALTHCHECK")[0]
    assert of_kind("USER") == ["skyrocket"]
    assert "useradd" in of_kind("RUN")[1]


def test_the_image_keeps_its_store_on_the_volume() -> None:
    variables = dict(pair.split("=", 1) for pair in of_kind("ENV")[0].split())
    ours = {name: value for name, value in variables.items() if name.startswith("SKYROCKET_")}
    assert ours == {
        "SKYROCKET_BROKER_STORE_PATH_ROOT_DIR": of_kind("VOLUME")[0],
        "SKYROCKET_BROKER_METRICS_EXPORTER_TYPE": MetricsExporter.PROM.value,
    }
    assert set(ours) <= VARIABLES


def test_the_image_is_made_of_files_that_are_there_and_of_a_python_that_we_support() -> None:
    for arguments in of_kind("COPY"):
        if not arguments.startswith("--from="):
            for name in arguments.split()[:-1]:
                assert (ROOT / name).exists(), name
    wanted = re.search(r'requires-python = ">=3\.(\d+)"', (ROOT / "pyproject.toml").read_text())
    assert wanted is not None
    images = [re.match(r"python:3\.(\d+)-slim", arguments) for arguments in of_kind("FROM")]
    assert len({image[1] for image in images if image}) == 1
    assert all(image is not None and int(image[1]) >= int(wanted[1]) for image in images)


# ── the services ─────────────────────────────────────────────────────────────────────────────────────────────────────


def read_yaml(text: str) -> dict[str, Any]:
    """The part of YAML that the file uses: mappings and lists by indentation, scalars, lists as in JSON."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    value, rest = _block(lines, 0)
    assert not rest
    assert isinstance(value, dict)
    return value


def _block(lines: list[str], indent: int) -> tuple[Any, list[str]]:
    if lines and _indent(lines[0]) == indent and lines[0].lstrip().startswith("- "):
        items = []
        while lines and _indent(lines[0]) == indent and lines[0].lstrip().startswith("- "):
            items.append(_scalar(lines[0].strip()[2:]))
            lines = lines[1:]
        return items, lines
    mapping: dict[str, Any] = {}
    while lines and _indent(lines[0]) == indent:
        key, colon, value = lines[0].strip().partition(":")
        assert colon, lines[0]
        assert key not in mapping, f"{key} twice"
        lines = lines[1:]
        if value.strip():
            mapping[key] = _scalar(value.strip())
        elif lines and _indent(lines[0]) > indent:
            mapping[key], lines = _block(lines, _indent(lines[0]))
        else:
            mapping[key] = None
    return mapping, lines


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _scalar(text: str) -> Any:
    return json.loads(text) if text[0] in '["{' else text


COMPOSE = read_yaml((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]


def test_there_are_both_forms() -> None:
    assert set(SERVICES) == {"namesrv", "broker", "standalone"}
    assert SERVICES["standalone"]["profiles"] == ["standalone"]  # not started by a plain `up`: the ports are the same


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_uses_what_the_program_has(name: str) -> None:
    service = SERVICES[name]
    assert parse_command(service["command"]).info_name == name
    assert set(service.get("environment", {})) <= VARIABLES
    for port in service["ports"]:
        outside, inside = port.split(":")
        assert outside == inside, "clients are told the broker's own port"
    assert {int(port.split(":")[1]) for port in service["ports"]} == PORTS[name]
    for volume in service.get("volumes", []):
        source, target = volume.split(":")
        assert source in COMPOSE["volumes"]
        assert target == of_kind("VOLUME")[0]
    if "healthcheck" in service:
        assert checked_port(" ".join(service["healthcheck"]["test"])) in PORTS[name]


@pytest.mark.parametrize("name", ["broker", "standalone"])
def test_the_advertised_address_can_be_set(name: str) -> None:
    variable = environment_name("brokerIP1", "SKYROCKET_BROKER_")
    assert SERVICES[name]["environment"][variable].startswith("${BROKER_IP:-")


def test_the_broker_finds_its_name_server() -> None:
    given = parse_command(SERVICES["broker"]["command"]).params["namesrv_addr"]
    address = Address.parse(given)
    assert address.port in PORTS[address.host]
    condition = SERVICES["broker"]["depends_on"][address.host]["condition"]
    assert condition == "service_healthy"
    assert "healthcheck" in SERVICES[address.host]
