"""What operators ask a broker to do to its files, and how its replication stands."""

import mmap
from typing import Final

from skyrocket.broker.admin.cold_data_limits import ColdDataLimits
from skyrocket.protocol.bodies.replication import HA_STATUS, HaClient, HaStatus
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import InvalidParameter, SystemFailure
from skyrocket.protocol.requests.admin_broker import (
    CleanExpiredConsumeQueue,
    DeleteExpiredCommitLog,
    GetBrokerHaStatus,
    GetColdDataFlowCtrInfo,
    RemoveColdDataFlowCtrConfig,
    SetCommitLogReadMode,
    UpdateColdDataFlowCtrConfig,
)
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve_raw
from skyrocket.store.message_store import MessageStore

_READ_MODES: Final = {0: mmap.MADV_NORMAL, 1: mmap.MADV_RANDOM}


class MaintenanceProcessor:
    """Cleans, and tells the kernel how to read."""

    def __init__(self, store: MessageStore, *, is_master: bool) -> None:
        self._store = store
        self._is_master = is_master
        self._limits = ColdDataLimits()

    def handlers(self) -> Handlers:
        return (
            serve_raw(CleanExpiredConsumeQueue.code, self.clean_queues),
            serve_raw(DeleteExpiredCommitLog.code, self.delete_log_files),
            serve_raw(SetCommitLogReadMode.code, self.set_read_mode),
            serve_raw(UpdateColdDataFlowCtrConfig.code, self.set_cold_limits),
            serve_raw(RemoveColdDataFlowCtrConfig.code, self.remove_cold_limit),
            serve_raw(GetColdDataFlowCtrInfo.code, self.show_cold_limits),
            serve_raw(GetBrokerHaStatus.code, self.replication_status),
        )

    def clean_queues(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """CLEAN_EXPIRED_CONSUMEQUEUE: queues whose records have all left the log go."""
        self._store.dispatch()
        self._store.remove_expired_queues()
        return request.answer(ResponseCode.SUCCESS)

    def delete_log_files(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """DELETE_EXPIRED_COMMITLOG: the next cleaning runs do it, whatever the hour."""
        self._store.cleaner.request()
        return request.answer(ResponseCode.SUCCESS)

    def set_read_mode(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """SET_COMMITLOG_READ_MODE: with read-ahead (0) or without (1)."""
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

    # ── limits of cold reads ─────────────────────────────────────────────────────────────────────────────────────────

    def set_cold_limits(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """UPDATE_COLD_DATA_FLOW_CTR_CONFIG."""
        if request.body:
            self._limits.update(bytes(request.body).decode("utf-8", "replace"))
        return request.answer(ResponseCode.SUCCESS)

    def remove_cold_limit(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """REMOVE_COLD_DATA_FLOW_CTR_CONFIG."""
        self._limits.remove(bytes(request.body).decode("utf-8", "replace"))
        return request.answer(ResponseCode.SUCCESS)

    def show_cold_limits(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_COLD_DATA_FLOW_CTR_INFO."""
        return request.answer(ResponseCode.SUCCESS, body=self._limits.text().encode())

    # ── replication ──────────────────────────────────────────────────────────────────────────────────────────────────

    def replication_status(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_BROKER_HA_STATUS of a broker to which no slave is connected."""
        end = self._store.commit_log.written_offset
        status = HaStatus(is_master=self._is_master, master_max_offset=end, client=HaClient())
        return request.answer(ResponseCode.SUCCESS, body=HA_STATUS.encode(status))
