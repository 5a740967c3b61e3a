"""Which names topics and groups may have."""

import re

from skyrocket.model.topic import (
    DLQ_PREFIX,
    MAX_RETRY_TOPIC_BYTES,
    MAX_TOPIC_BYTES,
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
    TIMER_TOPIC,
)
from skyrocket.protocol.errors import InvalidParameter

MAX_GROUP_LENGTH = 120
SYSTEM_GROUP_PREFIX = "CID_RMQ_SYS_"

# Written by the broker alone. RocketMQ lets clients write the timer's topic, where one plain message stops its timer.
CLOSED_TO_CLIENTS = frozenset(
    {
        SCHEDULE_TOPIC,
        TIMER_TOPIC,
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC",
        "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC",
        "TRANS_CHECK_MAX_TIME_TOPIC",
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
    }
)

_CLOSED_PREFIX = "rmq_sys_REVIVE_LOG_"  # a written check point would make pop hand out what it names


def is_closed_to_clients(topic: str) -> bool:
    """Whether the broker alone writes a topic."""
    return topic in CLOSED_TO_CLIENTS or is_revive_log(topic)


def is_revive_log(topic: str) -> bool:
    """Whether check points of pop are written to it."""
    return topic.startswith(_CLOSED_PREFIX)


_ALLOWED = re.compile(r"[%|a-zA-Z0-9_-]+")
_ALLOWED_TEXT = "allowing only ^[%|a-zA-Z0-9_-]+$"


def check_topic_name(topic: str) -> None:
    """Raises InvalidParameter for a name that no topic may have."""
    if not topic.strip():
        raise InvalidParameter("The specified topic is blank.")
    if _ALLOWED.fullmatch(topic) is None:
        raise InvalidParameter(f"The specified topic: {topic}, contains illegal characters, {_ALLOWED_TEXT}")
    if topic.startswith((RETRY_PREFIX, DLQ_PREFIX)):
        if len(topic) > MAX_RETRY_TOPIC_BYTES:
            raise InvalidParameter(
                f"The specified topic is DLQ or Retry topic: {topic}, "
                f"and it's longer than topic max length: {MAX_RETRY_TOPIC_BYTES}"
            )
    elif len(topic) > MAX_TOPIC_BYTES:
        raise InvalidParameter(f"The specified topic: {topic}, is longer than topic max length: {MAX_TOPIC_BYTES}")


def check_group_name(group: str) -> None:
    """Raises InvalidParameter for a name that no group may have."""
    if not group.strip():
        raise InvalidParameter("The specified group is blank.")
    if _ALLOWED.fullmatch(group) is None:
        raise InvalidParameter(f"The specified group: {group}, contains illegal characters, {_ALLOWED_TEXT}")
    if len(group) > MAX_GROUP_LENGTH:
        raise InvalidParameter(f"The specified group: {group}, is longer than group max length: {MAX_GROUP_LENGTH}")


def is_good_group_name(group: str) -> bool:
    """Whether a group of this name may be created."""
    try:
        check_group_name(group)
    except InvalidParameter:
        return False
    return True
