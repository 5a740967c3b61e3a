"""A whole Apache RocketMQ broker takes over a store of ours, serves it to RocketMQ's client and gives it back."""

import base64
from collections.abc import Iterable
from pathlib import Path

import pytest

from skyrocket.fastjson import Dialect
from skyrocket.format.config_files import TOPICS
from tests.interop.apache import Apache
from tests.interop.our_store import found_lines, opened, put_all, read_everything, write_topics
from tests.interop.rocketmq_broker import running_broker
from tests.interop.rocketmq_store import Line
from tests.interop.samples import DELAYED_TOPIC, SMALL_FILES, samples

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

FACTS = ("physicalOffset", "topic", "queueId", "queueOffset", "storeTimestamp", "body", "properties")
ADDED_BY_THE_CLIENT = ("MIN_OFFSET", "MAX_OFFSET")


def test_a_broker_serves_our_store_and_we_read_what_was_sent_to_it(tmp_path: Path, apache: Apache) -> None:
    drafts = [draft for draft in samples(apache.version) if draft.topic != DELAYED_TOPIC]
    topics = sorted({draft.topic for draft in drafts if not draft.topic.startswith("%")})
    with opened(tmp_path, SMALL_FILES) as store:
        ours = put_all(store, drafts)
    write_topics(tmp_path, topics, Dialect.V5_4 if apache.version.startswith("5.") else Dialect.V4_9)

    bodies = [b"first", "zweite – ✓".encode(), bytes(10_000)]
    send = [{"topic": "Orders", "body": _base64(body), "keys": "sent", "tags": "订单"} for body in bodies]
    with running_broker(apache, tmp_path, SMALL_FILES) as broker:
        pulled = broker.exchange(topics, send)

    assert [sent["status"] for sent in pulled.of("sent")] == ["SEND_OK"] * len(bodies)
    expected = [line for line in ours if line["topic"] in topics]
    assert facts(pulled.messages)[: len(expected)] == facts(expected)
    assert [line["body"] for line in facts(pulled.messages)[len(expected) :]] == [_base64(body) for body in bodies]
    assert not (tmp_path / "abort").exists()
    with opened(tmp_path, SMALL_FILES) as store:
        everything = found_lines(read_everything(store))
    assert everything[: len(ours)] == ours
    assert facts(line for line in everything if line["topic"] in topics) == facts(pulled.messages)
    assert set(topics) <= set(TOPICS.decode((tmp_path / "config" / "topics.json").read_bytes()).topics)


def facts(messages: Iterable[Line]) -> list[Line]:
    """What a client sees of a message, in physical order."""
    lines = [{name: message[name] for name in FACTS} for message in messages]
    for line in lines:
        line["properties"] = {k: v for k, v in line["properties"].items() if k not in ADDED_BY_THE_CLIENT}
    return sorted(lines, key=lambda line: int(line["physicalOffset"]))


def _base64(body: bytes) -> str:
    return base64.b64encode(body).decode()
