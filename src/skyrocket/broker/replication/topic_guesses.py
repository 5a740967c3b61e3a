"""Topics of which a slave has records before it has heard of them: guessed, until the master tells more.

Tables come every few seconds, the log at once. A master that dies in between leaves messages whose topic nobody knows,
and consumers would be told that it does not exist. So a slave makes the topic, as wide as the queues it has seen.
"""

from collections.abc import Callable, Sequence

from skyrocket.broker.state.topics import TopicTable
from skyrocket.model.topic import LMQ_PREFIX
from skyrocket.model.topic_config import TopicConfig
from skyrocket.store.log_columns import queues_of
from skyrocket.store.record_tuples import DispatchItem


class TopicGuesses:
    """Listens to what is dispatched; `ask` has the master's tables taken over soon."""

    def __init__(self, topics: TopicTable, least_queues: int, ask: Callable[[], None]) -> None:
        self._topics = topics
        self._least_queues = least_queues
        self._ask = ask
        self._guessed: dict[str, int] = {}  # topic ▸ queues

    def dispatched(self, items: Sequence[DispatchItem]) -> None:
        """Make the topics that are missing."""
        for queue in queues_of(items):
            topic, queues = queue.topic, queue.queue_id + 1
            if self._topics.find(topic) is not None and queues <= self._guessed.get(topic, queues):
                continue
            if topic.startswith(LMQ_PREFIX) or self._topics.is_system(topic):
                continue
            queues = self._guessed[topic] = max(queues, self._least_queues)
            self._topics.update(TopicConfig(topic, queues, queues))
            self._ask()

    def forget(self) -> None:
        """The master has told which topics there are."""
        self._guessed.clear()
