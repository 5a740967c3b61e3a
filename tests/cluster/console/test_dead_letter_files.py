"""Dead letters as files: however many they are, a few are held at once."""

import csv
import io
import json
from typing import Any

import pyarrow.parquet
import pytest

from skyrocket.client import Message, NotFound
from skyrocket.console.api import dead_letters
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.cluster.console.console_fixture import Visitor, console_of

LETTERS = 23


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many letters were held at once."""
    found: list[int] = []
    batches = dead_letters._batches

    async def counted(letters: Any) -> Any:
        async for batch in batches(letters):
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
        assert len((await exported(visitor, format="json")).splitlines()) == 7
    assert held == [3, 3, 1]
