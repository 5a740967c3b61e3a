"""Delay levels: messages that wait for one of RocketMQ's fixed times."""

import asyncio
from collections.abc import Mapping

from skyrocket.broker.core.feature import Copied, Feature
from skyrocket.broker.core.parts import Parts
from skyrocket.broker.delay.delay_levels import DelayLevels
from skyrocket.broker.delay.delay_offsets import DelayOffsetTable
from skyrocket.format.config_files import DELAY_OFFSETS, DelayOffsets
from skyrocket.model.data_version import DataVersion
from skyrocket.model.topic import SCHEDULE_TOPIC
from skyrocket.protocol.bodies.offsets import DelayOffsetTable as CopiedDelayOffsets
from skyrocket.protocol.command import Body
from skyrocket.protocol.requests.offsets import GetAllDelayOffset
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.services import Work
from skyrocket.remoting.serving import Handlers, serve


class DelayFeature(Feature):
    """Delivers what waits, and tells how far each level is."""

    def __init__(self, parts: Parts) -> None:
        self._store = parts.store
        self._when_online = parts.broker_set.when_online
        self._delivers = parts.is_master  # a slave delivers nothing, unless it acts as master
        self._may_act = parts.may_act
        self._special = parts.special
        self._clock = parts.clock
        self.offsets = DelayOffsetTable(parts.config_file("delayOffset.json", DELAY_OFFSETS), parts.clock)
        self.levels = DelayLevels(
            parts.store,
            self.offsets,
            parts.clock,
            parts.rules.delays_ms,
            save_seconds=parts.config.flush_delay_offsets_interval_ms / 1000,
        )

    def handlers(self) -> Handlers:
        return (serve(GetAllDelayOffset, self.copy),)

    def copy(self, _: Peer, __: GetAllDelayOffset, ___: Body) -> CopiedDelayOffsets:
        """How far the levels are, for a slave."""
        content = self.offsets.content()
        return CopiedDelayOffsets(content.offsets, content.data_version)

    def copied(self) -> tuple[Copied, ...]:
        return (Copied(GetAllDelayOffset(), self._take, after_log=True),)

    def _take(self, body: bytes) -> None:
        table = CopiedDelayOffsets.decode(body)
        if (table.data_version or DataVersion()) < self.offsets.data_version:
            return  # a master that was away: its slave has delivered more, and it will take that back
        if table.offsets != self.offsets.content().offsets:
            self.offsets.replace(DelayOffsets(table.data_version or DataVersion(), dict(table.offsets)))

    def taken_back(self) -> tuple[Copied, ...]:
        return (Copied(GetAllDelayOffset(), self._take_back),)

    def _take_back(self, body: bytes) -> None:
        """Both have delivered what they say, whoever has changed more: the larger offset of each level counts.

        # RocketMQ: the newer table counts, and one of a master that was busy is newer than that of its slave.
        """
        table, own = CopiedDelayOffsets.decode(body), self.offsets.content()
        larger = {level: max(offset, own.offsets.get(level, 0)) for level, offset in table.offsets.items()}
        merged = {**own.offsets, **larger}
        if merged != own.offsets:
            version = max(table.data_version or DataVersion(), own.data_version)
            self.offsets.replace(DelayOffsets(version.next(self._clock.now_ms()), merged))
            self.offsets.save()
            self.levels.load()

    def services(self) -> tuple[Work, ...]:
        if self._delivers:
            return (self._when_online(self.levels.run), self._when_online(self.levels.run_saves))
        return (self._run_acting,) if self._may_act else ()

    async def _run_acting(self) -> None:
        await self.levels.run_acting(self._special)

    def tables(self) -> tuple[DelayOffsetTable, ...]:
        return () if self._delivers else (self.offsets,)  # who delivers saves what is on disk alone

    def runtime_rows(self) -> Mapping[str, str]:
        """Of each delay level that was used: the next to deliver, and the end of its queue."""
        return {
            f"scheduleMessageOffset_{level}": f"{offset},{self._store.max_offset(SCHEDULE_TOPIC, level - 1)}"
            for level, offset in self.offsets.content().offsets.items()
        }

    async def open(self) -> None:
        if self._delivers:
            self.levels.load()  # the store has recovered: offsets are compared with its queues
        else:
            self.offsets.load()

    async def close(self) -> None:
        if self._delivers:
            await asyncio.to_thread(self.levels.save)
