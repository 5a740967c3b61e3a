"""A message whose consumption failed is stored again, for a later attempt or as a dead letter.

    tried less often than allowed    %RETRY%group, after a delay: level 3 + attempts unless the client names one
    tried too often, or level < 0    %DLQ%group, at once; an operator must look at it

A copy is stored, the original stays. It waits like every delayed message, in SCHEDULE_TOPIC_XXXX.
"""

import logging
import random
from collections import Counter

from skyrocket.broker.rules.put_rules import PutRules, with_replaced
from skyrocket.broker.rules.stored_copy import stored_copy
from skyrocket.broker.state.counters import Counters
from skyrocket.broker.state.live_settings import LiveSettings
from skyrocket.broker.state.tables import Tables
from skyrocket.errors import CorruptRecord
from skyrocket.format.message_id import offset_message_id
from skyrocket.format.properties import find_property
from skyrocket.format.property_bytes import DELAY_LEVEL
from skyrocket.format.record import unpack_host
from skyrocket.model.permission import PERM_WRITE
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.model.topic import DLQ_PREFIX, RETRY_PREFIX
from skyrocket.model.topic_config import SYS_FLAG_UNIT_SUBSCRIPTION
from skyrocket.protocol.codes import Version
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import NoPermission, SystemFailure
from skyrocket.protocol.requests.messaging import ConsumerSendMsgBack
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore

_logger = logging.getLogger(__name__)

FIRST_RETRY_LEVEL = 3
DEAD_LETTER_QUEUES = 1


class SendBackProcessor:
    """Stores what comes back, for the retry topic or the dead letters of its group."""

    def __init__(
        self,
        store: MessageStore,
        tables: Tables,
        rules: PutRules,
        broker_ip: str,
        settings: LiveSettings,
        counters: Counters,
    ) -> None:
        self._store = store
        self._topics = tables.topics
        self._groups = tables.groups
        self._rules = rules
        self._broker_ip = broker_ip
        self._settings = settings
        self._counters = counters
        self.dead_letters: Counter[str] = Counter()  # by group

    def handlers(self) -> Handlers:
        return (serve(ConsumerSendMsgBack, self.send_back),)

    def send_back(self, peer: Peer, header: ConsumerSendMsgBack, _: Body) -> None:
        """Store a message again; raises the refusals of group, broker, topic and store."""
        group = self._groups.retrying(header.group)
        if not self._settings.broker.broker_permission & PERM_WRITE:
            raise NoPermission(f"the broker[{self._broker_ip}] sending message is forbidden")
        if group.retry_queues > 0:  # RocketMQ: without queues for them such messages are dropped in silence
            retry_topic = self._retry_topic(group, unit_mode=header.unit_mode)
            message, origin_id = self._consumed(header.offset)
            self._store_again(message, origin_id, retry_topic, group, header, peer.version)
            if self._counters.send_back_meter is not None:
                self._counters.send_back_meter(peer, retry_topic, 1, len(message.body))

    def _retry_topic(self, group: SubscriptionGroup, *, unit_mode: bool) -> str:
        sys_flag = SYS_FLAG_UNIT_SUBSCRIPTION if unit_mode else 0
        topic = self._topics.ensure(RETRY_PREFIX + group.name, group.retry_queues, sys_flag=sys_flag)
        return self._topics.writable(topic).name

    def _consumed(self, physical_offset: int) -> tuple[PutMessage, str]:
        """The message that was consumed, and its id."""
        record = self._store.by_physical_offset(physical_offset)
        try:
            if record is not None:
                message, store_host = stored_copy(record)
                return message, offset_message_id(unpack_host(store_host), physical_offset)
        except CorruptRecord as error:
            _logger.error("a damaged message was sent back physical_offset=%d reason=%s", physical_offset, error)
        raise SystemFailure(f"look message by offset failed, {physical_offset}")

    def _store_again(
        self,
        message: PutMessage,
        origin_id: str,
        retry_topic: str,
        group: SubscriptionGroup,
        header: ConsumerSendMsgBack,
        version: int,
    ) -> None:
        most = group.retry_max_times
        if version >= Version.V3_4_9 and header.max_reconsume_times is not None:
            most = header.max_reconsume_times
        is_dead = message.reconsume_times >= most or header.delay_level < 0
        level = 0 if is_dead else header.delay_level or FIRST_RETRY_LEVEL + message.reconsume_times
        consumed_topic = find_property(message.properties, b"RETRY_TOPIC") or message.topic.encode()
        origin = find_property(message.properties, b"ORIGIN_MESSAGE_ID") or origin_id.encode()
        properties = with_replaced(message.properties, b"RETRY_TOPIC", consumed_topic)
        properties = with_replaced(properties, b"ORIGIN_MESSAGE_ID", origin)
        properties = with_replaced(properties, b"WAIT", b"false")
        message.properties = with_replaced(properties, DELAY_LEVEL, b"%d" % level)
        message.reconsume_times += 1
        if is_dead:
            message.topic = self._topics.ensure(DLQ_PREFIX + group.name, DEAD_LETTER_QUEUES).name
            message.queue_id = random.randrange(DEAD_LETTER_QUEUES)
        else:
            message.topic, message.queue_id = retry_topic, random.randrange(group.retry_queues)
        self._put(message)
        self.dead_letters[group.name] += is_dead
        self._counters.sent_back(consumed_topic.decode("utf-8", "replace"), group.name)

    def _put(self, message: PutMessage) -> None:
        self._rules.postpone(message)  # never a half again, even if it was one once
        result = self._store.put(message)
        if not result.ok:
            raise SystemFailure(result.status.value)
