"""What a producer hears when the store did not take its message."""

import shutil

from skyrocket.protocol.errors import (
    FlushDiskTimeout,
    FlushSlaveTimeout,
    MessageIllegal,
    RequestError,
    ServiceNotAvailable,
    SlaveNotAvailable,
    SystemBusy,
    SystemFailure,
)
from skyrocket.store.results import PutStatus


def put_refusal(status: PutStatus, max_message_size: int, store_root: str, trouble: str | None = None) -> RequestError:
    """The refusal with RocketMQ's code and remark; `trouble` is what the store knows of the reason."""
    match status:
        case PutStatus.FLUSH_DISK_TIMEOUT:
            return FlushDiskTimeout()
        case PutStatus.FLUSH_SLAVE_TIMEOUT:
            return FlushSlaveTimeout()
        case PutStatus.SLAVE_NOT_AVAILABLE:
            return SlaveNotAvailable()
        case PutStatus.IN_SYNC_REPLICAS_NOT_ENOUGH:
            return SystemFailure("in-sync replicas not enough")
        case PutStatus.CREATE_MAPPED_FILE_FAILED:
            known = "" if trouble is None else f" {trouble}"
            return SystemFailure(f"create mapped file failed, server is busy or broken.{known}")
        case PutStatus.MESSAGE_ILLEGAL | PutStatus.PROPERTIES_SIZE_EXCEEDED:
            return MessageIllegal(
                "the message is illegal, maybe msg body or properties length not matched. "
                f"msg body length limit {max_message_size}B, msg properties length limit 32KB."
            )
        case PutStatus.SERVICE_NOT_AVAILABLE:
            return ServiceNotAvailable(
                "service not available now. It may be caused by one of the following reasons: the broker's disk is "
                f"full [{_disk_use(store_root)}], messages are put to the slave, message store has been shut down, etc."
            )
        case PutStatus.OS_PAGE_CACHE_BUSY:
            return SystemBusy("[PC_SYNCHRONIZED]broker busy, start flow control for a while")
        case PutStatus.PUT_OK:
            raise AssertionError("a message that was taken is not refused")


def _disk_use(root: str) -> str:
    try:
        usage = shutil.disk_usage(root)
    except OSError:
        return "CL: -1.00 CQ: -1.00 INDEX: -1.00"
    used = usage.used / usage.total
    return f"CL: {used:5.2f} CQ: {used:5.2f} INDEX: {used:5.2f}"
