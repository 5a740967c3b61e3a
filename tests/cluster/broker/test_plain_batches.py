"""Batches that look like one seen before: answers and log are those of a batch that is looked at in full.

The long form of the request is never read by its shape: what it does is what all forms must do.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from skyrocket.broker.send.plain_batches import PlainBatches
from skyrocket.config.sections import FlushDiskType, StoreConfig
from skyrocket.format.batch import BatchElement, encode_batch
from skyrocket.format.record import decode_records
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.requests.messaging import SendBatchMessage, SendMessage, SendMessageV2
from skyrocket.remoting.exchange import command_of
from skyrocket.testing.clock import FakeClock
from tests.cluster.broker.broker_fixture import SMALL, TOPIC, RunningBroker, message, running_broker

FORMS = (SendMessage, SendMessageV2, SendBatchMessage)
EVEN = [BatchElement(number, b"%d" % number, b"UNIQ_KEY\1M%d\2WAIT\1true\2" % number) for number in range(4)]
UNEVEN = [BatchElement(7, b"x" * size, b"TAGS\1T%d\2KEYS\1%s\2" % (size, b"k" * size)) for size in (0, 3, 200)]
KEYED = "UNIQ_KEY\1B1\2WAIT\1true\2"

# The properties of the batch, and its body: each is sent twice, after a plain one that lets the next be known.
BATCHES: list[tuple[str, bytes]] = [
    (KEYED, encode_batch(EVEN)),
    (KEYED, encode_batch(UNEVEN)),
    (KEYED, encode_batch(EVEN[:1])),
    ("WAIT\1true\2", encode_batch(EVEN)),  # as 4.9 sends them
    ("UNIQ_KEY\1B2\2WAIT\1false\2", encode_batch(EVEN)),
    ("UNIQ_KEY\1B3", encode_batch(EVEN)),
    (KEYED, encode_batch([*EVEN, BatchElement(0, b"x", b"INNER_NUM\x013\2")])),  # the broker's own
    (KEYED + "INNER_BASE\0013\2", encode_batch(EVEN)),
    (KEYED, encode_batch([*EVEN, BatchElement(0, b"INNER_NUM\x013\2", b"INNER_TOO\1x\2")])),
    (KEYED + "DELAY\0013\2", encode_batch(EVEN)),
    (KEYED + "DELAY\0010\2", encode_batch(EVEN)),
    (KEYED, encode_batch(EVEN)[:-1]),
    (KEYED, encode_batch(EVEN) + b"\0\0\0"),
    (KEYED, b"\0\0\0\x16" + b"\xff" * 40),
    (KEYED, b""),
    (KEYED, encode_batch([BatchElement(0, b"no properties", b"")] * 2)),
    (KEYED, encode_batch([BatchElement(0, b"x", b"k\1ends in a zero\0")])),
    (KEYED, encode_batch([BatchElement(0, b"x" * 30_000, EVEN[0].properties)] * 3)),
    (KEYED, encode_batch([BatchElement(0, b"x" * 60_000, EVEN[0].properties)] * 3)),
]


def batch(form: type[SendMessage], properties: str, body: bytes, queue_id: int) -> RemotingCommand:
    single = message(queue_id=queue_id, properties=properties)
    values = {field.attribute: getattr(single, field.attribute) for field in form.wire_fields}
    return command_of(form(**{**values, "batch": True}), body)


async def answers(
    given: RunningBroker, form: type[SendMessage]
) -> list[tuple[int, str | None, dict[str, str], list[str]]]:
    heard = []
    for number, (properties, body) in enumerate(BATCHES):
        for each in (BATCHES[0], (properties, body), (properties, body)):
            answer = await given.client.invoke(given.address, batch(form, *each, number % 2), 60.0)
            remark = answer.remark.partition(", skyrocket.")[0] if answer.remark is not None else None
            fields = dict(answer.ext_fields or {})
            places = [message_id[16:] for message_id in fields.pop("msgId", "").split(",")]  # behind address and port
            heard.append((int(answer.code), remark, fields, places))
    return heard


def stored(given: RunningBroker) -> list[object]:
    """All records, but for the ports of producer and broker."""
    log = given.broker.store.commit_log
    raw = log.raw(0, log.written_offset)
    assert raw is not None
    return [
        replace(record, born_host=record.born_host._replace(port=0), store_host=record.store_host._replace(port=0))
        for record in decode_records(bytes(raw))
    ]


@pytest.mark.parametrize("flush", [FlushDiskType.ASYNC_FLUSH, FlushDiskType.SYNC_FLUSH], ids=["async", "sync"])
async def test_a_known_batch_is_answered_and_stored_as_one_that_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flush: FlushDiskType
) -> None:
    by_parts: list[str] = []
    append = PlainBatches._append

    def counted(plain: PlainBatches, *given: object) -> object:
        by_parts.append("")
        return append(plain, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(PlainBatches, "_append", counted)
    config: StoreConfig = replace(SMALL, flush_disk_type=flush, max_message_size=100_000)
    found, short_ways = [], []
    for form in FORMS:
        by_parts.clear()
        async with running_broker(tmp_path / form.__name__, store=config, clock=FakeClock()) as given:
            given.broker.tables.topics.update(TopicConfig(TOPIC, 2, 2, 6))
            heard = await answers(given, form)
            found.append((heard, stored(given), (await given.pull(0, queue_id=1, count=99)).header))
        short_ways.append(len(by_parts))
    long_form, *others = found
    for other in others:
        assert other == long_form
    assert short_ways[0] == 0
    assert short_ways[1] == short_ways[2] > len(BATCHES)


async def test_the_key_of_a_known_batch_is_not_taken_from_a_property_whose_name_only_ends_like_it(
    tmp_path: Path,
) -> None:
    async with running_broker(tmp_path, store=SMALL, clock=FakeClock()) as given:
        given.broker.tables.topics.update(TopicConfig(TOPIC, 2, 2, 6))
        heard = []
        for other in ("B1", "B1", "B1", "B2", "B3"):
            text = f"UNIQ_KEY\1B1\2FIRST_UNIQ_KEY\1{other}\2"
            request = batch(SendBatchMessage, text, encode_batch(EVEN), 0)
            answer = await given.client.invoke(given.address, request, 60.0)
            heard.append((answer.ext_fields or {})["transactionId"])
    assert heard == ["B1"] * 5
