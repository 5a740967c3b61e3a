"""Names of topics that mean something to the store."""

SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
TIMER_TOPIC = "rmq_sys_wheel_timer"
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
ENDED_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"  # which halves have ended
GIVEN_UP_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"  # halves that nobody ended
RETRY_PREFIX = "%RETRY%"
DLQ_PREFIX = "%DLQ%"
LMQ_PREFIX = "%LMQ%"
SYSTEM_PREFIX = "rmq_sys_"

MAX_TOPIC_BYTES = 127
MAX_RETRY_TOPIC_BYTES = 255

SYSTEM_TOPICS = frozenset(
    {
        "TBW102",
        "SELF_TEST_TOPIC",
        "BenchmarkTest",
        "OFFSET_MOVED_EVENT",
        SCHEDULE_TOPIC,
        "RMQ_SYS_TRACE_TOPIC",
        HALF_TOPIC,
        ENDED_TOPIC,
        "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC",
        "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC",
        GIVEN_UP_TOPIC,
        TIMER_TOPIC,
        "CHECKPOINT_TOPIC",
    }
)


def is_system_topic(topic: str) -> bool:
    """Whether a topic belongs to the system and is never cleaned as unused."""
    return topic in SYSTEM_TOPICS or topic.startswith(SYSTEM_PREFIX)


def takes_multi_dispatch(topic: str) -> bool:
    """Whether records of this topic may feed light queues."""
    return not (topic.startswith((RETRY_PREFIX, SYSTEM_PREFIX)) or topic == SCHEDULE_TOPIC)
