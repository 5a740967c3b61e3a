"""The topic table: lookups and their refusals, creation on first use, administration, its file."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from skyrocket.broker.state.system_topics import SystemTopics
from skyrocket.broker.state.topics import TopicTable, topic_config_text
from skyrocket.fastjson import Dialect
from skyrocket.format.config_files import TOPICS, Topics
from skyrocket.model.topic_config import MULTI_TAG, TopicConfig
from skyrocket.protocol.errors import InvalidParameter, NoPermission, RequestError, SystemFailure, TopicNotExist
from skyrocket.testing.clock import FakeClock
from tests.golden_store import GOLDEN
from tests.unit.broker.state.files import PATH, MemoryDisk, config_file

FAQ = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."


def table(clock: FakeClock, disk: MemoryDisk | None = None, **settings: Any) -> TopicTable:
    return TopicTable(config_file(TOPICS, disk), clock, SystemTopics("C", "b").configs(), **settings)


def send_to(topics: TopicTable, topic: str, queue_id: int = 0, queues: int = 4, **changes: Any) -> TopicConfig:
    return topics.sendable(topic, queue_id, **{"template": "TBW102", "template_queues": queues, **changes})


def refusal(error: type[RequestError], topics: TopicTable, topic: str, **changes: Any) -> str | None:
    with pytest.raises(error) as raised:
        send_to(topics, topic, **changes)
    return raised.value.remark


# Creation on first use


@pytest.mark.requirement("C091")
def test_the_first_message_creates_a_topic_with_the_four_queues_that_clients_ask_for(clock: FakeClock) -> None:
    disk, heard = MemoryDisk(), list[Sequence[TopicConfig]]()
    topics = table(clock, disk)
    topics.on_change(heard.append)
    clock.advance(seconds=5)
    created = send_to(topics, "T")
    assert created == TopicConfig("T", 4, 4, 6)
    assert heard == [[created]]
    assert topics.data_version.counter == 1
    assert topics.data_version.timestamp == clock.now_ms()
    assert TOPICS.decode(disk.files[PATH]).topics["T"] == created
    assert send_to(topics, "T", queues=2) is created
    assert len(heard) == 1


@pytest.mark.parametrize(
    ("asked", "template", "created"),
    [
        (4, TopicConfig("P", 8, 8, 7), TopicConfig("T", 4, 4, 6)),
        (16, TopicConfig("P", 8, 8, 7), TopicConfig("T", 8, 8, 6)),
        (16, TopicConfig("P", 8, 3, 7), TopicConfig("T", 3, 3, 6)),
        (-1, TopicConfig("P", 8, 8, 7), TopicConfig("T", 0, 0, 6)),
        (4, TopicConfig("P", 8, 8, 5, MULTI_TAG), TopicConfig("T", 4, 4, 4, MULTI_TAG)),
        (4, TopicConfig("P", 8, 8, 7, ordered=True, attributes={"message.type": "FIFO"}), TopicConfig("T", 4, 4, 6)),
    ],
)
def test_what_is_copied_from_the_template(
    clock: FakeClock, asked: int, template: TopicConfig, created: TopicConfig
) -> None:
    topics = TopicTable(config_file(TOPICS), clock, [template])
    assert topics.sendable("T", -1, template="P", template_queues=asked) == created


@pytest.mark.parametrize(("topic", "sys_flag"), [("T", 1), ("%RETRY%g", 2)])
def test_unit_mode_marks_the_topic(clock: FakeClock, topic: str, sys_flag: int) -> None:
    assert send_to(table(clock), topic, unit_mode=True).sys_flag == sys_flag


@pytest.mark.requirement("C091")
@pytest.mark.parametrize("template", ["TBW102", "NoSuchTemplate", "SELF_TEST_TOPIC", ""])
def test_without_a_template_a_send_is_refused(clock: FakeClock, template: str) -> None:
    topics = TopicTable(
        config_file(TOPICS), clock, SystemTopics("C", "b", auto_create=False).configs(), auto_create=False
    )
    assert refusal(TopicNotExist, topics, "T", template=template) == f"topic[T] not exist, apply first please!{FAQ}"
    assert topics.find("T") is None
    assert topics.data_version.counter == 0


def test_a_template_of_earlier_days_does_not_serve_when_auto_creation_is_off(clock: FakeClock) -> None:
    topics = table(clock, auto_create=False)  # TBW102 is there, as if loaded
    assert topics.topics["TBW102"].permission == 7
    refusal(TopicNotExist, topics, "T")
    assert topics.topics["TBW102"].permission == 6
    assert topics.data_version.counter == 0
    assert send_to(topics, "T", template="C") == TopicConfig("T", 4, 4, 6)  # any other template still does


def test_a_retry_topic_is_created_even_without_template(clock: FakeClock) -> None:
    topics = table(clock, auto_create=False)
    assert send_to(topics, "%RETRY%g") == TopicConfig("%RETRY%g", 1, 1, 6)
    refusal(TopicNotExist, topics, "%DLQ%g")


# Refusals


def test_names_and_closed_topics(clock: FakeClock) -> None:
    topics = table(clock)
    assert refusal(InvalidParameter, topics, "") == "The specified topic is blank."
    for closed in ("SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "SELF_TEST_TOPIC", "rmq_sys_wheel_timer"):
        assert refusal(NoPermission, topics, closed) == f"Sending message to topic[{closed}] is forbidden."
    topics.ensure("%RETRY%g+T", 1)
    refusal(InvalidParameter, topics, "%RETRY%g+T")


def test_queue_ids(clock: FakeClock) -> None:
    topics = table(clock)
    topics.update(TopicConfig("T", read_queues=8, write_queues=3, attributes={"+message.type": "FIFO"}))
    for queue_id in (-1, 0, 3, 7):
        send_to(topics, "T", queue_id)
    assert refusal(InvalidParameter, topics, "T", queue_id=8, producer="192.0.2.1:50000") == (
        "request queueId[8] is illegal, TopicConfig [topicName=T, readQueueNums=8, writeQueueNums=3, perm=RW-, "
        "topicFilterType=SINGLE_TAG, topicSysFlag=0, order=false, attributes={message.type=FIFO}] "
        "Producer: 192.0.2.1:50000"
    )
    topics.update(TopicConfig("T", 1, 1))
    refusal(InvalidParameter, topics, "T", queue_id=7)  # the change counts at once


def test_the_topic_in_a_remark() -> None:
    assert topic_config_text(TopicConfig("TopicTest", 4, 4, ordered=True)) == (
        "TopicConfig [topicName=TopicTest, readQueueNums=4, writeQueueNums=4, perm=RW-, "
        "topicFilterType=SINGLE_TAG, topicSysFlag=0, order=true, attributes={}]"
    )


def test_permissions(clock: FakeClock) -> None:
    topics = table(clock)
    for permission in range(8):
        topics.update(TopicConfig("T", permission=permission))
        if permission & 4:
            assert topics.readable("T").permission == permission
        else:
            with pytest.raises(NoPermission) as raised:
                topics.readable("T")
            assert raised.value.remark == "the topic[T] pulling message is forbidden"
        if permission & 2:
            topics.writable(topics.topics["T"])
        else:
            with pytest.raises(NoPermission) as raised:
                topics.writable(topics.topics["T"])
            assert raised.value.remark == "the topic[T] sending message is forbidden"
        assert send_to(topics, "T").permission == permission  # a send does not ask


@pytest.mark.requirement("C091")
def test_unknown_topics(clock: FakeClock) -> None:
    topics = table(clock)
    with pytest.raises(TopicNotExist) as raised:
        topics.readable("T")
    assert raised.value.remark == f"topic[T] not exist, apply first please! {FAQ}"
    with pytest.raises(TopicNotExist) as raised:
        topics.existing("T", "Topic T not exist!")
    assert raised.value.remark == "Topic T not exist!"


# By the broker itself


def test_retry_topics_get_the_order_flag_anew(clock: FakeClock) -> None:
    topics, heard = table(clock), list[Sequence[TopicConfig]]()
    topics.on_change(heard.append)
    assert topics.ensure("%RETRY%g", 2, ordered=True, sys_flag=2) == TopicConfig(
        "%RETRY%g", 2, 2, 6, sys_flag=2, ordered=True
    )
    assert topics.ensure("%RETRY%g", 5, ordered=True).write_queues == 2
    assert topics.data_version.counter == 1
    assert topics.ensure("%RETRY%g", 5) == TopicConfig("%RETRY%g", 2, 2, 6, sys_flag=2)
    assert topics.data_version.counter == 2
    assert len(heard) == 1


def test_topics_that_the_name_server_keeps_as_ordered(clock: FakeClock) -> None:
    topics = table(clock)
    send_to(topics, "T")
    topics.mark_ordered(["T", "NoSuch"])
    topics.mark_ordered(["T"])
    assert send_to(topics, "T").ordered
    assert topics.data_version.counter == 2


# Administration


def test_update_and_delete(clock: FakeClock) -> None:
    topics, heard = table(clock), list[Sequence[TopicConfig]]()
    topics.on_change(heard.append)
    topics.update(TopicConfig("T", 2, 2, attributes={"+message.type": "FIFO"}))
    assert topics.find("T") == TopicConfig("T", 2, 2, attributes={"message.type": "FIFO"})
    topics.update(TopicConfig("T", 3, 2))
    assert topics.find("T") == TopicConfig("T", 3, 2, attributes={"message.type": "FIFO"})
    topics.update(TopicConfig("T", 3, 2, attributes={"-message.type": ""}))
    topics.update(TopicConfig("T", 3, 2))  # as it is
    assert (topics.data_version.counter, len(heard)) == (3, 3)
    assert topics.delete("T") == TopicConfig("T", 3, 2)
    assert topics.delete("T") is None
    assert (topics.data_version.counter, len(heard)) == (4, 3)
    refusal(TopicNotExist, topics, "T", template="")


def test_many_at_once_are_all_stored_or_none(clock: FakeClock) -> None:
    topics = table(clock)
    with pytest.raises(SystemFailure, match="unsupported key: no\\.such"):
        topics.update_all([TopicConfig("A"), TopicConfig("B", attributes={"+no.such": "1"})])
    assert topics.find("A") is None
    topics.update_all([TopicConfig("A"), TopicConfig("B")])
    topics.update_all([])
    assert topics.data_version.counter == 1


@pytest.mark.parametrize(
    ("config", "error", "remark"),
    [
        (TopicConfig(" "), InvalidParameter, "The specified topic is blank."),
        (
            TopicConfig("TBW102"),
            InvalidParameter,
            "The topic[TBW102] is conflict with system topic.",
        ),
        (TopicConfig("C"), InvalidParameter, "The topic[C] is conflict with system topic."),
        (TopicConfig("rmq_sys_x"), InvalidParameter, "The topic[rmq_sys_x] is conflict with system topic."),
        (
            TopicConfig("T", attributes={"+message.type": "MIXED"}),
            InvalidParameter,
            "MIXED message type is not supported.",
        ),
        (
            TopicConfig("T", attributes={"+message.type": "LITE"}),
            InvalidParameter,
            "LITE message type is not supported.",
        ),
        (
            TopicConfig("T", permission=8),
            InvalidParameter,
            "The topic[T] has an invalid permission or number of queues.",
        ),
        (
            TopicConfig("T", write_queues=-1),
            InvalidParameter,
            "The topic[T] has an invalid permission or number of queues.",
        ),
    ],
)
def test_refused_updates(clock: FakeClock, config: TopicConfig, error: type[RequestError], remark: str) -> None:
    topics = table(clock, allow_mixed_type=False)
    with pytest.raises(error) as raised:
        topics.update(config)
    assert raised.value.remark == remark
    assert topics.data_version.counter == 0


def test_system_topics_are_not_deleted_unless_the_guard_is_off(clock: FakeClock) -> None:
    topics = table(clock)
    with pytest.raises(InvalidParameter, match="The specified topic is blank"):
        topics.delete("")
    with pytest.raises(InvalidParameter, match="is conflict with system topic"):
        topics.delete("BenchmarkTest")
    topics.guard_system_topics = False
    assert topics.delete("BenchmarkTest") is not None
    assert {"C", "b", "C_REPLY_TOPIC", "CHECKPOINT_TOPIC"} <= set(topics.system_names)


# Its file


def test_what_the_file_says_counts_more_than_what_is_built_in(clock: FakeClock) -> None:
    disk = MemoryDisk()
    first = table(clock, disk, save_at_once=False)
    first.guard_system_topics = False
    first.update(replace(first.topics["TBW102"], permission=6))
    send_to(first, "T", template="C")
    assert first.dirty
    assert not disk.files
    first.save()
    assert not first.dirty
    again = TopicTable(config_file(TOPICS, disk), clock, SystemTopics("C", "other").configs())
    again.load()
    assert again.topics["TBW102"].permission == 6
    assert again.topics["T"] == first.topics["T"]
    assert "b" in again.topics
    assert "other" in again.topics
    assert again.data_version == first.data_version


def test_a_copy_of_the_master(clock: FakeClock) -> None:
    master, slave = table(clock), table(clock)
    send_to(master, "T")
    send_to(slave, "T", queues=2)
    slave.replace(master.content())
    assert slave.content() == master.content()
    assert send_to(slave, "T", 3).write_queues == 4
    slave.raise_version()
    assert slave.data_version > master.data_version


@pytest.mark.parametrize(
    ("version", "dialect"), [("5.4.0", Dialect.V5_4), ("4.9.7", Dialect.V4_9)], ids=["5.4.0", "4.9.7"]
)
def test_golden_files_are_saved_as_they_were(clock: FakeClock, version: str, dialect: Dialect) -> None:
    written = (GOLDEN / version / "clean" / "config" / "topics.json").read_bytes()
    disk = MemoryDisk(**{PATH: written})
    known_then = TOPICS.decode(written).topics
    settings = SystemTopics("DefaultCluster", "broker-a", trace_topic="RMQ_SYS_TRACE_TOPIC")
    built_in = [config for config in settings.configs() if config.name in known_then]
    if version == "5.4.0":
        assert len(built_in) == len(settings.configs())
    topics = TopicTable(config_file(TOPICS, disk, dialect), clock, built_in)
    topics.load()
    assert topics.content() == Topics(topics.data_version, known_then)
    topics.save()
    assert disk.files[PATH] == written
