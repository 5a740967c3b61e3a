"""The comparison of Python clients: every phase is measured with any client, and what is missing is named."""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from bench.peers.report import put_between
from bench.python_clients import measure, report
from bench.python_clients.measure import IN_FLIGHT, Amounts, measured
from bench.python_clients.system import Client, Row, Running, System


class InMemory(Client):
    """A system that is a list."""

    def __init__(self) -> None:
        self.most_in_flight = self.in_flight = 0
        self.consumed: list[tuple[str, int]] = []
        self.followers: list[Callable[[bytes], None]] = []
        self.attempts = self.refills = 0

    async def open(self) -> None:
        self.attempts += 1
        if self.attempts < 2:
            raise ConnectionRefusedError("not yet")

    async def close(self) -> None:
        self.followers.clear()

    async def send(self, body: bytes) -> None:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await asyncio.sleep(0)
        for follower in self.followers:
            follower(body)
        self.in_flight -= 1

    async def send_many(self, body: bytes, count: int) -> None:
        await asyncio.sleep(0)

    async def fill(self, body: bytes, count: int) -> None:
        await asyncio.sleep(0)

    async def refill(self) -> None:
        await asyncio.sleep(0.05)
        self.refills += 1

    async def consume_one_by_one(self, count: int, reader: str) -> None:
        self.consumed.append((reader, count))
        await asyncio.sleep(0)

    async def consume_in_bulk(self, count: int, reader: str) -> None:
        await self.consume_one_by_one(count, reader)

    async def follow(self, seen: Callable[[bytes], None]) -> None:
        self.followers.append(seen)
        try:
            with contextlib.suppress(asyncio.CancelledError):  # as some clients do: the second one counts
                await asyncio.Event().wait()
            await asyncio.Event().wait()
        finally:
            self.followers.remove(seen)


def test_every_phase_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "_SETTLE_S", 0.0)
    began = time.monotonic()
    client = InMemory()

    @contextmanager
    def start() -> Iterator[Running]:
        yield Running(lambda: client, [os.getpid()], time.monotonic())

    amounts = Amounts(seconds=0.1, rounds=2, batched=10, stock=20, latency_rate=200, latency_seconds=0.05)
    row = measured(System("list", "a list", "nothing", start, share=0.5), amounts)
    assert client.attempts == 2
    assert client.most_in_flight == IN_FLIGHT
    assert client.consumed == [(f"reader{number}", 10) for number in range(1, 5)]
    assert min(row.awaited_rate, row.batched_rate, row.one_by_one_rate, row.bulk_rate) > 0
    assert row.columns_rate is None
    assert client.refills == 5  # before each of them, and once before it was found that there are no columns
    assert min(row.one_by_one_rate, row.bulk_rate) > 10 / 0.05  # refilling is not part of it
    assert row.idle_mb > 1
    assert 0 < row.latency_p50_ms <= row.latency_p99_ms
    assert 0 < row.first_message_s < time.monotonic() - began


def test_the_table_has_what_an_acknowledgement_means_and_what_was_left_out() -> None:
    text = report.table([Row("Kafka", "in the page cache", awaited_rate=23_300.4)], {"NATS": "no network"})
    assert "| Kafka | in the page cache | 23,300 |" in text
    assert text.endswith("No NATS: no network")


def test_systems_that_were_measured_apart_stand_in_one_table(tmp_path: Path) -> None:
    report.save(tmp_path, "ours", Row("ours", "all", "2026-11-18 03:10", 0.5, columns_rate=1_000_000.0))
    report.save(tmp_path, "kafka", Row("Kafka", "all", "2026-11-18 02:50", 1.25))
    report.save(tmp_path, "kafka", Row("Kafka", "all", "2026-11-18 03:20", 0.75))
    rows = report.load(tmp_path, ["ours", "kafka", "never"])
    assert [(row.name, row.measured_at) for row in rows] == [
        ("ours", "2026-11-18 03:10"),
        ("Kafka", "2026-11-18 03:20"),
    ]
    when = "Measured 2026-11-18 03:10 to 2026-11-18 03:20 UTC, 2 cores; load before each 0.5 to 0.8"
    assert report.title(rows, 2) == when
    ours, kafka = report.table(rows, {}).splitlines()[2:]
    assert "| 1,000,000 |" in ours
    assert "| – |" in kafka


def test_a_table_replaces_the_one_between_its_marks_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    put_between(page, report.BEGIN, "new", report.END)
    assert page.read_text() == f"before\n{report.BEGIN}\nnew\n{report.END}\nafter\n"
    with pytest.raises(ValueError, match="has no"):
        put_between(page, "<!-- another -->", "new", report.END)
