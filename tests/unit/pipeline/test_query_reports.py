"""Reports of queries on their way: seldom, the latest, within a time, and never in the way of who tells them."""

import logging
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from skyrocket.model.query_report import QueryReport
from skyrocket.pipeline.query_reports import sending
from skyrocket.pipeline.query_reports.described import Place
from skyrocket.pipeline.query_reports.sending import Sender, put_report
from skyrocket.pipeline.topic_source.cluster import Cluster
from skyrocket.testing.clock import FakeClock
from tests.unit.model.test_query_report import REPORT

PLACE = Place(Cluster("127.0.0.1:9876"), "billing/lake")


class Servers:
    """Name servers that keep what they get, fail, or take their time."""

    def __init__(self) -> None:
        self.batches: list[int | None] = []
        self.places: list[Place] = []
        self.fails = False
        self.open = threading.Event()
        self.open.set()
        self.asked = threading.Semaphore(0)
        self.clock = FakeClock()
        self.sender = Sender(self.send, self.clock)

    def send(self, place: Place, report: QueryReport) -> None:
        self.asked.release()
        assert self.open.wait(10)
        if self.fails:
            raise OSError("nobody is there")
        self.places.append(place)
        self.batches.append(report.batch)

    def tell(self, batch: int | None, *, at_once: bool = False, ended: bool = False) -> None:
        report = replace(REPORT, batch=batch, state="ended" if ended else "running")
        self.sender.tell(PLACE, report, at_once=at_once)


@pytest.fixture
def servers() -> Iterator[Servers]:
    made = Servers()
    yield made
    made.open.set()
    made.sender.end()


def test_of_many_reports_one_is_sent_in_ten_seconds_and_it_is_the_latest(servers: Servers) -> None:
    servers.tell(None, at_once=True)
    assert servers.sender.drain(10)
    for batch in range(100):
        servers.tell(batch)
    assert servers.sender.drain(10)
    assert servers.batches == [None]
    servers.clock.advance(seconds=10)
    servers.tell(100)
    assert servers.sender.drain(10)
    assert servers.batches == [None, 100]


def test_the_end_is_told_at_once_and_a_new_start_after_it(servers: Servers) -> None:
    for batch, at_once, ended in ((None, True, False), (1, False, False), (2, True, True), (None, True, False)):
        servers.tell(batch, at_once=at_once, ended=ended)
        assert servers.sender.drain(10)
    assert servers.batches == [None, 2, None]


def test_who_tells_does_not_wait_for_a_slow_server_and_only_the_latest_does(servers: Servers) -> None:
    servers.open.clear()
    servers.tell(0, at_once=True)
    assert servers.asked.acquire(timeout=10)
    for batch in range(1, 1000):
        servers.tell(batch, at_once=True)
    assert not servers.sender.drain(0.05)
    servers.open.set()
    assert servers.sender.drain(10)
    assert servers.batches == [0, 999]


def test_failures_are_one_line_a_minute_and_the_next_report_goes_out(
    servers: Servers, caplog: pytest.LogCaptureFixture
) -> None:
    servers.fails = True
    with caplog.at_level(logging.WARNING):
        for seconds in (0, 30, 31):
            servers.clock.advance(seconds=seconds)
            servers.tell(1, at_once=True)
            assert servers.sender.drain(10)
    assert [record.message for record in caplog.records] == [
        "a query was not reported, it goes on reason=nobody is there"
    ] * 2
    servers.fails = False
    servers.tell(2, at_once=True)
    assert servers.sender.drain(10)
    assert servers.batches == [2]


def test_more_queries_than_are_allowed_at_once_are_left_out_until_others_end(servers: Servers) -> None:
    many = [Place(PLACE.cluster, f"billing/{number}") for number in range(201)]
    for place in many:
        servers.sender.tell(place, REPORT)
    assert servers.sender.drain(10)
    assert set(servers.places) == set(many[:200])
    servers.sender.tell(many[0], replace(REPORT, state="ended"), at_once=True)
    assert servers.sender.drain(10)
    servers.sender.tell(many[200], REPORT)
    assert servers.sender.drain(10)
    assert servers.places[-1] == many[200]


def test_a_name_server_that_never_answers_is_waited_for_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "_SEND_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(TimeoutError, match=rf"name servers {address} did not answer within 0\.3 s"):
            put_report(Place(Cluster(address), "billing/lake"), REPORT)
