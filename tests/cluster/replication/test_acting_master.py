"""A set that loses its master: what waits at its slave reaches consumers through another set, and nothing is lost."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from skyrocket.broker.delay import delay_levels
from skyrocket.broker.delay.feature import DelayFeature
from skyrocket.broker.timer.feature import TimerFeature
from skyrocket.broker.transactions.feature import TransactionsFeature
from skyrocket.format.record import decode_record
from skyrocket.format.timer_checkpoint import TimerCheckpoint, decode_timer_checkpoint
from skyrocket.model.message import StoredMessage
from skyrocket.model.topic import HALF_TOPIC
from skyrocket.protocol.errors import ServiceNotAvailable, SystemFailure
from skyrocket.protocol.requests.admin_broker import GetTimerCheckPoint
from skyrocket.protocol.requests.messaging import ConsumerSendMsgBack
from skyrocket.protocol.requests.pop import ChangeInvisibleTime, PopMessage, PopMessageAnswer
from skyrocket.protocol.requests.transaction import COMMIT, EndTransaction
from tests.cluster.broker.broker_fixture import GROUP, TOPIC, RunningBroker
from tests.cluster.replication.two_sets import CONFIG, TwoSets, two_sets
from tests.unit.broker.pop.pop_world import Popped, popped_messages
from tests.waiting import SECONDS, until

INVISIBLE_MS = 5000
RETRY = f"%RETRY%{GROUP}_{TOPIC}"


def timer(key: str, delay_ms: int) -> str:
    return f"UNIQ_KEY\x01{key}\x02TIMER_DELAY_MS\x01{delay_ms}\x02"


def delayed(key: str, level: int) -> str:
    return f"UNIQ_KEY\x01{key}\x02DELAY\x01{level}\x02"


def half(key: str) -> str:
    return f"UNIQ_KEY\x01{key}\x02TRAN_MSG\x01true\x02PGROUP\x01Producers\x02"


def messages(given: RunningBroker, topic: str = TOPIC) -> list[StoredMessage]:
    """All messages of a topic, queue by queue."""
    store, found = given.broker.store, []
    store.dispatch()
    for queue in store.queues:
        if queue.topic == topic:
            for offset in range(queue.min_offset, queue.max_offset):
                result = store.get(topic, queue.queue_id, offset, 1)
                found.append(decode_record(result.slices[0]))
    return found


def bodies(given: RunningBroker, topic: str = TOPIC) -> list[bytes]:
    return sorted(message.body for message in messages(given, topic) if message.body != b"first")


POP = PopMessage(
    consumer_group=GROUP,
    topic=TOPIC,
    queue_id=-1,
    max_msg_nums=32,
    invisible_time=INVISIBLE_MS,
    poll_time=0,
    born_time=0,  # never too old, however long a busy machine takes
    init_mode=0,
)


async def pop(given: RunningBroker) -> list[Popped]:
    reply = await given.client.call(given.address, POP, accepted=range(500))
    assert isinstance(reply.header, PopMessageAnswer)
    return popped_messages(bytes(reply.body), reply.header, GROUP)


async def ack(given: RunningBroker, popped: Popped) -> None:
    await given.client.call(given.address, popped.acknowledgement())


async def revived(sets: TwoSets, *expected: bytes) -> None:
    """Let time pass, not faster than brokers work, until the retry topic of B has these messages, and a while more."""
    left = INVISIBLE_MS
    while left > 0 or not set(expected) <= set(bodies(sets["b"], RETRY)):
        left -= 100
        assert left > -1_000_000, f"not in the retry topic of B: {expected}"
        sets.clock.advance(ms=100)
        await asyncio.sleep(0.03)


async def test_delayed_messages_and_timers_are_delivered_by_the_slave_through_another_master(tmp_path: Path) -> None:
    async with two_sets(tmp_path) as sets:
        await sets["a"].send(b"level", properties=delayed("l", 3))
        await sets["a"].send(b"timer", properties=timer("t", 12_000))
        await sets["a"].send(b"late", properties=timer("u", 3_600_000))
        await sets.lose_master()
        sets.clock.advance(seconds=15)
        await until(lambda: bodies(sets["b"]) == [b"level", b"timer"])
        for message in messages(sets["b"]):
            assert "REAL_TOPIC" not in message.properties
            assert "DELAY" not in message.properties
        sets.clock.advance(hours=1)
        await until(lambda: bodies(sets["b"]) == [b"late", b"level", b"timer"])


async def test_a_slave_that_acts_is_presented_as_master_that_takes_nothing(tmp_path: Path) -> None:
    async with two_sets(tmp_path) as sets:
        slave = sets["a-slave"]
        await sets.lose_master()
        route = await sets.route()
        assert {broker.broker_name: dict(broker.addresses) for broker in route.brokers} == {
            "broker-a": {0: slave.address},
            "broker-b": {0: sets["b"].address},
        }
        assert {queues.broker_name: queues.permission for queues in route.queues} == {"broker-a": 4, "broker-b": 6}
        with pytest.raises(ServiceNotAvailable):
            await slave.send(b"new")
        back = ConsumerSendMsgBack(offset=0, group=GROUP, delay_level=0)
        with pytest.raises(SystemFailure, match=r"no master available along with 127\.0\.0\.1"):
            await slave.client.call(slave.address, back)
        assert (await slave.pull()).body


async def test_a_half_message_goes_to_another_master_which_can_end_it(tmp_path: Path) -> None:
    async with two_sets(tmp_path) as sets:
        await sets["a"].send(b"half", properties=half("h"))
        ended = await sets["a"].send(b"ended", properties=half("e"))
        await sets["a"].client.call(sets["a"].address, end(ended.queue_offset, ended.msg_id, "e"))
        await until(lambda: bodies(sets["a"]) == [b"ended"])
        await sets.lose_master()
        await until(lambda: bodies(sets["b"], HALF_TOPIC))
        (found,) = messages(sets["b"], HALF_TOPIC)
        assert found.body == b"half"
        assert found.properties["REAL_TOPIC"] == TOPIC
        request = EndTransaction(
            producer_group="Producers",
            tran_state_table_offset=found.queue_offset,
            commit_log_offset=found.physical_offset,
            commit_or_rollback=COMMIT,
            transaction_id="h",
            msg_id="h",
        )
        await sets["b"].client.call(sets["b"].address, request)
        await until(lambda: bodies(sets["b"]) == [b"half"])


def end(queue_offset: int, message_id: str, key: str) -> EndTransaction:
    return EndTransaction(
        producer_group="Producers",
        tran_state_table_offset=queue_offset,
        commit_log_offset=int(message_id[-16:], 16),
        commit_or_rollback=COMMIT,
        transaction_id=key,
        msg_id=key,
    )


async def test_messages_popped_from_the_lost_master_and_not_acknowledged_come_again_from_another(
    tmp_path: Path,
) -> None:
    async with two_sets(tmp_path) as sets:
        for body in (b"done", b"done later", b"lost"):
            await sets["a"].send(body)
        popped = {each.message.body: each for each in await pop(sets["a"])}
        await ack(sets["a"], popped[b"done"])
        await ack(sets["a"], popped[b"first"])
        await sets.lose_master()
        await ack(sets["a-slave"], popped[b"done later"])
        await revived(sets, b"lost")
        assert bodies(sets["b"], RETRY) == [b"lost"]


async def test_an_acting_slave_serves_pops_acknowledgements_and_changes_of_the_invisible_time(tmp_path: Path) -> None:
    async with two_sets(tmp_path) as sets:
        for body in (b"done", b"hidden", b"lost"):
            await sets["a"].send(body)
        await sets.lose_master()
        slave = sets["a-slave"]
        await slave.beat()
        popped = {each.message.body: each for each in await pop(slave)}
        assert popped.keys() == {b"first", b"done", b"hidden", b"lost"}
        assert await pop(slave) == []
        await ack(slave, popped[b"done"])
        await ack(slave, popped[b"first"])
        receipt = popped[b"hidden"].receipt
        change = ChangeInvisibleTime(
            consumer_group=GROUP,
            topic=TOPIC,
            queue_id=receipt.queue_id,
            extra_info=receipt.text(),
            offset=receipt.queue_offset,
            invisible_time=3_600_000,
        )
        await slave.client.call(slave.address, change)
        await revived(sets, b"lost")
        assert bodies(sets["b"], RETRY) == [b"lost"]
        sets.clock.advance(hours=1)
        await revived(sets, b"hidden", b"lost")


async def test_a_pop_at_a_slave_hears_that_it_does_not_act_and_is_served_as_soon_as_it_does(tmp_path: Path) -> None:
    async with two_sets(tmp_path) as sets:
        await sets["a"].send(b"one")
        popped = (await pop(sets["a"]))[0]
        await sets["a"].send(b"two")
        await sets.copied()
        slave = sets["a-slave"]
        await slave.beat()
        with pytest.raises(SystemFailure, match="forbidden because this slave does not act as master"):
            await slave.client.call(slave.address, POP)
        with pytest.raises(SystemFailure, match="timers are kept by the master"):
            await ack(slave, popped)
        await sets.lose_master()
        sets.slave_timers.have(
            None
        )  # as in the moment before its own timer is there: those of others keep check points
        assert [each.message.body for each in await pop(slave)] == [b"two"]


async def test_nothing_is_passed_while_no_other_master_is_there(tmp_path: Path) -> None:
    async with two_sets(tmp_path) as sets:
        await sets["a"].send(b"level", properties=delayed("l", 3))
        await sets["a"].send(b"timer", properties=timer("t", 12_000))
        await sets["a"].send(b"half", properties=half("h"))
        await sets.brokers.pop("b").stop()
        await sets.lose_master()
        slave = sets["a-slave"].broker
        sets.clock.advance(seconds=15)
        await until(lambda: sets.not_taken > 3)
        assert slave.feature(DelayFeature).offsets[3] == 0
        assert slave.tables.offsets.committed("CID_RMQ_SYS_TRANS", HALF_TOPIC, 0) in (None, 0)
        await sets.start("b")

        def has_all() -> bool:
            sets.clock.advance(ms=100)
            return bodies(sets["b"]) == [b"level", b"timer"] and bodies(sets["b"], HALF_TOPIC) == [b"half"]

        await until(has_all)


async def test_a_delayed_message_whose_topic_no_other_set_has_does_not_hold_up_those_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delay_levels, "GROUP_MESSAGES", 2)
    async with two_sets(tmp_path) as sets:
        for number in range(3):
            await sets["a"].send(b"own", topic="OfSetA", properties=delayed(f"o{number}", 3))
        for number in range(5):
            await sets["a"].send(b"level %d" % number, properties=delayed(f"l{number}", 3))
        expected = [b"level %d" % number for number in range(5)]
        await sets.lose_master()
        sets.clock.advance(seconds=15)

        def has_all() -> bool:
            sets.clock.advance(ms=100)
            return bodies(sets["b"]) == expected

        await until(has_all)
        assert sets["a-slave"].broker.feature(DelayFeature).offsets[3] == 0, "what waits is the master's to deliver"
        await sets.start("a")

        def are_delivered() -> bool:
            sets.clock.advance(ms=100)
            return bodies(sets["a"], "OfSetA") == [b"own"] * 3

        await until(are_delivered)
        assert bodies(sets["b"]) == expected


async def test_a_master_that_comes_back_ends_the_acting_and_nothing_is_lost(tmp_path: Path) -> None:
    async with two_sets(tmp_path) as sets:
        for number in range(5):
            await sets["a"].send(b"level %d" % number, properties=delayed(f"l{number}", 3))
            await sets["a"].send(b"timer %d" % number, properties=timer(f"t{number}", 12_000))
        late = [b"late level", b"late timer"]
        await sets["a"].send(late[0], properties=delayed("l", 5))
        await sets["a"].send(late[1], properties=timer("t", 70_000))
        early = sorted([*(b"level %d" % number for number in range(5)), *(b"timer %d" % number for number in range(5))])
        await sets.lose_master()
        slave = sets["a-slave"].broker
        sets.clock.advance(seconds=15)
        await until(lambda: bodies(sets["b"]) == early)
        await until(lambda: slave.feature(DelayFeature).offsets[3] == 5)
        await sets.start("a")
        await until(lambda: not sets.acts and slave.parts.special.are_over)
        assert slave.feature(TimerFeature).service is None
        sets.clock.advance(seconds=70)
        await until(lambda: set(late) <= set(bodies(sets["a"])))
        assert bodies(sets["b"]) == early
        assert len(bodies(sets["a"])) <= len(early) + len(late)
        assert {broker.broker_name: 0 in broker.addresses for broker in (await sets.route()).brokers} == {
            "broker-a": True,
            "broker-b": True,
        }


async def test_a_slave_that_acted_and_acts_again_does_not_deliver_again(tmp_path: Path) -> None:
    async with two_sets(tmp_path) as sets:
        await sets["a"].send(b"level", properties=delayed("l", 3))
        await sets["a"].send(b"timer", properties=timer("t", 12_000))
        await sets["a"].send(b"half", properties=half("h"))
        await sets["a"].send(b"late", properties=timer("u", 60_000))
        await sets.lose_master()
        sets.clock.advance(seconds=15)
        await until(lambda: bodies(sets["b"]) == [b"level", b"timer"] and bodies(sets["b"], HALF_TOPIC) == [b"half"])
        await sets.brokers.pop("a-slave").stop()
        await sets.start("a-slave")
        await until(lambda: sets.acts)
        sets.clock.advance(seconds=60)
        await until(lambda: bodies(sets["b"]) == [b"late", b"level", b"timer"])
        assert bodies(sets["b"], HALF_TOPIC) == [b"half"]


async def test_without_leave_to_escape_all_waits_for_the_master(tmp_path: Path) -> None:
    async with two_sets(tmp_path, replace(CONFIG, remote_escape=False)) as sets:
        await sets["a"].send(b"level", properties=delayed("l", 3))
        await sets.lose_master()
        sets.clock.advance(seconds=15)
        await until(lambda: sets.not_taken > 0)
        assert bodies(sets["b"]) == []
        await sets.start("a")
        sets.clock.advance(seconds=2)
        await until(lambda: bodies(sets["a"]) == [b"level"])


async def test_a_master_that_comes_back_hears_how_far_groups_came_at_its_slave(tmp_path: Path) -> None:
    async with two_sets(tmp_path) as sets:
        await sets["a"].send(b"one")
        await sets.lose_master()
        await sets["a-slave"].beat()
        assert len(await pop(sets["a-slave"])) == 2
        await sets.start("a")
        offsets = sets["a"].broker.tables.offsets
        await until(lambda: offsets.committed(GROUP, TOPIC, 0) == 2)


async def test_a_master_that_comes_back_does_not_check_halves_that_another_master_has(tmp_path: Path) -> None:
    async with two_sets(tmp_path, replicas=2) as sets:
        await sets["a"].send(b"half", properties=half("h"))
        await sets["a"].send(b"half too", properties=half("i"))
        await sets.lose_master()
        await until(lambda: bodies(sets["b"], HALF_TOPIC) == [b"half", b"half too"])
        passed = sets["a-slave"].broker.tables.offsets
        await until(lambda: passed.committed("CID_RMQ_SYS_TRANS", HALF_TOPIC, 0) == 2)
        await sets.start("a")
        await until(lambda: not sets.acts)
        log = sets["a"].broker.feature(TransactionsFeature).log
        await until(lambda: log.half_offset == 2)
        assert log.open_transactions() == []
        assert sets["a"].broker.feature(TransactionsFeature).counts.counts().get(TOPIC, 0) == 0


async def test_the_timers_check_point_of_an_acting_slave_is_newer_than_its_masters(tmp_path: Path) -> None:
    async with two_sets(tmp_path) as sets:

        async def told(name: str, condition: Callable[[TimerCheckpoint], bool]) -> TimerCheckpoint:
            async with asyncio.timeout(SECONDS):
                while True:
                    reply = await sets[name].client.call(sets[name].address, GetTimerCheckPoint())
                    found = decode_timer_checkpoint(bytes(reply.body))
                    if condition(found):
                        return found
                    sets.clock.advance(ms=50)
                    await asyncio.sleep(0.02)

        await sets["a"].send(b"timer", properties=timer("t", 60_000))
        of_master = await told("a", lambda found: found.queue_offset == 1 and found.data_version.counter > 0)
        await sets.lose_master()
        sets.clock.advance(seconds=60)
        await until(lambda: bodies(sets["b"]) == [b"timer"])
        of_slave = await told("a-slave", lambda found: found.data_version > of_master.data_version)
        assert of_slave.last_read_time_ms > of_master.last_read_time_ms
        assert of_slave.master_queue_offset == of_slave.queue_offset == 1, "RocketMQ's masters read the one, ours both"
