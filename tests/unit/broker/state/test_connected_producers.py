"""Producers by group: turns, departure, expiry."""

import pytest

from skyrocket.broker.state.connected_clients import Client
from skyrocket.broker.state.connected_producers import ConnectedProducers
from skyrocket.protocol.bodies.connections import ClientConnection, ProducerInfo
from skyrocket.protocol.errors import SystemFailure
from skyrocket.testing.clock import FakeClock
from tests.unit.broker.state.files import FakeChannel


def client(client_id: str, channel: FakeChannel | None = None) -> Client[FakeChannel]:
    return Client(channel or FakeChannel(), client_id, "192.0.2.1:50000", "JAVA", 493)


@pytest.fixture
def producers(clock: FakeClock) -> ConnectedProducers[FakeChannel]:
    return ConnectedProducers(clock)


@pytest.mark.requirement("C003")
def test_queries(producers: ConnectedProducers[FakeChannel], clock: FakeClock) -> None:
    producer = client("p")
    producers.register("g", producer)
    joined_ms = clock.now_ms()
    clock.advance(seconds=30)
    producers.register("g", producer)
    assert "g" in producers.table().groups
    assert producers.find("p") == producer
    assert producers.connections("g").connections == (ClientConnection("p", "192.0.2.1:50000", "JAVA", 493),)
    assert producers.table().groups == {"g": [ProducerInfo("p", "/192.0.2.1:50000", "JAVA", 493, clock.now_ms())]}
    (known,) = producers.table(with_times=True).groups["g"]
    assert known.connected_timestamp == joined_ms
    with pytest.raises(SystemFailure) as refused:
        producers.connections("h")
    assert refused.value.remark == "the producer group[h] not exist"


def test_members_are_asked_in_turn(producers: ConnectedProducers[FakeChannel]) -> None:
    assert producers.next_of("g") is None
    members = [client(f"p{n}") for n in range(3)]
    for member in members:
        producers.register("g", member)
    producers.register("other", client("q"))
    asked = [producers.next_of("g") for _ in range(6)]
    assert asked[:3] == asked[3:]
    assert {member.client_id for member in asked if member} == {"p0", "p1", "p2"}


@pytest.mark.parametrize(
    ("channels", "chosen"),
    [
        ([FakeChannel("a", is_writable=False), FakeChannel("b")], "b"),
        ([FakeChannel("a", is_open=False), FakeChannel("b", is_writable=False)], "b"),
        ([FakeChannel("a", is_open=False), FakeChannel("b", is_open=False)], None),
    ],
)
def test_one_that_takes_requests_is_preferred(
    producers: ConnectedProducers[FakeChannel], channels: list[FakeChannel], chosen: str | None
) -> None:
    for channel in channels:
        producers.register("g", client(channel.name, channel))
    for _ in channels:
        found = producers.next_of("g")
        assert (found.client_id if found else None) == chosen


def test_departure(producers: ConnectedProducers[FakeChannel]) -> None:
    producer = client("p")
    producers.register("g", producer)
    producers.register("h", producer)
    producers.unregister("g", producer.connection)
    producers.unregister("g", producer.connection)
    assert "g" not in producers.table().groups
    assert producers.find("p") == producer
    producers.closed(producer.connection)
    producers.closed(producer.connection)
    assert producers.find("p") is None
    assert producers.table().groups == {}


def test_a_client_that_came_back_is_found_on_its_new_connection(producers: ConnectedProducers[FakeChannel]) -> None:
    old, new = client("p"), client("p")
    producers.register("g", old)
    producers.register("g", new)
    producers.closed(old.connection)
    assert producers.find("p") == new
    renamed = client("q", new.connection)
    producers.register("g", renamed)
    assert producers.find("p") is None
    assert producers.find("q") == renamed


def test_expiry(producers: ConnectedProducers[FakeChannel], clock: FakeClock) -> None:
    late, prompt = client("late"), client("prompt")
    for group in ("g", "h"):
        producers.register(group, late)
    clock.advance(seconds=1)
    producers.register("g", prompt)
    clock.advance(seconds=119)
    assert producers.expire() == []
    clock.advance(ms=1)
    assert producers.expire() == [late]
    assert producers.find("late") is None
    assert [info.client_id for info in producers.table().groups["g"]] == ["prompt"]
    assert "h" not in producers.table().groups
