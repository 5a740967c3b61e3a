"""A port that a server cannot have, in one wording for all servers: which one, why, and the option for another."""

import errno

from skyrocket.errors import SkyrocketError
from skyrocket.remoting.addresses import Address


class CannotListen(SkyrocketError):
    """The address is not to be had."""


def why_not_listening(error: OSError, host: str, port: int, *, port_option: str, host_option: str = "") -> str:
    """For people; the options are what they give for another port or interface."""
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is taken by another program: stop it, or choose another port with {port_option}"
    if error.errno == errno.EACCES:
        return f"port {port} needs root: choose one above 1023 with {port_option}"
    # asyncio and socket put the address into the text a second time, in Python's writing.
    reason = (error.strerror or str(error)).partition(" (while attempting")[0]
    return f"cannot listen on {Address(host, port)}: {reason}. Choose another with {host_option or port_option}"


def why_no_metrics(error: OSError, host: str, port: int, *, without: str) -> str:
    """The same for the port of metrics and health; `without` is the setting of those who want none."""
    problem = why_not_listening(error, host, port, port_option="--set metricsPromExporterPort=…")
    return f"cannot serve metrics: {problem}, or none with --set {without}"
