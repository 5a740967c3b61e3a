"""What a controller tells over HTTP. Names that begin with `rocketmq_` are those of RocketMQ's controller."""

from collections.abc import Iterable, Iterator
from typing import Final

from skyrocket.clock import Clock
from skyrocket.controller.decider import Decider
from skyrocket.controller.machine import ControllerMachine
from skyrocket.controller.notifier import Notifier
from skyrocket.observability.exposition import Kind, Metric, single
from skyrocket.protocol.codes import RequestCode
from skyrocket.remoting.server import RemotingServer

_ROLE_LEADER: Final = 3  # RocketMQ: 0 unknown, 1 candidate, 2 follower, 3 leader
_ROLE_FOLLOWER: Final = 2
_ROLE_CANDIDATE: Final = 1


class ControllerObservation:
    """Numbers and readiness of one controller."""

    def __init__(
        self, machine: ControllerMachine, decider: Decider, notifier: Notifier, server: RemotingServer, clock: Clock
    ) -> None:
        self._machine = machine
        self._decider = decider
        self._notifier = notifier
        self._server = server
        self._clock = clock

    def why_not_ready(self) -> str | None:
        """Brokers get no decision from a controller that neither leads nor knows who does."""
        standing = self._decider.standing
        if standing.leader is not None:
            return None
        return standing.trouble or "no controller leads: an election is going on"

    def metrics(self) -> Iterable[Metric]:
        """Everything that is counted."""
        yield single("rocketmq_role", Kind.GAUGE, "3 leads, 2 follows, 1 knows of no leader", self._role())
        active = Metric("rocketmq_active_broker_num", Kind.GAUGE, "Brokers whose heartbeats come")
        for (cluster, name), count in self._machine.live.counts(self._clock.monotonic()).items():
            active.add(count, cluster=cluster, broker_set=name)
        yield active
        elections = Metric("rocketmq_election_total", Kind.COUNTER, "Elections of masters by their result")
        for result, count in self._decider.elections.by_result.items():
            elections.add(count, election_result=result)
        yield elections
        yield self._requests()
        yield from self._ours()

    def _role(self) -> int:
        standing = self._decider.standing
        if standing.leadership is not None:
            return _ROLE_LEADER
        return _ROLE_CANDIDATE if standing.leader is None else _ROLE_FOLLOWER

    def _requests(self) -> Metric:
        requests = Metric("rocketmq_request_total", Kind.COUNTER, "Requests by what they ask and how they ended")
        for route in self._server.router.routes():
            if route.requests and route.code is not None:
                name = RequestCode(route.code).name.lower()
                requests.add(route.requests - route.failed, request_type=name, request_handle_status="success")
                requests.add(route.failed, request_type=name, request_handle_status="failed")
        return requests

    def _ours(self) -> Iterator[Metric]:
        sets = self._machine.sets.values()
        leads = self._decider.leads
        in_sync = sum(len(each.in_sync) for each in sets)
        for name, kind, help_text, value in (
            ("skyrocket_controller_replica_sets", Kind.GAUGE, "Replica sets, on the leader", len(sets)),
            (
                "skyrocket_controller_sets_without_master",
                Kind.GAUGE,
                "Replica sets without a master, on the leader",
                sum(each.master_id is None for each in sets) if leads else 0,
            ),
            (
                "skyrocket_controller_replicas_out_of_sync",
                Kind.GAUGE,
                "Brokers that are not in sync, on the leader",
                sum(len(each.replicas) for each in sets) - in_sync if leads else 0,
            ),
            ("skyrocket_controller_writes_total", Kind.COUNTER, "Decisions that were written", self._decider.writes),
            (
                "skyrocket_controller_failed_writes_total",
                Kind.COUNTER,
                "Decisions that the engine did not take",
                self._decider.failed_writes,
            ),
            ("skyrocket_controller_notices_total", Kind.COUNTER, "Brokers told of an election", self._notifier.sent),
            ("skyrocket_controller_connections", Kind.GAUGE, "Open connections", self._server.connection_count),
        ):
            yield single(name, kind, help_text, value)
