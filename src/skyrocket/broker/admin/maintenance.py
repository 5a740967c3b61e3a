"""What operators ask a broker to do to its files, and what only brokers under a controller know."""

import json
import logging
import mmap
from typing import Final

from skyrocket.config.sources import parse_properties
from skyrocket.errors import ConfigError
from skyrocket.protocol.bodies.tables import QUEUE_CHECK_RUNS, QueueCheck
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import Body, RemotingCommand
from skyrocket.protocol.errors import InvalidParameter, SystemFailure
from skyrocket.protocol.requests.admin_broker import (
    CheckRocksDbCqWriteProgress,
    CleanExpiredConsumeQueue,
    DeleteExpiredCommitLog,
    GetColdDataFlowCtrInfo,
    RemoveColdDataFlowCtrConfig,
    SetCommitLogReadMode,
    UpdateColdDataFlowCtrConfig,
)
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve, serve_raw
from skyrocket.store.message_store import MessageStore

_logger = logging.getLogger(__name__)

_READ_MODES: Final = {0: mmap.MADV_NORMAL, 1: mmap.MADV_RANDOM}
_OF_A_GROUP: Final = 3 << 20  # RocketMQ's cgColdReadThreshold
_OF_ALL: Final = 100 << 20  # and globalColdReadThreshold


class ColdDataLimits:
    """How many bytes a second single groups may read that are no longer in memory.

    Kept until the next start and shown; reads are not slowed down by them. RocketMQ does so only with
    `coldDataFlowControlEnable`, which is off by default there.
    """

    def __init__(self) -> None:
        self._by_group: dict[str, int] = {}

    def update(self, text: str) -> None:
        """Take `group=bytes` lines; a line that is none is passed over. Raises SystemFailure for no properties text."""
        try:
            pairs = parse_properties(text)
        except ConfigError as error:
            raise SystemFailure("string2Properties error") from error
        for group, value in pairs.items():
            try:
                self._by_group[group] = int(value)
            except ValueError:
                _logger.warning("a cold read limit is not a number group=%s value=%r", group, value)

    def remove(self, group: str) -> None:
        """Forget the limit of a group, if it has one."""
        self._by_group.pop(group, None)

    def text(self) -> str:
        """As JSON, in RocketMQ's order."""
        return json.dumps(
            {
                "runtimeTable": {},
                "configTable": self._by_group,
                "cgColdReadThreshold": _OF_A_GROUP,
                "globalColdReadThreshold": _OF_ALL,
                "globalAcc": 0,
            },
            separators=(",", ":"),
        )


class MaintenanceProcessor:
    """Cleans, and tells the kernel how to read."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self._limits = ColdDataLimits()

    def handlers(self) -> Handlers:
        return (
            serve(CleanExpiredConsumeQueue, self.clean_queues),
            serve(DeleteExpiredCommitLog, self.delete_log_files),
            # Raw: RocketMQ refuses a request without extFields in other words than one without the field.
            serve_raw(SetCommitLogReadMode.code, self.set_read_mode),
            serve(UpdateColdDataFlowCtrConfig, self.set_cold_limits),
            serve(RemoveColdDataFlowCtrConfig, self.remove_cold_limit),
            serve(GetColdDataFlowCtrInfo, self.show_cold_limits),
            serve(CheckRocksDbCqWriteProgress, self.check_queues),
        )

    def clean_queues(self, _: Peer, __: CleanExpiredConsumeQueue, ___: Body) -> None:
        """Remove queues whose records have all left the log."""
        self._store.dispatch()
        self._store.removal.remove_expired()

    def delete_log_files(self, _: Peer, __: DeleteExpiredCommitLog, ___: Body) -> None:
        """Let the next cleaning runs delete expired files, whatever the hour."""
        self._store.cleaner.request()

    def set_read_mode(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """Let the kernel read the log ahead (0) or not (1)."""
        if request.ext_fields is None:
            raise SystemFailure("set commitlog readahead mode param error")
        try:
            mode = int(SetCommitLogReadMode.from_fields(request.ext_fields).read_ahead_mode or "")
        except ValueError:
            raise SystemFailure("set commitlog readahead mode failed") from None
        if mode not in _READ_MODES:
            raise InvalidParameter("set commitlog readahead mode param value error")
        self._store.commit_log.files.advise(_READ_MODES[mode])
        return request.answer(ResponseCode.SUCCESS, f"set commitlog readahead mode success, mode: {mode}")

    def check_queues(self, _: Peer, __: CheckRocksDbCqWriteProgress, ___: Body) -> QueueCheck:
        """As RocketMQ: the check is said to run, and its result is in the log."""
        _logger.info("queues are kept in files alone: there is no KV store to compare them with")
        return QueueCheck(check_status=QUEUE_CHECK_RUNS)

    # ── limits of cold reads ─────────────────────────────────────────────────────────────────────────────────────────

    def set_cold_limits(self, _: Peer, __: UpdateColdDataFlowCtrConfig, body: Body) -> None:
        """Set limits of groups; without a body none."""
        if body:
            self._limits.update(bytes(body).decode("utf-8", "replace"))

    def remove_cold_limit(self, _: Peer, __: RemoveColdDataFlowCtrConfig, body: Body) -> None:
        """Forget the limit of one group."""
        self._limits.remove(bytes(body).decode("utf-8", "replace"))

    def show_cold_limits(self, _: Peer, __: GetColdDataFlowCtrInfo, ___: Body) -> bytes:
        """The limits as JSON text."""
        return self._limits.text().encode()
