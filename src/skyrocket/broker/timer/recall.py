"""A sender takes back a message that waits for its time.

A cancel is parked for the same step as the message: when the step is over, cancels are read first, and what they name
is not delivered. The answer comes when the cancel is stored.
"""

from typing import Final

from skyrocket.broker.core.dispatching import is_flushed
from skyrocket.broker.state.identity import BrokerIdentity, packed_host
from skyrocket.broker.state.topics import TopicTable
from skyrocket.broker.timer.rules import TimerRules
from skyrocket.clock import Clock
from skyrocket.config.sections import BrokerConfig, FlushDiskType, StoreConfig
from skyrocket.errors import DataError
from skyrocket.format.properties import with_property
from skyrocket.format.property_bytes import (
    BORN_TIMESTAMP,
    PRODUCER_GROUP,
    TAGS,
    TIMER_DELETE_UNIQUE_KEY,
    TIMER_DELIVER_MS,
    TRACE_CONTEXT,
    UNIQUE_KEY,
)
from skyrocket.format.recall_handle import RecallHandle, decode_handle
from skyrocket.format.record import pack_host
from skyrocket.model.permission import PERM_WRITE
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import (
    IllegalOperation,
    NoPermission,
    RequestError,
    ServiceNotAvailable,
    SlaveNotAvailable,
    SystemFailure,
    TopicNotExist,
)
from skyrocket.protocol.requests.messaging import RecallMessage, RecallMessageAnswer
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import UNSET_REMARK, Answered, Handlers, serve
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore

_UNAVAILABLE: Final = "recall failed, broker service not available"


class RecallProcessor:
    """Stores cancels."""

    def __init__(
        self,
        store: MessageStore,
        topics: TopicTable,
        rules: TimerRules,
        identity: BrokerIdentity,
        config: BrokerConfig,
        clock: Clock,
    ) -> None:
        self._store = store
        self._topics = topics
        self._rules = rules
        self._identity = identity
        self._config = config
        self._limits = store.config
        self._clock = clock
        self._region = {"MSG_REGION": identity.region}

    def use(self, config: BrokerConfig, limits: StoreConfig) -> None:
        """Go by other settings."""
        self._config, self._limits = config, limits

    def handlers(self) -> Handlers:
        return (serve(RecallMessage, self.recall),)

    async def recall(self, peer: Peer, header: RecallMessage, _: Body) -> Answered:
        """Raises what RocketMQ answers when the handle does not name a message that waits here."""
        try:
            handle = self._checked(header)
            cancel = self._cancel(peer, header, handle)
            result = self._store.put(cancel)
            if not result.ok:
                raise SystemFailure("recall failed, execute error")
        except RequestError as error:
            error.ext_fields = self._region
            raise
        waits = self._limits.flush_disk_type is FlushDiskType.SYNC_FLUSH
        if waits and not await self._is_durable(result.end_offset):
            raise SystemFailure("recall failed, execute error", self._region)
        return Answered(
            RecallMessageAnswer(region=self._identity.region, msg_id=handle.unique_key), remark=UNSET_REMARK
        )

    def _checked(self, header: RecallMessage) -> RecallHandle:
        if not self._config.recall:
            raise NoPermission("recall failed, operation is forbidden")
        if self._config.broker_id != 0:
            raise SlaveNotAvailable(_UNAVAILABLE)
        if not (self._config.broker_permission & PERM_WRITE or self._config.recall_when_not_writable):
            raise ServiceNotAvailable(_UNAVAILABLE)
        if self._topics.find(header.topic) is None:
            raise TopicNotExist(f"recall failed, the topic[{header.topic}] not exist")
        try:
            handle = decode_handle(header.recall_handle)
        except DataError as error:
            raise IllegalOperation("recall handle is invalid") from error
        if handle.topic != header.topic:
            raise IllegalOperation("recall failed, topic not match")
        if handle.broker_name != self._identity.broker_name:
            raise IllegalOperation(_UNAVAILABLE)
        time_ms = int(handle.time) if handle.time.isdigit() and len(handle.time) < 19 else -1
        left_ms = time_ms - self._clock.now_ms()
        if not 0 < left_ms < self._limits.timer_max_delay_seconds * 1000:
            raise IllegalOperation("recall failed, timestamp invalid")
        return handle

    def _cancel(self, peer: Peer, header: RecallMessage, handle: RecallHandle) -> PutMessage:
        now_ms = self._clock.now_ms()
        key = handle.unique_key
        named = f"{handle.topic}+{key}" if self._limits.timer_cancel_with_topic else key
        properties = b""
        for name, value in (
            (TAGS, "_RECALL_TAG_"),
            (TIMER_DELETE_UNIQUE_KEY, named),
            (UNIQUE_KEY, key),
            (TIMER_DELIVER_MS, handle.time),
            (BORN_TIMESTAMP, str(now_ms)),
            (TRACE_CONTEXT, ""),
            (PRODUCER_GROUP, header.producer_group or ""),
        ):
            properties = with_property(properties, name, value.encode())
        born_host = pack_host(packed_host(peer.remote_address))
        cancel = PutMessage(handle.topic, 0, b"0", properties, born_timestamp=now_ms, born_host=born_host)
        try:
            self._rules.park(cancel)
        except RequestError as error:  # the step has become too crowded, or the timer is off
            raise SystemFailure("recall failed, execute error") from error
        return cancel

    async def _is_durable(self, end_offset: int) -> bool:
        """Wait for the disk; when it is slow the cancel is stored all the same, and RocketMQ says so."""
        return await is_flushed(self._store, end_offset, self._limits.sync_flush_timeout_ms) is not False
