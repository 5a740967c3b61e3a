"""Answers that RocketMQ 5.5 gives and 5.4 does not, or not so."""

import logging
from pathlib import Path

import pytest

from skyrocket.format.record import decode_records
from skyrocket.model.topic import SCHEDULE_TOPIC
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.tables import QueueCheck
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import NoPermission, SystemFailure
from skyrocket.protocol.requests.admin_broker import (
    CheckRocksDbCqWriteProgress,
    GetBrokerEpochCache,
    ResetMasterFlushOffset,
)
from skyrocket.protocol.requests.query import ViewMessageById
from tests.cluster.broker.broker_fixture import TOPIC, RunningBroker, running_broker


async def view(given: RunningBroker, message_id: str, topic: str | None) -> list[bytes]:
    """The bodies of what is at the place of a message id."""
    header = ViewMessageById(offset=int(message_id[-16:], 16), topic=topic)
    return [record.body for record in decode_records((await given.client.call(given.address, header)).body)]


async def test_a_message_is_shown_to_those_who_name_its_topic_or_none(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        sent = await given.send(b"x")
        for topic in (TOPIC, None, "", " "):
            assert await view(given, sent.msg_id, topic) == [b"x"]
        with pytest.raises(NoPermission, match="The topic does not match the message"):
            await view(given, sent.msg_id, "Other")


async def test_a_message_that_waits_belongs_to_the_topic_to_which_it_goes(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        sent = await given.send(b"later", properties="DELAY\x0118\x02")
        assert await view(given, sent.msg_id, TOPIC) == [b"later"]
        with pytest.raises(NoPermission, match="The topic does not match the message"):
            await view(given, sent.msg_id, SCHEDULE_TOPIC)


async def test_a_plain_master_takes_the_requests_of_replication_and_of_kv_stores(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await given.client.call(given.address, ResetMasterFlushOffset(master_flush_offset=7))
        check = await given.client.call(given.address, CheckRocksDbCqWriteProgress(topic=TOPIC))
        assert QueueCheck.decode(check.body).check_status == 2
        assert bytes(check.body) == b'{"checkStatus":2}'
        with pytest.raises(SystemFailure, match="this request only for controllerMode"):
            await given.client.call(given.address, GetBrokerEpochCache())


async def test_a_reserve_time_is_kept_and_said_to_delete_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_broker(tmp_path) as given:
        topics = given.broker.parts.tables.topics
        with caplog.at_level(logging.WARNING):
            topics.update(TopicConfig("Kept", attributes={"+reserve.time": "3600000"}))
        found = topics.find("Kept")
        assert found is not None
        assert found.attributes == {"reserve.time": "3600000"}
        assert "reserve.time of a topic is kept but deletes nothing" in caplog.text


async def test_requests_for_lite_topics_are_said_not_to_be_supported(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        for code in range(200_070, 200_080):
            answer = await given.client.invoke(given.address, RemotingCommand(code), timeout_seconds=30)
            assert (answer.code, answer.remark) == (3, f" request type {code} not supported")
