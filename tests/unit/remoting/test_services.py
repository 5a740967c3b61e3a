"""Loops beside a server: run again after a death, believed after many."""

import asyncio
import logging
from contextlib import suppress

import pytest

from skyrocket.remoting.services import DEATHS_AT_MOST, WITHIN_SECONDS, ServiceFailed, Services
from skyrocket.testing.clock import FakeClock


async def test_a_service_that_dies_is_seen_and_run_again(caplog: pytest.LogCaptureFixture) -> None:
    lives = 0

    async def moody() -> None:
        nonlocal lives
        lives += 1
        if lives < 3:
            raise ValueError(f"bad moment {lives}")
        await asyncio.sleep(60)

    async def main() -> None:
        services = Services(first_pause_seconds=0.001)
        services.start(moody)
        while lives < 3:
            await asyncio.sleep(0.001)
        await services.end()

    with caplog.at_level(logging.ERROR):
        await asyncio.wait_for(main(), 10)
    assert [record.getMessage() for record in caplog.records] == [
        f"a service died and is run again service={moody.__qualname__} deaths={n} pause_s={p}"
        for n, p in ((1, "0.001"), (2, "0.002"))
    ]
    assert "bad moment 1" in caplog.text


async def test_a_service_that_cannot_live_is_a_failure_of_its_owner() -> None:
    lives = 0

    async def doomed() -> None:
        nonlocal lives
        lives += 1
        raise OSError("no disk")

    async def main() -> None:
        services = Services(FakeClock(), first_pause_seconds=0.0)
        services.start(doomed, "doomed")
        with pytest.raises(ServiceFailed, match=r"doomed died 6 times within 300 s, at last of OSError: no disk\."):
            await services.failed()
        await services.end()

    await asyncio.wait_for(main(), 10)
    assert lives == DEATHS_AT_MOST + 1


async def test_deaths_long_ago_are_forgotten() -> None:
    clock = FakeClock()
    lives = 0

    async def dies_now_and_then() -> None:
        nonlocal lives
        lives += 1
        if lives > 3 * DEATHS_AT_MOST:
            await asyncio.sleep(60)
        clock.advance(seconds=WITHIN_SECONDS / 2)
        raise ValueError

    async def main() -> None:
        services = Services(clock, first_pause_seconds=0.0)
        services.start(dies_now_and_then)
        while lives <= 3 * DEATHS_AT_MOST:
            await asyncio.sleep(0)
        with suppress(TimeoutError):
            await asyncio.wait_for(services.failed(), 0.01)
        await services.end()

    await asyncio.wait_for(main(), 10)


async def test_the_end_waits_for_all() -> None:
    ended: list[str] = []

    async def tidy() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("tidy")

    async def main() -> None:
        services = Services()
        services.start(tidy)
        services.start(tidy)
        await asyncio.sleep(0)
        await services.end()

    await asyncio.wait_for(main(), 10)
    assert ended == ["tidy", "tidy"]
