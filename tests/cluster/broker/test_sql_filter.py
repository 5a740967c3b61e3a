"""SQL92 subscriptions: the broker hands out what matches, and wakes nobody for the rest."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from skyrocket.broker.rules.subscriptions import SQL92
from skyrocket.config.sections import BrokerConfig
from skyrocket.format.record import decode_records
from skyrocket.protocol.bodies.heartbeat import ConsumerData, Heartbeat
from skyrocket.protocol.bodies.subscription import ClientConfigCheck, SubscriptionData
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.clients import HeartBeat
from skyrocket.protocol.requests.consumers import CheckClientConfig
from skyrocket.protocol.requests.pulling import PullMessage
from tests.cluster.broker.broker_fixture import (
    GROUP,
    PULL_CODES,
    TOPIC,
    RunningBroker,
    message,
    pull_request,
    running_broker,
)

BY_PROPERTY = BrokerConfig(property_filter=True)


def sql(expression: str, version: int = 1) -> SubscriptionData:
    return SubscriptionData(TOPIC, expression, SQL92, version=version)


async def subscribe(given: RunningBroker, subscription: SubscriptionData) -> None:
    data = ConsumerData(GROUP, "CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_LAST_OFFSET", (subscription,))
    await given.client.call(given.address, HeartBeat(), Heartbeat("one", (), (data,)).encode())


async def send(given: RunningBroker, price: int) -> None:
    await given.client.call(given.address, message(properties=f"price\1{price}\2"), str(price).encode())


def by_subscription(offset: int = 0, suspend_ms: int = 0) -> PullMessage:
    request = pull_request(offset, 0, suspend_ms)
    return replace(request, sys_flag=request.sys_flag & ~0x4, subscription=None, expression_type=SQL92, sub_version=1)


async def test_only_messages_whose_properties_match_are_handed_out(tmp_path: Path) -> None:
    async with running_broker(tmp_path, BY_PROPERTY) as given:
        await subscribe(given, sql("price BETWEEN 3 AND 5 AND missing IS NULL"))
        for price in range(10):
            await send(given, price)
        answer = await given.client.call(given.address, by_subscription(), accepted=PULL_CODES)
        assert [record.body for record in decode_records(answer.body)] == [b"3", b"4", b"5"]
        assert answer.header.next_begin_offset == 10


async def test_a_pull_that_waits_is_woken_by_a_match_alone(tmp_path: Path) -> None:
    async with running_broker(tmp_path, BY_PROPERTY) as given:
        await send(given, 1)
        await subscribe(given, sql("price > 5"))
        waiting = asyncio.ensure_future(
            given.client.call(given.address, by_subscription(1, 20_000), accepted=PULL_CODES, timeout_seconds=60)
        )
        await asyncio.sleep(0.1)
        await send(given, 2)
        await asyncio.sleep(0.2)
        assert not waiting.done()
        await send(given, 7)
        answer = await asyncio.wait_for(waiting, 15)
        assert [record.body for record in decode_records(answer.body)] == [b"7"]


async def test_an_expression_that_cannot_be_read_is_refused_with_the_place(tmp_path: Path) -> None:
    async with running_broker(tmp_path, BY_PROPERTY) as given:
        await send(given, 1)
        check = ClientConfigCheck("one", GROUP, sql("price >")).encode()
        with pytest.raises(RequestError, match=r"Invalid MessageSelector\. .*column 8") as refused:
            await given.client.call(given.address, CheckClientConfig(), check)
        assert refused.value.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED
        await subscribe(given, sql("price >"))
        with pytest.raises(RequestError, match="Your expression may be wrong!") as missing:
            await given.client.call(given.address, by_subscription())
        assert missing.value.code == ResponseCode.FILTER_DATA_NOT_EXIST


async def test_a_broker_that_filters_by_tags_alone_says_so(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        check = ClientConfigCheck("one", GROUP, sql("price > 1")).encode()
        with pytest.raises(RequestError, match="does not support consumer to filter message by SQL92"):
            await given.client.call(given.address, CheckClientConfig(), check)


@pytest.mark.requirement("C144")
@pytest.mark.parametrize(("supports", "handed_out"), [(False, [b"7", b"2"]), (True, [b"7"])])
async def test_a_retry_topic_takes_the_filters_of_its_messages_own_topics(
    tmp_path: Path, supports: bool, handed_out: list[bytes]
) -> None:
    retries = f"%RETRY%{GROUP}"
    async with running_broker(tmp_path, replace(BY_PROPERTY, filter_retries=supports)) as given:
        by_sql, of_retries = sql("price > 5"), SubscriptionData(retries, "price IS NOT NULL", SQL92, version=1)
        data = ConsumerData(GROUP, "CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_LAST_OFFSET", (by_sql, of_retries))
        await given.client.call(given.address, HeartBeat(), Heartbeat("one", (), (data,)).encode())
        for price, origin in ((7, TOPIC), (2, TOPIC)):
            again = replace(message(properties=f"price\1{price}\2RETRY_TOPIC\1{origin}\2"), topic=retries)
            await given.client.call(given.address, again, str(price).encode())
        pull = replace(by_subscription(), topic=retries)
        answer = await given.client.call(given.address, pull, accepted=PULL_CODES)
        assert [record.body for record in decode_records(answer.body)] == handed_out
        assert answer.header.next_begin_offset == 2


@pytest.mark.requirement("C144")
async def test_retries_of_a_topic_without_such_a_filter_and_retry_topics_by_tag_pass(tmp_path: Path) -> None:
    retries = f"%RETRY%{GROUP}"
    async with running_broker(tmp_path, replace(BY_PROPERTY, filter_retries=True)) as given:
        for kind, handed_out in (("TAG", [b"2", b"3"]), (SQL92, [b"3"])):
            expression = "*" if kind == "TAG" else "price > 0"
            of_retries = SubscriptionData(retries, expression, kind, version=1 if kind == "TAG" else 2)
            data = ConsumerData(
                GROUP, "CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_LAST_OFFSET", (sql("price > 5"), of_retries)
            )
            await given.client.call(given.address, HeartBeat(), Heartbeat("one", (), (data,)).encode())
            if kind == "TAG":
                for price, origin in ((2, TOPIC), (3, "Elsewhere")):
                    again = replace(message(properties=f"price\1{price}\2RETRY_TOPIC\1{origin}\2"), topic=retries)
                    await given.client.call(given.address, again, str(price).encode())
            pull = replace(by_subscription(), topic=retries, expression_type=kind)
            answer = await given.client.call(given.address, pull, accepted=PULL_CODES)
            assert [record.body for record in decode_records(answer.body)] == handed_out, kind


async def test_a_thousand_terms_find_their_message_behind_others(tmp_path: Path) -> None:
    async with running_broker(tmp_path, BY_PROPERTY) as given:
        for _ in range(25):
            await send(given, 5000)
        await send(given, 999)
        await subscribe(given, sql(" OR ".join(f"price = {number}" for number in range(1000))))
        offset, found = 0, list[bytes]()
        while not found:  # each pull tries ten of them
            answer = await given.client.call(
                given.address, replace(by_subscription(), queue_offset=offset), accepted=PULL_CODES
            )
            assert answer.header.next_begin_offset > offset
            offset = answer.header.next_begin_offset
            found = [bytes(record.body) for record in decode_records(answer.body)]
        assert found == [b"999"]
