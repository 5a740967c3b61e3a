"""Master and slave as state machines: what each sends, and what each refuses."""

import pytest

from skyrocket.broker.replication.joining import check_tail, tail_of
from skyrocket.broker.replication.master_stream import MasterStream, ReplicaRefused, TransferRules
from skyrocket.broker.replication.replicas import Replicas
from skyrocket.broker.replication.slave_stream import MasterLeft, ReportRules, SlaveStream
from skyrocket.protocol.ha import REPORT, TRANSFER
from skyrocket.testing.simulation.log import FILE_SIZE, SimulatedLog


def log_of(data: bytes, first: int = 0, *, sync_flush: bool = False) -> SimulatedLog:
    log = SimulatedLog(sync_flush=sync_flush)
    if data:
        log.append(first, data)
    return log


def sent(stream: MasterStream, now: float = 0.0) -> bytes:
    return b"".join(stream.send(now))


def test_nothing_is_sent_before_the_slave_has_said_where_it_stands() -> None:
    stream = MasterStream(log_of(b"abc"), TransferRules(), now=0)
    assert sent(stream, now=10) == b""


def test_a_slave_gets_the_log_from_where_its_own_ends() -> None:
    stream = MasterStream(log_of(b"abcdef"), TransferRules(batch_bytes=2), now=0)
    stream.receive(REPORT.pack(3), now=0)
    assert sent(stream) == TRANSFER.pack(3, 2) + b"de"
    assert sent(stream) == TRANSFER.pack(5, 1) + b"f"
    assert sent(stream) == b""


@pytest.mark.requirement("B048")
def test_a_slave_that_lacks_much_gets_much_at_once() -> None:
    log = log_of(b"abcdefghij")
    stream = MasterStream(log, TransferRules(batch_bytes=2, catch_up_bytes=4), now=0)
    stream.receive(REPORT.pack(1), now=0)
    assert [sent(stream)[TRANSFER.size :] for _ in range(4)] == [b"bcde", b"fghi", b"j", b""]
    assert TransferRules().catch_up_bytes == 1 << 20


def test_a_slave_without_a_log_gets_the_newest_file_as_in_rocketmq() -> None:
    log = log_of(bytes(FILE_SIZE) + b"new")
    plain, own = MasterStream(log, TransferRules(), 0), MasterStream(log, TransferRules(from_first_file=True), 0)
    for stream in (plain, own):
        stream.receive(REPORT.pack(0), now=0)
    assert (plain.next_offset, own.next_offset) == (FILE_SIZE, 0)


def test_a_transfer_ends_with_its_file() -> None:
    stream = MasterStream(log_of(bytes(FILE_SIZE + 10)), TransferRules(from_first_file=True), now=0)
    stream.receive(REPORT.pack(0), now=0)
    assert len(sent(stream)) == TRANSFER.size + FILE_SIZE
    assert len(sent(stream)) == TRANSFER.size + 10


def test_a_quiet_master_sends_heartbeats() -> None:
    stream = MasterStream(log_of(b"abc"), TransferRules(), now=0)
    stream.receive(REPORT.pack(3), now=0)
    assert sent(stream, now=4.9) == b""
    assert sent(stream, now=5.0) == TRANSFER.pack(3, 0)
    assert sent(stream, now=5.1) == b""
    assert 4 < stream.next_look(5.1) < 5


def test_a_slave_that_falls_silent_is_left() -> None:
    stream = MasterStream(log_of(b"abc"), TransferRules(), now=0)
    with pytest.raises(ReplicaRefused, match="said nothing for 20 s"):
        stream.send(now=20.1)


@pytest.mark.parametrize(
    ("first", "reported", "reason"),
    [
        pytest.param(0, 7, "the slave's log ends at 7, ours at 6.*Nothing was changed", id="ahead"),
        pytest.param(FILE_SIZE, 100, "what lies between was deleted here", id="too-far-behind"),
    ],
)
def test_a_slave_that_cannot_follow_is_refused(first: int, reported: int, reason: str) -> None:
    stream = MasterStream(log_of(b"abcdef", first), TransferRules(), now=0)
    with pytest.raises(ReplicaRefused, match=reason):
        stream.receive(REPORT.pack(reported), now=0)


@pytest.mark.parametrize("reported", [2, 5])
def test_a_report_of_less_than_before_or_of_more_than_was_sent_ends_the_connection(reported: int) -> None:
    stream = MasterStream(log_of(b"abcdef"), TransferRules(batch_bytes=1), now=0)
    stream.receive(REPORT.pack(3), now=0)
    stream.send(now=0)
    with pytest.raises(ReplicaRefused, match=f"the slave reported {reported}"):
        stream.receive(REPORT.pack(reported), now=0)


def test_a_bound_on_the_rate_holds_and_saves_no_more_than_a_second() -> None:
    stream = MasterStream(log_of(bytes(2000)), TransferRules(batch_bytes=600, bytes_per_second=1000), now=0)
    stream.receive(REPORT.pack(1), now=10)
    sizes = [max(len(sent(stream, now=10)) - TRANSFER.size, 0) for _ in range(4)]
    assert sizes == [600, 400, 0, 0]
    assert stream.next_look(10) <= 0.1
    assert len(sent(stream, now=10.5)) == TRANSFER.size + 500


def test_a_slave_appends_where_its_log_ends_and_reports_it() -> None:
    log = log_of(b"abc")
    stream = SlaveStream(log, ReportRules(), now=0)
    assert stream.begin(0) == REPORT.pack(3)
    assert stream.receive(TRANSFER.pack(3, 2) + b"de", now=1) == REPORT.pack(5)
    assert bytes(log.data) == b"abcde"


def test_an_empty_slave_begins_where_its_master_does() -> None:
    log = log_of(b"")
    stream = SlaveStream(log, ReportRules(), now=0)
    assert stream.begin(0) == REPORT.pack(0)
    assert stream.receive(TRANSFER.pack(FILE_SIZE, 1) + b"x", now=1) == REPORT.pack(FILE_SIZE + 1)


def test_bytes_that_begin_elsewhere_are_not_appended() -> None:
    log = log_of(b"abc")
    stream = SlaveStream(log, ReportRules(), now=0)
    with pytest.raises(MasterLeft, match="bytes of offset 4, but this log ends at 3"):
        stream.receive(TRANSFER.pack(4, 1) + b"x", now=0)
    assert bytes(log.data) == b"abc"


def test_a_slave_that_flushes_each_write_reports_what_its_disk_has() -> None:
    log = log_of(b"abc", sync_flush=True)
    log.flush()
    stream = SlaveStream(log, ReportRules(), now=0)
    stream.begin(0)
    assert stream.receive(TRANSFER.pack(3, 2) + b"de", now=1) == b""
    log.flush()
    assert stream.progress(now=1) == REPORT.pack(5)


def test_a_slave_reports_every_five_seconds_and_leaves_a_silent_master() -> None:
    stream = SlaveStream(log_of(b"abc"), ReportRules(), now=0)
    stream.begin(0)
    assert stream.due(4.9) == b""
    assert stream.due(5.0) == REPORT.pack(3)
    with pytest.raises(MasterLeft, match="said nothing for 20 s"):
        stream.due(20.1)


def test_who_waits_is_told_when_enough_machines_have_it() -> None:
    replicas, told = Replicas(), []
    replicas.wait(10, 1, lambda: told.append("master alone"))
    replicas.wait(10, 2, lambda: told.append("two"))
    replicas.wait(20, 2, lambda: told.append("more"))
    late = replicas.wait(30, 2, lambda: told.append("too late"))
    assert told == ["master alone"]
    replicas.acknowledge("a", 10)
    assert told == ["master alone", "two"]
    late.cancel()
    replicas.acknowledge("b", 30)
    assert told == ["master alone", "two", "more"]
    assert replicas.held_by(20) == 2
    assert replicas.held_by(10) == 3
    replicas.leave("a")
    assert (replicas.connected, replicas.best_gap(40), replicas.in_sync(40, 11)) == (1, 10, 2)


def test_a_slave_that_was_sent_bytes_is_heard_while_it_answers_soon() -> None:
    stream = MasterStream(log_of(b"abcdef"), TransferRules(batch_bytes=3), now=0)
    stream.receive(REPORT.pack(3), now=0)
    assert stream.is_heard(15, answer_seconds=3, idle_seconds=15)
    assert not stream.is_heard(15.1, answer_seconds=3, idle_seconds=15)
    sent(stream, now=10)
    assert stream.is_heard(13, answer_seconds=3, idle_seconds=15)
    assert not stream.is_heard(13.1, answer_seconds=3, idle_seconds=15)
    stream.receive(REPORT.pack(5), now=14)  # it is there, and has not written all yet
    assert stream.is_heard(17, answer_seconds=3, idle_seconds=15)
    assert not stream.is_heard(17.1, answer_seconds=3, idle_seconds=15)
    stream.receive(REPORT.pack(6), now=18)
    assert stream.is_heard(33, answer_seconds=3, idle_seconds=15)


def test_a_slave_that_is_not_heard_counts_for_nobody() -> None:
    """As one whose machine came back by another connection while the old one looks alive: it is one slave, not two."""
    heard, told = {"before"}, []
    replicas = Replicas(heard.__contains__)
    replicas.acknowledge("before", 10)
    assert (replicas.held_by(10), replicas.in_sync(10, 1)) == (2, 2)
    heard.clear()
    assert (replicas.held_by(10), replicas.in_sync(10, 1)) == (1, 1)
    replicas.wait(10, 3, lambda: told.append("three machines"))
    heard.add("again")
    replicas.acknowledge("again", 10)
    assert (replicas.held_by(10), told) == (2, [])


def test_who_waits_for_fewer_machines_is_not_held_up_by_who_waits_for_more() -> None:
    replicas, told = Replicas(), []
    replicas.acknowledge("a", 0)
    replicas.acknowledge("b", 0)
    replicas.wait(10, 3, lambda: told.append("three"))
    replicas.wait(20, 2, lambda: told.append("two"))
    replicas.acknowledge("a", 20)
    assert told == ["two"]
    replicas.acknowledge("b", 10)
    assert told == ["two", "three"]


def test_a_log_that_went_another_way_is_seen_by_its_end() -> None:
    master = log_of(b"the same" + bytes(FILE_SIZE) + b"then this")
    same, other = log_of(bytes(master.data[:-3])), log_of(bytes(master.data[:-4]) + b"X")
    check_tail(master, tail_of(same, 0, same.end_offset))
    with pytest.raises(ReplicaRefused, match="they have gone different ways"):
        check_tail(master, tail_of(other, 0, other.end_offset))
    check_tail(master, tail_of(log_of(b""), 0, 0))


def test_a_comparison_of_more_bytes_than_allowed_is_refused() -> None:
    master = log_of(bytes(FILE_SIZE))
    with pytest.raises(ReplicaRefused, match="the slave compared"):
        check_tail(master, tail_of(master, 0, FILE_SIZE)._replace(size=1 << 30))
