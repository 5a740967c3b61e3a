"""The topics of a broker: what they are, who may use them, how they come into being.

On first use a topic is copied from a template (`TBW102`) that carries the inherit bit; retry and dead-letter topics
are made by the broker itself; all others come from an operator. Lookups raise the refusal that the client is to see.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from skyrocket.broker.state.attributes import TOPIC_ATTRIBUTES, changed_attributes
from skyrocket.broker.state.names import check_topic_name, is_closed_to_clients, is_revive_log
from skyrocket.broker.state.saved_table import SavedTable
from skyrocket.broker.state.system_topics import TEMPLATE_TOPIC
from skyrocket.clock import Clock
from skyrocket.format.config_files import Topics
from skyrocket.model.permission import PERM_INHERIT, PERM_READ, PERM_WRITE, is_valid_permission, permission_text
from skyrocket.model.topic import RETRY_PREFIX, SYSTEM_TOPICS, is_system_topic
from skyrocket.model.topic_config import SYS_FLAG_UNIT, SYS_FLAG_UNIT_SUBSCRIPTION, TopicConfig
from skyrocket.protocol.errors import FAQ, InvalidParameter, NoPermission, TopicNotExist
from skyrocket.store.config_file import ConfigFile

logger = logging.getLogger(__name__)

Listener = Callable[[Sequence[TopicConfig]], None]

DEFAULT_MAX_QUEUES = 4096
_READ_WRITE = PERM_READ | PERM_WRITE


class QueueLimit:
    """How many queues a topic may be given; a group says how many its retry topic gets.

    RocketMQ sets no limit, and one question about all queues of a monstrous topic takes all of its memory.
    """

    def __init__(self, most: int = DEFAULT_MAX_QUEUES) -> None:
        self.most = most

    def check(self, who: str, wanted: int, has: int = 0) -> None:
        """Raises InvalidParameter; what is there already may stay, whoever made it so wide."""
        if wanted > max(self.most, has):
            raise InvalidParameter(
                f"{who} would have {wanted} queues, and {self.most} are allowed; maxTopicQueueNums sets the number."
            )


class TopicTable(SavedTable[Topics]):
    """All topics by name; what the file says counts more than what is built in."""

    def __init__(
        self,
        file: ConfigFile[Topics],
        clock: Clock,
        built_in: Iterable[TopicConfig] = (),
        *,
        auto_create: bool = True,
        guard_system_topics: bool = True,
        allow_mixed_type: bool = True,
        queue_limit: QueueLimit | None = None,
        save_at_once: bool = True,
    ) -> None:
        super().__init__(file, clock, save_at_once=save_at_once)
        self.auto_create = auto_create
        self.guard_system_topics = guard_system_topics
        self.takes_check_points_of: Callable[[str], bool] = _nobodys  # by host: of slaves of other sets that act
        self.allow_mixed_type = allow_mixed_type
        self.queue_limit = queue_limit or QueueLimit()
        self._built_in = {config.name: config for config in built_in}
        self._topics = dict(self._built_in)
        self._sendable: dict[str, TopicConfig] = {}  # those of the table that clients have been let send to
        self.generation = 0  # another one whenever a topic was created, changed or deleted
        self._listeners: list[Listener] = []
        self._announcement_listeners: list[Listener] = []
        self._unknown: Mapping[str, object] = {}
        self.telling: Callable[[], Awaitable[None]] | None = None  # set by who tells the name servers of changes

    @property
    def topics(self) -> Mapping[str, TopicConfig]:
        """All topics; a view that follows every change."""
        return MappingProxyType(self._topics)

    @property
    def system_names(self) -> tuple[str, ...]:
        """What operators see as topics of the system, whether they exist or not."""
        return tuple(sorted({*SYSTEM_TOPICS, *self._built_in}))

    def on_change(self, listener: Listener) -> None:
        """Have a function called with topics that were created or changed, so that they are registered at once."""
        self._listeners.append(listener)

    def on_announced(self, listener: Listener) -> None:
        """Have a function called with topics that a name server has heard of: clients that ask now see them."""
        self._announcement_listeners.append(listener)

    def until_told(self) -> Awaitable[None] | None:
        """To be awaited, at any time: that the name servers know the changes up to now. None: nobody tells them."""
        return None if self.telling is None else self.telling()

    def announced(self, configs: Sequence[TopicConfig]) -> None:
        """A name server has taken the registration of these topics."""
        for listener in self._announcement_listeners:
            listener(configs)

    def content(self) -> Topics:
        return Topics(self.data_version, dict(self._topics), self._unknown)

    def _take(self, content: Topics) -> None:
        self.data_version = content.data_version
        self._unknown = content.unknown
        added = {name: config for name, config in self._built_in.items() if name not in content.topics}
        self._topics = {**content.topics, **added}
        self._sendable.clear()
        self.generation += 1

    # Lookups

    def find(self, topic: str) -> TopicConfig | None:
        """A topic, if there is one."""
        return self._topics.get(topic)

    def existing(self, topic: str, otherwise: str) -> TopicConfig:
        """A topic; raises TopicNotExist with the given remark."""
        config = self._topics.get(topic)
        if config is None:
            raise TopicNotExist(otherwise)
        return config

    def readable(self, topic: str, deed: str = "pulling") -> TopicConfig:
        """A topic to consume from; raises TopicNotExist or NoPermission."""
        config = self._topics.get(topic)
        if config is None:
            raise TopicNotExist(f"topic[{topic}] not exist, apply first please! {FAQ}")
        if not config.is_readable:
            raise NoPermission(f"the topic[{topic}] {deed} message is forbidden")
        return config

    def writable(self, config: TopicConfig) -> TopicConfig:
        """The topic, if it takes messages; raises NoPermission. RocketMQ asks only when a message is sent back."""
        if not config.is_writable:
            raise NoPermission(f"the topic[{config.name}] sending message is forbidden")
        return config

    def is_system(self, topic: str) -> bool:
        """Whether a topic belongs to the system."""
        return topic in self._built_in or is_system_topic(topic)

    # Sending

    def sendable(
        self,
        topic: str,
        queue_id: int,
        *,
        template: str,
        template_queues: int,
        unit_mode: bool = False,
        producer: str = "",
        host: str = "",
    ) -> TopicConfig:
        """The topic that a client sends to, created from the template that it names if need be.

        Who says from which `host` may be a broker, whose check points of pop are taken.
        Raises InvalidParameter (name, queue), NoPermission (a topic of the broker alone) or TopicNotExist.
        """
        config = self._sendable.get(topic)
        if config is None:
            config = self._let_send(topic, template, template_queues, unit_mode, host)
        if queue_id >= config.write_queues and queue_id >= config.read_queues:
            raise InvalidParameter(
                f"request queueId[{queue_id}] is illegal, {topic_config_text(config)} Producer: {producer}"
            )
        return config

    def _let_send(self, topic: str, template: str, template_queues: int, unit_mode: bool, host: str) -> TopicConfig:
        check_topic_name(topic)
        if is_closed_to_clients(topic) and not (is_revive_log(topic) and self.takes_check_points_of(host)):
            raise NoPermission(f"Sending message to topic[{topic}] is forbidden.")
        config = self._topics.get(topic) or self._create_on_first_use(topic, template, template_queues, unit_mode)
        if config is None:
            raise TopicNotExist(f"topic[{topic}] not exist, apply first please!{FAQ}")
        if not is_revive_log(topic):  # of which each is asked where he comes from
            self._sendable[topic] = config
        return config

    def _create_on_first_use(self, topic: str, template: str, queues: int, unit_mode: bool) -> TopicConfig | None:
        is_retry = topic.startswith(RETRY_PREFIX)
        sys_flag = (SYS_FLAG_UNIT_SUBSCRIPTION if is_retry else SYS_FLAG_UNIT) if unit_mode else 0
        pattern = self._pattern(template)
        if pattern is not None:
            return self._create(copied_topic(topic, pattern, queues, sys_flag))
        return self._create(_plain_topic(topic, 1, sys_flag)) if is_retry else None

    def _pattern(self, template: str) -> TopicConfig | None:
        pattern = self._topics.get(template)
        if pattern is None:
            return None
        if template == TEMPLATE_TOPIC and not self.auto_create and pattern.is_template:
            # It was saved when auto-creation was on. RocketMQ: changed in memory, no new data version.
            pattern = replace(pattern, permission=_READ_WRITE)
            self._put(pattern)
        return pattern if pattern.is_template else None

    # Creation by the broker itself

    def ensure(self, topic: str, queues: int, *, ordered: bool = False, sys_flag: int = 0) -> TopicConfig:
        """A readable and writable topic of this name: retry, dead letter and the like; its order flag is set anew."""
        config = self._topics.get(topic)
        if config is None:
            return self._create(_plain_topic(topic, queues, sys_flag, ordered))
        if config.ordered != ordered:
            config = replace(config, ordered=ordered)
            self._put(config)
            self._changed()
        return config

    def _create(self, config: TopicConfig) -> TopicConfig:
        logger.info("topic created topic=%s queues=%d", config.name, config.write_queues)
        self._store([config])
        return config

    # Administration

    def update(self, config: TopicConfig) -> None:
        """Create or change a topic; the keys of its attributes carry signs (see `attributes`).

        Raises InvalidParameter for names and numbers, SystemFailure for attributes.
        """
        self.update_all([config])

    def update_all(self, configs: Sequence[TopicConfig]) -> None:
        """Update many at once: all of them or none."""
        for config in configs:
            self._check_update(config)
        changed = [config for config in configs if config != self._topics.get(config.name)]
        self._store([self._merged(config) for config in changed])

    def _check_update(self, config: TopicConfig) -> None:
        check_topic_name(config.name)
        self._refuse_system(config.name)
        if config.attributes.get("+message.type") == "MIXED" and not self.allow_mixed_type:
            raise InvalidParameter("MIXED message type is not supported.")
        if config.attributes.get("+message.type") == "LITE":
            raise InvalidParameter("LITE message type is not supported.")
        if not is_valid_permission(config.permission) or config.read_queues < 0 or config.write_queues < 0:
            raise InvalidParameter(f"The topic[{config.name}] has an invalid permission or number of queues.")
        current = self._topics.get(config.name)
        has = 0 if current is None else max(current.read_queues, current.write_queues)
        self.queue_limit.check(f"The topic[{config.name}]", max(config.read_queues, config.write_queues), has)

    def _merged(self, config: TopicConfig) -> TopicConfig:
        current = self._topics.get(config.name)
        attributes = changed_attributes(
            TOPIC_ATTRIBUTES, None if current is None else current.attributes, config.attributes
        )
        if "+reserve.time" in config.attributes:
            logger.warning(
                "reserve.time of a topic is kept but deletes nothing: it is of tiered storage, fileReservedTime rules"
                " topic=%s",
                config.name,
            )
        return replace(config, attributes=attributes)

    def _refuse_system(self, topic: str) -> None:
        if self.guard_system_topics and self.is_system(topic):
            raise InvalidParameter(f"The topic[{topic}] is conflict with system topic.")

    def delete(self, topic: str) -> TopicConfig | None:
        """Forget a topic; None when there was none. Raises InvalidParameter for a blank name or a system topic."""
        if not topic.strip():
            raise InvalidParameter("The specified topic is blank.")
        self._refuse_system(topic)
        removed = self._topics.pop(topic, None)
        self._sendable.pop(topic, None)
        self.generation += 1
        if removed is not None:
            self._changed()
        return removed

    def mark_ordered(self, topics: Iterable[str]) -> None:
        """What the name server keeps as ordered topics is ordered here too; nothing takes the mark away again."""
        unmarked = [config for topic in topics if (config := self._topics.get(topic)) and not config.ordered]
        for config in unmarked:
            self._put(replace(config, ordered=True))
        if unmarked:
            self._changed()

    # Changes

    def _store(self, configs: Sequence[TopicConfig]) -> None:
        if not configs:
            return
        for config in configs:
            self._put(config)
        self._next_version()
        for listener in self._listeners:
            listener(configs)
        self._touched()  # last: where it fails the topic is there, registered, and saved by the next save

    def _put(self, config: TopicConfig) -> None:
        self._topics[config.name] = config
        self._sendable.pop(config.name, None)
        self.generation += 1


def _nobodys(_: str) -> bool:
    return False


def copied_topic(topic: str, template: TopicConfig, wanted_queues: int, sys_flag: int) -> TopicConfig:
    """What a client's first message creates: no more queues than it asks for, nor than the template has."""
    queues = max(0, min(wanted_queues, template.write_queues))
    permission = template.permission & ~PERM_INHERIT
    return TopicConfig(topic, queues, queues, permission, template.filter_type, sys_flag)


def _plain_topic(topic: str, queues: int, sys_flag: int, ordered: bool = False) -> TopicConfig:
    return TopicConfig(topic, queues, queues, _READ_WRITE, sys_flag=sys_flag, ordered=ordered)


def topic_config_text(config: TopicConfig) -> str:
    """A topic as RocketMQ's remarks describe it."""
    attributes = ", ".join(f"{key}={value}" for key, value in config.attributes.items())
    return (
        f"TopicConfig [topicName={config.name}, readQueueNums={config.read_queues}, "
        f"writeQueueNums={config.write_queues}, perm={permission_text(config.permission)}, "
        f"topicFilterType={config.filter_type}, topicSysFlag={config.sys_flag}, "
        f"order={'true' if config.ordered else 'false'}, attributes={{{attributes}}}]"
    )
