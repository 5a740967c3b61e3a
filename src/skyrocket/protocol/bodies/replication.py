"""State of replication between master and slaves."""

from skyrocket.fastjson.bean import FLAG, INTEGER, TEXT, Field, bean, tuple_of
from skyrocket.protocol.bodies.json_body import BodyBase, JsonBody, body


@body
class HaConnection(BodyBase):
    """One slave as its master sees it."""

    address: str | None = None
    slave_ack_offset: int = 0
    lag_bytes: int = 0
    in_sync: bool = False
    transferred_bytes_per_second: int = 0
    transfer_from: int = 0


@body
class HaClient(BodyBase):
    """The slave's own view."""

    master_address: str | None = None
    transferred_bytes_per_second: int = 0
    max_offset: int = 0
    last_read_timestamp: int = 0
    last_write_timestamp: int = 0
    master_flush_offset: int = 0
    is_activated: bool | None = None


@body
class HaStatus(BodyBase):
    """GET_BROKER_HA_STATUS."""

    is_master: bool = False
    master_max_offset: int = 0
    in_sync_slaves: int = 0
    connections: tuple[HaConnection, ...] = ()
    client: HaClient | None = None


HA_STATUS = JsonBody(
    bean(
        HaStatus,
        Field(
            "haClientRuntimeInfo",
            "client",
            bean(
                HaClient,
                Field("isActivated", "is_activated", FLAG),
                Field("lastReadTimestamp", "last_read_timestamp", INTEGER),
                Field("lastWriteTimestamp", "last_write_timestamp", INTEGER),
                Field("masterAddr", "master_address", TEXT),
                Field("masterFlushOffset", "master_flush_offset", INTEGER),
                Field("maxOffset", "max_offset", INTEGER),
                Field("transferredByteInSecond", "transferred_bytes_per_second", INTEGER),
            ),
        ),
        Field(
            "haConnectionInfo",
            "connections",
            tuple_of(
                bean(
                    HaConnection,
                    Field("addr", "address", TEXT),
                    Field("diff", "lag_bytes", INTEGER),
                    Field("inSync", "in_sync", FLAG),
                    Field("slaveAckOffset", "slave_ack_offset", INTEGER),
                    Field("transferFromWhere", "transfer_from", INTEGER),
                    Field("transferredByteInSecond", "transferred_bytes_per_second", INTEGER),
                )
            ),
        ),
        Field("inSyncSlaveNums", "in_sync_slaves", INTEGER),
        Field("master", "is_master", FLAG),
        Field("masterCommitLogMaxOffset", "master_max_offset", INTEGER),
    )
)
