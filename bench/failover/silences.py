"""One set, killed again and again: how long nobody acknowledges a message each time.

kill -9, or SIGSTOP ──────────── nobody acknowledges ────────────▶ the first SEND_OK of another broker

A prober sends to all other brokers, each every 20 ms: what clients need to find the new master is not measured.
"""

import asyncio
import contextlib
import shutil
import sys
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Final

from tests.faults.broker_load import TOPIC, send_request
from tests.interop.apache import Apache
from tests.interop.failover.sets import APACHE, OURS, FailoverSet, Makers, failover_set

from bench.failover.settings import Setting
from skyrocket.protocol.errors import RequestError
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError

_PAUSE_SECONDS: Final = 0.02
_ANSWER_SECONDS: Final = 5.0
_PATIENCE_SECONDS: Final = 120.0


class NoMaster(Exception):
    """Nobody took over."""


def silences(
    work: Path, setting: Setting, runs: int, apache: Apache | None = None, *, frozen: bool = False
) -> Generator[float]:
    """Seconds of each run; a set of `apache` when it is given, else one of ours, each with its own controller.

    `frozen` masters stand still instead of dying: no connection ends, only heartbeats stay away.
    """
    maker = OURS if apache is None else APACHE
    folder = work / f"{maker}-{setting.name}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        with failover_set(
            Makers((maker,) * 3, maker),
            folder,
            apache,
            broker_settings=setting.broker,
            controller_settings=setting.controller,
        ) as replicas:
            replicas.create_topics(TOPIC)
            for number in range(runs):
                seconds = _one(replicas, frozen=frozen)
                print(f"{maker}, {setting.name}, run {number + 1}: {seconds:.2f} s", file=sys.stderr, flush=True)
                yield seconds
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _one(replicas: FailoverSet, *, frozen: bool) -> float:
    master = replicas.at(replicas.await_whole().master_address)
    others = [member.address for member in replicas.members if member is not master]
    ended_at = time.monotonic()
    if frozen:
        master.freeze()
    else:
        master.kill()
    seconds = asyncio.run(_first_acknowledged(others)) - ended_at
    master.kill()
    master.start()
    return seconds


async def _first_acknowledged(addresses: Sequence[str]) -> float:
    """When one of them took a message."""
    async with RemotingClient() as client:
        probes = [asyncio.create_task(_acknowledged(client, address)) for address in addresses]
        try:
            done, _ = await asyncio.wait(probes, timeout=_PATIENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for probe in probes:
                probe.cancel()
            await asyncio.gather(*probes, return_exceptions=True)
        if not done:
            raise NoMaster(f"none of {', '.join(addresses)} took a message within {_PATIENCE_SECONDS:g} s")
        return min(probe.result() for probe in done)


async def _acknowledged(client: RemotingClient, address: str) -> float:
    while True:
        with contextlib.suppress(RemotingError, RequestError):  # a slave, or it is not in sync with another one yet
            await client.call(address, send_request(0), b"probe", timeout_seconds=_ANSWER_SECONDS)
            return time.monotonic()
        await asyncio.sleep(_PAUSE_SECONDS)
