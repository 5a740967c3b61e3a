"""Who the client behind a load balancer is."""

import contextlib
import logging
import socket
import struct

import pytest

from skyrocket.errors import ConfigError
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import ProtocolError
from skyrocket.remoting import proxy_protocol
from skyrocket.remoting.addresses import Address
from skyrocket.remoting.answers import Outcome
from skyrocket.remoting.guard import networks
from skyrocket.remoting.peer import CloseReason, Peer
from skyrocket.remoting.proxy_protocol import ProxyHeader, parse
from skyrocket.remoting.router import Router
from skyrocket.remoting.server import ServerSettings
from tests.unit.remoting.peers import RawPeer, request, serving
from tests.waiting import until

V2 = b"\r\n\r\n\x00\r\nQUIT\n"
V2_IPV4 = V2 + b"\x21\x11\x00\x0f" + bytes([10, 1, 2, 3, 10, 0, 0, 9]) + b"\x1f\x90\x2a\x9f" + b"tlv"
V2_IPV6 = V2 + b"\x21\x21\x00\x24" + socket.inet_pton(socket.AF_INET6, "2001:db8::1") * 2 + b"\x1f\x90\x2a\x9f"

GOOD = [
    (b"PROXY TCP4 10.1.2.3 10.0.0.9 8080 10911\r\n", Address("10.1.2.3", 8080), Address("10.0.0.9", 10911)),
    (b"PROXY TCP6 2001:db8::1 ::1 1 65535\r\n", Address("2001:db8::1", 1), Address("::1", 65535)),
    (b"PROXY UNKNOWN\r\n", None, None),
    (b"PROXY UNKNOWN ff:: ff:: 1 2\r\n", None, None),
    (V2_IPV4, Address("10.1.2.3", 8080), Address("10.0.0.9", 10911)),
    (V2_IPV6, Address("2001:db8::1", 8080), Address("2001:db8::1", 10911)),
    (V2 + b"\x20\x00\x00\x00", None, None),
    (V2 + b"\x21\x31\x00\x02ab", None, None),
]


@pytest.mark.parametrize(("header", "source", "destination"), GOOD)
def test_a_header_is_understood_however_it_is_cut(
    header: bytes, source: Address | None, destination: Address | None
) -> None:
    assert proxy_protocol.begins(header[0])
    for size in range(1, len(header)):
        assert parse(header[:size]) is None
    assert parse(header + b"\0\0\0\4") == ProxyHeader(len(header), source, destination)


@pytest.mark.parametrize(
    "header",
    [
        b"PROXY TCP4 10.1.2.3 10.0.0.9 8080\r\n",
        b"PROXY TCP4 10.1.2.300 10.0.0.9 8080 1\r\n",
        b"PROXY TCP4 10.1.2.3\0 10.0.0.9 8080 1\r\n",
        b"PROXY TCP4 10.1.2.3 10.0.0.9 80800 1\r\n",
        b"PROXY UDP4 10.1.2.3 10.0.0.9 8080 1\r\n",
        b"PROXY " + b"x" * 101,
        b"PROXZ",
        b"\r\n\r\nX",
        V2 + b"\x31\x11\x00\x0c" + bytes(12),
        V2 + b"\x21\x11\x00\x02" + bytes(2),
    ],
)
def test_a_wrong_header_is_refused(header: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse(header)


FROM_HERE = ServerSettings(proxy_networks=networks("127.0.0.0/8", "key"))


def whoami(peer: Peer, command: RemotingCommand) -> Outcome:
    return command.answer(0, str(peer.remote_address))


@pytest.mark.parametrize("header", [V2_IPV4, GOOD[0][0]])
async def test_the_client_behind_a_proxy_is_known_by_its_own_address(header: bytes) -> None:
    router = Router()
    router.register(34, whoami)
    async with serving(router, FROM_HERE) as (_, address):
        async with RawPeer.connected(address) as peer:
            assert (await peer.asks(header + request(34))).remark == "10.1.2.3:8080"
            assert (await peer.asks(request(34))).remark == "10.1.2.3:8080"
        async with RawPeer.connected(address) as peer:
            for byte in header:
                peer.send(bytes([byte]))
                await peer.writer.drain()
            assert (await peer.asks(request(34))).remark == "10.1.2.3:8080"
        async with RawPeer.connected(address) as peer:
            peer.send(header + header)  # once is enough
            assert await peer.is_closed()


@pytest.mark.parametrize("header", [V2_IPV4, GOOD[0][0]])
async def test_a_header_of_anybody_else_closes_the_connection_and_is_logged(
    header: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    for settings in (ServerSettings(), ServerSettings(proxy_networks=networks("10.0.0.0/8,fd00::/8", "key"))):
        async with serving(settings=settings) as (server, address), RawPeer.connected(address) as peer:
            peer.send(header + request())
            assert await peer.is_closed()
            assert server.counters.closed[CloseReason.PROTOCOL] == 1
    assert "proxyProtocolNetworks" in caplog.text


async def test_a_balancer_that_looks_whether_we_are_there_and_goes_at_once_is_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its connection is reset before it is accepted: nobody knows any more whose it was."""
    async with serving(settings=ServerSettings(proxy_networks=networks("10.0.0.0/8", "key"))) as (server, address):
        with socket.create_connection((address.host, address.port)) as look:
            look.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        async with RawPeer.connected(address) as peer:
            assert (await peer.asks(request())).code == 0
            await until(lambda: server.connection_count == 1)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_an_address_has_a_bounded_number_of_connections_also_behind_a_proxy() -> None:
    settings = ServerSettings(max_connections_per_address=2, proxy_networks=networks("127.0.0.1", "key"))
    async with serving(settings=settings) as (server, address), contextlib.AsyncExitStack() as stack:
        for source in (b"10.1.2.3", b"10.1.2.3", b"10.1.2.4"):
            peer = await stack.enter_async_context(RawPeer.connected(address))
            await peer.asks(b"PROXY TCP4 %b 10.0.0.9 8080 1\r\n" % source + request())
        async with RawPeer.connected(address) as peer:
            peer.send(b"PROXY TCP4 10.1.2.3 10.0.0.9 8080 1\r\n" + request())
            assert await peer.is_closed()
        assert server.counters.refused == 1


def test_networks_that_are_none_are_refused_with_the_key() -> None:
    with pytest.raises(ConfigError, match=r"proxyProtocolNetworks: .*10\.0\.0\.300.* Name networks as"):
        networks("10.0.0.300", "proxyProtocolNetworks")
