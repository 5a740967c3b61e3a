"""What a message is by its properties, and whether a topic takes it."""

import pytest

from skyrocket.model.message_type import MessageType, mismatch, type_of

TRANSACTION, DELAY, FIFO, PRIORITY, NORMAL = (
    MessageType.TRANSACTION,
    MessageType.DELAY,
    MessageType.FIFO,
    MessageType.PRIORITY,
    MessageType.NORMAL,
)


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, NORMAL),
        ({"KEYS": "k", "TRAN_MSG": "false"}, NORMAL),
        ({"_SYS_MSG_PRIORITY_": "0"}, PRIORITY),
        ({"_SYS_MSG_PRIORITY_": "0", "__SHARDINGKEY": "k"}, FIFO),
        ({"__SHARDINGKEY": "k", "DELAY": "3"}, DELAY),
        ({"TIMER_DELIVER_MS": "1"}, DELAY),
        ({"TIMER_DELAY_SEC": "1"}, DELAY),
        ({"TIMER_DELAY_MS": "1", "_SYS_MSG_PRIORITY_": "0"}, DELAY),
        ({"TRAN_MSG": "TRUE", "DELAY": "3", "__SHARDINGKEY": "k"}, TRANSACTION),
    ],
)
def test_the_first_property_that_makes_a_type_counts(properties: dict[str, str], expected: MessageType) -> None:
    assert type_of(properties.get) is expected


def test_a_topic_takes_its_own_type_and_a_mixed_one_all() -> None:
    messages = (NORMAL, FIFO, DELAY, TRANSACTION, PRIORITY)
    for topic_type in MessageType:
        taken = {message for message in messages if mismatch(topic_type.value, message) is None}
        assert taken == (set(messages) if topic_type is MessageType.MIXED else {topic_type} & set(messages))
    assert mismatch("FIFO", NORMAL) == (
        "TopicMessageType validate failed, the expected type is FIFO, but actual type is NORMAL"
    )
