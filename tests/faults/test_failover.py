"""kill -9 of masters under load: nothing acknowledged is lost, order is kept, and all logs become the same."""

import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner

from skyrocket.cli import app
from tests.faults.failover_set import FailoverSet, Load, stored


async def fail_over_under_load(folder: Path, times: int) -> list[float]:
    """Raises what is broken; the longest pauses between two acknowledged messages."""
    silences: list[float] = []
    async with FailoverSet(folder) as found:
        load = Load(found.name_server)
        sending = asyncio.create_task(load.send())
        await load.grows()
        for _ in range(times):
            load.longest_silence = 0.0
            await found.fail_over()
            await load.grows()
            silences.append(load.longest_silence)
        master = await found.in_sync(found.count)
        load.end()
        await sending
        numbers = await stored(found.client, f"127.0.0.1:{found.ports[master]}")
        for queue_id, acknowledged in load.acknowledged.items():
            in_queue = numbers[queue_id]
            assert not set(acknowledged) - set(in_queue), "acknowledged and lost"
            firsts = list(dict.fromkeys(in_queue))
            assert firsts == sorted(firsts), "out of order"
        await found.stop_all()
        for number in range(2, found.count + 1):
            stores = [str(found.store(1)), str(found.store(number))]
            result = CliRunner().invoke(app, ["inspect", "--compare", *stores])
            assert result.exit_code == 0, result.output
    return silences


@pytest.mark.timeout(300)
async def test_nothing_acknowledged_is_lost_when_masters_are_killed(tmp_path: Path) -> None:
    assert len(await fail_over_under_load(tmp_path, 2)) == 2


@pytest.mark.slow
@pytest.mark.timeout(3600)
async def test_nothing_acknowledged_is_lost_in_fifty_fail_overs(tmp_path: Path) -> None:
    silences = sorted(await fail_over_under_load(tmp_path, 50))
    print(f"seconds without a master: median {silences[25]:.2f}, longest {silences[-1]:.2f}")  # noqa: T201
