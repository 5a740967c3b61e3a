"""Why there is no connection, in words that an operator can act upon."""

import errno
import os
import socket
import ssl
import urllib.error

import pytest

from skyrocket.protocol.requests.offsets import GetMaxOffset
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import ConnectFailed, plainly

REFUSED = ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 1)")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (REFUSED, "nothing listens there"),
        (
            OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 1), [Errno 111] Connect call failed"),
            "nothing listens there",
        ),
        (
            OSError("Multiple exceptions: [Errno 101] Network is unreachable, [Errno 111] Connect call failed"),
            "the network cannot be reached from here, or nothing listens there",
        ),
        (OSError(errno.EHOSTUNREACH, os.strerror(errno.EHOSTUNREACH)), "the host cannot be reached from here"),
        (TimeoutError(), "no answer in time: is it a wrong address, or a firewall?"),
        (
            socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
            "the host's name is not known here (Name or service not known)",
        ),
        (urllib.error.URLError(REFUSED), "nothing listens there"),
        (ConnectionResetError(errno.ECONNRESET, "reset"), "the other side reset the connection"),
        (ssl.SSLError(1, "wrong version number"), "SSLError: wrong version number"),
        (OSError(errno.EMFILE, "Too many open files"), "OSError: [Errno 24] Too many open files"),
        (ValueError("no port in 'x'"), "ValueError: no port in 'x'"),
        (ValueError(), "ValueError"),
        (ConnectionError("the certificate is not trusted"), "the certificate is not trusted"),
    ],
)
def test_the_cause_is_told_in_words_where_there_are_some(error: Exception, text: str) -> None:
    assert plainly(error) == text


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_port_where_nothing_listens_is_called_that(host: str) -> None:
    async with RemotingClient() as client:
        with pytest.raises(ConnectFailed) as caught:
            await client.call(f"{host}:1", GetMaxOffset(topic="T", queue_id=3))
    assert str(caught.value) == f"{host}:1: could not connect: nothing listens there"
