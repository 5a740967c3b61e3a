"""A broker that tells clients the wrong address, as processes: the doctor names it from where clients are."""

import json
from pathlib import Path
from typing import Any

import pytest

from skyrocket.broker.core.advertised_address import own_ip
from tests.cluster.command_line import at
from tests.integration.program import SMALL_FILES, Program
from tests.waiting import wait_until


def broker(names: str, told: str, home: Path) -> Program:
    small = [part for setting in SMALL_FILES for part in ("--set", setting)]
    options = ("--listen-port", "0", "--broker-ip", told, "--store", str(home / "store"))
    return Program("broker", "-n", names, *options, "--set", "bindAddress=127.0.0.1", *small, home=home)


def findings(names: str) -> list[dict[str, Any]]:
    done = at(names, "doctor", "--output", "json")
    assert done.code in (0, 1), done.errors
    found: list[dict[str, Any]] = json.loads(done.output)
    return found


def test_an_address_where_no_broker_listens_is_named_with_its_remedy(tmp_path: Path) -> None:
    with Program("namesrv", "--listen-port", "0", "--bind-address", "127.0.0.1", home=tmp_path) as name_server:
        names = name_server.await_line(r"address=(\S+)")[1]
        with broker(names, "127.0.0.77", tmp_path) as server:  # it listens on 127.0.0.1
            server.await_line("boot success")
            wait_until(lambda: [each["code"] for each in findings(names)] == ["broker-unreachable"])
            (found,) = findings(names)
            assert found["where"].startswith("broker-a (127.0.0.77:")
            assert "set brokerIP1 to an address that clients reach" in found["remedy"]


def test_a_loopback_address_is_named_to_those_who_came_from_elsewhere(tmp_path: Path) -> None:
    outside = own_ip()
    if outside.startswith("127."):
        pytest.skip("this machine has no address but loopback: nobody can come from elsewhere")
    with Program("namesrv", "--listen-port", "0", home=tmp_path) as name_server:
        port = name_server.await_line(r"address=\S+:(\d+)")[1]
        with broker(f"127.0.0.1:{port}", "127.0.0.1", tmp_path) as server:
            server.await_line("boot success")
            wait_until(lambda: [each["code"] for each in findings(f"{outside}:{port}")] == ["loopback-address"])
            assert findings(f"127.0.0.1:{port}") == []  # from here it is right
