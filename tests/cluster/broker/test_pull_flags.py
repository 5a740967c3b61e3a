"""The bits of a pull's sysFlag, one by one on the wire."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from skyrocket.format.record import decode_records
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

COMMIT, SUSPEND, SUBSCRIPTION, CLASS_FILTER = 0x1, 0x2, 0x4, 0x8
PULL_NOT_FOUND = 19


async def pulled(given: RunningBroker, request: PullMessage) -> list[bytes]:
    answer = await given.client.call(given.address, request, accepted=PULL_CODES)
    return [record.body for record in decode_records(answer.body)]


@pytest.mark.requirement("C142")
async def test_each_bit_of_a_pull_means_what_it_says(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        for body, tag in ((b"red", "red"), (b"blue", "blue")):
            await given.client.call(given.address, message(properties=f"TAGS\x01{tag}\x02"), body)
        offsets = given.broker.tables.offsets
        await given.beat()
        plain = replace(pull_request(), sys_flag=0, subscription="red", commit_offset=2)

        assert await pulled(given, plain) == [b"red", b"blue"]  # as the group has subscribed: all
        assert offsets.committed(GROUP, TOPIC, 0) is None
        assert await pulled(given, replace(plain, sys_flag=SUBSCRIPTION)) == [b"red"]
        assert offsets.committed(GROUP, TOPIC, 0) is None
        await pulled(given, replace(plain, sys_flag=COMMIT))
        assert offsets.committed(GROUP, TOPIC, 0) == 2

        at_end = replace(plain, queue_offset=2, suspend_timeout_millis=60_000)
        answer = await given.client.call(given.address, at_end, accepted=PULL_CODES)
        assert answer.code == PULL_NOT_FOUND  # at once
        held = replace(at_end, sys_flag=SUSPEND)
        waiting = asyncio.ensure_future(given.client.call(given.address, held, accepted=PULL_CODES, timeout_seconds=60))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await given.send(b"new")
        assert [record.body for record in decode_records((await waiting).body)] == [b"new"]


@pytest.mark.requirement("C142")
async def test_the_bit_of_class_filters_chooses_nothing(tmp_path: Path) -> None:
    """RocketMQ 5 has no filter servers; who sets the bit gets what the subscription wants."""

    async with running_broker(tmp_path) as given:
        for number in range(3):
            await given.send(b"%d" % number)
        await given.beat()
        request = replace(pull_request(), sys_flag=CLASS_FILTER, subscription="org.example.Filter")
        assert await pulled(given, request) == [b"0", b"1", b"2"]
