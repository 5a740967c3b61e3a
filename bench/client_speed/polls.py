"""What polls cost without a network, from the bytes of pull answers: `python -m bench.client_speed.polls`.

Answers of 32 messages (what brokers give) and of 256 (what they give when told to), 128 bytes each, in processor time
of one thread: as lists of messages whose bodies are read, and as Arrow columns in batches of up to 8192.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial

from skyrocket.client.consumer.column_polls import ColumnPolls
from skyrocket.client.consumer.fetched_answers import FetchedAnswers, FetchedQueue
from skyrocket.client.consumer.pulled_answer import PulledAnswer
from skyrocket.client.core.message import decode_messages
from skyrocket.format.properties import encode_properties
from skyrocket.format.record import encode_record
from skyrocket.model.message import Host, StoredMessage
from skyrocket.model.message_queue import MessageQueue

MESSAGES = 65_536
BODY = b"x" * 128
QUEUE = MessageQueue("Orders", "broker-a", 0)
FEW = ("queueId", "queueOffset", "storeTimestamp", "tags", "body")
MOST = 8192


def record(number: int) -> bytes:
    """As a producer of ours has it stored."""
    host = Host(bytes((127, 0, 0, 1)), 10911)
    message = StoredMessage(
        topic=QUEUE.topic,
        queue_id=QUEUE.queue_id,
        queue_offset=number,
        physical_offset=number * 300,
        record_size=0,
        flag=0,
        sys_flag=0,
        born_timestamp=1_790_000_000_000 + number,
        born_host=host,
        store_timestamp=1_790_000_000_001 + number,
        store_host=host,
        reconsume_times=0,
        prepared_transaction_offset=0,
        body_crc=0,
        body=BODY,
    )
    key = f"7F0000010000{number:020X}"
    return encode_record(message, encode_properties({"UNIQ_KEY": key, "WAIT": "true", "TAGS": "paid", "KEYS": key}))


def fetched(bodies: Sequence[bytes], per_answer: int) -> FetchedAnswers:
    """As pullers hand it over."""
    queue, all_of_it = FetchedQueue(QUEUE), FetchedAnswers()
    for number, body in enumerate(bodies):
        end = (number + 1) * per_answer
        all_of_it.received(queue, PulledAnswer(body, QUEUE, 0, MESSAGES, end))
    return all_of_it


def as_messages(bodies: Sequence[bytes], per_answer: int) -> int:
    held, size = fetched(bodies, per_answer), 0
    while held.count:
        size += sum([len(message.body) for message in held.take(None)[1]])
    return size


def eagerly(bodies: Sequence[bytes], _: int) -> int:
    """As handlers get them, without queues and workers."""
    return sum(len(message.body) for body in bodies for message in decode_messages(body, "broker-a", 0))


def as_columns(columns: Sequence[str] | None) -> Callable[[Sequence[bytes], int], int]:
    def work(bodies: Sequence[bytes], per_answer: int) -> int:
        held, polls, rows = fetched(bodies, per_answer), ColumnPolls(columns, None), 0
        while held.count:
            answers = held.whole_answers(MOST)
            rows += polls.rows([answer for _, answer in answers]).num_rows
            held.finished(answers)
        return rows

    return work


def cpu_us(work: Callable[[], int], times: int = 7) -> float:
    """The best of some rounds, per message."""
    best = float("inf")
    for _ in range(times):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return best / MESSAGES * 1e6


def main() -> None:
    records = [record(number) for number in range(MESSAGES)]
    ways = {
        "messages, every field at once (handlers)": eagerly,
        "messages, lazily (poll), bodies read": as_messages,
        f"columns {', '.join(FEW)}": as_columns(FEW),
        "all twenty columns": as_columns(None),
    }
    for per_answer in (32, 256):
        bodies = [b"".join(records[at : at + per_answer]) for at in range(0, MESSAGES, per_answer)]
        for name, work in ways.items():
            each = cpu_us(partial(work, bodies, per_answer))
            print(f"answers of {per_answer:3}: {name:62} {each:5.2f} µs   {1e6 / each:12,.0f} messages per CPU second")


if __name__ == "__main__":
    main()
