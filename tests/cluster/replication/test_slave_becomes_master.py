"""A slave that an operator starts as the master: what waits is delivered, what was delivered does not come again."""

from dataclasses import replace
from pathlib import Path

from skyrocket.broker.delay.feature import DelayFeature
from skyrocket.broker.timer.feature import TimerFeature
from skyrocket.config.sections import BrokerConfig
from skyrocket.model.topic import TIMER_TOPIC
from skyrocket.protocol.requests.offsets import UpdateConsumerOffset
from tests.cluster.broker.broker_fixture import GROUP, SMALL, TOPIC, message, running_broker
from tests.cluster.replication.broker_pair import running_pair
from tests.waiting import until

SOON, LATE = 1_000, 3_600_000


def timer(key: str, delay_ms: int) -> str:
    return f"UNIQ_KEY\x01{key}\x02TIMER_DELAY_MS\x01{delay_ms}\x02"


def delayed(key: str, level: int) -> str:
    return f"UNIQ_KEY\x01{key}\x02DELAY\x01{level}\x02"


async def test_timers_and_delayed_messages_go_on_where_the_master_stood(tmp_path: Path) -> None:
    async with running_pair(tmp_path) as pair:
        master, slave = pair.master.broker, pair.slave.broker
        for number, properties in enumerate(
            (timer("a", SOON), timer("b", LATE), delayed("c", 1), delayed("d", 18)), start=1
        ):
            await pair.master.client.call(pair.master.address, message(properties=properties), b"%d" % number)
        await until(lambda: master.store.max_offset(TOPIC, 0) == 2)
        timers = master.feature(TimerFeature).service
        assert timers is not None
        await until(lambda: timers.unparked == 0)
        timers.save()
        master.feature(DelayFeature).levels.save()
        await pair.follows()
        slave.store.flush()
        await pair.slave_side.sync.sync()
        await pair.slave_side.sync.sync()
        assert slave.feature(DelayFeature).offsets[1] == 1
        assert slave.feature(TimerFeature).counts.counts() == {TOPIC: 1}
    config = BrokerConfig()
    async with running_broker(tmp_path / "slave", config, SMALL) as promoted:
        service = promoted.broker.feature(TimerFeature).service
        assert service is not None
        await until(lambda: service.unparked == 0)
        assert [each.unique_key for each in service.pending()] == ["b"]
        await promoted.send(b"new", queue_id=1)
        assert promoted.broker.store.max_offset(TOPIC, 0) == 2
        assert promoted.broker.store.max_offset(TOPIC, 1) == 1


async def test_of_a_timer_that_has_rolled_only_the_newest_copy_waits(tmp_path: Path) -> None:
    rolling = replace(SMALL, timer_roll_window=2, timer_precision_ms=100)
    async with running_pair(tmp_path, rolling, rolling) as pair:
        master = pair.master.broker
        await pair.master.client.call(pair.master.address, message(properties=timer("a", LATE)), b"1")
        await until(lambda: master.store.max_offset(TIMER_TOPIC, 0) >= 4)
        timers = master.feature(TimerFeature).service
        assert timers is not None
        timers.save()
        await pair.follows()
        pair.slave.broker.store.flush()
        side = pair.slave_side.sync
        side._held = None
        await side.sync()
        await side.sync()
    async with running_broker(tmp_path / "slave", BrokerConfig(), SMALL) as promoted:
        service = promoted.broker.feature(TimerFeature).service
        assert service is not None
        await until(lambda: service.unparked == 0)
        assert [each.unique_key for each in service.pending()] == ["a"]


async def test_what_was_delivered_is_believed_only_when_the_log_with_it_is_here(tmp_path: Path) -> None:
    async with running_pair(tmp_path) as pair:
        await pair.master.send(properties=delayed("a", 1))
        await until(lambda: pair.master.broker.store.max_offset(TOPIC, 0) == 1)
        pair.master.broker.feature(DelayFeature).levels.save()
        await pair.follows()
        side, known = pair.slave_side.sync, pair.slave.broker.feature(DelayFeature).offsets
        has_log = side._has_log
        side._held, side._has_log = None, lambda end_offset: False
        await side.sync()
        assert known[1] == 0
        side._has_log = has_log
        pair.slave.broker.store.flush()
        await side.sync()
        assert known[1] == 1


async def test_commits_at_a_slave_whose_master_is_gone_are_given_back_to_it(tmp_path: Path) -> None:
    async with running_pair(tmp_path) as pair:
        master, slave = pair.master.broker.tables.offsets, pair.slave.broker.tables.offsets
        for queue_id in range(2):
            await pair.master.send(queue_id=queue_id)
        await pair.master.beat()
        master.commit(GROUP, TOPIC, 0, 1)
        master.commit(GROUP, TOPIC, 1, 1)
        await pair.follows()
        await pair.slave_side.sync.sync()
        pair.slave.broker.parts.broker_set.is_looking = True  # the slave does not reach its master
        for queue_id, offset in ((0, 2), (1, 0)):
            commit = UpdateConsumerOffset(consumer_group=GROUP, topic=TOPIC, queue_id=queue_id, commit_offset=offset)
            await pair.slave.client.call(pair.slave.address, commit)
        await pair.slave_side.sync.sync()
        assert master.committed_queues(GROUP, TOPIC) == {0: 2, 1: 1}  # a commit before the master's is not told
        assert slave.committed_queues(GROUP, TOPIC) == {0: 2, 1: 1}
        master.commit(GROUP, TOPIC, 0, 0)  # by an operator, say
        await pair.slave_side.sync.sync()
        assert slave.committed_queues(GROUP, TOPIC) == {0: 0, 1: 1}
