"""Logs that went different ways: what nobody acknowledged is cut off and kept aside, and the sets go on."""

from dataclasses import replace
from pathlib import Path

import pytest

from skyrocket.broker.failover import replica_manager
from skyrocket.broker.replication.feature import ReplicationFeature
from skyrocket.format.message_id import offset_message_id
from skyrocket.protocol.errors import RequestError, SystemBusy, SystemFailure
from skyrocket.protocol.requests.offsets import GetMaxOffset, SearchOffsetByTimestamp
from skyrocket.protocol.requests.pop import PeekMessage, PopMessage
from skyrocket.protocol.requests.query import QueryMessage, ViewMessageById
from skyrocket.protocol.requests.server_to_client import ConsumeMessageDirectly
from skyrocket.remoting.errors import RemotingError
from skyrocket.store.message_store import LOCAL_HOST
from tests.cluster.broker.broker_fixture import GROUP, TOPIC, message, pull_request
from tests.cluster.failover.replica_set import STORE, ReplicaSet, replica_set
from tests.waiting import until

KEYS = "KEYS\x01a\x02"
QUERY_KEY = QueryMessage(topic=TOPIC, key="a", max_num=32, begin_timestamp=0, end_timestamp=1 << 62)
READS = (
    pull_request(),
    PopMessage(
        consumer_group=GROUP, topic=TOPIC, queue_id=-1, max_msg_nums=32, poll_time=0, invisible_time=60_000, exp="*"
    ),
    PeekMessage(consumer_group=GROUP, topic=TOPIC, queue_id=0, max_msg_nums=32),
    QUERY_KEY,
    ViewMessageById(offset=0, topic=TOPIC),
    GetMaxOffset(topic=TOPIC, queue_id=0),
    SearchOffsetByTimestamp(topic=TOPIC, queue_id=0, timestamp=1 << 62),
)


async def send_alone(found: ReplicaSet, number: int, body: bytes, properties: str = "") -> None:
    """To one broker, whatever it answers."""
    request = message(properties=properties)
    with pytest.raises((RemotingError, RequestError)):
        await found.client.call(f"127.0.0.1:{found.ports[number]}", request, body, timeout_seconds=0.5)


def keep_from_slaves(found: ReplicaSet, number: int) -> None:
    """As if the network were slow: slaves are connected, and nothing more comes."""
    master = found.brokers[number].master
    assert master is not None
    for slave in master.slaves:
        slave.pause_writing()


async def test_an_old_master_that_wrote_alone_cuts_its_log_when_it_comes_back(tmp_path: Path) -> None:
    async with replica_set(tmp_path, store=replace(STORE, slave_timeout_ms=60_000)) as found:
        first = await found.in_sync(3)
        await found.send(b"common;")
        keep_from_slaves(found, first)
        await send_alone(found, first, b"alone;")
        await found.kill(first)
        second = await found.led_by()
        await found.send(b"later;")
        await found.start(first)
        await found.equal_of(first, second)
        kept = list((found.root(first) / "skyrocket.cut").rglob("0*"))
        assert any(b"alone;" in path.read_bytes() for path in kept if path.is_file())
        log = found.log(first)
        assert (b"common;" in log, b"later;" in log, b"alone;" in log) == (True, True, False)


async def test_consumers_see_nothing_that_is_not_confirmed(tmp_path: Path) -> None:
    async with replica_set(tmp_path, store=replace(STORE, slave_timeout_ms=60_000)) as found:
        first = await found.in_sync(3)
        await found.send(b"common;", KEYS)
        store = found.brokers[first].life.store
        address = f"127.0.0.1:{found.ports[first]}"
        await until(lambda: store.max_offset(TOPIC, 0) == 1)
        end = store.commit_log.written_offset
        keep_from_slaves(found, first)
        await send_alone(found, first, b"alone;", KEYS)
        assert b"alone;" in found.log(first)
        assert store.max_offset(TOPIC, 0) == 1
        # Where it lies is easy to guess: behind the last message that was seen.
        directly = ConsumeMessageDirectly(consumer_group=GROUP, msg_id=offset_message_id(LOCAL_HOST, end))
        for by_offset in (ViewMessageById(offset=end, topic=TOPIC), directly):
            with pytest.raises(SystemFailure, match="can not find message by the offset"):
                await found.client.call(address, by_offset)
        assert b"common;" in bytes((await found.client.call(address, ViewMessageById(offset=0, topic=TOPIC))).body)
        assert (await found.client.call(address, GetMaxOffset(topic=TOPIC, queue_id=0))).header.offset == 1
        for request in (pull_request(), QUERY_KEY):
            shown = bytes((await found.client.call(address, request)).body)
            assert (shown.count(b"common;"), shown.count(b"alone;")) == (1, 0)
        late = SearchOffsetByTimestamp(topic=TOPIC, queue_id=0, timestamp=1 << 62)
        assert (await found.client.call(address, late)).header.offset <= 1


async def test_a_master_that_is_restarted_before_anybody_noticed_goes_on_in_its_epoch(tmp_path: Path) -> None:
    async with replica_set(tmp_path) as found:
        first = await found.in_sync(3)
        await found.send(b"before;")
        machine = found.controller.machine
        machine.in_need = lambda now: []  # type: ignore[method-assign]
        machine.has_lost_master = lambda key: False  # type: ignore[method-assign]
        epochs = found.brokers[first].epochs.all
        await found.kill(first)
        await found.start(first)
        assert await found.in_sync(3) == first
        assert found.brokers[first].epochs.all == epochs
        await found.send(b"after;")
        log = await found.equal()
        assert b"before;" in log
        assert b"after;" in log


async def test_a_master_that_is_restarted_shows_nothing_that_its_set_has_not_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_manager, "_PATIENCE_SECONDS", 3600.0)  # members that are away stay members
    async with replica_set(tmp_path, store=replace(STORE, slave_timeout_ms=60_000)) as found:
        first = await found.in_sync(3)
        await found.send(b"common;")
        keep_from_slaves(found, first)
        await send_alone(found, first, b"alone;")
        machine = found.controller.machine
        machine.in_need = lambda now: []  # type: ignore[method-assign]
        machine.has_lost_master = lambda key: False  # type: ignore[method-assign]
        others = [number for number in found.brokers if number != first]
        for number in (first, *others):
            await found.kill(number)
        await found.start(first)
        assert await found.led_by() == first
        address = f"127.0.0.1:{found.ports[first]}"
        assert b"alone;" in found.log(first)
        for request in READS:
            with pytest.raises(SystemBusy):
                await found.client.call(address, request)
        for number in others:
            await found.start(number)
        await found.equal()
        await until(lambda: found.brokers[first].feature(ReplicationFeature).troubles()["replication"]() is None)
        pulled = await found.client.call(address, pull_request())
        assert b"common;" in bytes(pulled.body)
        assert b"alone;" in bytes(pulled.body)  # all three have it now


async def test_without_enough_members_nothing_is_taken(tmp_path: Path) -> None:
    async with replica_set(tmp_path, 2, replace(STORE, min_in_sync_replicas=2)) as found:
        first = await found.in_sync(2)
        await found.send(b"both;")
        second = 3 - first
        await found.stop(second)
        await found.in_sync(1)
        with pytest.raises(RequestError, match="in-sync replicas not enough"):
            await found.client.call(f"127.0.0.1:{found.ports[first]}", message(), b"alone;")
        await found.start(second)
        await found.in_sync(2)
        await found.send(b"again;")
        assert b"again;" in await found.equal()
