"""What the Java client has sent, pulled by a load that takes little of the machine for itself.

The Java consumer takes more of two cores than either broker, so its rate says as much about itself. Here answers are
counted, not decoded.
"""

from bench.load.measure import LoadFailed, Timing
from bench.load.measure import measure as measure_load
from bench.load.scenario import PULL, Scenario
from bench.peers.rocketmq_client import SENT_TOPIC, Phase
from bench.peers.rocketmq_servers import Server

RAW_PULLS = "raw pulls"
_CONNECTIONS = 8


def measure_raw_pulls(server: Server, timing: Timing) -> Phase:
    """Pulls of 32 messages from the oldest on, again and again; raises LoadFailed."""
    scenario = Scenario(PULL, server.broker, SENT_TOPIC, connections=_CONNECTIONS)
    pulled = measure_load(scenario, timing, 1, server.pids)
    if pulled.server_cores is None:
        raise LoadFailed("the server's processes are not known")
    return Phase(
        messages=pulled.messages,
        seconds=pulled.seconds,
        errors=sum(pulled.errors.values()),
        server_cpu_s=pulled.server_cores * pulled.seconds,
        p50_ms=pulled.p50_ms,
        p99_ms=pulled.p99_ms,
        p999_ms=pulled.p999_ms,
        first_error=next(iter(pulled.errors), ""),
    )
