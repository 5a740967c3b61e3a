"""What systemd is told by a unit with Type=notify: sd_notify(3) is one datagram."""

import logging
import os
import socket

_logger = logging.getLogger(__name__)


def tell_systemd(state: str) -> None:
    """`READY=1`, `STOPPING=1`; nothing happens without systemd, and a failure is only logged."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.connect("\0" + address[1:] if address.startswith("@") else address)
            sender.sendall(state.encode())
    except OSError as error:
        _logger.warning("systemd was not told %s: %s", state, error)
