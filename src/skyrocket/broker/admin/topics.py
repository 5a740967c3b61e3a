"""What operators do to topics: create, change, look at, delete.

A topic that is deleted takes its queues and all offsets with it; its messages stay in the log until they expire.
"""

import asyncio

from skyrocket.broker.rules.paging import page_of
from skyrocket.broker.state.attributes import parse_changes
from skyrocket.broker.state.live_settings import LiveSettings
from skyrocket.broker.state.persistence import SaveTables, saved
from skyrocket.broker.state.tables import Tables
from skyrocket.model.data_version import DataVersion
from skyrocket.model.topic import RETRY_PREFIX
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.topics import TopicConfigList, TopicList
from skyrocket.protocol.bodies.topics import TopicTable as CopiedTopics
from skyrocket.protocol.command import Body
from skyrocket.protocol.requests.admin_topics import (
    CleanUnusedTopic,
    DeleteTopicInBroker,
    GetAllTopicConfig,
    GetAllTopicConfigAnswer,
    GetSystemTopicListFromBroker,
    GetTopicConfig,
    UpdateAndCreateTopic,
    UpdateAndCreateTopicList,
)
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import UNSET_REMARK, Answered, Handlers, serve
from skyrocket.store.message_store import MessageStore


class TopicAdminProcessor:
    """Changes the table of topics."""

    def __init__(
        self,
        store: MessageStore,
        tables: Tables,
        save: SaveTables,
        settings: LiveSettings,
        started_ms: int,
    ) -> None:
        self._store = store
        self._topics = tables.topics
        self._offsets = tables.offsets
        self._save = save
        self._settings = settings
        self._mapping_version = DataVersion(timestamp=started_ms)  # of static topics, of which there are none

    def handlers(self) -> Handlers:
        return (
            serve(UpdateAndCreateTopic, self.update),
            serve(UpdateAndCreateTopicList, self.update_list),
            serve(DeleteTopicInBroker, self.delete),
            serve(GetTopicConfig, self.show),
            serve(GetAllTopicConfig, self.show_all),
            serve(GetSystemTopicListFromBroker, self.system_topics),
            serve(CleanUnusedTopic, self.clean_unused),
        )

    async def update(self, _: Peer, header: UpdateAndCreateTopic, __: Body) -> Answered:
        """Create or change a topic."""
        config = TopicConfig(
            header.topic,
            header.read_queue_nums,
            header.write_queue_nums,
            header.perm,
            header.topic_filter_type,
            header.topic_sys_flag or 0,
            header.order,
            parse_changes(header.attributes),
        )
        self._topics.update(config)
        await self._saved_and_told()
        return Answered(remark=UNSET_REMARK)

    async def update_list(self, _: Peer, __: UpdateAndCreateTopicList, body: TopicConfigList) -> Answered:
        """Create or change all of these topics or none."""
        self._topics.update_all(body.topics)
        await self._saved_and_told()
        return Answered(remark=UNSET_REMARK)

    async def _saved_and_told(self) -> None:
        """Whoever hears the answer may send at once: before, he would be given the queues of the default topic."""
        told = self._topics.until_told()
        await saved(self._save, self._topics)
        if told is not None:
            await told

    async def delete(self, _: Peer, header: DeleteTopicInBroker, __: Body) -> None:
        """Delete a topic; one that is not there is no error."""
        topic = header.topic or ""
        retry_topics = self._pop_retry_topics(topic) if self._settings.broker.clear_retry_topics else []
        self._topics.delete(topic)
        for name in retry_topics:
            self._topics.delete(name)
        await self._dispatched()  # what was sent before must not make its queue anew
        for name in (topic, *retry_topics):
            self._store.removal.remove_topic(name)
            self._offsets.remove_topic(name)
        # With its old offsets on disk a topic made again under this name would begin in the middle.
        await saved(self._save, self._topics, self._offsets)

    def _pop_retry_topics(self, topic: str) -> list[str]:
        names = [
            f"{RETRY_PREFIX}{group}{joint}{topic}"
            for group in self._offsets.groups_of(topic)
            for joint in ("+", "_")  # with enableRetryTopicV2, and without
        ]
        return [name for name in names if self._topics.find(name) is not None]

    async def _dispatched(self) -> None:
        self._store.dispatch()
        if self._store.dispatch_lag_bytes:  # with SYNC_FLUSH: not before the disk has it
            await asyncio.to_thread(self._store.flush)
            self._store.dispatch()

    def show(self, _: Peer, header: GetTopicConfig, __: Body) -> TopicConfig:
        """One topic."""
        return self._topics.existing(header.topic, f"No topic in this broker. topic: {header.topic}")

    def show_all(self, _: Peer, header: GetAllTopicConfig, __: Body) -> Answered:
        """All topics, in pages if the caller says so."""
        table, version = self._topics.topics, self._topics.data_version
        page = page_of(table, header.topic_seq, header.max_topic_num, header.data_version, version)
        answer = GetAllTopicConfigAnswer(total_topic_num=len(table))
        return Answered(answer, CopiedTopics(version, page, self._mapping_version, {}, {}))

    def system_topics(self, _: Peer, __: GetSystemTopicListFromBroker, ___: Body) -> TopicList:
        """The topics that every broker has."""
        return TopicList(self._topics.system_names)

    def clean_unused(self, _: Peer, __: CleanUnusedTopic, ___: Body) -> None:
        """Remove queues whose topic is not in the table."""
        self._store.dispatch()
        self._store.removal.remove_unused(self._topics.topics)
