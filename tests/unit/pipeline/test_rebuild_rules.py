"""Index keys and queue entries of random records, against a plain loop over the reference decoder."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skyrocket.columns import property_blocks, topic_numbers
from skyrocket.errors import ConfigError
from skyrocket.format.column_walk import record_positions
from skyrocket.format.dispatch_claims import PropertyColumns, QueueName, QueueNumbers
from skyrocket.format.index_layout import index_hash, key_text, tag_text
from skyrocket.format.java_hash import java_hash
from skyrocket.format.record import decode_records
from skyrocket.format.record_columns import PropertyTexts, examine
from skyrocket.model.message import StoredMessage
from skyrocket.pipeline.rebuild.claims import claimer_of, sorted_claims
from skyrocket.pipeline.rebuild.rules import RebuildRules, rules_of_broker
from tests.unit.pipeline.records import Row, log_of

_words = st.lists(st.sampled_from(["", "a", "key-1", "größe", "名前", "x" * 40]), max_size=4).map(" ".join)
_LEVELS = (1000, 5000)


@st.composite
def _fields(draw: st.DrawFn) -> Row:
    properties = {
        "UNIQ_KEY": draw(_words),
        "KEYS": draw(_words),
        "TAGS": draw(_words),
        "DELAY": draw(st.sampled_from(["", "0", "1", "2", "9", "-1", "soon"])),
        "INNER_MULTI_DISPATCH": draw(st.sampled_from(["", "%LMQ%a,b", "%LMQ%c"])),
        "INNER_MULTI_QUEUE_OFFSET": draw(st.sampled_from(["", "3,4", "7", "x", "9" * 19, "1" * 5000 + ",5"])),
    }
    return {
        "topic": draw(st.sampled_from(["t", "größe", "SCHEDULE_TOPIC_XXXX", "%RETRY%g", "batches"])),
        "queue_id": draw(st.integers(0, 3)),
        "queue_offset": draw(st.integers(0, 1000)),
        "store_timestamp": draw(st.integers(1, 10**12)),
        "sys_flag": draw(st.sampled_from([0, 4, 8, 12])),
        "properties": "".join(f"{name}\x01{value}\x02" for name, value in properties.items() if value).encode(),
    }


def expected_keys(message: StoredMessage) -> list[int]:
    keys = [key for key in (message.unique_key, *message.keys) if key]
    texts = [key_text(message.topic, key) for key in keys]
    return [index_hash(text) for text in texts + ([tag_text(message.topic, message.tags)] if message.tags else [])]


def expected_entries(message: StoredMessage) -> list[tuple[Any, ...]]:
    if message.sys_flag & 4:
        return []
    place = (message.physical_offset, message.record_size)
    code = tags_code = java_hash(message.tags) if message.tags else 0
    level = message.properties.get("DELAY", "0")
    if message.topic == "SCHEDULE_TOPIC_XXXX" and level in ("1", "2", "9"):
        code = message.store_timestamp + _LEVELS[min(int(level), 2) - 1]
    entries: list[tuple[Any, ...]] = []
    if message.topic != "batches":
        entries.append((QueueName(message.topic, message.queue_id), message.queue_offset, *place, code))
    names = message.properties.get("INNER_MULTI_DISPATCH")
    offsets = message.properties.get("INNER_MULTI_QUEUE_OFFSET")
    if names and offsets and message.topic not in ("SCHEDULE_TOPIC_XXXX", "%RETRY%g"):
        for name, offset in zip(names.split(","), offsets.split(","), strict=False):
            if offset.isdigit() and len(offset) < 19:  # longer ones are no offsets, for the broker either
                queue = QueueName(name, 0 if name.startswith("%LMQ%") else message.queue_id)
                entries.append((queue, int(offset), *place, tags_code))
    return entries


@settings(suppress_health_check=[HealthCheck.too_slow])  # busy machines draw slowly
@given(st.lists(_fields(), max_size=10))
def test_keys_and_entries_are_those_of_a_plain_loop(records: list[Row]) -> None:
    log = log_of(records)
    messages = list(decode_records(log))
    parts = examine(log, record_positions(log, 0, len(log), 0).positions, 0)
    by_arrow, by_search = property_blocks(log, parts), PropertyTexts(log, parts)
    properties: PropertyColumns
    for properties in (by_arrow, by_search):
        numbers = QueueNumbers()
        rules = RebuildRules(delay_levels="1s 5s", batch_topics=frozenset({"batches"}))
        claimer = claimer_of(rules, numbers)
        columns = (parts, properties, topic_numbers(log, parts, numbers))
        assert claimer.keys(*columns).table.tolist() == [
            (key, m.physical_offset, m.store_timestamp)
            for m in messages
            if m.sys_flag & 12 != 12
            for key in expected_keys(m)
        ]
        claimed = sorted_claims(claimer.claims(*columns), numbers, rules.batch_topics)
        found = [(numbers.queue_names[row[0]], *row[1:5]) for row in claimed.simple.tolist()]
        assert sorted(found) == sorted(entry for m in messages for entry in expected_entries(m))
        assert [claim.physical_offset for claim in claimed.batches] == [
            m.physical_offset for m in messages if m.topic == "batches" and not m.sys_flag & 4
        ]


def test_the_brokers_conf_says_how_large_its_files_are(tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("brokerName=a\nmappedFileSizeConsumeQueue=2010\nmaxIndexNum=400\nmessageDelayLevel=1s 2s\n")
    rules = rules_of_broker(conf)
    assert (rules.entries_per_file, rules.index_entries, rules.delay_levels) == (101, 400, "1s 2s")
    assert not rules.light_queues
    with pytest.raises(ConfigError, match="messageDelayLevel"):
        RebuildRules(delay_levels="soon")
