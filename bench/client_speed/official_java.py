"""The official Java client against the same kind of server, with bench.peers' program."""

from tests.interop.apache import Unavailable, obtain

from bench.load.own_server import NotStarted, own_server
from bench.peers.rocketmq_client import ClientFailed, Load, measure


def figures(seconds: float) -> dict[str, float] | str:
    """Messages per second by phase (send, batch, consume), or why there are none."""
    try:
        apache = obtain("5.4.0")
        with own_server() as server:
            load = Load(threads=64, batch=150, warm_up_s=max(3 * seconds, 5.0), seconds=seconds)
            measured = measure(apache, f"127.0.0.1:{server.name_server[1]}", load, [server.pid])
    except (Unavailable, ClientFailed, NotStarted) as reason:
        return str(reason)
    return {name: phase.rate for name, phase in measured.phases.items()}
