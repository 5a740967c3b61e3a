"""The address that clients are told, and when it is doubted."""

import socket
from pathlib import Path

import pytest

from skyrocket.broker.core.advertised_address import advertised_host, doubt_about, is_in_container, own_ip, resolved
from skyrocket.broker.state.identity import BrokerIdentity
from skyrocket.errors import ConfigError
from skyrocket.model.message import Host
from skyrocket.remoting.addresses import Address


@pytest.mark.parametrize(
    ("chosen", "bound", "told"),
    [
        pytest.param("10.1.2.3", "0.0.0.0", "10.1.2.3", id="chosen"),
        pytest.param("mq.example.org", "0.0.0.0", "mq.example.org", id="a-name"),
        pytest.param("2001:DB8::1", "::", "2001:db8::1", id="ipv6"),
        pytest.param("", "0.0.0.0", "found", id="found-out"),
        pytest.param("", "::", "found", id="found-out-when-listening-on-all-of-ipv6"),
        pytest.param("", "127.0.0.1", "127.0.0.1", id="the-only-interface-listened-on"),
        pytest.param("10.1.2.3", "127.0.0.1", "10.1.2.3", id="chosen-before-the-interface"),
    ],
)
def test_clients_are_told(chosen: str, bound: str, told: str) -> None:
    assert advertised_host(chosen, bound, lambda: "found") == told


@pytest.mark.parametrize("chosen", ["0.0.0.0", "::", "224.0.0.1"])
def test_an_address_that_nobody_can_connect_to_is_refused(chosen: str) -> None:
    with pytest.raises(ConfigError, match="is not an address to connect to"):
        advertised_host(chosen, "0.0.0.0")


def test_a_name_is_told_to_clients_and_its_numbers_go_into_records() -> None:
    identity = BrokerIdentity(Address("localhost", 10911), ip=resolved("localhost"))
    assert str(identity.address) == "localhost:10911"
    assert identity.store_host == Host(bytes([127, 0, 0, 1]), 10911)


def test_a_name_that_cannot_be_resolved_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"'no-such-host\.invalid' is neither an IP address nor .*--broker-ip"):
        resolved("no-such-host.invalid")


def test_without_a_way_out_another_interface_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = own_ip()
    socket.inet_aton(usual)

    class Unreachable(socket.socket):
        def connect(self, _: object) -> None:
            raise OSError("no route")

    monkeypatch.setattr("skyrocket.broker.core.advertised_address.socket.socket", Unreachable)
    monkeypatch.setattr("skyrocket.broker.core.advertised_address.socket.if_nameindex", lambda: [(1, "lo")])
    assert own_ip() == "127.0.0.1"
    monkeypatch.undo()
    monkeypatch.setattr("skyrocket.broker.core.advertised_address.socket.socket", Unreachable)
    found = own_ip()
    if usual.startswith("127."):
        assert found == usual
    else:
        assert not found.startswith("127.")


@pytest.mark.parametrize(
    ("host", "is_chosen", "bound", "in_container", "words"),
    [
        pytest.param("127.0.0.1", False, "0.0.0.0", False, "only programs on this machine", id="loopback"),
        pytest.param("127.0.0.1", True, "0.0.0.0", False, "only programs on this machine", id="chosen-loopback"),
        pytest.param("127.0.0.1", True, "127.0.0.1", True, None, id="meant-to-be-local"),
        pytest.param("172.17.0.2", False, "0.0.0.0", True, "inside this container", id="container"),
        pytest.param("172.17.0.2", True, "0.0.0.0", True, None, id="chosen-in-a-container"),
        pytest.param("172.17.0.2", False, "0.0.0.0", False, None, id="private-on-a-machine"),
        pytest.param("8.8.8.8", False, "0.0.0.0", True, None, id="public-in-a-container"),
        pytest.param("mq.example.org", True, "0.0.0.0", True, None, id="a-name"),
    ],
)
def test_addresses_that_others_cannot_reach_are_doubted(
    host: str, is_chosen: bool, bound: str, in_container: bool, words: str | None
) -> None:
    doubt = doubt_about(host, is_chosen=is_chosen, bind_address=bound, in_container=in_container)
    if words is None:
        assert doubt is None
    else:
        assert doubt is not None
        assert words in doubt
        assert "--broker-ip, brokerIP1 in the .conf file, or SKYROCKET_BROKER_BROKER_IP1" in doubt


def test_containers_are_known_by_their_marks(tmp_path: Path) -> None:
    assert not is_in_container({}, tmp_path)
    (tmp_path / ".dockerenv").touch()
    assert is_in_container({}, tmp_path)
    assert not is_in_container({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, tmp_path)
