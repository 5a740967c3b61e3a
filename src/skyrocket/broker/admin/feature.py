"""Builds what serves operators, and says which settings take effect while the broker runs.

The keys named in `let_follow` are those of docs/guides/operations.md, "Changing a running broker"; all others count
from the next start on.
"""

from dataclasses import fields
from typing import Final

from skyrocket.broker.admin.groups import GroupAdminProcessor
from skyrocket.broker.admin.maintenance import MaintenanceProcessor
from skyrocket.broker.admin.settings import SettingsProcessor
from skyrocket.broker.admin.table_copies import TableCopyProcessor
from skyrocket.broker.admin.topics import TopicAdminProcessor
from skyrocket.broker.core.request_classes import RequestClasses
from skyrocket.broker.delay.delay_offsets import DelayOffsetTable
from skyrocket.broker.flow.permission_gate import PermissionGate
from skyrocket.broker.pull.long_polling import LongPolling
from skyrocket.broker.registration.registration import Registration
from skyrocket.broker.state.consumer_offsets import ConsumerOffsetTable
from skyrocket.broker.state.identity import BrokerIdentity
from skyrocket.broker.state.live_settings import LiveSettings
from skyrocket.broker.state.persistence import Persistence
from skyrocket.broker.state.subscription_groups import SubscriptionGroupTable
from skyrocket.broker.state.topics import TopicTable
from skyrocket.clock import Clock
from skyrocket.config.sections import BrokerConfig, StoreConfig
from skyrocket.protocol.bodies.offsets import DELAY_OFFSET_TABLE
from skyrocket.protocol.bodies.offsets import DelayOffsetTable as CopiedDelayOffsets
from skyrocket.remoting.router import Router
from skyrocket.remoting.serving import Handlers
from skyrocket.store.message_store import CHANGEABLE, MessageStore

_STORE_KEYS: Final = tuple(field.metadata["key"] for field in fields(StoreConfig) if field.name in CHANGEABLE)
_CLASS_KEYS: Final = tuple(
    field.metadata["key"] for field in fields(BrokerConfig) if field.name.endswith(("_capacity", "_wait_ms"))
)


class Administration:
    """The requests of operators, and the settings that these can change."""

    def __init__(
        self,
        settings: LiveSettings,
        store: MessageStore,
        topics: TopicTable,
        groups: SubscriptionGroupTable,
        offsets: ConsumerOffsetTable,
        delay_offsets: DelayOffsetTable,
        persistence: Persistence,
        clock: Clock,
    ) -> None:
        self.settings = settings
        self._store = store
        self._topics = topics
        self._groups = groups
        self._delay_offsets = delay_offsets
        self._persistence = persistence
        save = persistence.save_now
        self._processors = (
            TopicAdminProcessor(
                store, topics, offsets, save, lambda: settings.broker.clear_retry_topics, clock.now_ms()
            ),
            GroupAdminProcessor(groups, offsets, save),
            SettingsProcessor(settings),
            TableCopyProcessor(offsets, self._copied_delay_offsets),
            MaintenanceProcessor(store, is_master=settings.broker.broker_id == 0),
        )

    def _copied_delay_offsets(self) -> bytes:
        content = self._delay_offsets.content()
        return DELAY_OFFSET_TABLE.encode(CopiedDelayOffsets(content.offsets, content.data_version))

    def handlers(self) -> Handlers:
        for processor in self._processors:
            yield from processor.handlers()

    def let_follow(
        self,
        router: Router,
        identity: BrokerIdentity,
        classes: RequestClasses,
        registration: Registration,
        polling: LongPolling,
    ) -> None:
        """Connect settings with the parts that can follow them; after all handlers were registered."""
        settings = self.settings
        gate = PermissionGate(router, identity, self._topics, settings.broker.broker_permission)
        registration.permission = settings.broker.broker_permission

        def permission() -> None:
            gate.set(settings.broker.broker_permission)
            self._topics.raise_version()
            registration.permission_changed(gate.permission)
            if not gate.is_readable:
                polling.wake_all()  # those who wait ask again, and are refused

        def tables() -> None:
            self._topics.auto_create = settings.broker.auto_create_topic
            self._topics.guard_system_topics = settings.broker.guard_system_topics
            self._topics.allow_mixed_type = settings.broker.allow_mixed_type
            self._groups.auto_create = settings.broker.auto_create_group

        def periods() -> None:
            registration.period_seconds = settings.broker.register_period_ms / 1000
            self._persistence.offset_interval_seconds = settings.broker.flush_offsets_interval_ms / 1000

        def bounds() -> None:
            for used, wanted in zip(classes, RequestClasses(settings.broker), strict=True):
                used.limit, used.wait_limit_ms = wanted.limit, wanted.wait_limit_ms

        settings.follow(permission, "brokerPermission")
        settings.follow(
            tables,
            "autoCreateTopicEnable",
            "autoCreateSubscriptionGroup",
            "validateSystemTopicWhenUpdateTopic",
            "enableMixedMessageType",
        )
        settings.follow(periods, "registerNameServerPeriod", "flushConsumerOffsetInterval")
        settings.follow(bounds, *_CLASS_KEYS)
        settings.follow(lambda: self._store.change_settings(settings.store), *_STORE_KEYS)
        settings.follow(lambda: None, "clearRetryTopicWhenDeleteTopic")  # asked for at each deletion
