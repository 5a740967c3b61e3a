"""A master with its slave, ours or Apache's, under raw sends as in `bench.replication`: the Java client would limit."""

import statistics

from tests.interop.apache import Apache

from bench.load.measure import Timing
from bench.load.own_server import WORK
from bench.peers.comparison import Pair, WithSlave
from bench.replication.costs import Cost, costs, kept, median_rate
from bench.replication.servers import ALONE

_LONGEST_WARM_UP_S = 15.0  # each set-up begins anew: three for each maker
_LONGEST_S = 8.0
_OUR_WARM_UP_S = 2.0
_OUR_ROUNDS = 3  # ours start in a second


def measure_pair(apache: Apache | None, warm_up_s: float, seconds: float) -> Pair:
    """All set-ups of one maker; ours unless Apache is given."""
    seconds = min(seconds, _LONGEST_S)
    if apache is not None:
        found = costs(WORK, Timing(min(warm_up_s, _LONGEST_WARM_UP_S), seconds), 1, apache)
    else:
        found = costs(WORK, Timing(min(warm_up_s, _OUR_WARM_UP_S), seconds), _OUR_ROUNDS)
    return {setup: _with_slave(of_setup, found[ALONE]) for setup, of_setup in found.items()}


def _with_slave(found: list[Cost], alone: list[Cost]) -> WithSlave:
    slave = [each.slave_cpu_us for each in found if each.slave_cpu_us is not None]
    return WithSlave(
        rate=median_rate(found),
        of_alone=kept(found, alone),
        p99_ms=statistics.median(each.sends.p99_ms for each in found),
        master_cpu_us=statistics.median(each.sends.server_cpu_us or 0.0 for each in found),
        slave_cpu_us=statistics.median(slave) if slave else None,
    )
