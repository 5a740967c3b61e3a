"""What people read when a server has no port."""

import errno
import os
import socket

import pytest

from skyrocket.remoting.listening import why_no_metrics, why_not_listening


def error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.EADDRINUSE, "port 80 is taken by another program: stop it, or choose another port with --port"),
        (errno.EACCES, "port 80 needs root: choose one above 1023 with --port"),
        (errno.EADDRNOTAVAIL, "cannot listen on h:80: Cannot assign requested address. Choose another with --host"),
    ],
)
def test_the_port_the_cause_and_the_option_are_named(number: int, says: str) -> None:
    assert why_not_listening(error(number), "h", 80, port_option="--port", host_option="--host") == says


def test_an_address_is_named_once() -> None:
    """Python's own text has it a second time, as a tuple."""
    with pytest.raises(OSError, match="while attempting to bind") as raised:
        socket.create_server(("192.0.2.77", 0))  # an address of nobody's
    said = why_not_listening(raised.value, "192.0.2.77", 0, port_option="--port")
    assert said == "cannot listen on 192.0.2.77:0: Cannot assign requested address. Choose another with --port"


def test_metrics_can_be_left_out() -> None:
    said = why_no_metrics(error(errno.EADDRINUSE), "h", 5557, without="metricsExporterType=DISABLE")
    assert said.startswith("cannot serve metrics: port 5557 is taken")
    assert said.endswith("or none with --set metricsExporterType=DISABLE")
