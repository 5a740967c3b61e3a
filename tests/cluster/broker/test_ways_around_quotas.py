"""What somebody may try who has used up his quota: none of it gets more through than the quota says."""

from pathlib import Path

import pytest

from skyrocket.broker.quotas.feature import QuotasFeature
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.errors import FlowControl, ServiceNotAvailable, SystemBusy
from skyrocket.protocol.requests.messaging import ConsumerSendMsgBack
from skyrocket.protocol.requests.pop import PeekMessage
from tests.cluster.broker.access_fixture import asking
from tests.cluster.broker.broker_fixture import GROUP, TOPIC, RunningBroker, message, new_topic
from tests.cluster.broker.broker_fixture import running_broker as running
from tests.cluster.broker.test_pop import POP_CODES
from tests.cluster.broker.test_quotas import allow, quotas_of, still

pytestmark = pytest.mark.requirement("D035")


async def send_back(given: RunningBroker, offset: int, group: str = GROUP) -> None:
    back = ConsumerSendMsgBack(offset=offset, group=group, delay_level=0, max_reconsume_times=16)
    await given.client.call(given.address, back)


async def test_messages_sent_back_are_charged_with_what_is_stored_again(tmp_path: Path) -> None:
    async with still(tmp_path) as (given, clock):
        await given.beat()
        place = int((await given.send(b"x" * 500)).msg_id[-16:], 16)
        await allow(given, "account", "", sendMessagesPerSecond=100, sendBytesPerSecond=1000)
        for _ in range(3):  # the last one is on credit
            await send_back(given, place)
        with pytest.raises(SystemBusy, match=r"\[QUOTA\] account anonymous: 1000 bytes/s \(sendBytesPerSecond\)"):
            await send_back(given, place)
        clock.advance(ms=501)
        await send_back(given, place)
        await allow(given, "account", "", sendMessagesPerSecond=2, sendBytesPerSecond=-1)
        await send_back(given, place)
        await send_back(given, place)
        with pytest.raises(SystemBusy, match="2 messages/s"):
            await send_back(given, place)


async def test_a_namespace_that_keeps_too_much_takes_nothing_back_either(tmp_path: Path) -> None:
    async with running(tmp_path) as given:
        await given.beat(group="shop%Billing")
        place = int((await given.send(b"x" * 1000, topic="shop%Orders")).msg_id[-16:], 16)
        await allow(given, "namespace", "shop", storedBytes=500)
        with pytest.raises(ServiceNotAvailable, match=r"\[QUOTA\] namespace shop: 500 bytes stored"):
            await send_back(given, place, "shop%Billing")


async def test_a_peek_is_charged_as_a_pop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skyrocket.broker.quotas.charging._LONGEST_PAUSE", 0.05)
    async with still(tmp_path) as (given, clock):
        for _ in range(10):
            await given.send()
        await allow(given, "account", "", readMessagesPerSecond=8)
        peek = PeekMessage(consumer_group=GROUP, topic=TOPIC, queue_id=-1, max_msg_nums=32)
        await given.client.call(given.address, peek, accepted=POP_CODES)
        with pytest.raises(FlowControl, match=r"8 messages/s \(readMessagesPerSecond\)"):
            await given.client.call(given.address, peek, accepted=POP_CODES)
        clock.advance(seconds=1)
        await given.client.call(given.address, peek, accepted=POP_CODES)


@pytest.mark.parametrize("code", [RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2])
async def test_a_batch_counts_in_whatever_letter_case_it_says_that_it_is_one(tmp_path: Path, code: int) -> None:
    async with still(tmp_path) as (given, _):
        await given.send()
        await allow(given, "account", "", sendMessagesPerSecond=4)
        one = (4 + 4 + 4 + 4 + 4 + 1 + 2).to_bytes(4) + bytes(12) + (1).to_bytes(4) + b"x" + bytes(2)
        fields = {**(message().ext_fields() or {}), "m": "TRUE"}
        if code == RequestCode.SEND_MESSAGE:
            fields = {**long_names(), "batch": "TRUE"}
        async with asking(given) as somebody:
            assert (await somebody.verdict(code, fields, one * 3))[0] == 0
            assert given.broker.store.max_offset(TOPIC, 0) == 4
            assert (await somebody.verdict(code, fields, one * 2))[0] == 2


def long_names() -> dict[str, str]:
    return {
        "producerGroup": "Producers",
        "topic": TOPIC,
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": "4",
        "queueId": "0",
        "sysFlag": "0",
        "bornTimestamp": "1700000000000",
        "flag": "0",
        "properties": "",
        "reconsumeTimes": "0",
    }


async def test_who_waits_until_he_is_forgotten_keeps_no_more_than_before(tmp_path: Path) -> None:
    async with still(tmp_path) as (given, clock):
        for _ in range(20):
            await given.send(b"x" * 1000, topic="shop%Orders")
        await allow(given, "namespace", "*", storedBytes=10_000)
        clock.advance(seconds=60)
        given.broker.feature(QuotasFeature).spenders["namespace"].forget_idle()
        with pytest.raises(ServiceNotAvailable, match="namespace shop: 10000 bytes stored"):
            await given.send(topic="shop%Orders")


async def test_counts_of_everybody_keep_those_who_are_forgotten(tmp_path: Path) -> None:
    async with still(tmp_path) as (given, clock):
        await allow(given, "namespace", "*", sendMessagesPerSecond=1, topics=5)
        await given.client.call(given.address, new_topic("shop%A"))
        await given.send(topic="shop%B")
        with pytest.raises(SystemBusy):
            await given.send(topic="shop%B")
        clock.advance(seconds=60)
        given.broker.feature(QuotasFeature).spenders["namespace"].forget_idle()
        everybody = (await quotas_of(given))["namespace", "*"]
        assert everybody["sendMessagesPerSecond"].exceeded == 1
        assert everybody["topics"].used == 2
        await allow(given, "namespace", "bank", topics=5)
        await given.send(topic="bank%A")
        assert (await quotas_of(given))["namespace", "*"]["topics"].used == 2  # bank has its own
