"""The chart of deploy/helm: Helm renders it, and what it renders says nothing that the program does not know."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import skyrocket
from skyrocket.cli.broker import BROKER_SECTIONS, broker_sections
from skyrocket.cli.commands import load
from skyrocket.cli.controller import CONTROLLER_SECTIONS
from skyrocket.cli.namesrv import NAME_SERVER_SECTIONS
from skyrocket.config.sections import BrokerConfig, NameServerConfig, StoreConfig
from skyrocket.config.sections.controller import DEFAULT_CONTROLLER_PORT, ControllerConfig
from skyrocket.config.sections.setting import section_from
from skyrocket.config.sources import read_conf, unknown_settings
from skyrocket.controller.peers import own_peer, parse_peers
from skyrocket.remoting.addresses import VIP_PORT_DISTANCE, Address
from tests import ROOT
from tests.helm import helm_here

CHART = ROOT / "deploy" / "helm" / "skyrocket"
FAILOVER = CHART / "examples" / "failover.yaml"
FORMS = {"default": (), "failover": ("-f", str(FAILOVER))}
SECTIONS = {"broker": BROKER_SECTIONS, "namesrv": NAME_SERVER_SECTIONS, "controller": CONTROLLER_SECTIONS}
Objects = list[dict[str, Any]]


def helm(*arguments: str) -> "subprocess.CompletedProcess[str]":
    program = helm_here()
    if program is None:
        pytest.skip("helm is not installed, and `make deploy-files` has not built it: the chart was not rendered")
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60)


def render(*arguments: str) -> Objects:
    done = helm("template", "sky", str(CHART), "--namespace", "msgs", "--kube-version", "1.29.0", *arguments)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each is not None]


@pytest.fixture(scope="module", params=FORMS)
def rendered(request: pytest.FixtureRequest) -> Objects:
    return render(*FORMS[request.param])


def of_kind(objects: Objects, kind: str, component: str | None = None) -> Objects:
    found = [each for each in objects if each["kind"] == kind]
    label = "app.kubernetes.io/component"
    return [each for each in found if component in (None, each["metadata"]["labels"][label])]


def container_of(stateful_set: dict[str, Any]) -> dict[str, Any]:
    (only,) = stateful_set["spec"]["template"]["spec"]["containers"]
    assert isinstance(only, dict)
    return only


def arguments_of(container: dict[str, Any], pod: str, tmp_path: Path) -> list[str]:
    """What `skyrocket` is called with in this pod: the script is run, with a program that says what it was given."""
    if "command" not in container:
        return list(container["args"])
    stand_in = tmp_path / "skyrocket"
    stand_in.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    stand_in.chmod(0o755)
    command = [*container["command"], *container["args"]]
    done = subprocess.run(
        command, env={"PATH": f"{tmp_path}:/usr/bin:/bin", "POD_NAME": pod}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def conf_of(objects: Objects, stateful_set: dict[str, Any], folder: Path) -> Path:
    """The file that the pods find below /etc/skyrocket."""
    volumes = stateful_set["spec"]["template"]["spec"]["volumes"]
    name = next(each["configMap"]["name"] for each in volumes if "configMap" in each)
    (config_map,) = [each for each in of_kind(objects, "ConfigMap") if each["metadata"]["name"] == name]
    ((file, text),) = config_map["data"].items()
    written = folder / str(file)
    written.write_text(text)
    return written


# ── without Helm ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_chart_has_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (skyrocket.__version__, skyrocket.__version__)


@pytest.mark.parametrize("path", [CHART / "values.yaml", FAILOVER], ids=lambda path: path.stem)
def test_the_schema_has_every_value(path: Path) -> None:
    check_named(yaml.safe_load(path.read_text()), json.loads((CHART / "values.schema.json").read_text()), "")


def check_named(values: dict[str, Any], schema: dict[str, Any], place: str) -> None:
    if "properties" not in schema:
        return  # Kubernetes' own, or settings
    for key, value in values.items():
        assert key in schema["properties"], f"{place}.{key}"
        if isinstance(value, dict):
            check_named(value, schema["properties"][key], f"{place}.{key}")


def test_the_templates_use_only_values_that_are_there() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    used = {
        path
        for template in (CHART / "templates").iterdir()
        for path in re.findall(r"\.Values((?:\.[A-Za-z]+)+)", template.read_text())
    }
    assert len(used) > 30
    for path in used:
        at = values
        for key in path.split(".")[1:]:
            assert key in at, path
            at = at[key]


def test_settings_of_the_values_are_known() -> None:
    for path in (CHART / "values.yaml", FAILOVER):
        values = yaml.safe_load(path.read_text())
        for part, sections in SECTIONS.items():
            assert unknown_settings(values.get(part, {}).get("settings", {}), sections) == []


# ── as Helm sees it ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("form", FORMS)
def test_helm_finds_nothing_wrong(form: str) -> None:
    done = helm("lint", "--strict", str(CHART), *FORMS[form])
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        # Releases of Helm have different words for the schema's no.
        (("--set", "broker.replica=3"), r"replica\b.* not allowed"),
        (("--set", "broker.role=MASTER"), r"broker[./]role"),
        (("--set", "controller.enabled=true"), "controller.replicas above 1 needs controller.store"),
        (("--set", "broker.sets={console}"), r"broker[./]sets"),
    ],
)
def test_values_that_cannot_work_are_refused(wrong: tuple[str, ...], complaint: str) -> None:
    done = helm("template", "sky", str(CHART), "--kube-version", "1.29.0", *wrong)
    assert done.returncode != 0
    assert re.search(complaint, done.stderr), done.stderr


def test_the_failover_form_has_its_sets_controllers_and_budgets() -> None:
    objects = render(*FORMS["failover"])
    replicas = {each["metadata"]["name"]: each["spec"]["replicas"] for each in of_kind(objects, "StatefulSet")}
    assert replicas == {
        "sky-skyrocket-broker-a": 3,
        "sky-skyrocket-broker-b": 3,
        "sky-skyrocket-console": 1,
        "sky-skyrocket-controller": 3,
        "sky-skyrocket-namesrv": 3,
    }
    budgets = {each["metadata"]["name"] for each in of_kind(objects, "PodDisruptionBudget")}
    assert budgets == set(replicas) - {"sky-skyrocket-console"}


# ── as the program sees it ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("part", SECTIONS)
def test_the_program_knows_every_setting(rendered: Objects, part: str, tmp_path: Path) -> None:
    for stateful_set in of_kind(rendered, "StatefulSet", part):
        pairs = read_conf(conf_of(rendered, stateful_set, tmp_path))
        assert unknown_settings(pairs, SECTIONS[part]) == []
        for section in SECTIONS[part]:
            section_from(section, pairs, allow_unknown=True)


def test_each_pod_is_called_by_the_name_that_clients_and_peers_have(rendered: Objects, tmp_path: Path) -> None:
    hosts = pod_hosts(rendered)
    for stateful_set in of_kind(rendered, "StatefulSet", "broker"):
        config = section_from(BrokerConfig, read_conf(conf_of(rendered, stateful_set, tmp_path)), allow_unknown=True)
        known = [Address.parse(each) for each in config.name_servers.split(";")]
        assert {address.port for address in known} == {NameServerConfig().listen_port}
        assert {address.host for address in known} == hosts("namesrv")
        chosen = [Address.parse(each) for each in config.controller_addresses.split(";") if each]
        assert {address.host for address in chosen} == hosts("controller")
        assert config.controller_mode == bool(chosen)
    for stateful_set in of_kind(rendered, "StatefulSet", "controller"):
        config_of_controller = section_from(
            ControllerConfig, read_conf(conf_of(rendered, stateful_set, tmp_path)), allow_unknown=True
        )
        peers = parse_peers(config_of_controller.peers)
        assert {address.host for address in peers.values()} == hosts("controller")
        assert {address.port for address in peers.values()} == {DEFAULT_CONTROLLER_PORT}


def pod_hosts(objects: Objects) -> Callable[[str], set[str]]:
    def of(part: str) -> set[str]:
        return {
            f"{each['metadata']['name']}-{number}.{each['spec']['serviceName']}.msgs.svc.cluster.local"
            for each in of_kind(objects, "StatefulSet", part)
            for number in range(each["spec"]["replicas"])
        }

    return of


def test_every_pod_starts_what_the_program_has(rendered: Objects, tmp_path: Path) -> None:
    for stateful_set in of_kind(rendered, "StatefulSet"):
        part = stateful_set["metadata"]["labels"]["app.kubernetes.io/component"]
        container = container_of(stateful_set)
        for number in range(stateful_set["spec"]["replicas"]):
            pod = f"{stateful_set['metadata']['name']}-{number}"
            command, *arguments = arguments_of(container, pod, tmp_path)
            assert command == part
            context = load(command).make_context(command, arguments)
            if part == "broker":
                assert context.params["broker_ip"] in pod_hosts(rendered)("broker")
                assert context.params["broker_ip"].startswith(f"{pod}.")
            if part == "controller":
                conf = read_conf(conf_of(rendered, stateful_set, tmp_path))
                assert own_peer(conf["controllerDLegerPeers"], context.params["self_id"]).host.startswith(f"{pod}.")


@pytest.mark.parametrize(("number", "role"), [(0, "SYNC_MASTER"), (1, "SLAVE"), (2, "SLAVE")])
def test_without_controllers_the_first_pod_is_master(number: int, role: str, tmp_path: Path) -> None:
    objects = render("--set", "broker.replicas=3", "--set", "broker.role=SYNC_MASTER")
    (stateful_set,) = of_kind(objects, "StatefulSet", "broker")
    arguments = arguments_of(container_of(stateful_set), f"sky-skyrocket-broker-a-{number}", tmp_path)
    params = load("broker").make_context("broker", arguments[1:]).params
    sections = broker_sections("broker", conf_of(objects, stateful_set, tmp_path), {}, params["settings"])
    assert (sections[BrokerConfig].broker_id, sections[StoreConfig].broker_role.value) == (number, role)


def test_ports_and_probes_are_those_of_the_program(rendered: Objects, tmp_path: Path) -> None:
    remoting = {"broker": BrokerConfig().listen_port, "namesrv": NameServerConfig().listen_port, "controller": 9878}
    for stateful_set in of_kind(rendered, "StatefulSet"):
        part = stateful_set["metadata"]["labels"]["app.kubernetes.io/component"]
        container = container_of(stateful_set)
        ports = {each["name"]: each["containerPort"] for each in container["ports"]}
        (service,) = [
            each
            for each in of_kind(rendered, "Service")
            if each["metadata"]["name"] == stateful_set["spec"]["serviceName"]
        ]
        assert {each["name"]: each["port"] for each in service["spec"]["ports"]} == ports
        for probe, path in (("livenessProbe", "/health"), ("readinessProbe", "/ready")):
            asked = container[probe]["httpGet"]
            assert asked == {"path": path if part != "console" else "/api/session", "port": "http"}
        if part == "console":
            continue
        pairs = read_conf(conf_of(rendered, stateful_set, tmp_path))
        assert int(pairs["metricsPromExporterPort"]) == ports["http"]
        assert ports["remoting"] == remoting[part]
        if part == "broker":
            assert ports["vip"] == ports["remoting"] - VIP_PORT_DISTANCE
            assert ports["replication"] == int(pairs["haListenPort"])
            mounts = {each["mountPath"] for each in container["volumeMounts"]}
            assert pairs["storePathRootDir"] in mounts


def test_no_pod_runs_as_root_or_writes_outside_its_volumes(rendered: Objects) -> None:
    for stateful_set in of_kind(rendered, "StatefulSet"):
        pod, container = stateful_set["spec"]["template"]["spec"], container_of(stateful_set)
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert f"--uid {pod['securityContext']['runAsUser']} " in (ROOT / "Dockerfile").read_text()
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert {"requests", "limits"} <= set(container["resources"])
        (claim,) = stateful_set["spec"]["volumeClaimTemplates"]
        volumes = {each["name"] for each in pod["volumes"]} | {claim["metadata"]["name"]}
        assert {each["name"] for each in container["volumeMounts"]} == volumes
