"""Controllers' parts of real engines, without the controllers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace

from skyrocket.config.sections import ControllerConfig
from skyrocket.controller.engine_choice import engine_of
from skyrocket.controller.engines.engine import Document, Engine, EngineUnavailable, Member, Standing
from skyrocket.store.disk import Disk
from tests.integration.controller.real_engines import RealEngine, place_of
from tests.waiting import SECONDS


class Joined:
    """A controller's part of an engine, and what it was told."""

    def __init__(self, engine: Engine, number: int) -> None:
        self.engine = engine
        self.me = Member(f"n{number}", f"127.0.0.1:{9878 + number}")
        self.standing = Standing()

    def told(self, standing: Standing) -> None:
        self.standing = standing

    async def documents(self) -> Mapping[str, Document]:
        """All documents, as soon as the engine can be read."""
        async with asyncio.timeout(SECONDS):
            while True:
                try:
                    return await self.engine.documents()
                except EngineUnavailable:
                    await asyncio.sleep(0.05)

    @property
    def leads(self) -> bool:
        return self.standing.leadership is not None


@contextlib.asynccontextmanager
async def joined(
    real: RealEngine, folder: str, number: int, config: ControllerConfig | None = None
) -> AsyncIterator[Joined]:
    """Takes part until the end."""
    config = replace(config or ControllerConfig(session_ms=2000), store=place_of(real, folder))
    each = Joined(engine_of(config, Disk()), number)
    await each.engine.join(each.me, each.told)
    try:
        yield each
    finally:
        await each.engine.close()
