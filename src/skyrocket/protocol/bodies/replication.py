"""State of replication between master and slaves."""

from typing import Annotated

from skyrocket.protocol.bodies.json_body import BodyBase, body


@body
class HaConnection(BodyBase):
    """One slave as its master sees it."""

    address: Annotated[str | None, "addr"] = None
    slave_ack_offset: int = 0
    lag_bytes: Annotated[int, "diff"] = 0
    in_sync: bool = False
    transferred_bytes_per_second: Annotated[int, "transferredByteInSecond"] = 0
    transfer_from: Annotated[int, "transferFromWhere"] = 0


@body
class HaClient(BodyBase):
    """The slave's own view."""

    master_address: Annotated[str | None, "masterAddr"] = None
    transferred_bytes_per_second: Annotated[int, "transferredByteInSecond"] = 0
    max_offset: int = 0
    last_read_timestamp: int = 0
    last_write_timestamp: int = 0
    master_flush_offset: int = 0
    is_activated: bool | None = None


@body
class HaStatus(BodyBase):
    """GET_BROKER_HA_STATUS."""

    is_master: Annotated[bool, "master"] = False
    master_max_offset: Annotated[int, "masterCommitLogMaxOffset"] = 0
    in_sync_slaves: Annotated[int, "inSyncSlaveNums"] = 0
    connections: Annotated[tuple[HaConnection, ...], "haConnectionInfo"] = ()
    client: Annotated[HaClient | None, "haClientRuntimeInfo"] = None
