"""What operators change on a running broker: topics, groups, settings, files."""

import asyncio
from dataclasses import fields
from typing import Final

from skyrocket.broker.admin.groups import GroupAdminProcessor
from skyrocket.broker.admin.maintenance import MaintenanceProcessor
from skyrocket.broker.admin.topics import TopicAdminProcessor
from skyrocket.broker.core.feature import CopiedTable, Feature, Follow, asked_when_needed
from skyrocket.broker.core.parts import Parts
from skyrocket.config.sections import StoreConfig
from skyrocket.format.config_files import SubscriptionGroups, Topics
from skyrocket.protocol.bodies.groups import GroupTable
from skyrocket.protocol.bodies.settings_text import decode_settings
from skyrocket.protocol.bodies.topics import DATA_VERSION, TopicTable
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import SystemFailure
from skyrocket.protocol.requests.admin_broker import GetBrokerConfig, GetBrokerConfigAnswer, UpdateBrokerConfig
from skyrocket.protocol.requests.table_pages import GroupPages, TopicPages
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Answered, Handlers, serve
from skyrocket.store.changeable_settings import CHANGEABLE

_STORE_KEYS: Final = tuple(field.metadata["key"] for field in fields(StoreConfig) if field.name in CHANGEABLE)
_TABLE_KEYS: Final = (
    "autoCreateTopicEnable",
    "autoCreateSubscriptionGroup",
    "validateSystemTopicWhenUpdateTopic",
    "enableMixedMessageType",
    "maxTopicQueueNums",
)


class AdminFeature(Feature):
    """The requests of operators, and the settings of the tables and the store."""

    def __init__(self, parts: Parts) -> None:
        self._store = parts.store
        self._tables = tables = parts.tables
        self._settings = parts.settings
        self._turn = asyncio.Lock()
        save = parts.persistence.save_now
        self._processors = (
            TopicAdminProcessor(parts.store, tables, save, parts.settings, parts.clock.now_ms()),
            GroupAdminProcessor(tables.groups, tables.offsets, save),
            MaintenanceProcessor(parts.store),
        )

    def handlers(self) -> Handlers:
        yield serve(UpdateBrokerConfig, self.update_settings)
        yield serve(GetBrokerConfig, self.show_settings)
        for processor in self._processors:
            yield from processor.handlers()

    def show_settings(self, _: Peer, __: GetBrokerConfig, ___: Body) -> Answered:
        """All settings as Java properties, and their version."""
        version = DATA_VERSION.encode(self._settings.data_version).decode()
        return Answered(GetBrokerConfigAnswer(version=version), self._settings.text().encode())

    async def update_settings(self, _: Peer, __: UpdateBrokerConfig, body: Body) -> None:
        """Change settings, one change after the other: each is checked, saved, and then takes effect.

        Without a body nothing is asked for, and that is done.
        """
        if not body:
            return
        async with self._turn:
            change = self._settings.changed_by(decode_settings(body))
            try:
                await asyncio.to_thread(self._settings.save, change)
            except OSError as error:
                raise SystemFailure(
                    f"nothing was changed, because the settings could not be saved: {error}. "
                    "Make the file of brokerConfigPath and its directory writable and try again"
                ) from error
            self._settings.apply(change)

    def copied_tables(self) -> tuple[CopiedTable, ...]:
        return (CopiedTable(TopicPages, self._take_topics), CopiedTable(GroupPages, self._take_groups))

    def _take_topics(self, table: TopicTable) -> None:
        if table.data_version != self._tables.topics.data_version:
            self._tables.topics.replace(Topics(table.data_version, dict(table.topics)))

    def _take_groups(self, table: GroupTable) -> None:
        if table.data_version != self._tables.groups.data_version:
            forbidden = {group: dict(topics) for group, topics in table.forbidden.items()}
            self._tables.groups.replace(SubscriptionGroups(table.data_version, dict(table.groups), forbidden))

    def follows(self) -> tuple[Follow, ...]:
        return (
            Follow(self._table_settings_changed, _TABLE_KEYS),
            Follow(lambda: self._store.change_settings(self._settings.store), _STORE_KEYS),
            Follow(asked_when_needed, ("clearRetryTopicWhenDeleteTopic",)),
        )

    def _table_settings_changed(self) -> None:
        config, topics = self._settings.broker, self._tables.topics
        topics.auto_create = config.auto_create_topic
        topics.guard_system_topics = config.guard_system_topics
        topics.allow_mixed_type = config.allow_mixed_type
        topics.queue_limit.most = config.max_topic_queues
        self._tables.groups.auto_create = config.auto_create_group

    async def open(self) -> None:
        self._tables.groups.load()
