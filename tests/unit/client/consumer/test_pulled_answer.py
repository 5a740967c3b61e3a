"""Pulled answers: messages that are read when they are looked at, and columns, are what the plain decoder gives."""

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.client.consumer.column_polls import ColumnPolls
from skyrocket.client.consumer.fetched_answers import FetchedAnswers, FetchedQueue
from skyrocket.client.consumer.pulled_answer import PulledAnswer
from skyrocket.client.core.message import ReceivedMessage, decode_messages
from skyrocket.errors import ConfigError, CorruptRecord, DataError
from skyrocket.format import sys_flag as flags
from skyrocket.format.batch import BatchElement, encode_batch
from skyrocket.format.compression import CompressionType, compress, compressed_flag
from skyrocket.format.properties import encode_properties
from skyrocket.format.record import encode_record
from skyrocket.model.message import Host, StoredMessage
from skyrocket.model.message_queue import MessageQueue

QUEUE = MessageQueue("Orders", "broker-a", 3)
V4, V6 = Host(bytes(range(4)), 10911), Host(bytes(range(16)), 10911)
FIELDS = [name for name in ReceivedMessage.__slots__ if not name.startswith("_")]


def record(offset: int, body: bytes, tag: str | None = None, *, kind: str = "plain", host: Host = V4) -> bytes:
    """One stored message, its body as it is, compressed, or a batch of three."""
    sys_flag, stored = 0, body
    if kind == "packed":
        sys_flag, stored = compressed_flag(0, CompressionType.ZLIB), compress(body, CompressionType.ZLIB, 5)
    if kind == "batch":
        sys_flag = flags.INNER_BATCH | flags.NEED_UNWRAP
        stored = encode_batch([BatchElement(i, body, b"TAGS\x01%d\x02" % i) for i in range(3)])
    message = StoredMessage(
        topic="Orders",
        queue_id=3,
        queue_offset=offset,
        physical_offset=offset * 1000,
        record_size=0,
        flag=offset,
        sys_flag=sys_flag,
        born_timestamp=1_700_000_000_000 + offset,
        born_host=host,
        store_timestamp=1_700_000_000_001 + offset,
        store_host=host,
        reconsume_times=offset % 3,
        prepared_transaction_offset=0,
        body_crc=0,
        body=stored,
        properties={},
    )
    return encode_record(message, encode_properties({"KEYS": f"k{offset}"} | ({"TAGS": tag} if tag else {})))


records = st.builds(
    lambda body, tag, kind, host: (body, tag, kind, host),
    st.binary(min_size=1, max_size=40),
    st.sampled_from([None, "0", "2", "blue"]),
    st.sampled_from(["plain", "plain", "plain", "packed", "batch"]),
    st.sampled_from([V4, V4, V6]),
)


def body_of(chosen: Sequence[tuple[bytes, str | None, str, Host]], first: int = 0) -> bytes:
    made, offset = [], first
    for body, tag, kind, host in chosen:
        made.append(record(offset, body, tag, kind=kind, host=host))
        offset += 3 if kind == "batch" else 1
    return b"".join(made)


def shown(message: ReceivedMessage) -> tuple[object, ...]:
    return (message.body, message.properties, message.born_host, *(getattr(message, name) for name in FIELDS))


@given(st.lists(records, min_size=1, max_size=6), st.sampled_from([0, 5]), st.sampled_from([(), ("2", "blue")]))
def test_lazy_messages_and_columns_are_what_the_plain_decoder_gives(
    chosen: list[tuple[bytes, str | None, str, Host]], delta: int, tags: tuple[str, ...]
) -> None:
    data = body_of(chosen)
    expected = decode_messages(data, "broker-a", 3)
    for each in expected:
        each.min_offset, each.max_offset = 0, 99
        each.queue_offset += delta
    if tags:
        expected = [each for each in expected if each.tags in tags]
    answer = PulledAnswer(data, QUEUE, 0, 99, 50, delta, tags)
    assert [shown(each) for each in answer.messages()] == [shown(each) for each in expected]
    rows = ColumnPolls(None, None).rows([PulledAnswer(data, QUEUE, 0, 99, 50, delta, tags)]).to_pylist()
    assert [(row["body"], row["queueOffset"], row["tags"], row["queueId"]) for row in rows] == [
        (each.body, each.queue_offset, each.tags, 3) for each in expected
    ]
    assert [row["msgId"] for row in rows] == [each.offset_message_id for each in expected]


@given(
    st.lists(st.tuples(st.lists(records, min_size=1, max_size=5), st.integers(0, 1)), min_size=1, max_size=6),
    st.lists(st.tuples(st.booleans(), st.integers(1, 9)), min_size=1, max_size=40),
    st.sampled_from([(), ("2",)]),
)
def test_polls_of_messages_and_of_columns_in_any_turn_hand_out_everything_once_in_order(
    answers: list[tuple[list[tuple[bytes, str | None, str, Host]], int]],
    polls: list[tuple[bool, int]],
    tags: tuple[str, ...],
) -> None:
    queues = [FetchedQueue(MessageQueue("Orders", "broker-a", 3)), FetchedQueue(MessageQueue("Orders", "broker-a", 3))]
    fetched, columns = FetchedAnswers(), ColumnPolls(["queueOffset"], None)
    expected: list[list[int]] = [[], []]
    ends = [0, 0]
    for chosen, which in answers:
        data = body_of(chosen, ends[which])
        found = decode_messages(data, "broker-a", 3)
        ends[which] = found[-1].queue_offset + 1
        expected[which] += [each.queue_offset for each in found if not tags or each.tags in tags]
        fetched.received(queues[which], PulledAnswer(data, queues[which].queue, 0, 99, ends[which], 0, tags))
    seen: list[list[int]] = [[], []]
    for as_columns, most in [*polls, *[(False, 100)] * 50]:
        if not fetched.count:
            break
        if not as_columns:
            queue, messages = fetched.take(most)
            seen[queues.index(queue)] += [each.queue_offset for each in messages]
        elif whole := fetched.whole_answers(most):
            for queue, answer in whole:
                seen[queues.index(queue)] += columns.rows([answer]).column(0).to_pylist()
            fetched.finished(whole)
        else:
            queue, answer = fetched.oldest
            batch = columns.rows([answer], most)
            assert batch.num_rows <= most
            seen[queues.index(queue)] += batch.column(0).to_pylist()
            fetched.take(batch.num_rows)
    assert seen == expected
    assert [queue.count for queue in queues] == [queue.size for queue in queues] == [0, 0]
    assert [queue.next_offset for queue in queues] == ends


def test_many_answers_become_one_batch() -> None:
    answers = [PulledAnswer(record(i, b"%d" % i), QUEUE, 0, 99, i + 1) for i in range(100)]
    batch = ColumnPolls(["body", "keys"], None).rows(answers)
    assert isinstance(batch, pa.RecordBatch)
    assert batch.to_pydict() == {"body": [b"%d" % i for i in range(100)], "keys": [f"k{i}" for i in range(100)]}


def test_a_record_of_another_queue_id_is_shown_with_the_queue_that_was_pulled() -> None:
    answer = PulledAnswer(record(0, b"x"), QUEUE._replace(queue_id=0), 0, 99, 1)
    assert ColumnPolls(["queueId"], None).rows([answer]).to_pydict() == {"queueId": [0]}


def test_what_is_in_hand_already_does_not_come_twice() -> None:
    queue, fetched = FetchedQueue(QUEUE), FetchedAnswers()
    for first in (2, 0):  # the broker sent the consumer back
        data = b"".join(record(i, b"%d" % i) for i in range(first, 4))
        fetched.received(queue, PulledAnswer(data, QUEUE, 0, 4, 4))
    assert [each.body for each in fetched.take(None)[1]] == [b"2", b"3"]
    _, answer = fetched.oldest
    assert ColumnPolls(["body"], None).rows([answer]).to_pydict() == {"body": [b"0", b"1"]}
    assert [each.body for each in fetched.take(None)[1]] == [b"0", b"1"]


@given(st.binary(max_size=200), st.integers(0, 120))
def test_bytes_that_are_no_records_raise_nothing_but_their_own_error(noise: bytes, cut: int) -> None:
    for data in (noise, record(0, b"x" * 30)[:cut] + noise):
        try:
            answer = PulledAnswer(data, QUEUE, 0, 1, 1)
            if answer.starts:
                ColumnPolls(None, None).rows([answer])
        except DataError:
            pass


def test_a_record_whose_parts_do_not_fit_is_named_with_its_offset() -> None:
    whole = record(7, b"x" * 30)
    broken = whole[:84] + (1000).to_bytes(4, "big") + whole[88:]
    with pytest.raises(CorruptRecord, match=r"offset 7 of .*Orders"):
        ColumnPolls(["body"], None).rows([PulledAnswer(broken, QUEUE, 0, 8, 8)])


def test_a_column_that_does_not_exist_is_named_with_its_neighbour() -> None:
    with pytest.raises(ConfigError, match="no column 'queueOfset'; did you mean 'queueOffset'"):
        ColumnPolls(["queueOfset"], None)
