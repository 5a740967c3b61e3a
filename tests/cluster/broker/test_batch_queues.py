"""Topics whose queues are queues of batches (`queue.type=BatchCQ`): a batch is one record, and many messages."""

import asyncio
from pathlib import Path

from skyrocket.broker.state.counters import TOPIC_PUT_NUMS
from skyrocket.client.core.message import decode_messages
from skyrocket.format.batch import BatchElement, encode_batch
from skyrocket.format.record import decode_records
from skyrocket.format.sys_flag import INNER_BATCH, NEED_UNWRAP
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.requests.messaging import SendBatchMessage, SendMessageAnswer
from tests.cluster.broker.broker_fixture import TOPIC, RunningBroker, message, running_broker

BATCHES = TopicConfig(TOPIC, 4, 4, 6, attributes={"+queue.type": "BatchCQ"})


async def send_batch(given: RunningBroker, first: int, count: int, key: str | None) -> SendMessageAnswer:
    body = encode_batch([BatchElement(0, b"%d" % i, b"UNIQ_KEY\x01M%d\x02" % i) for i in range(first, first + count)])
    single = message(properties="" if key is None else f"UNIQ_KEY\1{key}\2WAIT\1true\2")
    values = {field.attribute: getattr(single, field.attribute) for field in SendBatchMessage.wire_fields}
    reply = await given.client.call(given.address, SendBatchMessage(**{**values, "batch": True}), body)
    return reply.header


async def unwrapped(given: RunningBroker, offset: int) -> list[tuple[int, bytes]]:
    reply = await given.pull(offset, count=100)
    return [(found.queue_offset, found.body) for found in decode_messages(reply.body, "broker-a")]


async def test_a_batch_is_one_record_with_consecutive_offsets_and_is_still_one_after_a_restart(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        given.broker.tables.topics.update(BATCHES)
        for number in range(3):
            answer = await send_batch(given, number * 10, 10, f"B{number}")
            assert answer.queue_offset == number * 10
            assert answer.batch_unique_id == answer.transaction_id == f"B{number}"
            assert len(answer.msg_id.split(",")) == 1
        (first, *_), reply = await asyncio.gather(unwrapped(given, 0), given.pull(0, count=100))
        assert first == (0, b"0")
        records = list(decode_records(reply.body))
        assert len(records) == 3
        assert all(record.sys_flag & INNER_BATCH and record.sys_flag & NEED_UNWRAP for record in records)
        assert [record.properties["INNER_NUM"] for record in records] == ["10"] * 3
        assert [record.properties["INNER_BASE"] for record in records] == ["0", "10", "20"]
        assert (reply.header.min_offset, reply.header.max_offset) == (0, 30)
        counted = {key: count for _, key, count in given.broker.parts.counters.sums(TOPIC_PUT_NUMS)}
        assert counted[TOPIC] == 30
    assert not (tmp_path / "store" / "consumequeue" / TOPIC).exists()
    assert (tmp_path / "store" / "batchconsumequeue" / TOPIC / "0").is_dir()
    for directory in ("consumequeue", "batchconsumequeue"):  # the log alone knows nothing of queue types
        for file in (tmp_path / "store" / directory).rglob("0*"):
            if file.is_file():
                file.unlink()
    async with running_broker(tmp_path) as given:
        assert await unwrapped(given, 0) == [(i, b"%d" % i) for i in range(30)]
        assert (await send_batch(given, 30, 5, "B3")).queue_offset == 30


async def test_an_offset_inside_a_batch_gives_the_whole_batch_to_be_cut_by_the_client(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        given.broker.tables.topics.update(BATCHES)
        await send_batch(given, 0, 10, "B")
        assert await unwrapped(given, 5) == [(i, b"%d" % i) for i in range(10)]


async def test_single_messages_and_batches_of_old_clients_are_records_of_their_own(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        given.broker.tables.topics.update(BATCHES)
        assert (await given.send(b"single")).queue_offset == 0
        answer = await send_batch(given, 1, 3, None)  # 4.9 gives a batch no key
        assert (answer.queue_offset, answer.batch_unique_id, len(answer.msg_id.split(","))) == (1, None, 3)
        assert (await send_batch(given, 4, 2, "B")).queue_offset == 4
        assert await unwrapped(given, 0) == [(0, b"single"), *((i, b"%d" % i) for i in range(1, 6))]
