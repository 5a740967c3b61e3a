"""Dead letters as files: however many they are, a few are held at once."""

import csv
import io
import json
import zlib
from collections.abc import AsyncIterator
from typing import Any

import pyarrow.parquet
import pytest

from skyrocket.client import Admin, Message, NotFound
from skyrocket.client.consumer.start_position import min_offset
from skyrocket.client.core.instance import ClientInstance
from skyrocket.client.sending.message_encoding import EncodedMessage
from skyrocket.client.sending.retrying_sender import RetryingSender, SendRules
from skyrocket.console.api import dead_letters
from skyrocket.format.sys_flag import COMPRESSED
from skyrocket.model.message_queue import MessageQueue
from skyrocket.remoting.errors import CallTimeout
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.cluster.console.console_fixture import Visitor, console_of

LETTERS = 23


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many letters were held at once."""
    found: list[int] = []
    batches = dead_letters._batches

    async def counted(letters: Any, size: Any) -> Any:
        async for batch in batches(letters, size):
            found.append(len(batch))
            yield batch

    monkeypatch.setattr(dead_letters, "_batches", counted)
    return found


async def exported(visitor: Visitor, **params: Any) -> bytes:
    answer = await visitor.http.get("/api/dead-letters/billing/export", params=params)
    assert answer.status_code == 200, answer.text
    return answer.content


async def test_an_export_of_any_size_holds_a_few_letters_at_once(
    monkeypatch: pytest.MonkeyPatch, held: list[int]
) -> None:
    monkeypatch.setattr(dead_letters, "_MOST_HELD", 5)
    async with AsyncLocalCluster(brokers=2) as cluster, console_of(cluster) as visitor, cluster.producer() as producer:
        await cluster.create_topic("%DLQ%billing", queues=1)
        for number in range(LETTERS):
            await producer.send(Message("%DLQ%billing", b"x" * 100, keys=f"k-{number}"))
        table = list(csv.DictReader(io.StringIO((await exported(visitor)).decode())))
        lines = [json.loads(line) for line in (await exported(visitor, format="json")).splitlines()]
        file = pyarrow.parquet.ParquetFile(io.BytesIO(await exported(visitor, format="parquet")))
        some = await exported(visitor, contains="nothing has it", format="parquet")
        async with cluster.admin() as admin:
            one_by_one = [letter.keys[0] async for letter in admin.each_dead_letter("billing")]
            at_once = [letter.keys[0] for letter in await admin.dead_letters("billing")]
            with pytest.raises(NotFound):
                await anext(admin.each_dead_letter("nobody"))
        missing = await visitor.http.get("/api/dead-letters/nobody/export")
    keys = {f"k-{number}" for number in range(LETTERS)}
    assert max(held) == 5
    assert {row["keys"] for row in table} == keys
    assert {line["keys"][0] for line in lines} == keys
    assert [row["died_ms"] for row in table] == sorted(row["died_ms"] for row in table), "oldest first"
    assert file.num_row_groups == 5
    assert {name for names in file.read()["keys"].to_pylist() for name in names} == keys
    assert pyarrow.parquet.read_table(io.BytesIO(some)).num_rows == 0
    assert set(one_by_one) == set(at_once) == keys
    assert len(one_by_one) == LETTERS
    assert missing.status_code == 404


async def test_large_bodies_are_held_by_their_bytes(monkeypatch: pytest.MonkeyPatch, held: list[int]) -> None:
    monkeypatch.setattr(dead_letters, "_MOST_HELD_BYTES", 250)
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor, cluster.producer() as producer:
        await cluster.create_topic("%DLQ%billing", queues=1)
        for _ in range(7):
            await producer.send(Message("%DLQ%billing", b"x" * 100))
        assert len((await exported(visitor)).splitlines()) == 1 + 7
    assert held == [3, 3, 1]


async def test_an_export_does_not_leave_out_the_letters_of_a_broker_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def silent_at_b(instance: ClientInstance, queue: MessageQueue, **given: Any) -> int:
        if queue.broker_name == "broker-b":
            raise CallTimeout("broker-b", "it had no answer")
        return await min_offset(instance, queue, **given)

    async with AsyncLocalCluster(brokers=2) as cluster, console_of(cluster) as visitor, cluster.producer() as producer:
        await cluster.create_topic("%DLQ%billing", queues=1)
        for number in range(LETTERS):
            await producer.send(Message("%DLQ%billing", b"%d" % number))
        monkeypatch.setattr("skyrocket.client.admin.dead_letters.min_offset", silent_at_b)
        async with Admin(client=cluster.client_settings, tolerant=True) as admin:
            with pytest.raises(CallTimeout):
                await anext(admin.each_dead_letter("billing"))
        answer = await visitor.http.get("/api/dead-letters/billing/export")
    assert answer.status_code == 502, answer.text


async def test_a_body_that_cannot_be_unpacked_is_one_row_with_its_trouble_and_compression_is_told() -> None:
    packed = zlib.compress(b"all of it " * 100)
    async with AsyncLocalCluster() as cluster, console_of(cluster) as visitor, cluster.admin() as admin:
        await cluster.create_topic("%DLQ%billing", queues=1)
        sender = RetryingSender(admin._instance, "anybody", SendRules())
        for body, sys_flag in ((b"plain", 0), (packed, COMPRESSED), (b"no zlib", COMPRESSED)):
            message = Message("%DLQ%billing", body)
            await sender.send(EncodedMessage(message, message.topic, body, "", "", sys_flag=sys_flag), 5.0)
        lines = [json.loads(line) for line in (await exported(visitor, format="json")).splitlines()]
        table = pyarrow.parquet.read_table(io.BytesIO(await exported(visitor, format="parquet")))
    assert [(line["compression"], line["stored_body_bytes"]) for line in lines] == [
        ("", 5),
        ("zlib", len(packed)),
        ("zlib", 7),
    ]
    assert table["body"].to_pylist() == [b"plain", b"all of it " * 100, None]
    assert table["trouble"].to_pylist()[:2] == [None, None]
    assert "is not a ZLIB stream" in table["trouble"].to_pylist()[2]


async def test_an_export_that_breaks_off_has_no_end_and_is_one_line_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b"some"
        raise CallTimeout("broker-b", "it had no answer")

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await dead_letters.ExportAnswer(parts()).stream_response(send)
    assert [message.get("more_body") for message in sent] == [None, True]
    (record,) = caplog.records
    assert "not whole: broker-b: it had no answer" in record.message
    assert record.exc_info is None
