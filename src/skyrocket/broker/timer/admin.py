"""What slaves and operators ask the timer: its check point, how many messages wait, which engine it uses."""

from collections.abc import Callable
from typing import Final

from skyrocket.broker.timer.timer_counts import TimerCountTable
from skyrocket.format.config_files import TIMERS
from skyrocket.format.timer_checkpoint import WIRE_SIZE, TimerCheckpoint, encode_timer_checkpoint
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import Body, RemotingCommand
from skyrocket.protocol.errors import InvalidParameter, SystemFailure
from skyrocket.protocol.requests.admin_broker import GetTimerCheckPoint, GetTimerMetrics, SwitchTimerEngine
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve, serve_raw
from skyrocket.store.timer.timer_files import TimerFiles

_FILES: Final = "F"
_KEY_VALUE_STORE: Final = "R"


class TimerAdminProcessor:
    """Answers; `files` is None for a broker without a timer."""

    def __init__(
        self,
        files: TimerFiles | None,
        counts: TimerCountTable,
        of_slave: Callable[[], TimerCheckpoint] | None = None,
        read_time_ms: Callable[[], int] | None = None,
    ) -> None:
        self._files = files
        self._read_time_ms = read_time_ms  # of the service: what was due before has been delivered
        self._of_slave = of_slave  # that may act as master: how far it, or its master, has delivered
        self._counts = counts

    def handlers(self) -> Handlers:
        return (
            serve(GetTimerCheckPoint, self.check_point),
            serve(GetTimerMetrics, self.metrics),
            # Raw: RocketMQ refuses a request without extFields in other words than one without the field.
            serve_raw(SwitchTimerEngine.code, self.switch_engine),
        )

    def check_point(self, _: Peer, __: GetTimerCheckPoint, ___: Body) -> bytes:
        """The check point as it is on disk; of a timer that was never used as it is now.

        A slave of RocketMQ goes through all steps since the time that it was told before it delivers when it acts as
        master: since 1970 that is a quarter of an hour.
        """
        if self._of_slave is not None:
            known = self._of_slave()
            told = known._replace(queue_offset=known.master_queue_offset)
            return encode_timer_checkpoint(told)[:WIRE_SIZE]
        if self._files is None:
            raise SystemFailure("The checkpoint is null")
        known = self._files.checkpoint
        if not known.last_read_time_ms and self._read_time_ms is not None:
            known = known._replace(last_read_time_ms=self._read_time_ms())
        return encode_timer_checkpoint(known)[:WIRE_SIZE]

    def metrics(self, _: Peer, __: GetTimerMetrics, ___: Body) -> bytes:
        """How many messages of each topic wait for their time."""
        if self._files is None:
            raise SystemFailure("The timer message store is null")
        return TIMERS.encode(self._counts.content())

    def switch_engine(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """Agree to the engine of files, the only one."""
        if self._files is None:
            raise InvalidParameter("broker timerWheelEnable is false")
        if request.ext_fields is None:
            raise InvalidParameter("param error, extFields is null")
        engine = SwitchTimerEngine.from_fields(request.ext_fields).engine
        if engine == _KEY_VALUE_STORE:
            raise InvalidParameter("timerUseRocksDB muse be configured true when broker start")
        if engine != _FILES:
            raise InvalidParameter("param error")
        return request.answer(ResponseCode.SUCCESS, "switch timer engine success")
