"""A slave makes topics of which it has records; what the master tells counts more."""

from pathlib import Path

from skyrocket.broker.replication.topic_guesses import TopicGuesses
from skyrocket.broker.state.topic_file import TopicFile
from skyrocket.broker.state.topics import TopicTable
from skyrocket.clock import SystemClock
from skyrocket.config.sections import StoreConfig
from skyrocket.model.topic import SCHEDULE_TOPIC
from skyrocket.model.topic_config import TopicConfig
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.disk import Disk
from skyrocket.store.message_store import MessageStore

SMALL = StoreConfig(commit_log_file_size=1 << 20, preallocate_bytes=1 << 16, dispatch_thread=False)


def test_unknown_topics_are_made_as_wide_as_their_queues_and_known_ones_are_left_alone(tmp_path: Path) -> None:
    topics = TopicTable(TopicFile(Disk(), str(tmp_path / "topics.json")), SystemClock())
    topics.update(TopicConfig("Known", 1, 1))
    asked: list[None] = []
    guesses = TopicGuesses(topics, 4, lambda: asked.append(None))
    with MessageStore(tmp_path / "store", SMALL) as store:
        store.add_listener(guesses.dispatched)

        def put(topic: str, queue_id: int) -> None:
            store.put(PutMessage(topic, queue_id, b"x"))
            store.dispatch()

        put("Known", 5)  # an operator has made the topic narrower
        put(SCHEDULE_TOPIC, 2)
        put("%LMQ%one", 0)
        assert (topics.existing("Known", "").read_queues, len(asked)) == (1, 0)
        assert topics.find(SCHEDULE_TOPIC) is None
        assert topics.find("%LMQ%one") is None
        put("New", 0)
        assert topics.existing("New", "").read_queues == 4
        put("New", 9)
        assert (topics.existing("New", "").read_queues, len(asked)) == (10, 2)
        guesses.forget()
        topics.update(TopicConfig("New", 2, 2))
        put("New", 9)
        assert topics.existing("New", "").read_queues == 2
