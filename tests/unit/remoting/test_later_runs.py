"""Answers that come together: in order, between others, one by one after all, or not at all."""

import pytest

from skyrocket.protocol.command import RemotingCommand
from skyrocket.remoting.admission import RequestClass
from skyrocket.remoting.answers import LaterAnswer, LaterRun
from skyrocket.remoting.outbox import SIZE_OF_LATER, Outbox


def requests(count: int) -> list[RemotingCommand]:
    return [RemotingCommand(310, opaque) for opaque in range(count)]


def counted_run(count: int) -> tuple[LaterRun, RequestClass]:
    sends = RequestClass("sends", 1000)
    run = LaterRun(requests(count))
    run.counted_by(sends)
    assert sends.in_hand == count
    return run, sends


def test_answers_that_come_together_leave_in_their_places() -> None:
    run, sends = counted_run(3)
    single = LaterAnswer(RemotingCommand(310, 9))
    out = Outbox()
    out.put(b"first")
    out.put(run)
    out.put(single)
    out.put([b"a", b"b"])
    assert (out.laters, out.size) == (4, len(b"first") + 4 * SIZE_OF_LATER + 2)
    run.fill([b"0", b"1", b"2"])
    single.fill(b"9")
    assert out.take() == ([b"first", b"0", b"1", b"2", b"9", b"a", b"b"], 11, [])
    assert (sends.in_hand, len(out), out.size, out.laters) == (0, 0, 0, 0)


def test_what_has_not_come_when_the_turn_ends_is_waited_for_one_by_one() -> None:
    run, sends = counted_run(3)
    out = Outbox()
    out.put(run)
    out.put(b"now")
    pieces, size, waiting = out.take()
    assert (pieces, size) == ([b"now"], 3)
    assert [later.request.opaque for later in waiting] == [0, 1, 2]
    assert sends.in_hand == 3
    for number, later in enumerate(waiting):
        later.fill(b"%d" % number)
        assert sends.in_hand == 2 - number


def test_some_of_a_row_may_be_answered_one_by_one_before_the_turn_ends() -> None:
    run, sends = counted_run(3)
    out = Outbox()
    out.put(run)
    laters = run.one_by_one()
    assert run.one_by_one() is laters
    laters[1].fill(b"1")
    pieces, _, waiting = out.take()
    assert pieces == [b"1"]
    assert waiting == [laters[0], laters[2]]
    assert sends.in_hand == 2


@pytest.mark.parametrize("lost_first", [True, False])
def test_nobody_waits_for_a_row_after_its_connection_was_lost(lost_first: bool) -> None:
    run, sends = counted_run(4)
    out = Outbox()
    out.put(run)
    out.put(b"unsaid")
    laters = [] if lost_first else run.one_by_one()
    for lost in out.clear():
        lost.abandon()
    assert (sends.in_hand, len(out)) == (0, 0)
    laters = laters or run.one_by_one()
    assert not any(later.is_open for later in laters)
    for later in laters:
        later.fill(b"too late")
    assert sends.in_hand == 0


def test_answers_that_come_together_for_a_lost_connection_are_dropped() -> None:
    run, sends = counted_run(2)
    run.abandon()
    run.fill([b"0", b"1"])
    assert sends.in_hand == 0
    assert run.one_by_one() == []


def test_a_row_is_answered_once() -> None:
    run, _ = counted_run(1)
    run.fill([b"0"])
    with pytest.raises(AssertionError, match="twice"):
        run.fill([b"0"])
    other, _ = counted_run(1)
    other.one_by_one()
    with pytest.raises(AssertionError, match="one by one"):
        other.fill([b"0"])
