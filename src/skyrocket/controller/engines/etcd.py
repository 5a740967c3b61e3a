"""Decisions in etcd.

    /skyrocket/controllers/7587…    with our lease; the revision that created it is our place in the line of leaders
    /skyrocket/sets/broker-a        a document; its version is the revision that last changed it

Every write is a transaction that also compares the revision at which our own key was created. etcd removes the key with
our lease, and from then on no write of ours gets through.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping

from skyrocket.clock import Clock, SystemClock
from skyrocket.config.sections import ControllerConfig
from skyrocket.controller.engines.engine import Document, EngineUnavailable, Member, Overtaken, Standing, Told
from skyrocket.controller.engines.etcd_gateway import EtcdGateway, put, remove, was_changed_at, was_created_at
from skyrocket.controller.engines.member_line import decode_member, encode_member, standing_of
from skyrocket.controller.engines.place import Place, key_of, name_of, tls_of

_logger = logging.getLogger(__name__)


class EtcdEngine:
    """One lease after the other, each with a place in the line."""

    def __init__(self, place: Place, config: ControllerConfig, clock: Clock | None = None) -> None:
        self.description = str(place)
        self._line_prefix = f"{place.path}/controllers/"
        self._sets_prefix = f"{place.path}/sets/"
        self._lease_seconds = max(round(config.session_ms / 1000), 1)
        self._look_seconds = min(self._lease_seconds / 3, 1.0)
        account = (config.store_user, config.store_password) if config.store_user else None
        self._etcd = EtcdGateway(place.hosts, account, tls_of(config))
        self._clock = clock or SystemClock()
        self._lease: int | None = None
        self._lease_ends = 0.0  # monotonic; by our own clock, and not later than by etcd's
        self._own_key: str | None = None
        self._own_number: int | None = None
        self._me = Member("", "")
        self._told: Told = lambda _: None
        self._staying: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    async def join(self, me: Member, told: Told) -> None:
        self._me, self._told = me, told
        self._staying = asyncio.create_task(self._stay_in_line(), name="line of controllers in etcd")

    async def close(self) -> None:
        if self._staying is None:
            return
        staying, self._staying, self._told = self._staying, None, lambda _: None
        self._own_key = self._own_number = None
        staying.cancel()
        await asyncio.gather(staying, return_exceptions=True)
        if self._lease is not None:
            try:
                await self._etcd.revoke_lease(self._lease)
            except EngineUnavailable as error:
                _logger.warning("our place in etcd goes with its lease only reason=%s", error)
        await self._etcd.close()

    # ── documents ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def documents(self) -> Mapping[str, Document]:
        found = await self._etcd.range(self._sets_prefix)
        return {
            name_of(each.key.removeprefix(self._sets_prefix)): Document(each.value, each.mod_revision) for each in found
        }

    async def write(self, leadership: int, name: str, content: bytes | None, version: int | None) -> int | None:
        if self._own_key is None or self._own_number != leadership:
            raise Overtaken(f"leadership {leadership} is over")
        key = self._sets_prefix + key_of(name)
        conditions = [was_created_at(self._own_key, leadership), was_changed_at(key, version or 0)]
        try:
            done, revision = await self._etcd.transact(
                conditions, remove(key) if content is None else put(key, content)
            )
        except BaseException:
            # It may happen yet. It cannot after our key is gone: a new place in the line is a new number.
            self._give_place_up()
            raise
        if not done:
            self._changed.set()
            raise Overtaken(f"{name} has another version than {version}, or leadership {leadership} is over")
        return None if content is None else revision

    # ── the line ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _stay_in_line(self) -> None:
        while True:
            self._changed.clear()
            try:
                await self._look()
            except EngineUnavailable as error:
                if self._clock.monotonic() >= self._lease_ends or self._own_number is None:
                    self._told(Standing(trouble=f"{self.description} cannot be used: {error}"))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._look_seconds):
                    await self._changed.wait()

    async def _look(self) -> None:
        """Keep the lease, take a place if we have none, and see who is the first."""
        await self._keep_lease()
        line = {each.create_revision: each for each in await self._etcd.range(self._line_prefix)}
        if self._own_number not in line:
            await self._take_place()
            line = {each.create_revision: each for each in await self._etcd.range(self._line_prefix)}
        members = {number: decode_member(each.value) for number, each in line.items()}
        self._told(standing_of(members, self._own_number, self._lease_ends))

    async def _keep_lease(self) -> None:
        asked = self._clock.monotonic()
        if self._lease is None or not await self._etcd.keep_lease(self._lease):
            self._own_key = self._own_number = None
            asked = self._clock.monotonic()
            self._lease = await self._etcd.grant_lease(self._lease_seconds)
        self._lease_ends = asked + self._lease_seconds

    async def _take_place(self) -> None:
        """Our key, made anew: what is left of a place that we gave up, or of an attempt cut off, goes first."""
        assert self._lease is not None
        key = f"{self._line_prefix}{self._lease:x}"
        await self._etcd.delete(key)
        done, revision = await self._etcd.transact(
            [was_changed_at(key, 0)], put(key, encode_member(self._me), self._lease)
        )
        if done:
            self._own_key, self._own_number = key, revision

    def _give_place_up(self) -> None:
        self._own_key = self._own_number = None
        self._told(Standing(trouble=f"a write to {self.description} was cut off"))
        self._changed.set()
