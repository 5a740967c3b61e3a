"""Topics: create, change and delete them, and the offsets of their queues."""

from collections.abc import Mapping
from datetime import datetime

from skyrocket.client.admin.admin_calls import AdminCalls, moment_ms
from skyrocket.client.consumer.start_position import max_offset, min_offset, offset_at
from skyrocket.client.core.names import TEMPLATE_TOPIC, check_creatable, unwrap
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.permission import PERM_READ, PERM_WRITE
from skyrocket.model.topic_config import SINGLE_TAG, TopicConfig
from skyrocket.protocol.bodies.statistics import TopicOffset, TopicStats
from skyrocket.protocol.bodies.topics import TOPIC_CONFIG, TopicList
from skyrocket.protocol.requests.admin_topics import (
    DeleteTopicInBroker,
    GetTopicConfig,
    GetTopicStatsInfo,
    UpdateAndCreateTopic,
)
from skyrocket.protocol.requests.name_server import DeleteTopicInNamesrv, GetAllTopicList
from skyrocket.protocol.requests.offsets import GetEarliestMsgStoreTime


class TopicAdmin(AdminCalls):
    """Operations on topics."""

    async def create_topic(
        self,
        topic: str,
        queues: int = 8,
        *,
        permission: int = PERM_READ | PERM_WRITE,
        cluster: str | None = None,
        broker: str | None = None,
        ordered: bool = False,
        attributes: Mapping[str, str] | None = None,
    ) -> None:
        """Create it or change it, on all masters, or those of a cluster or a broker."""
        check_creatable(topic)
        request = UpdateAndCreateTopic(
            topic=self._full(topic),
            default_topic=TEMPLATE_TOPIC,
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=permission,
            topic_filter_type=SINGLE_TAG,
            order=ordered,
            topic_sys_flag=0,
            attributes=",".join(f"+{name}={value}" for name, value in attributes.items()) if attributes else None,
        )
        for address in await self._masters(cluster, broker):
            await self._ask(address, request, doing=f"creating topic {topic}")

    async def delete_topic(self, topic: str, *, cluster: str | None = None) -> None:
        """From brokers and name servers."""
        for address in await self._masters(cluster):
            await self._ask(address, DeleteTopicInBroker(topic=self._full(topic)), doing=f"deleting topic {topic}")
        for address in self._instance.names.addresses:
            request = DeleteTopicInNamesrv(topic=self._full(topic), cluster_name=cluster)
            await self._ask(address, request, doing=f"deleting topic {topic}")
        self._instance.routes.pop(self._full(topic), None)

    async def topics(self) -> list[str]:
        """All that the name servers know; those of the namespace, if there is one."""
        names = TopicList.decode((await self._names(GetAllTopicList())).body).topics
        if not self._namespace:
            return sorted(names)
        return sorted(unwrap(self._namespace, name) for name in names if unwrap(self._namespace, name) != name)

    async def topic_config(self, topic: str) -> TopicConfig:
        """As a broker has it."""
        address = await self._instance_of().any_broker_of(self._full(topic))
        reply = await self._ask(address, GetTopicConfig(topic=self._full(topic)), doing=f"asking for topic {topic}")
        return TOPIC_CONFIG.decode(reply.body)

    async def topic_offsets(self, topic: str) -> dict[MessageQueue, TopicOffset]:
        """First and last offset of every queue."""
        found: dict[MessageQueue, TopicOffset] = {}
        for address in await self._masters_of(self._full(topic)):
            request = GetTopicStatsInfo(topic=self._full(topic))
            reply = await self._ask(address, request, doing=f"asking for the offsets of topic {topic}")
            found.update(TopicStats.decode(reply.body).offsets)
        return {self._shown(queue): offset for queue, offset in found.items()}

    async def queues(self, topic: str) -> list[MessageQueue]:
        """The queues that can be read."""
        return [self._shown(queue) for queue in sorted((await self.route(topic)).read_queues)]

    async def max_offset(self, queue: MessageQueue) -> int:
        """The offset of the next message."""
        return await max_offset(self._instance_of(), self._full_queue(queue))

    async def min_offset(self, queue: MessageQueue) -> int:
        """The offset of the first message that is still there."""
        return await min_offset(self._instance_of(), self._full_queue(queue))

    async def offset_at(self, queue: MessageQueue, moment: datetime | float) -> int:
        """The first message stored at or after a moment."""
        return await offset_at(self._instance_of(), self._full_queue(queue), moment_ms(moment))

    async def earliest_time(self, queue: MessageQueue) -> int:
        """When the first message that is still there was stored, in ms since 1970; -1 for an empty queue."""
        full = self._full_queue(queue)
        request = GetEarliestMsgStoreTime(topic=full.topic, queue_id=full.queue_id, broker_name=full.broker_name)
        address = await self._instance_of().master_of(full)
        return (await self._ask(address, request, doing=f"asking for the first time of {queue}")).header.timestamp
