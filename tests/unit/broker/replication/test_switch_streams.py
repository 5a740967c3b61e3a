"""The auto-switch protocol as state machines: where logs agree, what is cut, what a slave knows of confirmed bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.broker.replication.master_stream import TransferRules
from skyrocket.broker.replication.slave_stream import MasterLeft, ReportRules
from skyrocket.broker.replication.switch_streams import CutNeeded, SwitchMasterStream, SwitchSlaveStream
from skyrocket.broker.state.epochs import Epochs, consistent_point
from skyrocket.format.epochs import Epoch
from skyrocket.protocol.auto_switch import SLAVE_REPORT, TRANSFER, SlaveHello
from skyrocket.protocol.errors import ProtocolError
from skyrocket.testing.simulation.log import FILE_SIZE, SimulatedLog


def log_of(data: bytes) -> SimulatedLog:
    log = SimulatedLog(sync_flush=False)
    if data:
        log.append(0, data)
    return log


def epochs_of(*starts: tuple[int, int]) -> Epochs:
    epochs = Epochs()
    for number, start in starts:
        epochs.begin(number, start)
    return epochs


def master_of(data: bytes, *starts: tuple[int, int], confirm: int = 0, batch: int = 4096) -> SwitchMasterStream:
    rules = TransferRules(batch_bytes=batch)
    return SwitchMasterStream(log_of(data), rules, 0, epochs_of(*starts), lambda: confirm)


def slave_of(log: SimulatedLog, epochs: Epochs, broker_id: int = 2) -> SwitchSlaveStream:
    return SwitchSlaveStream(log, ReportRules(), 0, epochs, SlaveHello(broker_id))


def talk(master: SwitchMasterStream, slave: SwitchSlaveStream) -> None:
    """Until both have nothing to say."""
    word = slave.begin(0)
    while word:
        master.receive(word, 0)
        word = b""
        while parts := b"".join(master.send(0)):
            word += slave.receive(parts, 0)


def test_a_new_slave_gets_log_and_epochs() -> None:
    log, epochs = log_of(b""), Epochs()
    master = master_of(b"aaaabbbbcc", (1, 0), (4, 4), (5, 8), confirm=8, batch=3)
    slave = slave_of(log, epochs)
    talk(master, slave)
    assert bytes(log.data) == b"aaaabbbbcc"
    assert epochs.all == (Epoch(1, 0), Epoch(4, 4), Epoch(5, 8))
    assert (slave.confirm_offset, master.acknowledged_offset, master.slave.broker_id) == (8, 10, 2)


def test_no_transfer_spans_two_epochs() -> None:
    master = master_of(b"aaaabbbb", (1, 0), (2, 4))
    master.receive(SlaveHello(2).encode() + SLAVE_REPORT.pack(2, 0), 0)
    b"".join(master.send(0))  # its epochs
    sent = [b"".join(master.send(0)) for _ in range(2)]
    assert sent == [TRANSFER.pack(2, 4, 0, 1, 0, 0) + b"aaaa", TRANSFER.pack(2, 4, 4, 2, 4, 0) + b"bbbb"]


def test_a_log_that_went_another_way_must_be_cut_first() -> None:
    master = master_of(b"aaaaNN", (1, 0), (3, 4))
    log, epochs = log_of(b"aaaaOOOO"), epochs_of((1, 0), (2, 4))
    with pytest.raises(CutNeeded) as cut:
        talk(master, slave_of(log, epochs))
    assert cut.value.end_offset == 4
    assert bytes(log.data) == b"aaaaOOOO", "the stream itself cuts nothing"
    del log.data[4:]
    talk(master_of(b"aaaaNN", (1, 0), (3, 4)), slave_of(log, epochs))
    assert (bytes(log.data), epochs.all) == (b"aaaaNN", (Epoch(1, 0), Epoch(3, 4)))


def test_an_old_master_that_wrote_alone_in_an_epoch_without_confirmed_bytes_is_cut() -> None:
    """Epoch 2 began at 4 on both; its master wrote there and died, the next one wrote other bytes at the same place."""
    master = master_of(b"aaaaNN", (1, 0), (2, 4), (3, 4))
    with pytest.raises(CutNeeded) as cut:
        talk(master, slave_of(log_of(b"aaaaOO"), epochs_of((1, 0), (2, 4))))
    assert cut.value.end_offset == 4


def test_a_log_that_lost_its_newest_bytes_is_followed_from_where_it_ends() -> None:
    """Epoch 2 began at 4, but of epoch 1 only two bytes are left."""
    log, epochs = log_of(b"aa"), epochs_of((1, 0), (2, 4))
    talk(master_of(b"aaaaaNN", (1, 0), (3, 5)), slave_of(log, epochs))
    assert (bytes(log.data), epochs.all) == (b"aaaaaNN", (Epoch(1, 0), Epoch(3, 5)))


def test_a_log_that_has_nothing_in_common_is_left_alone() -> None:
    master = master_of(b"aaaa", (3, 0))
    with pytest.raises(MasterLeft, match=r"nothing in common\. Nothing was changed"):
        talk(master, slave_of(log_of(b"OOOO"), Epochs()))


def test_a_slave_of_a_set_that_had_no_controller_goes_on_where_it_was() -> None:
    log, epochs = log_of(b"aa"), Epochs()
    talk(master_of(b"aaaabb", (1, 4)), slave_of(log, epochs))
    assert (bytes(log.data), epochs.all) == (b"aaaabb", (Epoch(1, 4),))


def test_a_new_slave_may_ask_for_the_newest_file_alone() -> None:
    master = master_of(bytes(FILE_SIZE) + b"new", (1, 0))
    master.receive(SlaveHello(2, from_last_file=True).encode() + SLAVE_REPORT.pack(2, 0), 0)
    assert master.next_offset == FILE_SIZE


def test_a_slave_says_who_it_is_once_and_first() -> None:
    with pytest.raises(ProtocolError, match="before its hand-shake"):
        master_of(b"").receive(SLAVE_REPORT.pack(2, 0), 0)
    master = master_of(b"", (1, 0))
    master.receive(SlaveHello(2).encode(), 0)
    with pytest.raises(ProtocolError, match="greeted twice"):
        master.receive(SlaveHello(2).encode(), 0)


def test_a_master_that_says_nothing_is_left_and_no_report_is_sent_before_the_logs_agree() -> None:
    slave = slave_of(log_of(b"aa"), epochs_of((1, 0)))
    slave.begin(0)
    assert slave.due(6) == b""
    with pytest.raises(MasterLeft, match="said nothing"):
        slave.due(21)


def test_rocketmqs_heartbeat_of_a_master_without_a_record_is_understood() -> None:
    log, epochs = log_of(b""), Epochs()
    slave = slave_of(log, epochs)
    slave.begin(0)
    assert slave.receive(bytes.fromhex("00000001 00000000 0000000000000000 ffffffff"), 0) == SLAVE_REPORT.pack(2, 0)
    slave.receive(TRANSFER.pack(2, 0, -1, 1, 0, 0), 0)
    assert log.end_offset == 0


# ── where logs agree ─────────────────────────────────────────────────────────────────────────────────────────────────


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, bytes]]:
    """What masters wrote, by epoch."""
    return [(number, bytes([number]) * draw(st.integers(0, 3))) for number in range(1, draw(st.integers(2, 6)))]


@given(histories(), st.data())
def test_the_consistent_point_is_where_the_logs_begin_to_differ_or_before(
    history: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    """Two replicas that both follow a first part of the same masters, and may have heard only a part of each epoch."""

    def replica() -> tuple[bytes, Epochs]:
        log, epochs = b"", Epochs()
        for number, written in history[: data.draw(st.integers(1, len(history)))]:
            epochs.begin(number, len(log))
            log += written
        return log, epochs

    (one, ones), (other, others) = replica(), replica()
    cut = data.draw(st.integers(ones.last.start_offset, len(one)))
    one = one[:cut]
    point = consistent_point(ones.all, len(one), others.all, len(other))
    assert point is not None
    assert one[:point] == other[:point]
    shorter = min(len(one), len(other))
    assert point == shorter, "the same masters wrote both"


def test_epochs_are_cut_begun_and_forgotten_with_the_log() -> None:
    epochs = epochs_of((1, 0), (3, 10), (4, 20), (6, 20))
    assert epochs.at(9) == (Epoch(1, 0), 10)
    assert epochs.at(19) == (Epoch(3, 10), 20)
    assert epochs.at(20) == (Epoch(6, 20), None)
    epochs.cut(20, also_at_end=(Epoch(4, 20),))
    assert epochs.all == (Epoch(1, 0), Epoch(3, 10), Epoch(4, 20))
    epochs.begin(7, 15)
    assert epochs.all == (Epoch(1, 0), Epoch(3, 10), Epoch(7, 15))
    epochs.forget_before(12)
    assert len(epochs.all) == 2
    assert Epochs().last.number == -1
