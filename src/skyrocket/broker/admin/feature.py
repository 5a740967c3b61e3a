"""What operators change on a running broker: topics, groups, settings, files."""

from dataclasses import fields
from typing import Final

from skyrocket.broker.admin.groups import GroupAdminProcessor
from skyrocket.broker.admin.maintenance import MaintenanceProcessor
from skyrocket.broker.admin.settings import SettingsProcessor
from skyrocket.broker.admin.topics import TopicAdminProcessor
from skyrocket.broker.core.feature import Copied, Feature, Follow, asked_when_needed
from skyrocket.broker.core.parts import Parts
from skyrocket.config.sections import StoreConfig
from skyrocket.format.config_files import SubscriptionGroups, Topics
from skyrocket.protocol.bodies.groups import GroupTable
from skyrocket.protocol.bodies.topics import TopicTable
from skyrocket.protocol.requests.admin_groups import GetAllSubscriptionGroupConfig
from skyrocket.protocol.requests.admin_topics import GetAllTopicConfig
from skyrocket.remoting.serving import Handlers
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
        save = parts.persistence.save_now
        self._processors = (
            TopicAdminProcessor(parts.store, tables, save, parts.settings, parts.clock.now_ms()),
            GroupAdminProcessor(tables.groups, tables.offsets, save),
            SettingsProcessor(parts.settings),
            MaintenanceProcessor(parts.store),
        )

    def handlers(self) -> Handlers:
        for processor in self._processors:
            yield from processor.handlers()

    def copied(self) -> tuple[Copied, ...]:
        return (
            Copied(GetAllTopicConfig(), self._take_topics, is_needed=True),
            Copied(GetAllSubscriptionGroupConfig(), self._take_groups, is_needed=True),
        )

    def _take_topics(self, body: bytes) -> None:
        table = TopicTable.decode(body)
        if table.data_version != self._tables.topics.data_version:
            self._tables.topics.replace(Topics(table.data_version, dict(table.topics)))

    def _take_groups(self, body: bytes) -> None:
        table = GroupTable.decode(body)
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
