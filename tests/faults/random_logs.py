"""Logs of random records, told by a seed: every kind of topic, property, host and flag that a log may hold.

Most records are as a producer sends them; the others are what only damage, other brokers or other settings write.
"""

import random
from pathlib import Path

from skyrocket.format import sys_flag as flags
from skyrocket.format.crc import record_crc_property, reserve_record_crc
from skyrocket.format.record import encode_blank, encode_record
from skyrocket.format.store_names import offset_name
from skyrocket.model.message import Host, StoredMessage
from skyrocket.model.topic import SCHEDULE_TOPIC
from tests.faults.harness import BATCH_TOPIC

BEGAN_MS = 1_760_000_000_000
_HOSTS = (Host(b"\x0a\0\0\1", 10911), Host(b"\xfe\x80" + bytes(13) + b"\1", 10911))
_RAW = "?raw?"  # stands in a topic for two bytes that are not text
_TOPICS = ("orders", "orders", "orders", "payments", "größe", "t" * 130, SCHEDULE_TOPIC, BATCH_TOPIC, "x" + _RAW)
_TRANSACTIONS = (flags.TRANSACTION_PREPARED, flags.TRANSACTION_COMMIT, flags.TRANSACTION_ROLLBACK)


def write_log(root: Path, seed: int, file_size: int) -> None:
    """A store directory that has nothing but a log of a few files."""
    choose = random.Random(seed)
    directory = root / "commitlog"
    directory.mkdir(parents=True)
    log = _Log(choose, clean=choose.random() < 0.4, crc=choose.random() < 0.2)
    for number in range(choose.randint(1, 4)):
        content = log.file(number * file_size, file_size)
        (directory / offset_name(number * file_size)).write_bytes(content)
    if choose.random() < 0.7:
        (root / "abort").touch()


class _Log:
    def __init__(self, choose: random.Random, *, clean: bool, crc: bool) -> None:
        self._choose = choose
        self._clean = clean  # nothing but what producers send
        self._crc = crc
        self._next: dict[tuple[str, int], int] = {}
        self._now_ms = BEGAN_MS

    def file(self, start: int, size: int) -> bytes:
        """Records and a blank; sometimes the log ends in between."""
        content = b""
        end = size if self._choose.random() < 0.8 else self._choose.randrange(size)
        while len(content) < end:
            record = self._record(start + len(content))
            if len(content) + len(record) + 8 > size:
                content += encode_blank(size - len(content))
                break
            content += record
        return content.ljust(size, b"\0")

    def _record(self, physical_offset: int) -> bytes:
        choose = self._choose
        odd = not self._clean and choose.random() < 0.06
        topic = choose.choice(_TOPICS[:4] if self._clean else _TOPICS)
        key = (topic, choose.randrange(3))
        self._now_ms += choose.choice((0, 0, 1, 2_000))
        properties = _properties(choose, self._clean)
        if self._crc:
            properties = reserve_record_crc(properties)
        body = choose.randbytes(choose.choice((0, 1, 20, 20, 300)))
        message = StoredMessage(
            topic=topic,
            queue_id=key[1],
            queue_offset=self._number(key, odd),
            physical_offset=physical_offset,
            record_size=0,
            flag=0,
            sys_flag=choose.choice(_TRANSACTIONS) if odd or choose.random() < 0.03 else 0,
            born_timestamp=self._now_ms,
            born_host=choose.choice(_HOSTS),
            store_timestamp=self._now_ms,
            store_host=choose.choice(_HOSTS),
            reconsume_times=0,
            prepared_transaction_offset=0,
            body_crc=0,
            body=body,
        )
        record = encode_record(message, properties)
        if _RAW in topic:
            record = record.replace(_RAW.encode(), choose.choice((b"\xff\xfe...", b"\xfe\xff...")))
        if self._crc and choose.random() < 0.99:
            record = record[:-20] + record_crc_property(record)
        return record

    def _number(self, key: tuple[str, int], odd: bool) -> int:
        expected = self._next.get(key, 0)
        number = self._choose.choice((0, expected + 1, expected + 7, 1 << 40)) if odd else expected
        if not odd or self._choose.random() < 0.3:
            self._next[key] = min(number, 1 << 20) + 1
        return number


def _properties(choose: random.Random, clean: bool) -> bytes:
    number = choose.randrange(10**6)
    texts = [b"KEYS\1order-%06d" % number, b"UNIQ_KEY\1" + choose.randbytes(8).hex().encode(), b"WAIT\1true"]
    texts.append(b"TAGS\1" + choose.choice((b"paid", b"sent", b"returned")))
    if clean:
        return b"\2".join(texts) + b"\2"
    others = (
        b"TAGS\1",
        b"TAGS\1\xc3\xa4\xe2\x82\xac",
        b"XTAGS\1no",
        b"KEYS\1one two  three",
        b"KEYS\1\xff\xfe",
        b"KEYS",
        b"DELAY\1%d" % choose.choice((0, 3, 99)),
        b"DELAY\1soon",
        b"INNER_NUM\0013",
        b"INNER_BASE\1%d" % choose.randrange(9),
        b"INNER_MULTI_DISPATCH\1%%LMQ%%one,%%LMQ%%two\2INNER_MULTI_QUEUE_OFFSET\001%d,1" % choose.randrange(4),
        b"note\1a\0b",
        b"note\1" + bytes(40),
    )
    if choose.random() < 0.5:
        texts += choose.choices(others, k=choose.randint(1, 2))
    choose.shuffle(texts)
    kept = texts[: choose.choice((0, 1, len(texts), len(texts), len(texts), len(texts)))]
    return b"\2".join(kept) + choose.choice((b"\2", b"\2", b""))
