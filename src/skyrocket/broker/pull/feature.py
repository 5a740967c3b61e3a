"""Pulls, answered at once or held until messages come."""

from collections.abc import Iterable, Mapping

from skyrocket.broker.core.feature import Feature, Follow
from skyrocket.broker.core.parts import Parts
from skyrocket.broker.pull.long_polling import LongPolling
from skyrocket.broker.pull.pull import PullProcessor, no_lite_pulls
from skyrocket.broker.pull.slave_reads import SlaveReads
from skyrocket.model.permission import PERM_READ
from skyrocket.observability.exposition import Metric, histogram
from skyrocket.protocol.codes import RequestCode
from skyrocket.remoting.services import Work
from skyrocket.remoting.serving import Handlers, serve_raw


class PullFeature(Feature):
    """PULL_MESSAGE and LITE_PULL_MESSAGE."""

    def __init__(self, parts: Parts) -> None:
        self._settings = parts.settings
        self._classes = parts.classes
        self._host = parts.identity.address.host
        self.polling = LongPolling(parts.clock, parts.store.max_offset)
        self._pull = PullProcessor(
            parts.store,
            parts.tables,
            self.polling,
            parts.clock,
            parts.subscriptions,
            parts.counters,
            slave_read=parts.config.slave_read,
            at_slave=self._slave_reads(parts),
        )
        parts.store.add_listener(self.polling.arrived)

    @staticmethod
    def _slave_reads(parts: Parts) -> SlaveReads | None:
        if parts.is_master:
            return None
        return SlaveReads(parts.broker_set, corrects_offsets=parts.store.config.offset_check_in_slave)

    def handlers(self) -> Handlers:
        lite_pull = self._pull.pull if self._settings.broker.lite_pulls else no_lite_pulls(self._host)
        return (
            serve_raw(RequestCode.PULL_MESSAGE, self._pull.pull),
            serve_raw(RequestCode.LITE_PULL_MESSAGE, lite_pull),
        )

    def services(self) -> tuple[Work, ...]:
        return (self.polling.run,)

    def follows(self) -> tuple[Follow, ...]:
        return (
            Follow(self._permission_changed, ("brokerPermission",)),
            Follow(self._slave_read_changed, ("slaveReadEnable",)),
        )

    def _slave_read_changed(self) -> None:
        self._pull.slave_read = self._settings.broker.slave_read

    def _permission_changed(self) -> None:
        if not self._settings.broker.broker_permission & PERM_READ:
            self.polling.wake_all()  # those who wait ask again, and are refused

    def metrics(self) -> Iterable[Metric]:
        return (histogram("skyrocket_pull_latency_seconds", "Reads of pulls that found messages", self._pull.latency),)

    def runtime_rows(self) -> Mapping[str, str]:
        """Pulls that wait for messages are not a backlog."""
        held = self.polling.held_count
        return {
            "pullThreadPoolQueueSize": str(max(self._classes.pull.in_hand - held, 0)),
            "litePullThreadPoolQueueSize": str(max(self._classes.lite_pull.in_hand - held, 0)),
        }

    def let_go(self) -> None:
        self.polling.wake_all()
