"""Many calls, one timer: each ends in time, whatever the others wait for."""

import asyncio
import random
import time

import pytest

from skyrocket.protocol.command import RESPONSE_FLAG, RemotingCommand
from skyrocket.remoting.calls import Calls
from skyrocket.remoting.errors import CallTimeout, ConnectionLost, TooManyCalls
from tests.waiting import until


async def outcome(answer: "asyncio.Future[RemotingCommand]", began: float | None = None) -> tuple[float, object]:
    began = time.monotonic() if began is None else began
    try:
        ended: object = await answer
    except CallTimeout as error:
        ended = str(error)
    return time.monotonic() - began, ended


async def test_every_call_ends_soon_after_its_time_and_not_before() -> None:
    calls = Calls("10.0.0.1:10911", 1000)
    seconds = [random.Random(number).uniform(0.01, 0.4) for number in range(200)]
    began = time.monotonic()  # before the calls: a machine that pauses between them and the wait must not count
    answers = [calls.expect(calls.number(), 310, each) for each in seconds]
    outcomes = await asyncio.gather(*(outcome(answer, began) for answer in answers))
    for (waited, ended), wanted in zip(outcomes, seconds, strict=True):
        assert ended == f"10.0.0.1:10911: request 310 had no answer within {wanted * 1000:.0f} ms"
        assert waited >= wanted - 0.01  # a busy machine may be late, never early
    assert len(calls) == 0


async def test_a_short_call_does_not_wait_for_a_long_one_nor_end_it() -> None:
    calls = Calls("10.0.0.1:10911", 10)
    number = calls.number()
    long = calls.expect(number, 310, 30)
    waited, _ = await outcome(calls.expect(calls.number(), 34, 0.05))
    assert waited < 25
    assert not long.done()
    calls.answered(RemotingCommand(0, number, RESPONSE_FLAG))
    assert (await long).opaque == number


async def test_no_timer_is_left_when_the_connection_is_lost() -> None:
    calls = Calls("10.0.0.1:10911", 10)
    answer = calls.expect(calls.number(), 310, 3600)
    assert calls._timer is not None
    timer = calls._timer
    calls.fail_all(lambda: ConnectionLost("10.0.0.1:10911", "closed by the peer"))
    assert timer.cancelled()
    with pytest.raises(ConnectionLost, match="closed by the peer"):
        await answer


async def test_a_cancelled_call_makes_room_when_its_time_is_up() -> None:
    calls = Calls("10.0.0.1:10911", 1)
    answer = calls.expect(calls.number(), 310, 0.05)
    answer.cancel()
    with pytest.raises(TooManyCalls, match="1 calls wait for answers"):
        calls.number()
    await until(lambda: len(calls) == 0)
    assert calls.number() >= 0
