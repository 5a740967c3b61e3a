"""What operators do to topics: create, change, look at, delete.

A topic that is deleted takes its queues and all offsets with it; its messages stay in the log until they expire.
"""

import asyncio
from typing import Final

from skyrocket.broker.rules.paging import page_of
from skyrocket.broker.rules.when_saved import SaveTables, answer_when_saved
from skyrocket.broker.state.attributes import parse_changes
from skyrocket.broker.state.live_settings import LiveSettings
from skyrocket.broker.state.tables import Tables
from skyrocket.model.data_version import DataVersion
from skyrocket.model.topic import RETRY_PREFIX
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.topics import TOPIC_CONFIG, TOPIC_CONFIG_LIST, TOPIC_LIST, TOPIC_TABLE, TopicList
from skyrocket.protocol.bodies.topics import TopicTable as CopiedTopics
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import RemotingCommand
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
from skyrocket.remoting.answers import Outcome
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve_raw
from skyrocket.store.message_store import MessageStore

_UNSET_REMARK: Final = "not set any response code"  # RocketMQ: left over in answers that are successes


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
            serve_raw(UpdateAndCreateTopic.code, self.update),
            serve_raw(UpdateAndCreateTopicList.code, self.update_list),
            serve_raw(DeleteTopicInBroker.code, self.delete),
            serve_raw(GetTopicConfig.code, self.show),
            serve_raw(GetAllTopicConfig.code, self.show_all),
            serve_raw(GetSystemTopicListFromBroker.code, self.system_topics),
            serve_raw(CleanUnusedTopic.code, self.clean_unused),
        )

    def update(self, _: Peer, request: RemotingCommand) -> Outcome:
        """UPDATE_AND_CREATE_TOPIC."""
        header = UpdateAndCreateTopic.from_fields(request.ext_fields)
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
        return answer_when_saved(request, self._save, self._topics, remark=_UNSET_REMARK)

    def update_list(self, _: Peer, request: RemotingCommand) -> Outcome:
        """UPDATE_AND_CREATE_TOPIC_LIST: all of them or none."""
        self._topics.update_all(TOPIC_CONFIG_LIST.decode(request.body).topics)
        return answer_when_saved(request, self._save, self._topics, remark=_UNSET_REMARK)

    def delete(self, _: Peer, request: RemotingCommand) -> Outcome:
        """DELETE_TOPIC_IN_BROKER; one that is not there is no error."""
        topic = DeleteTopicInBroker.from_fields(request.ext_fields).topic or ""
        retry_topics = self._pop_retry_topics(topic) if self._settings.broker.clear_retry_topics else []
        self._topics.delete(topic)
        for name in retry_topics:
            self._topics.delete(name)
        return self._deleted(request, [topic, *retry_topics])

    def _pop_retry_topics(self, topic: str) -> list[str]:
        names = [
            f"{RETRY_PREFIX}{group}{joint}{topic}"
            for group in self._offsets.groups_of(topic)
            for joint in ("+", "_")  # with enableRetryTopicV2, and without
        ]
        return [name for name in names if self._topics.find(name) is not None]

    async def _deleted(self, request: RemotingCommand, topics: list[str]) -> RemotingCommand:
        await self._dispatched()  # what was sent before must not make its queue anew
        for topic in topics:
            self._store.remove_topic(topic)
            self._offsets.remove_topic(topic)
        # With its old offsets on disk a topic made again under this name would begin in the middle.
        return await answer_when_saved(request, self._save, self._topics, self._offsets)

    async def _dispatched(self) -> None:
        self._store.dispatch()
        if self._store.dispatch_lag_bytes:  # with SYNC_FLUSH: not before the disk has it
            await asyncio.to_thread(self._store.flush)
            self._store.dispatch()

    def show(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_TOPIC_CONFIG."""
        topic = GetTopicConfig.from_fields(request.ext_fields).topic
        config = self._topics.existing(topic, f"No topic in this broker. topic: {topic}")
        return request.answer(ResponseCode.SUCCESS, body=TOPIC_CONFIG.encode(config))

    def show_all(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_ALL_TOPIC_CONFIG, in pages if the caller says so."""
        header = GetAllTopicConfig.from_fields(request.ext_fields)
        table, version = self._topics.topics, self._topics.data_version
        page = page_of(table, header.topic_seq, header.max_topic_num, header.data_version, version)
        answer = GetAllTopicConfigAnswer(total_topic_num=len(table))
        body = TOPIC_TABLE.encode(CopiedTopics(version, page, self._mapping_version, {}, {}))
        return request.answer(ResponseCode.SUCCESS, None, answer.to_fields(), body)

    def system_topics(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_SYSTEM_TOPIC_LIST_FROM_BROKER."""
        return request.answer(ResponseCode.SUCCESS, body=TOPIC_LIST.encode(TopicList(self._topics.system_names)))

    def clean_unused(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """CLEAN_UNUSED_TOPIC: queues whose topic is not in the table go."""
        self._store.dispatch()
        self._store.remove_unused_queues(self._topics.topics)
        return request.answer(ResponseCode.SUCCESS)
