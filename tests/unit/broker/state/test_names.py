"""Names of topics and groups, and the exact words of their refusal."""

import pytest

from skyrocket.broker.state.names import check_group_name, check_topic_name, is_good_group_name
from skyrocket.protocol.errors import InvalidParameter

LONG_GROUP = "g" * 121
LONG_TOPIC = "t" * 128
LONG_RETRY = "%RETRY%" + "g" * 249
LONG_DLQ = "%DLQ%" + "g" * 251


@pytest.mark.parametrize("topic", ["T", "%RETRY%g", "a|b-c_D%9", "t" * 127, "%RETRY%" + "g" * 248, "%DLQ%" + "g" * 250])
def test_good_topics(topic: str) -> None:
    check_topic_name(topic)


@pytest.mark.parametrize(
    ("topic", "remark"),
    [
        ("", "The specified topic is blank."),
        (" \t", "The specified topic is blank."),
        (
            "bad topic!",
            "The specified topic: bad topic!, contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$",
        ),
        (
            "%RETRY%g+t",
            "The specified topic: %RETRY%g+t, contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$",
        ),
        ("T\n", "The specified topic: T\n, contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"),
        ("主题", "The specified topic: 主题, contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"),
        (LONG_TOPIC, f"The specified topic: {LONG_TOPIC}, is longer than topic max length: 127"),
        (
            LONG_RETRY,
            f"The specified topic is DLQ or Retry topic: {LONG_RETRY}, and it's longer than topic max length: 255",
        ),
        (
            LONG_DLQ,
            f"The specified topic is DLQ or Retry topic: {LONG_DLQ}, and it's longer than topic max length: 255",
        ),
    ],
)
def test_bad_topics(topic: str, remark: str) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        check_topic_name(topic)
    assert refusal.value.remark == remark


@pytest.mark.parametrize(
    ("group", "remark"),
    [
        ("GroupOne", None),
        ("g" * 120, None),
        ("", "The specified group is blank."),
        ("a b", "The specified group: a b, contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"),
        (LONG_GROUP, f"The specified group: {LONG_GROUP}, is longer than group max length: 120"),
    ],
)
def test_groups(group: str, remark: str | None) -> None:
    assert is_good_group_name(group) == (remark is None)
    if remark is not None:
        with pytest.raises(InvalidParameter) as refusal:
            check_group_name(group)
        assert refusal.value.remark == remark
