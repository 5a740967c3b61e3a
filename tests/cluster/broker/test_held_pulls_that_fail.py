"""A held pull that cannot be read: it waits no more, so it is answered, and so are those that were woken with it."""

import asyncio
from pathlib import Path

import pytest

from skyrocket.errors import CorruptFile
from skyrocket.format.record import decode_records
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.errors import RequestError
from skyrocket.store.results import GetResult
from tests.cluster.broker.broker_fixture import PULL_CODES, pull_request, running_broker
from tests.waiting import until

_FAILURES = [CorruptFile("consumequeue/Orders/0", "no such record", "Repair it"), OSError(5, "Input/output error")]


@pytest.mark.parametrize("failure", _FAILURES, ids=["a damaged queue", "a disk that fails"])
async def test_a_held_pull_that_cannot_be_read_is_answered_and_so_are_its_neighbours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    async with running_broker(tmp_path) as given:
        await given.send(b"old")
        held = pull_request(1, suspend_ms=60_000)
        calls = [
            asyncio.ensure_future(given.client.call(given.address, held, accepted=PULL_CODES, timeout_seconds=60))
            for _ in range(3)
        ]
        classes = given.broker.parts.classes
        await until(lambda: classes.pull.in_hand == 3)

        reader = given.broker.store.reader
        get, fails = reader.get, [failure]

        def once_unreadable(*arguments: object, **options: object) -> GetResult:
            if fails:
                raise fails.pop()
            return get(*arguments, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(reader, "get", once_unreadable)
        await given.send(b"new")
        first, *others = await asyncio.gather(*calls, return_exceptions=True)

        assert isinstance(first, RequestError)
        assert first.code == ResponseCode.SYSTEM_ERROR
        assert first.remark is not None
        assert str(failure) in first.remark
        for other in others:
            assert not isinstance(other, BaseException)
            assert [record.body for record in decode_records(other.body)] == [b"new"]
        assert classes.pull.in_hand == 0
