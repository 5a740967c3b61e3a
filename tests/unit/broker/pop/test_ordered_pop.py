"""Pop in order: one batch of a queue at a time."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import MessageIllegal
from skyrocket.protocol.requests.pop import PopMessageAnswer
from skyrocket.remoting.answers import LaterAnswer
from tests.unit.broker.pop.pop_world import GROUP, INVISIBLE_MS, TOPIC, PopWorld, bodies


@pytest.fixture
def world(tmp_path: Path) -> Iterator[PopWorld]:
    made = PopWorld(tmp_path / "store", queues=1)
    yield made
    made.stop()


def ordered(world: PopWorld, count: int = 32, **changes: Any) -> Any:
    return world.pop(order=True, max_msg_nums=count, **changes)


def fields(answer: RemotingCommand | LaterAnswer) -> PopMessageAnswer:
    assert isinstance(answer, RemotingCommand)
    return PopMessageAnswer.from_fields(answer.ext_fields)


def test_a_queue_is_blocked_until_its_batch_is_acknowledged(world: PopWorld) -> None:
    for number in range(4):
        world.put(b"%d" % number)
    first, second = ordered(world, 2)
    assert ordered(world) == []
    world.ack(second)
    assert world.offsets.committed(GROUP, TOPIC, 0) == 0, "the first is not done"
    world.ack(first)
    assert world.offsets.committed(GROUP, TOPIC, 0) == 2
    assert bodies(ordered(world)) == [b"2", b"3"]


def test_what_was_not_acknowledged_comes_again_in_order_and_is_counted(world: PopWorld) -> None:
    for number in range(3):
        world.put(b"%d" % number)
    popped = ordered(world)
    assert fields(world.ask_pop(order=True)).order_count_info == ""
    world.ack(popped[0])
    world.pass_time(INVISIBLE_MS)
    answer = fields(world.ask_pop(order=True))
    assert answer.revive_qid == 999
    assert answer.start_offset_info == "0 0 1"
    assert answer.msg_offset_info == "0 0 1,2"
    assert answer.order_count_info == "0 qo0%1 1;0 qo0%2 1;0 0 1"
    world.pass_time(INVISIBLE_MS)
    world.put(b"3")
    assert fields(world.ask_pop(order=True)).order_count_info == "0 qo0%1 2;0 qo0%2 2;0 0 0"


def test_the_same_attempt_gets_the_same_batch_again(world: PopWorld) -> None:
    world.put(b"0")
    ordered(world, attempt_id="a")
    assert ordered(world, attempt_id="b") == []
    answer = fields(world.ask_pop(order=True, attempt_id="a"))
    assert answer.msg_offset_info == "0 0 0"
    assert answer.order_count_info == "0 0 0", "nobody consumed it in between"


def test_hiding_one_message_longer_blocks_the_queue_longer(world: PopWorld) -> None:
    world.put(b"0")
    (popped,) = ordered(world)
    changed = world.change(popped, 60_000)
    assert changed.receipt.pop_time == popped.receipt.pop_time
    world.pass_time(INVISIBLE_MS + 1000)
    assert ordered(world) == []
    world.pass_time(50_000)
    assert bodies(ordered(world)) == [b"0"]


def test_an_old_batch_cannot_be_acknowledged_nor_what_was_never_in_it(world: PopWorld) -> None:
    world.put(b"0")
    world.put(b"1")
    (popped,) = ordered(world, 1)
    world.pass_time(INVISIBLE_MS)
    (again,) = ordered(world, 1)
    world.ack(popped)
    assert world.offsets.committed(GROUP, TOPIC, 0) == 0
    with pytest.raises(MessageIllegal, match="offset is illegal, key:Orders@Shop@0, old:0, commit:1, next:-1"):
        world.ack(replace(again, receipt=replace(again.receipt, queue_offset=1)))


def test_who_waits_is_woken_by_the_acknowledgement_or_when_the_batch_is_visible_again(world: PopWorld) -> None:
    world.put(b"0")
    world.put(b"1")
    (popped,) = ordered(world, 1)
    waiting = world.ask_pop(order=True, max_msg_nums=1, poll_time=60_000)
    assert isinstance(waiting, LaterAnswer)
    world.ack(popped)
    assert not waiting.is_open
    second = world.ask_pop(order=True, poll_time=60_000)
    assert isinstance(second, LaterAnswer)
    world.pass_time(INVISIBLE_MS - 500)
    assert second.is_open
    world.pass_time(1000)
    assert not second.is_open


def test_batches_in_hand_survive_a_restart(world: PopWorld) -> None:
    world.put(b"0")
    world.put(b"1")
    popped = ordered(world)
    world.ack(popped[0])
    world.stop()
    again = world.again()
    assert ordered(again) == []
    again.ack(popped[1])
    assert again.offsets.committed(GROUP, TOPIC, 0) == 2
    again.stop()


def test_batches_of_deleted_topics_and_of_yesterday_are_forgotten(world: PopWorld) -> None:
    world.put(b"0")
    ordered(world)
    world.popping.forget_orders(world.clock.now_ms())
    assert len(world.popping.orders) == 1
    world.clock.advance(hours=25)
    world.popping.forget_orders(world.clock.now_ms())
    assert len(world.popping.orders) == 0


def test_a_reset_frees_the_queue(world: PopWorld) -> None:
    for number in range(3):
        world.put(b"%d" % number)
    ordered(world)
    world.offsets.reset(GROUP, TOPIC, {0: 2})
    assert bodies(ordered(world)) == [b"2"]


def test_who_waits_is_woken_when_a_message_is_hidden_shorter(world: PopWorld) -> None:
    world.put(b"0")
    (popped,) = ordered(world, invisible_time=600_000)
    waiting = world.ask_pop(order=True, poll_time=60_000)
    assert isinstance(waiting, LaterAnswer)
    world.change(popped, 2000)
    world.pass_time(3000)
    assert not waiting.is_open
