"""Pop, acknowledge, hide, revive, with a clock that stands still unless it is moved."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skyrocket.format.record import decode_records
from skyrocket.protocol.bodies.batch_ack import BatchAck, BatchAckEntry
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import MessageIllegal, NoMessage
from skyrocket.protocol.requests.pop import (
    BatchAckMessage,
    Notification,
    PeekMessage,
    PollingInfo,
    PollingInfoAnswer,
    PopMessageAnswer,
)
from skyrocket.remoting.answers import LaterAnswer
from skyrocket.remoting.exchange import command_of
from skyrocket.store.commit_log import PutMessage
from tests.unit.broker.pop.pop_world import (
    BROKER,
    GROUP,
    INVISIBLE_MS,
    PEER,
    TOPIC,
    PopWorld,
    bodies,
    popped_messages,
)
from tests.unit.store.stores import UnforcedDisk

RETRY = f"%RETRY%{GROUP}_{TOPIC}"
REVIVED_AFTER_MS = INVISIBLE_MS + 5000


@pytest.fixture
def world(tmp_path: Path) -> Iterator[PopWorld]:
    made = PopWorld(tmp_path / "store")
    yield made
    made.stop()


def test_a_popped_message_is_hidden_from_the_group(world: PopWorld) -> None:
    world.put(b"one")
    assert bodies(world.pop()) == [b"one"]
    assert world.pop() == []


def test_an_acknowledged_message_never_comes_again(world: PopWorld) -> None:
    world.put(b"one")
    (popped,) = world.pop()
    world.ack(popped)
    world.pass_time(5 * INVISIBLE_MS)
    assert world.pop() == []


def test_what_nobody_acknowledged_comes_again_after_its_time_and_not_before(world: PopWorld) -> None:
    world.put(b"one")
    world.pop()
    world.pass_time(INVISIBLE_MS)
    assert world.pop() == []
    world.pass_time(REVIVED_AFTER_MS - INVISIBLE_MS)
    (again,) = world.pop()
    assert again.body == b"one"
    assert again.message.topic == TOPIC
    assert again.message.reconsume_times == 1
    assert again.message.properties["ORIGIN_GROUP"] == GROUP
    assert again.real_topic == RETRY


def test_a_revived_message_can_be_acknowledged(world: PopWorld) -> None:
    world.put(b"one")
    world.pop()
    world.pass_time(REVIVED_AFTER_MS)
    (again,) = world.pop()
    world.ack(again)
    world.pass_time(5 * INVISIBLE_MS)
    assert world.pop() == []


def test_a_revived_message_that_is_left_again_comes_with_the_time_of_its_first_pop(world: PopWorld) -> None:
    world.put(b"one")
    (first,) = world.pop()
    world.pass_time(REVIVED_AFTER_MS)
    world.pop()
    world.pass_time(REVIVED_AFTER_MS)
    (third,) = world.pop()
    assert third.message.reconsume_times == 2
    assert third.message.properties["1ST_POP_TIME"] == str(first.receipt.pop_time)


# ── hidden longer or shorter ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_message_that_is_hidden_longer_comes_when_the_new_time_is_over(world: PopWorld) -> None:
    world.put(b"one")
    (popped,) = world.pop()
    world.pass_time(5000)
    world.change(popped, 60_000)
    world.pass_time(55_000)
    assert world.pop() == []
    world.pass_time(12_000)
    assert bodies(world.pop()) == [b"one"]


def test_a_message_that_is_hidden_shorter_comes_sooner(world: PopWorld) -> None:
    world.put(b"one")
    (popped,) = world.pop(invisible_time=600_000)
    world.change(popped, 1000)
    world.pass_time(8000)
    assert bodies(world.pop()) == [b"one"]


def test_the_new_receipt_acknowledges_and_the_old_one_does_not(world: PopWorld) -> None:
    world.put(b"one")
    world.put(b"two")
    one, two = world.pop()
    world.change(one, INVISIBLE_MS)
    changed = world.change(two, INVISIBLE_MS)
    world.ack(one)
    world.ack(changed)
    world.pass_time(2 * REVIVED_AFTER_MS)
    assert bodies(world.pop()) == [b"one"]


# ── which messages ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_tags_and_sql_choose_messages_also_in_the_retry_topic(world: PopWorld) -> None:
    world.put(b"red", TAGS="red", weight="3")
    world.put(b"blue", TAGS="blue", weight="7")
    assert bodies(world.pop(exp="red", exp_type="TAG")) == [b"red"]
    world.pass_time(REVIVED_AFTER_MS)
    assert bodies(world.pop(exp="weight > 5", exp_type="SQL92")) == []
    assert bodies(world.pop(exp="weight < 5", exp_type="SQL92", consumer_group="Other")) == [b"red"]


def test_messages_that_nobody_wants_are_passed_over(world: PopWorld) -> None:
    for number in range(5):
        world.put(b"%d" % number, TAGS="blue")
    assert world.pop(exp="red", exp_type="TAG") == []
    assert world.offsets.committed(GROUP, TOPIC, 0) == 5


def test_an_expression_that_cannot_be_read_is_refused(world: PopWorld) -> None:
    answer = world.ask_pop(exp="a >", exp_type="SQL92")
    assert isinstance(answer, RemotingCommand)
    assert answer.code == 23
    assert (answer.remark or "").startswith("parse the consumer's subscription failed: ")
    assert "end of the expression found at line 1, column 4" in (answer.remark or "")
    assert answer.ext_fields == {"invisibleTime": "0", "restNum": "0", "popTime": "0", "reviveQid": "0"}


def test_only_some_messages_of_a_check_point_come_again(world: PopWorld) -> None:
    for number in range(4):
        world.put(b"%d" % number)
    popped = world.pop()
    assert len({each.receipt.start_offset for each in popped}) == 1
    world.ack(popped[0])
    world.ack(popped[2])
    world.pass_time(REVIVED_AFTER_MS)
    assert bodies(world.pop()) == [b"1", b"3"]


def test_two_groups_do_not_hide_messages_from_each_other(world: PopWorld) -> None:
    world.put(b"one")
    assert bodies(world.pop()) == [b"one"]
    assert bodies(world.pop(consumer_group="Other")) == [b"one"]


def test_no_more_than_asked_for_is_taken_and_the_rest_is_told(world: PopWorld) -> None:
    for queue_id in (0, 1):
        for number in range(4):
            world.put(b"%d-%d" % (queue_id, number), queue_id)
    answer = world.ask_pop(max_msg_nums=3)
    assert isinstance(answer, RemotingCommand)
    fields = PopMessageAnswer.from_fields(answer.ext_fields)
    assert fields.rest_num == 5
    assert len(popped_messages(bytes(answer.body), fields)) == 3
    assert len(world.pop()) == 5


def test_queues_are_visited_downwards_from_a_place_that_is_drawn(world: PopWorld) -> None:
    world.put(b"q0", 0)
    world.put(b"q1", 1)
    world.draw = 50
    assert bodies(world.pop()) == [b"q1", b"q0"]
    world.draw = 51
    assert bodies(world.pop(consumer_group="Other")) == [b"q0", b"q1"]


def test_the_retry_topic_comes_first_as_often_as_the_setting_says(world: PopWorld) -> None:
    world.put(b"old")
    world.pop()
    world.pass_time(REVIVED_AFTER_MS)
    world.put(b"new")
    world.draw = 19
    assert bodies(world.pop(max_msg_nums=1)) == [b"old"]
    world.draw = 20
    assert bodies(world.pop(max_msg_nums=1)) == [b"new"]


def test_a_topic_with_priorities_is_emptied_from_the_highest_queue_down(world: PopWorld) -> None:
    config = world.topics.topics[TOPIC]
    world.topics.update(replace(config, attributes={"+message.type": "PRIORITY"}))
    world.put(b"low", 0)
    world.put(b"high", 1)
    for draw in (0, 1, 99):
        world.draw = draw
        assert bodies(world.pop(consumer_group=f"G{draw}")) == [b"high", b"low"]


def test_a_new_group_that_wants_only_what_comes_begins_at_the_end_of_a_long_queue(world: PopWorld) -> None:
    for number in range(3):
        world.put(b"%d" % number)
    # The queue is young, so the group has missed nothing yet: RocketMQ begins at 0 here.
    assert bodies(world.pop(init_mode=1)) == [b"0", b"1", b"2"]


def test_a_reset_moves_a_popping_group(world: PopWorld) -> None:
    for number in range(3):
        world.put(b"%d" % number)
    world.pop()
    world.offsets.reset(GROUP, TOPIC, {0: 1})
    assert bodies(world.pop()) == [b"1", b"2"]


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("changes", "code", "remark"),
    [
        ({"born_time": 1}, 210, "pop message is timeout too much"),
        ({"max_msg_nums": 33}, 29, "the broker[127.0.0.1] pop message's num is greater than 32"),
        ({"topic": "Nothing"}, 17, "topic[Nothing] not exist, apply first please!"),
        ({"queue_id": 2}, 29, "queueId[2] is illegal, topic:[Orders] topicConfig.readQueueNums:[2]"),
        ({"invisible_time": 10**12}, 13, "timer message illegal"),
    ],
)
def test_what_is_refused_names_the_cause_and_takes_nothing(
    world: PopWorld, changes: dict[str, Any], code: int, remark: str
) -> None:
    world.put(b"one")
    answer = world.ask_pop(**changes)
    assert isinstance(answer, RemotingCommand)
    assert answer.code == code
    assert remark in (answer.remark or "")
    assert bodies(world.pop()) == [b"one"]


def test_a_broker_that_may_not_be_read_refuses_pops(world: PopWorld) -> None:
    world.config = replace(world.config, broker_permission=2)
    answer = world.ask_pop()
    assert isinstance(answer, RemotingCommand)
    assert (answer.code, answer.remark) == (16, "the broker[127.0.0.1] pop message is forbidden")


def test_receipts_of_nothing_are_refused(world: PopWorld) -> None:
    world.put(b"one")
    (popped,) = world.pop()
    with pytest.raises(NoMessage, match="offset is illegal, key:Orders@0, commit:9, store:0~1"):
        world.ack(replace(popped, receipt=replace(popped.receipt, queue_offset=9)))
    with pytest.raises(MessageIllegal, match="queueId\\[7\\] is illegal"):
        world.ack(replace(popped, receipt=replace(popped.receipt, queue_id=7)))
    with pytest.raises(MessageIllegal, match="revive queue 77"):
        world.ack(replace(popped, receipt=replace(popped.receipt, revive_queue=77)))
    with pytest.raises(NoMessage):
        world.change(replace(popped, receipt=replace(popped.receipt, queue_offset=1)), 1000)


def test_what_could_not_be_written_down_is_not_handed_out(world: PopWorld) -> None:
    world.put(b"one")
    world.store.gate.close()
    assert world.pop() == []
    world.store.gate.open()
    assert bodies(world.pop()) == [b"one"]


# ── many at once ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_batch_of_acknowledgements_counts_for_each_message(world: PopWorld) -> None:
    for number in range(5):
        world.put(b"%d" % number)
    popped = world.pop()
    entry = BatchAckEntry(
        GROUP,
        TOPIC,
        "0",
        popped[0].receipt.start_offset,
        0,
        popped[0].receipt.revive_queue,
        popped[0].receipt.pop_time,
        INVISIBLE_MS,
        frozenset({0, 1, 4, 9}),
    )
    world.popping.acks.batch_ack(PEER, BatchAckMessage(), BatchAck(BROKER, (entry,)))
    world.pass_time(REVIVED_AFTER_MS)
    assert bodies(world.pop()) == [b"2", b"3"]


def test_a_batch_without_entries_is_refused(world: PopWorld) -> None:
    for body in (None, BatchAck(BROKER, ())):
        with pytest.raises(NoMessage):
            world.popping.acks.batch_ack(PEER, BatchAckMessage(), body)


# ── waiting ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_pop_waits_for_a_message_that_it_wants(world: PopWorld) -> None:
    waiting = world.ask_pop(poll_time=10_000, exp="red", exp_type="TAG")
    assert isinstance(waiting, LaterAnswer)
    world.put(b"skipped", 1, TAGS="blue")  # the 0th of a queue wakes everybody
    world.put(b"no", 1, TAGS="blue")
    assert waiting.is_open
    world.put(b"yes", 1, TAGS="red")
    assert not waiting.is_open
    assert world.pop(exp="red", exp_type="TAG") == []


def test_a_message_wakes_one_pop_of_every_group(world: PopWorld) -> None:
    mine, other, second = (world.ask_pop(poll_time=10_000, consumer_group=g) for g in ("A", "B", "A"))
    world.put(b"one", 1)
    assert [not each.is_open for each in (mine, other, second) if isinstance(each, LaterAnswer)] == [True, True, False]


def test_what_is_left_wakes_the_next_pop(world: PopWorld) -> None:
    first, second = (world.ask_pop(poll_time=10_000, max_msg_nums=1) for _ in range(2))
    for body in (b"one", b"two"):
        assert world.store.put(PutMessage(TOPIC, 0, body)).ok
    world.store.dispatch()
    assert isinstance(first, LaterAnswer)
    assert isinstance(second, LaterAnswer)
    assert not first.is_open
    assert not second.is_open


def test_a_revived_message_wakes_a_pop(world: PopWorld) -> None:
    world.put(b"one")
    world.pop()
    waiting = world.ask_pop(poll_time=60_000)
    assert isinstance(waiting, LaterAnswer)
    world.pass_time(REVIVED_AFTER_MS)
    assert not waiting.is_open


def test_a_pop_waits_no_longer_than_it_wants(world: PopWorld) -> None:
    waiting = world.ask_pop(poll_time=2000)
    assert isinstance(waiting, LaterAnswer)
    world.pass_time(1900, step_ms=100)
    assert waiting.is_open
    world.pass_time(200, step_ms=100)
    assert isinstance(waiting.frame, bytes)
    assert b"NO_MESSAGE_IN_QUEUE" in waiting.frame


def test_too_many_waiting_pops_are_told_so(world: PopWorld) -> None:
    world.config = replace(world.config, max_held_pops=1)
    assert isinstance(world.ask_pop(poll_time=2000), LaterAnswer)
    answer = world.ask_pop(poll_time=2000)
    assert isinstance(answer, RemotingCommand)
    assert answer.code == 209


# ── looking ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_peeking_takes_nothing(world: PopWorld) -> None:
    world.put(b"one")
    world.put(b"two")
    header = PeekMessage(consumer_group=GROUP, topic=TOPIC, queue_id=0, max_msg_nums=1)
    answer = world.popping.notifications.peek(PEER, header, b"")
    assert isinstance(answer.body, bytes)
    assert [record.body for record in decode_records(answer.body)] == [b"one"]
    assert isinstance(answer.header, PopMessageAnswer)
    assert answer.header.rest_num == 1
    assert bodies(world.pop()) == [b"one", b"two"]
    assert world.popping.notifications.peek(PEER, header, b"").code == 19


def test_a_notification_tells_of_messages_and_waits_for_them(world: PopWorld) -> None:
    header = Notification(
        consumer_group=GROUP, topic=TOPIC, queue_id=-1, poll_time=5000, born_time=world.clock.now_ms()
    )
    waiting = world.popping.notifications.notify(PEER, command_of(header))
    assert isinstance(waiting, LaterAnswer)
    world.put(b"one")
    assert not waiting.is_open
    answer = world.popping.notifications.notify(PEER, command_of(header))
    assert isinstance(answer, RemotingCommand)
    assert answer.ext_fields == {"hasMsg": "true", "pollingFull": "false"}


def test_the_number_of_waiting_pops_is_told(world: PopWorld) -> None:
    world.ask_pop(poll_time=5000)
    header = PollingInfo(consumer_group=GROUP, topic=TOPIC, queue_id=-1)
    assert world.popping.notifications.polling_info(PEER, header, b"").header == PollingInfoAnswer(polling_num=1)


# ── restart ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_in_hand_is_revived_after_a_kill(world: PopWorld, tmp_path: Path) -> None:
    for number in range(3):
        world.put(b"%d" % number)
    popped = world.pop()
    world.save()
    world.ack(popped[1])
    again = world.killed(tmp_path / "killed")
    assert again.pop() == []
    again.pass_time(REVIVED_AFTER_MS)
    assert bodies(again.pop()) == [b"0", b"2"]
    again.stop()


def test_offsets_are_saved_only_after_the_log_has_the_check_points(tmp_path: Path) -> None:
    disk = UnforcedDisk()
    world = PopWorld(tmp_path / "store", disk=disk)
    world.put(b"one")
    world.pop()
    syncs = disk.syncs
    world.popping.revive_log.force_to_disk()
    assert disk.syncs > syncs
    assert world.store.commit_log.flushed_offset == world.store.commit_log.written_offset
    world.stop()


# ── retry topics ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_retry_topics_may_have_the_second_form_of_name(world: PopWorld) -> None:
    world.config = replace(world.config, pop_retry_v2=True)
    world.put(b"one")
    world.pop()
    world.pass_time(REVIVED_AFTER_MS)
    world.draw = 50
    assert world.pop() == [], "an even draw looks into the topic with the old name"
    world.draw = 51
    (again,) = world.pop()
    assert again.receipt.retry_mark == "2"
    assert again.real_topic == f"%RETRY%{GROUP}+{TOPIC}"
    world.ack(again)
    world.pass_time(REVIVED_AFTER_MS)
    assert world.pop() == []


def test_retries_may_keep_their_queue(world: PopWorld) -> None:
    world.config = replace(world.config, pop_separate_retry_queues=True)
    world.put(b"one", 1)
    world.pop()
    world.pass_time(REVIVED_AFTER_MS)
    (again,) = world.pop()
    assert again.message.queue_id == 1
    assert world.topics.topics[RETRY].read_queues == 2


def test_popped_messages_of_a_retry_topic_may_keep_its_name(world: PopWorld) -> None:
    world.config = replace(world.config, pop_shows_retry_topic=True)
    world.put(b"one")
    world.pop()
    world.pass_time(REVIVED_AFTER_MS)
    answer = world.ask_pop()
    assert isinstance(answer, RemotingCommand)
    assert [record.topic for record in decode_records(bytes(answer.body))] == [RETRY]


def test_a_store_that_takes_nothing_delays_revival_but_loses_nothing(world: PopWorld) -> None:
    world.put(b"one")
    world.pop()
    world.pass_time(INVISIBLE_MS + 1500)
    world.store.gate.close()
    world.pass_time(20_000)
    world.store.gate.open()
    world.pass_time(10_000)
    assert bodies(world.pop()) == [b"one"]


def test_a_message_without_room_for_more_properties_is_revived_all_the_same(world: PopWorld) -> None:
    world.put(b"one", filler="x" * 32_700)
    world.pop()
    world.pass_time(REVIVED_AFTER_MS)
    peeked = world.store.get(RETRY, 0, 0)
    assert [record.body for record in decode_records(peeked.join())] == [b"one"]


def test_check_points_of_deleted_topics_and_groups_are_passed_over(world: PopWorld) -> None:
    world.put(b"one")
    world.pop()
    world.groups.delete(GROUP)
    world.pass_time(REVIVED_AFTER_MS)
    assert world.topics.find(RETRY) is None
    assert not world.popping.revive.revived


def test_rubbish_in_the_revive_log_stops_nothing(world: PopWorld) -> None:
    world.put(b"one")
    world.pop()
    for queue_id in range(8):
        world.put(b"{", queue_id, "rmq_sys_REVIVE_LOG_DefaultCluster", TAGS="ck")
        world.put(b"[]", queue_id, "rmq_sys_REVIVE_LOG_DefaultCluster", TAGS="ack")
    world.pass_time(REVIVED_AFTER_MS)
    assert bodies(world.pop()) == [b"one"]
