"""Delayed messages and timers by the short way of plain messages: stored, answered and refused as by the long way."""

import asyncio
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skyrocket.config.sections import FlushDiskType, StoreConfig
from skyrocket.format.record import decode_record, record_properties
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.frames import FrameReader, encode
from skyrocket.protocol.requests.admin_topics import UpdateAndCreateTopic
from skyrocket.testing.clock import FakeClock
from tests.cluster.broker.broker_fixture import SMALL, TOPIC, RunningBroker, running_broker

LONG_NAMES = {
    "a": "producerGroup",
    "b": "topic",
    "c": "defaultTopic",
    "d": "defaultTopicQueueNums",
    "e": "queueId",
    "f": "sysFlag",
    "g": "bornTimestamp",
    "h": "flag",
    "i": "properties",
    "j": "reconsumeTimes",
    "k": "unitMode",
    "m": "batch",
}
NOW_MS = FakeClock().now_ms()
ASKS = {
    "DELAY": ("1", "3", "18", "19", "400", "0", "-1", "x", "3000000000", ""),
    "TIMER_DELAY_SEC": ("1", "60", "259200", "259201", "-5", "0", "x", ""),
    "TIMER_DELAY_MS": ("1", "999", "1000", "1001", "259200001", "-1", "1.5"),
    "TIMER_DELIVER_MS": (str(NOW_MS + 5000), str(NOW_MS + 5001), str(NOW_MS), "7", "9" * 18, "9" * 19),
    "TIMER_DEL_UNIQKEY": ("U1",),
    "TIMER_OUT_MS": (str(NOW_MS + 1000), "x"),
    "REAL_TOPIC": ("Elsewhere",),
    "REAL_QID": ("9",),
    "TIMER_OTHER": ("y",),
    "KEYS": ("k1 k2", "DELAY", "TIMER_DELAY_SEC"),
    "TAGS": ("t",),
    "WAIT": ("true", "false"),
    "UNIQ_KEY": ("7F000001000100000000000000000001", "U1"),
    "TRAN_MSG": ("false",),
    "MSG_REGION": ("far",),
}


def send(properties: str, *, short: bool, queue_id: int = 2, body: bytes = b"later") -> RemotingCommand:
    fields = {
        "a": "Producers",
        "b": TOPIC,
        "c": "TBW102",
        "d": "4",
        "e": str(queue_id),
        "f": "0",
        "g": str(NOW_MS),
        "h": "5",
        "i": properties,
        "j": "0",
        "k": "false",
        "m": "false",
    }
    if short:
        return RemotingCommand(RequestCode.SEND_MESSAGE_V2, ext_fields=fields, body=body)
    long = {LONG_NAMES[name]: text for name, text in fields.items()}
    return RemotingCommand(RequestCode.SEND_MESSAGE, ext_fields=long, body=body)


async def told(given: RunningBroker, request: RemotingCommand) -> tuple[Any, ...]:
    """The answer and what is in the log, without what differs from message to message."""
    answer = await given.client.invoke(given.address, request, 60.0)
    fields = dict(answer.ext_fields or {})
    fields.pop("queueOffset", None)
    message_id = fields.pop("msgId", None)
    kept: tuple[Any, ...] = ()
    if message_id is not None:
        raw = given.broker.store.by_physical_offset(int(message_id[-16:], 16))
        assert raw is not None
        stored = decode_record(raw, check_crc=True)
        place = stored.topic, stored.queue_id
        kept = (*place, record_properties(raw), stored.body, stored.flag, stored.sys_flag, stored.born_timestamp)
    return answer.code, answer.remark, fields, kept


def mixtures(seed: int, count: int) -> Iterator[str]:
    """Properties of every kind, each alone and then in any mixture and order; most with a unique key."""
    yield from (f"UNIQ_KEY\x01U1\x02{name}\x01{value}\x02" for name, values in ASKS.items() for value in values)
    dice = random.Random(seed)
    for _ in range(count):
        names = dice.sample(sorted(ASKS), dice.randint(1, 6))
        pairs = [(name, dice.choice(ASKS[name])) for name in names]
        if dice.random() < 0.7:
            pairs.insert(dice.randint(0, len(pairs)), ("UNIQ_KEY", f"U{dice.randint(1, 9)}"))
        yield "".join(f"{name}\x01{value}\x02" for name, value in pairs)[: None if dice.random() < 0.9 else -1]


STORES = {"async": SMALL, "sync": replace(SMALL, flush_disk_type=FlushDiskType.SYNC_FLUSH)}


@pytest.mark.parametrize(("store", "count"), [(STORES["async"], 250), (STORES["sync"], 10)], ids=STORES)
async def test_both_ways_lead_to_the_same_record_answer_and_refusal(
    tmp_path: Path, store: StoreConfig, count: int
) -> None:
    async with running_broker(tmp_path, store=store, clock=FakeClock()) as given:
        await told(given, send("UNIQ_KEY\x01first\x02", short=True))
        for text in mixtures(5, count):
            long, short = [await told(given, send(text, short=short)) for short in (False, True)]
            if "UNIQ_KEY" not in text:  # the broker makes one, each time another
                long, short = [_without_key(each) for each in (long, short)]
            assert short == long, text


def _without_key(told_once: tuple[Any, ...]) -> tuple[Any, ...]:
    code, remark, fields, kept = told_once
    named = {name: value for name, value in fields.items() if name not in ("transactionId", "recallHandle")}
    if kept:
        pieces = [piece for piece in kept[2].split(b"\x02") if not piece.startswith(b"UNIQ_KEY\x01")]
        kept = (*kept[:2], pieces, *kept[3:])
    return code, remark, named, kept


@pytest.mark.parametrize("asked", ["DELAY\x013\x02", "TIMER_DELAY_SEC\x0160\x02", "TIMER_DELIVER_MS\x017\x02"])
async def test_those_that_wait_are_put_with_the_plain_ones_of_their_turn(
    tmp_path: Path, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_broker(tmp_path, clock=FakeClock()) as given:
        for text in ("", asked):  # the first of its kind makes the queue, and shows how such messages look
            await told(given, send(f"UNIQ_KEY\x01U1\x02{text}", short=True))

        def one_by_one(message: object) -> None:
            raise AssertionError(f"put alone: {message}")

        monkeypatch.setattr(given.broker.store, "put", one_by_one)
        for text in ("", asked, asked, ""):
            code, *_ = await told(given, send(f"UNIQ_KEY\x01U1\x02{text}", short=True))
            assert code == 0


async def test_a_pipeline_of_all_kinds_is_answered_message_by_message(tmp_path: Path) -> None:
    kinds = ["", "TIMER_DELAY_SEC\x0160\x02", "DELAY\x012\x02", "TIMER_DELAY_SEC\x01x\x02", "TIMER_DELAY_MS\x01-1\x02"]

    async with running_broker(tmp_path, clock=FakeClock()) as given:
        requests = []
        for number in range(100):
            text = f"UNIQ_KEY\x01U{number}\x02{kinds[number * 7 % 5]}"
            requests.append(send(text, short=True, queue_id=number % 4, body=b"%d" % number))
            requests[-1].opaque = number
        answers = await _ask_all(given, requests)
        for request in requests:
            fields = answers[request.opaque].ext_fields or {}
            asked = kinds[request.opaque * 7 % 5]
            if asked == kinds[3]:
                assert answers[request.opaque].code == 13
                continue
            assert (fields["queueId"], fields["transactionId"]) == (str(request.opaque % 4), f"U{request.opaque}")
            assert ("recallHandle" in fields) == (asked == kinds[1])
            raw = given.broker.store.by_physical_offset(int(fields["msgId"][-16:], 16))
            assert raw is not None
            stored = decode_record(raw)
            assert stored.body == b"%d" % request.opaque
            waits_in = {kinds[1]: "rmq_sys_wheel_timer", kinds[2]: "SCHEDULE_TOPIC_XXXX"}
            assert stored.topic == waits_in.get(asked, TOPIC)


async def test_a_topic_that_changes_in_the_same_turn_changes_nothing_for_those_before_it(tmp_path: Path) -> None:
    async with running_broker(tmp_path, clock=FakeClock()) as given:
        for text in ("", "TIMER_DELAY_SEC\x0160\x02"):
            await told(given, send(f"UNIQ_KEY\x01U0\x02{text}", short=True))
        timer = send("UNIQ_KEY\x01U1\x02TIMER_DELAY_SEC\x0160\x02", short=True)
        header = UpdateAndCreateTopic(
            topic="Other",
            default_topic="TBW102",
            read_queue_nums=1,
            write_queue_nums=1,
            perm=6,
            topic_filter_type="SINGLE_TAG",
        )
        change = RemotingCommand(RequestCode.UPDATE_AND_CREATE_TOPIC, 1, ext_fields=header.to_fields())
        answers = await _ask_all(given, [timer, change])
        assert {answer.code for answer in answers.values()} == {0}
        fields = answers[0].ext_fields or {}
        assert (fields["queueId"], fields["transactionId"]) == ("2", "U1")
        assert fields["recallHandle"]


async def _ask_all(given: RunningBroker, requests: list[RemotingCommand]) -> dict[int, RemotingCommand]:
    """Write all requests at once, on one connection; the answers by number."""
    reader, writer = await asyncio.open_connection("127.0.0.1", given.port)
    writer.write(b"".join(encode(request) for request in requests))
    frames, answers = FrameReader(), dict[int, RemotingCommand]()
    while len(answers) < len(requests):
        data = await reader.read(1 << 16)
        assert data, "the broker has closed the connection"
        answers |= {answer.opaque: answer for answer in frames.receive(data)}
    writer.close()
    return answers
