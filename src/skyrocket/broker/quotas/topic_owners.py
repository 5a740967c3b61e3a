"""Who created a topic, kept in `topicOwners.json`: a file of our own, for RocketMQ's have no place for it.

It is written down while there are quotas and access control knows who asks. What is older, and what brokers make
themselves (retries, dead letters), has no owner.
"""

from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from skyrocket.broker.state.saved_table import SavedTable
from skyrocket.broker.state.topics import TopicTable
from skyrocket.clock import Clock
from skyrocket.format.config_files import JsonFile
from skyrocket.model.data_version import DataVersion
from skyrocket.model.topic_config import TopicConfig
from skyrocket.store.config_file import ConfigFile

_MOST_ASKED: Final = 1000  # topics that are about to be created


@dataclass(frozen=True, slots=True)
class Owners:
    """Content of the file: the account by topic."""

    data_version: DataVersion = field(default_factory=DataVersion)
    owners: Annotated[dict[str, str], "owners"] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


OWNERS = JsonFile(Owners)


class TopicOwners(SavedTable[Owners]):
    """Accounts by the topics that they created."""

    def __init__(self, file: ConfigFile[Owners], clock: Clock, topics: TopicTable) -> None:
        super().__init__(file, clock, save_at_once=False)
        self._topics = topics
        self._owners: dict[str, str] = {}
        self._unknown: Mapping[str, Any] = {}
        self._asked: OrderedDict[str, str] = OrderedDict()  # topic that is not there yet ▸ who asks for it
        self._counted: tuple[tuple[int, DataVersion], Counter[str]] | None = None
        topics.on_change(self._stored)

    def content(self) -> Owners:
        return Owners(self.data_version, dict(self._owners), self._unknown)

    def _take(self, content: Owners) -> None:
        self.data_version = content.data_version
        self._unknown = content.unknown
        self._owners = dict(content.owners)
        self._counted = None

    def of(self, topic: str) -> str | None:
        """Who created it; None when nobody knows."""
        return self._owners.get(topic)

    def asked_for(self, account: str, topics: Iterable[str]) -> None:
        """A request that may create them is let through: whether it does is seen when they are there."""
        for topic in topics:
            self._asked[topic] = account
            self._asked.move_to_end(topic)
        while len(self._asked) > _MOST_ASKED:
            self._asked.popitem(last=False)

    def _stored(self, configs: Sequence[TopicConfig]) -> None:
        created = {config.name: self._asked.pop(config.name) for config in configs if config.name in self._asked}
        if created:
            self._owners.update(created)
            self._changed()

    def counts(self) -> Counter[str]:
        """How many topics each account has created that are still there."""
        state = (self._topics.generation, self.data_version)
        if self._counted is None or self._counted[0] != state:
            there = (owner for topic, owner in self._owners.items() if self._topics.find(topic) is not None)
            self._counted = (state, Counter(there))
        return self._counted[1]

    def count_without(self, accounts: Collection[str]) -> int:
        """The same for all but these accounts."""
        return sum(count for owner, count in self.counts().items() if owner not in accounts)

    def forget_gone(self) -> None:
        """A topic that was deleted has no owner, and if somebody creates it anew another one."""
        gone = [topic for topic in self._owners if self._topics.find(topic) is None]
        for topic in gone:
            del self._owners[topic]
        if gone:
            self._changed()
