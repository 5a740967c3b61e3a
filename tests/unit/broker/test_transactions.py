"""Transactions on a store, with a clock that stands still unless it is moved."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from skyrocket.broker.transactions.half_message import read_half
from skyrocket.broker.transactions.transaction_log import Decision
from skyrocket.config.sections import BrokerConfig
from skyrocket.format.message_id import offset_message_id
from skyrocket.format.properties import decode_properties, encode_properties
from skyrocket.format.record import unpack_host
from skyrocket.model.message import Host
from skyrocket.protocol.errors import IllegalOperation, ServiceNotAvailable, SystemFailure
from skyrocket.protocol.requests.transaction import COMMIT, ROLLBACK, UNKNOWN, ResumeCheckHalfMessage
from skyrocket.remoting.serving import UNANSWERED, Answered
from skyrocket.store.commit_log import PutMessage
from skyrocket.testing.clock import FakeClock
from skyrocket.testing.faulty_disk import FaultyDisk
from tests.golden_store import GoldenStore, Line
from tests.unit.broker.transacting import GROUP, QUEUE, TOPIC, Listener, Transacting

TIMEOUT_MS = 6000


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def given(tmp_path: Path, clock: FakeClock) -> Iterator[Transacting]:
    transacting = Transacting(tmp_path, clock)
    yield transacting
    transacting.stop()


# ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("A104", "C023")
def test_a_half_is_delivered_when_it_is_committed_and_not_before(given: Transacting, clock: FakeClock) -> None:
    half = given.begin(b"one", flag=7, KEYS="k")
    assert given.delivered() == []
    clock.advance(seconds=1)
    answer = given.end(half.physical_offset, COMMIT)
    assert answer == Answered()
    (message,) = given.messages(TOPIC, QUEUE)
    assert (message.body, message.flag, message.sys_flag, message.prepared_transaction_offset) == (
        b"one",
        7,
        8,
        half.physical_offset,
    )
    assert message.properties == {
        "TRAN_MSG": "true",
        "PGROUP": GROUP,
        "UNIQ_KEY": "Uone",
        "TAGS": "red",
        "KEYS": "k",
        "__transactionId__": "Uone",
    }


@pytest.mark.requirement("C023")
def test_a_half_that_is_rolled_back_is_never_delivered_nor_checked(given: Transacting, clock: FakeClock) -> None:
    half = given.begin(b"one")
    answer = given.end(half.physical_offset, ROLLBACK)
    assert (answer.code, answer.remark) == (0, "not set any response code")  # as RocketMQ
    clock.advance(seconds=60)
    assert given.check().asked == 0
    assert given.delivered() == []


@pytest.mark.requirement("C023")
def test_an_unknown_end_has_no_answer_and_changes_nothing(given: Transacting) -> None:
    half = given.begin(b"one")
    assert given.end(half.physical_offset, UNKNOWN) is UNANSWERED
    assert [each.queue_offset for each in given.transactions.log.open_transactions()] == [half.queue_offset]


@pytest.mark.parametrize(
    ("changes", "remark"),
    [
        ({"commit_log_offset": 1}, "Find prepared transaction message failed"),
        ({"commit_log_offset": -1}, "Find prepared transaction message failed"),
        ({"commit_log_offset": 1 << 40}, "Find prepared transaction message failed"),
        ({"producer_group": "Others"}, "The producer group wrong"),
        ({"tran_state_table_offset": 7}, "The transaction state table offset wrong"),
    ],
)
def test_the_end_of_another_half_is_refused(given: Transacting, changes: dict[str, Any], remark: str) -> None:
    half = given.begin(b"one")
    with pytest.raises(SystemFailure) as refused:
        given.end(half.physical_offset, COMMIT, **changes)
    assert refused.value.remark == remark
    assert given.delivered() == []
    given.end(half.physical_offset, COMMIT)
    assert given.delivered() == [b"one"]


def test_a_message_that_is_no_half_cannot_be_committed(given: Transacting) -> None:
    plain = given.store.put(PutMessage(TOPIC, QUEUE, b"plain", encode_properties({"PGROUP": GROUP})))
    with pytest.raises(SystemFailure, match=r"^The producer group wrong$"):
        given.end(plain.physical_offset, COMMIT)
    given.begin(b"one")
    copy = given.store.put(given.half(0).given_up())
    with pytest.raises(SystemFailure, match=r"^Find prepared transaction message failed$"):
        given.end(copy.physical_offset, COMMIT)


def test_a_producer_with_an_immunity_time_must_end_within_it_unless_it_was_asked(
    given: Transacting, clock: FakeClock
) -> None:
    half = given.begin(b"one", CHECK_IMMUNITY_TIME_IN_SECONDS="10")
    clock.advance(seconds=10, ms=1)
    with pytest.raises(IllegalOperation) as refused:
        given.end(half.physical_offset, COMMIT)
    assert refused.value.remark is None
    given.end(half.physical_offset, COMMIT, from_check=True)
    assert given.delivered() == [b"one"]


def test_the_same_word_twice_delivers_once_and_another_word_is_refused(given: Transacting, clock: FakeClock) -> None:
    one, two = given.begin(b"one"), given.begin(b"two")
    for _ in range(2):
        given.end(one.physical_offset, COMMIT)
        given.end(two.physical_offset, ROLLBACK)
    with pytest.raises(SystemFailure, match="has ended before, by a commit"):
        given.end(one.physical_offset, ROLLBACK)
    with pytest.raises(SystemFailure, match="has ended before, by a rollback"):
        given.end(two.physical_offset, COMMIT)
    clock.advance(seconds=60)
    given.check()
    given.end(one.physical_offset, COMMIT)  # a client that tries again for a whole minute
    assert given.delivered() == [b"one"]


def test_a_word_about_an_older_copy_counts_for_the_newest(given: Transacting, clock: FakeClock) -> None:
    half = given.begin(b"one")
    clock.advance(ms=TIMEOUT_MS + 1)
    assert given.check().asked == 1
    given.end(half.physical_offset, COMMIT)  # it took the producer that long
    clock.advance(seconds=30)
    assert given.check().asked == 0
    assert given.delivered() == [b"one"]
    (question,) = given.producer.questions
    given.end(question.header.commit_log_offset, COMMIT, from_check=True)  # and the checker says the same
    assert given.delivered() == [b"one"]


def test_a_commit_that_the_store_refuses_can_be_repeated(tmp_path: Path, clock: FakeClock) -> None:
    given = Transacting(tmp_path, clock)
    half = given.begin(b"one")
    given.store.gate.close()
    with pytest.raises(ServiceNotAvailable, match=r"^Service not available now\.$"):
        given.end(half.physical_offset, COMMIT)
    assert len(given.transactions.log.open_transactions()) == 1
    given.store.gate.open()
    given.end(half.physical_offset, COMMIT)
    assert given.delivered() == [b"one"]
    given.stop()


def test_a_delay_counts_from_the_commit_on(given: Transacting) -> None:
    half = given.begin(b"one", DELAY="2")
    given.end(half.physical_offset, COMMIT)
    assert given.delivered() == []
    (waiting,) = given.messages("SCHEDULE_TOPIC_XXXX", 1)
    assert (waiting.properties["REAL_TOPIC"], waiting.properties["REAL_QID"]) == (TOPIC, str(QUEUE))


@pytest.mark.parametrize("clean_restarts", [0, 1])
def test_a_commit_before_a_kill_is_found_in_its_topic_even_after_another_restart(
    tmp_path: Path, clock: FakeClock, clean_restarts: int
) -> None:
    given = Transacting(tmp_path / "first", clock)
    half = given.begin(b"one")
    given.begin(b"two")
    given.end(half.physical_offset, COMMIT)
    shutil.copytree(given.root, tmp_path / "killed", ignore=shutil.ignore_patterns("*.tmp"))
    given.store.close()
    given = Transacting(tmp_path / "killed", clock)
    assert given.ends() == []
    for _ in range(clean_restarts):
        given.stop()
        given = Transacting(tmp_path / "killed", clock)
    clock.advance(seconds=10)
    assert given.check().asked == 1
    assert [question.message.body for question in given.producer.questions] == [b"two"]
    given.end(half.physical_offset, COMMIT)
    assert given.delivered() == [b"one"]
    given.stop()


def test_how_far_checks_have_come_is_not_told_before_the_log_is_on_disk(given: Transacting, clock: FakeClock) -> None:
    given.begin(b"one")
    clock.advance(seconds=10)
    given.check()
    assert given.transactions.log.half_offset == 1
    assert given.offsets.committed("CID_RMQ_SYS_TRANS", "RMQ_SYS_TRANS_HALF_TOPIC", 0) is None
    given.store.flush()
    given.transactions.log.settle()
    assert given.offsets.committed("CID_RMQ_SYS_TRANS", "RMQ_SYS_TRANS_HALF_TOPIC", 0) == 1


@pytest.mark.parametrize("seed", range(8))
def test_a_power_cut_forgets_no_half_that_was_on_disk(tmp_path: Path, clock: FakeClock, seed: int) -> None:
    random = Random(seed)
    (tmp_path / "before").mkdir()
    disk = FaultyDisk(tmp_path / "before")
    given = Transacting(tmp_path / "before", clock, disk=disk)
    for number in range(8):
        given.begin(b"%d" % number)
    given.store.flush()
    for _ in range(random.randint(1, 4)):
        clock.advance(seconds=10)
        given.check()
        if random.random() < 0.3:
            given.store.flush()
        given.transactions.log.settle()
        given.offsets.save()  # whatever it says, the log must have
    disk.leave_after_power_cut(tmp_path / "after", random)
    given.stop()
    again = Transacting(tmp_path / "after", clock)
    assert {each.transaction_id for each in again.transactions.log.open_transactions()} == {f"U{n}" for n in range(8)}
    clock.advance(seconds=30)
    assert again.check().asked == 8
    again.stop()


# ── records of ends ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_ends_are_written_together_after_an_interval_in_rocketmqs_form(given: Transacting, clock: FakeClock) -> None:
    log = given.transactions.log
    for number in range(3):
        given.end(given.begin(b"%d" % number).physical_offset, ROLLBACK)
        clock.advance(seconds=1)
        log.write_ended(clock.now_ms())
    assert given.ends() == [b"0,1,2,"]
    (record,) = given.messages("RMQ_SYS_TRANS_OP_HALF_TOPIC")
    assert record.properties == {"WAIT": "true", "TAGS": "d"}
    assert (record.sys_flag, record.born_timestamp, record.born_host) == (
        0,
        clock.now_ms(),
        Host(b"\x7f\0\0\x01", 10911),
    )


def test_a_record_of_ends_is_written_at_once_when_it_is_full(tmp_path: Path, clock: FakeClock) -> None:
    given = Transacting(tmp_path, clock, BrokerConfig(ended_batch_bytes=32))
    for number in range(30):
        given.end(given.begin(b"%d" % number).physical_offset, ROLLBACK)
        given.transactions.log.write_ended(clock.now_ms())
    assert given.ends() == [b"0,1,2,3,4,5,6,7,8,9,10,11,12,13,", b"14,15,16,17,18,19,20,21,22,23,"]
    given.stop()
    again = Transacting(tmp_path, clock)
    assert b"".join(again.ends()) == b"".join(b"%d," % number for number in range(30))
    again.stop()


# ── checks ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_producer_is_asked_when_the_time_is_over_and_in_every_round_after_that(
    given: Transacting, clock: FakeClock
) -> None:
    half = given.begin(b"one", flag=9, WAIT="true")
    born_ms = clock.now_ms()
    clock.advance(ms=TIMEOUT_MS)
    assert given.check().asked == 0
    clock.advance(ms=1)
    assert given.check().asked == 1
    first = given.halves()[1]
    assert (first.properties["TRANSACTION_CHECK_TIMES"], first.properties["WAIT"], first.flag) == ("1", "true", 9)
    clock.advance(seconds=30)
    assert given.check().asked == 1
    copy = given.halves()[2]
    question = given.producer.questions[-1]
    header, message = question.header, question.message
    assert (header.topic, header.broker_name) == ("RMQ_SYS_TRANS_HALF_TOPIC", "broker-a")
    assert (header.tran_state_table_offset, header.commit_log_offset) == (2, copy.physical_offset)
    assert header.msg_id == header.transaction_id == "Uone"
    assert header.offset_msg_id == offset_message_id(Host(b"\x7f\0\0\x01", 10911), copy.physical_offset)
    assert (message.topic, message.queue_id, message.body, message.flag) == (TOPIC, QUEUE, b"one", 9)
    assert (message.queue_offset, message.physical_offset) == (2, copy.physical_offset)
    assert (message.born_timestamp, message.store_timestamp) == (born_ms, first.store_timestamp)
    assert message.properties == copy.properties | {"WAIT": "false", "TRANSACTION_CHECK_TIMES": "2"}
    given.end(copy.physical_offset, COMMIT, from_check=True)
    (delivered,) = given.messages(TOPIC, QUEUE)
    assert delivered.prepared_transaction_offset == copy.physical_offset
    assert (delivered.flag, delivered.properties["TRANSACTION_CHECK_TIMES"]) == (9, "2")
    assert half.queue_offset == 0


def test_a_young_half_is_neither_checked_nor_passed(given: Transacting, clock: FakeClock) -> None:
    given.begin(b"one")
    clock.advance(seconds=4)
    given.begin(b"two")
    clock.advance(seconds=3)
    assert given.check().asked == 1
    assert given.transactions.log.half_offset == 1
    assert [each.transaction_id for each in given.transactions.log.open_transactions()] == ["Utwo", "Uone"]


def test_a_half_born_in_the_future_is_checked_at_once(given: Transacting, clock: FakeClock) -> None:
    given.begin(b"one", born_ms=clock.now_ms() + 60_000)
    assert given.check().asked == 0  # stored in this very millisecond: left for the next round
    clock.advance(ms=1)
    assert given.check().asked == 1


@pytest.mark.requirement("A106")
def test_after_fifteen_checks_a_half_is_given_up(given: Transacting, clock: FakeClock) -> None:
    given.begin(b"one")
    for _ in range(30):
        clock.advance(seconds=30)
        given.check()
    assert len(given.producer.questions) == 15
    assert [each.message.properties["TRANSACTION_CHECK_TIMES"] for each in given.producer.questions] == [
        str(number) for number in range(1, 16)
    ]
    (given_up,) = given.messages("TRANS_CHECK_MAX_TIME_TOPIC")
    assert given_up.properties == given.halves()[-1].properties
    assert given.topics.find("TRANS_CHECK_MAX_TIME_TOPIC") is not None
    assert given.transactions.log.open_transactions() == []
    assert given.transactions.counts.counts() == {TOPIC: 0}


def test_a_half_older_than_the_store_keeps_messages_is_given_up_unchecked(given: Transacting, clock: FakeClock) -> None:
    given.begin(b"one")
    clock.advance(hours=72, ms=1)
    work = given.check()
    assert (work.asked, work.given_up) == (0, 1)


@pytest.mark.requirement("C024")
def test_within_its_own_immunity_time_a_half_moves_back_and_nobody_is_asked(
    given: Transacting, clock: FakeClock
) -> None:
    given.begin(b"one", CHECK_IMMUNITY_TIME_IN_SECONDS="40", WAIT="true")
    given.begin(b"two")
    clock.advance(seconds=10)
    work = given.check()
    assert (work.asked, work.postponed) == (1, 1)  # those behind it are not held up
    copy = given.halves()[2]
    assert copy.properties["TRAN_PREPARED_QUEUE_OFFSET"] == "0"
    assert (copy.properties["WAIT"], copy.properties["TRANSACTION_CHECK_TIMES"]) == ("false", "1")
    clock.advance(seconds=25)
    given.check()
    assert given.half(4).first_queue_offset == 0
    clock.advance(seconds=6)
    assert given.check().asked == 2
    assert [each.message.body for each in given.producer.questions] == [b"two", b"two", b"one", b"two"]


@pytest.mark.parametrize("text", ["-1", "soon", "6"])
def test_an_immunity_time_that_says_nothing_is_the_usual_one(given: Transacting, text: str) -> None:
    given.begin(b"one", CHECK_IMMUNITY_TIME_IN_SECONDS=text)
    assert given.half(0).immunity_ms(TIMEOUT_MS) == TIMEOUT_MS


@pytest.mark.requirement("A105", "C005", "C026")
def test_any_producer_of_the_group_is_asked_but_none_of_another(given: Transacting, clock: FakeClock) -> None:
    second, other = Listener(), Listener()
    given.join(second)
    given.join(other, "Others")
    for number in range(4):
        given.begin(b"%d" % number)
    clock.advance(seconds=10)
    assert given.check().asked == 4
    assert (len(given.producer.questions), len(second.questions), len(other.questions)) == (2, 2, 0)
    given.producer.is_open = given.producer.is_writable = False
    clock.advance(seconds=30)
    assert given.check().asked == 4
    assert len(second.questions) == 6


def test_a_check_without_a_producer_counts_as_one(given: Transacting, clock: FakeClock) -> None:
    given.begin(b"one", group="Nobody")
    clock.advance(seconds=10)
    work = given.check()
    assert (work.asked, work.without_producer) == (0, 1)
    assert given.transactions.log.open_transactions()[0].checks == 1


def test_a_half_that_has_no_room_for_a_counter_is_given_up(given: Transacting, clock: FakeClock) -> None:
    size = len(encode_properties({"TRAN_MSG": "true", "PGROUP": GROUP, "UNIQ_KEY": "Uone", "TAGS": "red"}))
    added = len(encode_properties({"REAL_TOPIC": TOPIC, "REAL_QID": str(QUEUE), "__transactionId__": "Uone"}))
    assert given.begin(b"one", p="x" * (32767 - size - added - 3)).ok
    given.begin(b"two")
    clock.advance(seconds=10)
    work = given.check()
    assert (work.given_up, work.asked) == (1, 1)
    assert given.given_up() == [b"one"]


def test_a_round_that_the_store_stops_goes_on_in_the_next(tmp_path: Path, clock: FakeClock) -> None:
    given = Transacting(tmp_path, clock)
    given.begin(b"one")
    given.begin(b"two")
    clock.advance(seconds=10)
    given.store.gate.close()
    assert given.check().asked == 0
    given.store.gate.open()
    clock.advance(seconds=30)
    assert given.check().asked == 2
    given.stop()


# ── operators ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_operators_see_open_transactions_with_age_and_checks(given: Transacting, clock: FakeClock) -> None:
    given.begin(b"one")
    ended = given.begin(b"two")
    given.end(ended.physical_offset, COMMIT)
    clock.advance(seconds=10)
    given.check()
    clock.advance(seconds=5)
    given.begin(b"three")
    one, three = given.transactions.log.open_transactions()
    assert (one.topic, one.queue_id, one.producer_group, one.transaction_id) == (TOPIC, QUEUE, GROUP, "Uone")
    assert (one.age_ms, one.checks, one.queue_offset) == (15_000, 1, 2)
    assert (three.age_ms, three.checks) == (0, 0)
    assert len(given.transactions.log.open_transactions(limit=1)) == 1


def test_an_operators_word_ends_a_transaction(given: Transacting, clock: FakeClock) -> None:
    given.begin(b"one")
    given.begin(b"two")
    one, two = given.transactions.log.open_transactions()
    given.transactions.log.end_by_operator(one.queue_offset, Decision.COMMIT)
    given.transactions.log.end_by_operator(two.queue_offset, Decision.ROLLBACK)
    assert given.delivered() == [b"one"]
    assert given.transactions.log.open_transactions() == []
    for offset in (one.queue_offset, two.queue_offset, 99, -1):
        with pytest.raises(SystemFailure, match=f"no open transaction has its half at offset {offset}"):
            given.transactions.log.end_by_operator(offset, Decision.COMMIT)


def test_a_transaction_that_was_given_up_can_be_checked_again(given: Transacting, clock: FakeClock) -> None:
    given.begin(b"one")
    for _ in range(16):
        clock.advance(seconds=30)
        given.check()
    (given_up,) = given.messages("TRANS_CHECK_MAX_TIME_TOPIC")
    message_id = offset_message_id(given_up.store_host, given_up.physical_offset)
    resume(given, message_id)
    clock.advance(seconds=30)
    assert given.check().asked == 1
    assert given.producer.questions[-1].message.properties["TRANSACTION_CHECK_TIMES"] == "1"
    open_one = given.halves()[-1]
    with pytest.raises(SystemFailure, match=r"Put message back to RMQ_SYS_TRANS_HALF_TOPIC failed\..*is open"):
        resume(given, offset_message_id(open_one.store_host, open_one.physical_offset))
    given.end(open_one.physical_offset, COMMIT, from_check=True)
    assert given.delivered() == [b"one"]


@pytest.mark.parametrize("message_id", ["", "7F0000010000", "7F00000100002A9F00000000000F4240"])
def test_only_a_half_can_be_checked_again(given: Transacting, message_id: str) -> None:
    with pytest.raises(SystemFailure, match=r"^Exception was thrown when putting message back to RMQ_SYS_TRANS_HALF"):
        resume(given, message_id)


def resume(given: Transacting, message_id: str) -> None:
    header = ResumeCheckHalfMessage(msg_id=message_id, topic=TOPIC)
    given.transactions.ends.resume(given.producer, header, b"")  # type: ignore[arg-type]
    given.store.dispatch()


def test_metrics_count_what_waits_and_what_has_ended(given: Transacting, clock: FakeClock) -> None:
    for number in range(5):
        half = given.begin(b"%d" % number)
        if number < 3:
            given.end(half.physical_offset, COMMIT if number else ROLLBACK)
    clock.advance(seconds=10)
    given.check()
    found = {metric.name: metric.samples for metric in given.transactions.metrics()}
    values = {name: [sample[1] for sample in samples] for name, samples in found.items()}
    assert values["rocketmq_half_messages"] == [2]
    assert values["rocketmq_commit_messages_total"] == [2]
    assert values["rocketmq_rollback_messages_total"] == [1]
    assert values["skyrocket_transaction_checks_total"] == [2, 0]


# ── stores of RocketMQ ───────────────────────────────────────────────────────────────────────────────────────────────


def continued(tmp_path: Path, clock: FakeClock, version: str, name: str) -> Transacting:
    golden = GoldenStore(version, name)
    root = golden.extract(tmp_path / "store")
    last = max(line["storeTimestamp"] for line in golden.messages() if line["kind"] == "message")
    clock.set(last + 60_000)
    config = golden.config_of_broker(dispatch_thread=False, flush_interval_ms=60_000)
    found = next((path for path in (root, *root.iterdir()) if (path / "commitlog").exists()), root)
    given = Transacting(found, clock, store_config=config)
    given.join(given.producer, "ProducerTx")
    return given


@pytest.mark.parametrize(("name", "checks"), [("killed", "1"), ("killed-recovered", "2"), ("torn-recovered", "2")])
def test_what_waited_in_a_store_of_rocketmq_is_checked_and_delivered(
    tmp_path: Path, clock: FakeClock, name: str, checks: str
) -> None:
    given = continued(tmp_path, clock, "5.4.0", name)
    before = len(given.messages("TopicSide", 0))
    assert given.check().asked == 3
    asked = given.producer.questions
    assert [question.message.properties["KEYS"] for question in asked] == ["tx-1", "tx-3", "tx-5"]
    assert {question.message.properties["TRANSACTION_CHECK_TIMES"] for question in asked} == {checks}
    for question, word in zip(asked, (COMMIT, ROLLBACK, COMMIT), strict=True):
        given.end(question.header.commit_log_offset, word, from_check=True, producer_group="ProducerTx")
    clock.advance(seconds=30)
    assert given.check().asked == 0
    assert [message.properties["KEYS"] for message in given.messages("TopicSide", 0)[before:]] == ["tx-1", "tx-5"]
    given.stop()


@pytest.mark.parametrize("version", ["5.4.0", "4.9.7"])
def test_what_has_ended_in_a_store_of_rocketmq_is_left_alone(tmp_path: Path, clock: FakeClock, version: str) -> None:
    given = continued(tmp_path, clock, version, "clean")
    delivered = [len(given.messages("TopicTx", queue_id)) for queue_id in range(4)]
    work = given.check()
    assert (work.asked, work.given_up, work.postponed) == (0, 0, 0)
    assert [len(given.messages("TopicTx", queue_id)) for queue_id in range(4)] == delivered
    given.stop()


@pytest.mark.parametrize("version", ["5.4.0", "4.9.7"])
def test_ends_are_found_even_when_rocketmq_forgot_how_far_it_was(
    tmp_path: Path, clock: FakeClock, version: str
) -> None:
    """Without offsets everything is looked at again: what has ended is not asked about."""
    golden = GoldenStore(version, "clean")
    given = continued(tmp_path, clock, version, "clean")
    given.offsets.remove_group("CID_RMQ_SYS_TRANS")
    given.transactions.log.load()
    open_keys = {each.transaction_id for each in given.transactions.log.open_transactions()}
    ended: set[str] = set()
    for line in golden.messages():
        if line.get("topic") == "TopicTx":
            ended.add(line["uniqKey"])
    assert not open_keys & ended
    given.stop()


def test_copies_and_final_records_are_those_of_rocketmq(tmp_path: Path, clock: FakeClock) -> None:
    given = continued(tmp_path, clock, "5.4.0", "clean")
    latest: dict[str, Line] = {}
    compared: dict[str, int] = {}
    for line in GoldenStore("5.4.0", "clean").messages():
        if line["kind"] != "message" or "TRAN_MSG" not in line["properties"]:
            continue
        before = latest.get(line["uniqKey"])
        if line["topic"] == "RMQ_SYS_TRANS_HALF_TOPIC":
            latest[line["uniqKey"]] = line
        if before is None:
            continue
        record = given.store.by_physical_offset(
            line["preparedTransactionOffset"] if line["topic"] == "TopicTx" else before["physicalOffset"]
        )
        assert record is not None
        half = read_half(record)
        if line["topic"] == "TopicTx":
            kind, made = "committed", half.committed()
        elif line["topic"] == "TRANS_CHECK_MAX_TIME_TOPIC":
            kind, made = "given up", half.given_up()
        elif "TRAN_PREPARED_QUEUE_OFFSET" in line["properties"] and not half.checks:
            kind, made = "passed over", half.passed_over()
        else:
            kind, made = "checked", half.checked()
        compared[kind] = compared.get(kind, 0) + 1
        assert decode_properties(made.properties) == line["properties"], kind
        assert (made.topic, made.queue_id, made.sys_flag) == (line["topic"], line["queueId"], line["sysFlag"])
        assert (made.flag, made.born_timestamp) == (line["flag"], line["bornTimestamp"])
        assert made.prepared_transaction_offset == line["preparedTransactionOffset"]
        assert made.store_host is not None
        assert unpack_host(made.store_host).port == 20911
    assert compared.keys() == {"committed", "given up", "passed over", "checked"}
    given.stop()
