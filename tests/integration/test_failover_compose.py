"""failover-compose.yml says nothing that the programs do not know, and its parts find each other."""

from typing import Any

import pytest
import yaml

from skyrocket.config.sections import BrokerConfig, ControllerConfig, StoreConfig
from skyrocket.config.sections.controller import DEFAULT_CONTROLLER_PORT
from skyrocket.config.sections.setting import section_from
from skyrocket.config.sources import gather
from skyrocket.controller.engines.place import parse_place
from skyrocket.controller.peers import own_peer
from skyrocket.remoting.addresses import Address
from tests import ROOT
from tests.integration.test_container_files import NAME_SERVER_PORT, VARIABLES, parse_command

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "failover-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]


def named(kind: str) -> dict[str, Any]:
    return {name: service for name, service in SERVICES.items() if name.startswith(kind)}


def test_each_part_is_there_three_times() -> None:
    assert [len(named(kind)) for kind in ("zookeeper", "controller", "broker", "namesrv")] == [3, 3, 3, 1]
    volumes = [volume.partition(":")[0] for service in SERVICES.values() for volume in service.get("volumes", ())]
    assert sorted(volumes) == sorted(COMPOSE["volumes"])


@pytest.mark.parametrize("name", named("controller"))
def test_controllers_listen_where_brokers_look_for_them_and_find_their_engine(name: str) -> None:
    given = parse_command(SERVICES[name]["command"]).params
    assert own_peer(given["peers"], given["self_id"]) == Address(name, DEFAULT_CONTROLLER_PORT)
    place = parse_place(given["store"])
    assert {host.partition(":")[0] for host in place.hosts} == set(named("zookeeper"))
    assert f"({DEFAULT_CONTROLLER_PORT!s}" in SERVICES[name]["healthcheck"]["test"][-1].replace("'127.0.0.1', ", "")
    ControllerConfig(self_id=given["self_id"], peers=given["peers"], store=given["store"])


@pytest.mark.parametrize("name", named("broker"))
def test_brokers_find_controllers_and_promise_two_copies(name: str) -> None:
    service = SERVICES[name]
    assert set(service["environment"]) <= VARIABLES
    given = parse_command(service["command"]).params
    assert given["namesrv_addr"] == f"namesrv:{NAME_SERVER_PORT}"
    pairs = gather([BrokerConfig, StoreConfig], environment=service["environment"], prefix="SKYROCKET_BROKER_")
    broker = section_from(BrokerConfig, pairs, allow_unknown=True)
    store = section_from(StoreConfig, pairs, allow_unknown=True)
    assert broker.broker_ip == name
    assert pairs["controllerAddr"].split(";") == [f"{each}:{DEFAULT_CONTROLLER_PORT}" for each in named("controller")]
    assert pairs["enableControllerMode"] == pairs["allAckInSyncStateSet"] == "true"
    assert store.min_in_sync_replicas == 2
