"""Tables of topics and groups that a broker gives in pages, as those of RocketMQ 5.4 do; older ones give all at once.

    pages = TopicPages()
    while (request := pages.request) is not None:
        reply = await client.call(address, request)
        pages.take(reply.header, reply.body)
    pages.table

Who sends none of the fields gets everything from all of them, but a 5.5.0 writes an error into its log each time.
"""

from typing import Final

from skyrocket.model.data_version import DataVersion
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.groups import GroupTable
from skyrocket.protocol.bodies.topics import DATA_VERSION, TopicTable
from skyrocket.protocol.errors import MalformedBody
from skyrocket.protocol.requests.admin_groups import GetAllSubscriptionGroupAnswer, GetAllSubscriptionGroupConfig
from skyrocket.protocol.requests.admin_topics import GetAllTopicConfig, GetAllTopicConfigAnswer

PAGE_ROWS: Final = 2000  # no broker gives more at once
_MOST_BEGINNINGS: Final = 10


class _Progress:
    """How many rows are here, of which version of the table."""

    def __init__(self) -> None:
        self.version: DataVersion | None = None
        self._beginnings = 0

    @property
    def version_text(self) -> str:
        return "" if self.version is None else DATA_VERSION.encode(self.version).decode()

    def begins_anew(self, version: DataVersion) -> bool:
        """Whether a page is the first of its version: a broker begins anew when the table has changed meanwhile."""
        if version == self.version:
            return False
        self.version = version
        self._beginnings += 1
        if self._beginnings > _MOST_BEGINNINGS:
            raise MalformedBody("the table changes while it is read, again and again")
        return True


def _is_whole(has: int, total: int | None, came: int) -> bool:
    """After a page with so many rows; raises MalformedBody when the rest will never come."""
    if total is None or has >= total:
        return True
    if not came:
        raise MalformedBody(f"a page without rows, after {has} of {total}")
    return False


class TopicPages:
    """GET_ALL_TOPIC_CONFIG until all topics are here."""

    def __init__(self) -> None:
        self._progress = _Progress()
        self._topics: dict[str, TopicConfig] = {}
        self.request: GetAllTopicConfig | None = self._next()

    def take(self, answer: GetAllTopicConfigAnswer, body: bytes | memoryview) -> None:
        """The answer to the request; raises MalformedBody."""
        page = TopicTable.decode(body)
        if self._progress.begins_anew(page.data_version):
            self._topics = {}
        self._topics.update(page.topics)
        is_whole = _is_whole(len(self._topics), answer.total_topic_num, len(page.topics))
        self.request = None if is_whole else self._next()

    @property
    def table(self) -> TopicTable:
        """What is here."""
        return TopicTable(self._progress.version or DataVersion(), self._topics)

    def _next(self) -> GetAllTopicConfig:
        return GetAllTopicConfig(
            topic_seq=len(self._topics), max_topic_num=PAGE_ROWS, data_version=self._progress.version_text
        )


class GroupPages:
    """GET_ALL_SUBSCRIPTIONGROUP_CONFIG until all groups are here."""

    def __init__(self) -> None:
        self._progress = _Progress()
        self._groups: dict[str, SubscriptionGroup] = {}
        self._forbidden: dict[str, dict[str, int]] = {}
        self.request: GetAllSubscriptionGroupConfig | None = self._next()

    def take(self, answer: GetAllSubscriptionGroupAnswer, body: bytes | memoryview) -> None:
        """The answer to the request; raises MalformedBody."""
        page = GroupTable.decode(body)
        if self._progress.begins_anew(page.data_version):
            self._groups, self._forbidden = {}, {}
        self._groups.update(page.groups)
        self._forbidden.update((group, dict(topics)) for group, topics in page.forbidden.items())
        is_whole = _is_whole(len(self._groups), answer.total_group_num, len(page.groups))
        self.request = None if is_whole else self._next()

    @property
    def table(self) -> GroupTable:
        """What is here."""
        return GroupTable(self._progress.version or DataVersion(), self._groups, self._forbidden)

    def _next(self) -> GetAllSubscriptionGroupConfig:
        return GetAllSubscriptionGroupConfig(
            group_seq=len(self._groups), max_group_num=PAGE_ROWS, data_version=self._progress.version_text
        )
