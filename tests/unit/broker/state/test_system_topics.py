"""The topics of a fresh broker, compared with those that RocketMQ 5.4.0 wrote."""

import pytest

from skyrocket.broker.state.system_topics import SystemTopics
from skyrocket.format.config_files import TOPICS
from skyrocket.model.topic_config import TopicConfig
from tests.golden_store import GOLDEN

GOLDEN_BROKER = SystemTopics("DefaultCluster", "broker-a", trace_topic="RMQ_SYS_TRACE_TOPIC")
# Brokers that saved their table after the first topic was created; `clean` has more in it.
YOUNG = ["cqext", "crc", "ipv6", "lmq", "timer-roll"]


def by_name(settings: SystemTopics) -> dict[str, TopicConfig]:
    return {config.name: config for config in settings.configs()}


@pytest.mark.requirement("C094")
@pytest.mark.parametrize("store", YOUNG)
def test_a_fresh_broker_has_exactly_the_topics_of_rocketmq(store: str) -> None:
    written = TOPICS.decode((GOLDEN / "5.4.0" / store / "config" / "topics.json").read_bytes())
    created = {name: config for name, config in written.topics.items() if not name.startswith(("Topic", "%"))}
    assert by_name(GOLDEN_BROKER) == created
    assert len(written.topics) - len(created) == 1


@pytest.mark.parametrize(
    ("changes", "gone"),
    [
        ({"auto_create": False}, {"TBW102"}),
        ({"trace_topic": None}, {"RMQ_SYS_TRACE_TOPIC"}),
        ({"timer_wheel": False}, {"rmq_sys_wheel_timer"}),
    ],
)
def test_switched_off(changes: dict[str, bool | None], gone: set[str]) -> None:
    settings = SystemTopics(**{"trace_topic": "RMQ_SYS_TRACE_TOPIC", **changes})  # type: ignore[arg-type]
    assert by_name(GOLDEN_BROKER).keys() - by_name(settings).keys() == gone


@pytest.mark.parametrize(
    ("settings", "topic", "queues", "permission"),
    [
        (SystemTopics(), "TBW102", 8, 7),
        (SystemTopics(default_queues=3), "TBW102", 3, 7),
        (SystemTopics("C"), "C", 16, 7),
        (SystemTopics("C", cluster_topic=False), "C", 16, 1),
        (SystemTopics(broker_name="b"), "b", 1, 7),
        (SystemTopics(broker_name="b", broker_topic=False), "b", 1, 1),
        (SystemTopics("C", revive_queues=2), "rmq_sys_REVIVE_LOG_C", 2, 6),
        (SystemTopics("C"), "C_REPLY_TOPIC", 1, 6),
        (SystemTopics(broker_name="b"), "rmq_sys_SYNC_BROKER_MEMBER_b", 1, 1),
        (SystemTopics(delay_levels=5), "SCHEDULE_TOPIC_XXXX", 18, 6),
        (SystemTopics(delay_levels=20), "SCHEDULE_TOPIC_XXXX", 20, 6),
    ],
)
def test_settings(settings: SystemTopics, topic: str, queues: int, permission: int) -> None:
    assert by_name(settings)[topic] == TopicConfig(topic, queues, queues, permission)
