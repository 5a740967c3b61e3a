"""What slaves and operators ask the timer: its check point, how many messages wait, which engine it uses."""

from typing import Final

from skyrocket.broker.timer.timer_counts import TimerCountTable
from skyrocket.format.config_files import timer_metrics
from skyrocket.format.timer_checkpoint import WIRE_SIZE, encode_timer_checkpoint
from skyrocket.protocol.codes import RequestCode, ResponseCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import InvalidParameter, SystemFailure
from skyrocket.protocol.requests.admin_broker import SwitchTimerEngine
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve_raw
from skyrocket.store.timer.timer_files import TimerFiles

_FILES: Final = "F"
_KEY_VALUE_STORE: Final = "R"


class TimerAdminProcessor:
    """Answers; `files` is None for a broker without a timer."""

    def __init__(self, files: TimerFiles | None, counts: TimerCountTable) -> None:
        self._files = files
        self._counts = counts

    def handlers(self) -> Handlers:
        return (
            serve_raw(RequestCode.GET_TIMER_CHECK_POINT, self.check_point),
            serve_raw(RequestCode.GET_TIMER_METRICS, self.metrics),
            serve_raw(RequestCode.SWITCH_TIMER_ENGINE, self.switch_engine),
        )

    def check_point(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_TIMER_CHECK_POINT: as it is on disk."""
        if self._files is None:
            raise SystemFailure("The checkpoint is null")
        page = encode_timer_checkpoint(self._files.checkpoint)
        return request.answer(ResponseCode.SUCCESS, body=page[:WIRE_SIZE])

    def metrics(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_TIMER_METRICS."""
        if self._files is None:
            raise SystemFailure("The timer message store is null")
        return request.answer(ResponseCode.SUCCESS, body=timer_metrics.encode(self._counts.content()))

    def switch_engine(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """SWITCH_TIMER_ENGINE: there is only one, that of files."""
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
