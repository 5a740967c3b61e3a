"""The consumer groups of a broker: which exist, what they may do, and which topics are forbidden to them."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from skyrocket.broker.state.attributes import GROUP_ATTRIBUTES, changed_attributes
from skyrocket.broker.state.names import SYSTEM_GROUP_PREFIX, check_group_name, is_good_group_name
from skyrocket.broker.state.rate_bucket import RateBucket
from skyrocket.broker.state.saved_table import SavedTable
from skyrocket.broker.state.topics import QueueLimit
from skyrocket.clock import Clock
from skyrocket.format.config_files import SubscriptionGroups
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.protocol.errors import FAQ, GroupNotExist, NoPermission, SystemBusy, SystemFailure
from skyrocket.store.config_file import ConfigFile

logger = logging.getLogger(__name__)

PRESET_GROUPS = (
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
    "CID_RMQ_SYS_TRANS",
)
SYSTEM_GROUPS = frozenset(
    {
        *PRESET_GROUPS,
        "DEFAULT_PRODUCER",
        "DEFAULT_CONSUMER",
        "SCHEDULE_CONSUMER",
        "__MONITOR_CONSUMER",
        "CLIENT_INNER_PRODUCER",
        "SELF_TEST_P_GROUP",
        "CID_RMQ_SYS_REVIVE_GROUP",
    }
)

TOO_MANY_NEW = "[OVERLOAD]too many new consumer groups in a short time (newGroupsPerSecond), try again later"
FORBIDDEN_READ_BIT = 2  # the place of the read permission

_DEFAULT_PRIORITY_FACTOR = 100


def is_system_group(group: str) -> bool:
    """Whether a group belongs to the system."""
    return group in SYSTEM_GROUPS or group.startswith(SYSTEM_GROUP_PREFIX)


class SubscriptionGroupTable(SavedTable[SubscriptionGroups]):
    """All groups by name; those that consume for the first time are created with the defaults."""

    def __init__(
        self,
        file: ConfigFile[SubscriptionGroups],
        clock: Clock,
        built_in: Iterable[str] = PRESET_GROUPS,
        *,
        auto_create: bool = True,
        auto_create_system: bool = True,
        queue_limit: QueueLimit | None = None,
        save_at_once: bool = True,
        new_groups: RateBucket | None = None,
    ) -> None:
        """`new_groups` bounds how many are created for those who consume."""
        super().__init__(file, clock, save_at_once=save_at_once)
        self.auto_create = auto_create
        self.auto_create_system = auto_create_system
        self._queue_limit = queue_limit or QueueLimit()
        self._new = new_groups
        self._built_in = {name: SubscriptionGroup(name) for name in built_in}
        self._groups = dict(self._built_in)
        self._forbidden: dict[str, dict[str, int]] = {}
        self.generation = 0  # another one whenever a group, or what is forbidden to one, was changed
        self._unknown: Mapping[str, object] = {}

    @property
    def groups(self) -> Mapping[str, SubscriptionGroup]:
        """All groups; a view that follows every change."""
        return MappingProxyType(self._groups)

    def content(self) -> SubscriptionGroups:
        forbidden = {group: dict(topics) for group, topics in self._forbidden.items()}
        return SubscriptionGroups(self.data_version, dict(self._groups), forbidden, self._unknown)

    def _take(self, content: SubscriptionGroups) -> None:
        self.data_version = content.data_version
        self._unknown = content.unknown
        self._forbidden = {group: dict(topics) for group, topics in content.forbidden.items()}
        added = {name: group for name, group in self._built_in.items() if name not in content.groups}
        self._groups = {**content.groups, **added}
        self.generation += 1

    def _changed(self) -> None:
        self.generation += 1  # first: where the change cannot be saved it is there all the same
        super()._changed()

    # Lookups

    def find(self, group: str) -> SubscriptionGroup | None:
        """A group, if there is one; nothing is created."""
        return self._groups.get(group)

    def existing(self, group: str, otherwise: str) -> SubscriptionGroup:
        """A group; raises GroupNotExist with the given remark. Nothing is created."""
        found = self._groups.get(group)
        if found is None:
            raise GroupNotExist(otherwise)
        return found

    def find_or_create(self, group: str) -> SubscriptionGroup | None:
        """A group, created if that is allowed; None if it is not, or if no group may have that name.

        Raises SystemBusy when too many were created lately: every new one is saved, and has a retry topic to register.
        """
        found = self._groups.get(group)
        if found is not None or not self._may_create(group):
            return found
        if self._new is not None and not self._new.take():
            raise SystemBusy(TOO_MANY_NEW)
        logger.info("subscription group created group=%s", group)
        created = self._groups[group] = SubscriptionGroup(group)
        self._changed()
        return created

    def consuming(self, group: str) -> SubscriptionGroup:
        """The group of a pull or pop, created if need be; raises GroupNotExist or NoPermission."""
        found = self.find_or_create(group)
        if found is None:
            raise GroupNotExist(f"subscription group [{group}] does not exist, {FAQ}")
        if not found.may_consume:
            raise NoPermission(f"subscription group no permission, {group}")
        return found

    def retrying(self, group: str) -> SubscriptionGroup:
        """The group of a message that comes back, created if need be; raises GroupNotExist."""
        found = self.find_or_create(group)
        if found is None:
            raise GroupNotExist(f"subscription group not exist, {group} {FAQ}")
        return found

    def _may_create(self, group: str) -> bool:
        allowed = self.auto_create or (self.auto_create_system and group.startswith(SYSTEM_GROUP_PREFIX))
        return allowed and is_good_group_name(group)

    def priority_factor(self, group: str) -> int:
        """How strongly pop minds the priority of messages, in percent."""
        found = self._groups.get(group)
        text = found.attributes.get("priority.factor", "") if found is not None else ""
        return int(text) if text.isascii() and text.isdigit() else _DEFAULT_PRIORITY_FACTOR

    # Administration

    def update(self, group: SubscriptionGroup) -> None:
        """Create or change a group; the keys of its attributes carry signs (see `attributes`).

        Raises InvalidParameter for the name and the number of queues, SystemFailure for attributes.
        """
        self.update_all([group])

    def update_all(self, groups: Sequence[SubscriptionGroup]) -> None:
        """Update many at once: all of them or none."""
        for group in groups:
            check_group_name(group.name)
            current = self._groups.get(group.name)
            has = 0 if current is None else current.retry_queues
            self._queue_limit.check(f"The retry topic of group[{group.name}]", group.retry_queues, has)
        merged = [self._merged(group) for group in groups]
        self._groups.update((group.name, group) for group in merged)
        if merged:
            self._changed()

    def _merged(self, group: SubscriptionGroup) -> SubscriptionGroup:
        current = self._groups.get(group.name)
        try:
            attributes = changed_attributes(
                GROUP_ATTRIBUTES, None if current is None else current.attributes, group.attributes
            )
        except SystemFailure as failure:
            # RocketMQ: what fails here is answered as an exception, with its class before the text.
            raise SystemFailure(f"java.lang.RuntimeException: {failure.remark}") from None
        return replace(group, attributes=attributes)

    def delete(self, group: str) -> SubscriptionGroup | None:
        """Forget a group and what was forbidden to it; None when there was none."""
        removed = self._groups.pop(group, None)
        forbidden = self._forbidden.pop(group, None)
        if removed is not None or forbidden is not None:
            self._changed()
        return removed

    # Forbidden topics

    def may_read(self, group: str, topic: str) -> bool:
        """Whether reading a topic is not forbidden to the group."""
        return not self._forbidden.get(group, {}).get(topic, 0) >> FORBIDDEN_READ_BIT & 1

    def check_may_read(self, group: str, topic: str) -> None:
        """Raises NoPermission when reading a topic is forbidden to the group."""
        if not self.may_read(group, topic):
            raise NoPermission(f"the consumer group[{group}] is forbidden for topic[{topic}]")

    def let_read(self, group: str, topic: str, readable: bool) -> None:
        """Allow or forbid reading a topic to the group."""
        # RocketMQ: allowing the last forbidden thing forgets the whole group's bits and saves nothing; not copied.
        topics = dict(self._forbidden.get(group, {}))
        before = topics.pop(topic, 0)
        bits = before & ~(1 << FORBIDDEN_READ_BIT) if readable else before | 1 << FORBIDDEN_READ_BIT
        if bits == before:
            return
        if bits:
            topics[topic] = bits
        if topics:
            self._forbidden[group] = topics
        else:
            del self._forbidden[group]
        self._changed()
