"""Keeps the planned brokers running: all ready before anyone hears of them, a dead one started again, all stopped.

start all ─▶ every one ready and registered ─▶ keep: died ─▶ pause ─▶ start ─▶ …
             └─ one died before: stop all, the program fails with that broker's words
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import typer

from skyrocket.cli.fleet.broker_process import BrokerProcess
from skyrocket.cli.fleet.masters import set_names, tell_masters
from skyrocket.cli.fleet.plan import BrokerPlan, Places
from skyrocket.cli.fleet.readiness import await_brokers, await_slaves, await_sync_sets
from skyrocket.cli.fleet.restarts import PER_MINUTE, Restarts
from skyrocket.cli.program.lifetime import unless_stopped
from skyrocket.remoting.services import Services


@dataclass(frozen=True, slots=True)
class Serving:
    """Brokers at work: where clients reach them, and how to hear of what cannot be repaired."""

    addresses: Sequence[str]
    failed: Callable[[], Coroutine[Any, Any, NoReturn]]


@contextlib.asynccontextmanager
async def serve_brokers(
    plans: Sequence[BrokerPlan],
    places: Places,
    bind_address: str,
    stopping: asyncio.Event,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Serving | None]:
    """Run the brokers while the block runs; None when the signal to stop came before they were ready."""
    keepers = [_Keeper(plan, places) for plan in plans]
    services = Services()
    try:
        addresses = await unless_stopped(_all_ready(keepers, places, bind_address, tls), stopping)
        if addresses is None:
            yield None
            return
        for keeper in keepers:
            services.start(keeper.keep, name=f"keeper of {keeper.plan.label}")
        if places.controllers:
            services.start(
                partial(tell_masters, places.controllers, set_names(plans), _show, tls), name="news of masters"
            )
        yield Serving(addresses, services.failed)
    finally:
        await services.end()
        await asyncio.gather(*(keeper.stop() for keeper in keepers))


async def _all_ready(
    keepers: Sequence["_Keeper"], places: Places, bind_address: str, tls: ssl.SSLContext | None
) -> list[str]:
    starts = [asyncio.create_task(keeper.start()) for keeper in keepers]
    try:
        addresses = await asyncio.gather(*starts)
    finally:
        for start in starts:
            start.cancel()
        await asyncio.gather(*starts, return_exceptions=True)
    plans = [keeper.plan for keeper in keepers]
    named = [(plan.name, address) for plan, address in zip(plans, addresses, strict=True)]
    await await_brokers(places.name_servers, named, bind_address, tls)
    slaves = max(plan.broker_id for plan in plans)
    if places.controllers:
        await await_sync_sets(places.controllers, set_names(plans), slaves + 1, tls)
    elif slaves:
        masters = [address for plan, address in zip(plans, addresses, strict=True) if not plan.broker_id]
        await await_slaves(masters, slaves, tls)
    return addresses


class _Keeper:
    """Sees to it that one planned broker runs."""

    def __init__(self, plan: BrokerPlan, places: Places) -> None:
        self.plan = plan
        self._places = places
        self._restarts = Restarts()
        self._process: BrokerProcess | None = None
        self._started_at = 0.0
        self._show = partial(_show, plan.label)

    async def start(self) -> str:
        """Start it for the first time; its address. Raises BrokerDied."""
        return await (await self._spawn()).ready()

    async def _spawn(self) -> BrokerProcess:
        self._started_at = asyncio.get_running_loop().time()
        self._process = await BrokerProcess.start(self.plan, self._places, self._show)
        return self._process

    async def keep(self) -> None:
        """Start it again whenever it ends, until cancelled."""
        while True:
            assert self._process is not None
            how = await self._process.ended()
            now = asyncio.get_running_loop().time()
            pause = self._restarts.pause_after(now, now - self._started_at)
            bound = f", {PER_MINUTE} restarts within a minute being the most" if pause.is_bound_reached else ""
            self._show(f"{how}; it is started again in {pause.seconds:.1f} s{bound}")
            await self._process.stop()  # closes what is left of it
            await asyncio.sleep(pause.seconds)
            await self._spawn()

    async def stop(self) -> None:
        if self._process is not None:
            await self._process.stop()


def _show(name: str, text: str) -> None:
    typer.echo(f"[{name}] {text}")
