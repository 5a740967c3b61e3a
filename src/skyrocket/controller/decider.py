"""Decides while this controller leads: one request after the other, each written by the engine before it is answered.

    standing changes ─▶ nothing is known any more ─▶ the next decision reads all documents first
    decide: leads? ─▶ machine.decide ─▶ engine.write, on the version and the leadership ─▶ machine.apply ─▶ answer

When a write fails in whatever way, what is known is thrown away: it may have happened.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from skyrocket.clock import Clock
from skyrocket.controller.decisions import Change, Outcome, RoleChange
from skyrocket.controller.engines.engine import Engine, EngineError, Standing
from skyrocket.controller.live_brokers import BrokerKey
from skyrocket.controller.machine import ControllerMachine, SetRequest
from skyrocket.controller.replica_set import decode, encode
from skyrocket.errors import DataError
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.errors import NotControllerLeader, SystemFailure
from skyrocket.protocol.requests.controller import ElectMaster, GetSyncStateData

_logger = logging.getLogger(__name__)

_LONGEST_SECONDS: Final = 5.0  # RocketMQ: a request waits so long for its controller's log


class ElectionCounts:
    """How elections went."""

    def __init__(self) -> None:
        self.by_result = {"new_master_elected": 0, "keep_current_master": 0, "no_master_elected": 0}

    def add(self, outcome: Outcome) -> None:
        """Count an election that was one."""
        if outcome.code == ResponseCode.SUCCESS:
            self.by_result["new_master_elected"] += 1
        elif outcome.code == ResponseCode.CONTROLLER_MASTER_STILL_EXIST:
            self.by_result["keep_current_master"] += 1
        elif outcome.code != ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED:
            self.by_result["no_master_elected"] += 1


class Decider:
    """A machine between requests and an engine."""

    def __init__(
        self, machine: ControllerMachine, engine: Engine, clock: Clock, role_changed: Callable[[RoleChange], None]
    ) -> None:
        self._standing = Standing(trouble="the controller has just started")
        self.elections = ElectionCounts()
        self.writes = 0
        self.failed_writes = 0
        self._machine = machine
        self._engine = engine
        self._clock = clock
        self._role_changed = role_changed
        self._turn = asyncio.Lock()
        self._versions: dict[str, int] | None = None  # None: the engine must be read

    @property
    def standing(self) -> Standing:
        """How we stand, as far as can be said now: who led and was away for a session may have been replaced."""
        sure_until = self._standing.sure_until
        if self._standing.leadership is None or sure_until is None or self._clock.monotonic() < sure_until:
            return self._standing
        return Standing(members=self._standing.members, trouble=f"{self._engine.description} was not heard for long")

    @property
    def leads(self) -> bool:
        """Whether this controller decides now, as far as it knows."""
        return self.standing.leadership is not None

    def told(self, standing: Standing) -> None:
        """The engine says how we stand."""
        if standing.leadership != self._standing.leadership:
            self._versions = None
            _logger.warning(
                "the lead has changed leads=%s leader=%s reason=%s",
                standing.leadership is not None,
                None if standing.leader is None else standing.leader.address,
                standing.trouble,
            )
        elif standing.trouble is not None:  # once a minute, however often the engine is tried
            _logger.warning("no leader is known, so nothing is decided reason=%s", standing.trouble)
        self._standing = standing

    async def decide(self, request: SetRequest, body: Any = None) -> Outcome:
        """Raises NotControllerLeader, SystemFailure, SystemBusy."""
        async with self._deadline(), self._turn:
            leadership = await self._informed()
            outcome = self._machine.decide(request, body, self._clock.monotonic())
            if outcome.change is not None:
                await self._write(leadership, outcome.change)
        if isinstance(request, ElectMaster):
            self.elections.add(outcome)
        if outcome.role_change is not None:
            self._role_changed(outcome.role_change)
        return outcome

    async def sync_state_data(self, request: GetSyncStateData, names: tuple[str, ...] | None) -> Outcome:
        """Raises NotControllerLeader, SystemFailure."""
        async with self._deadline(), self._turn:
            await self._informed()
            return self._machine.sync_state_data(request, names, self._clock.monotonic())

    async def names(self) -> tuple[str, ...]:
        """Of all sets; raises NotControllerLeader, SystemFailure."""
        async with self._deadline(), self._turn:
            await self._informed()
            return tuple(sorted(self._machine.sets))

    async def in_need(self) -> list[str]:
        """Sets whose master is lost; none while another leads. Raises SystemFailure."""
        if not self.leads:
            return []
        async with self._deadline(), self._turn:
            await self._informed()
            return self._machine.in_need(self._clock.monotonic())

    async def has_lost_master(self, gone: BrokerKey) -> bool:
        """Whether a broker that is gone was the master of its set. Raises NotControllerLeader, SystemFailure."""
        async with self._deadline(), self._turn:
            await self._informed()
            return self._machine.has_lost_master(gone)

    # ── the engine ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _deadline(self) -> "_Deadline":
        if not self.leads:
            raise NotControllerLeader("The controller is not in leader state")
        return _Deadline(self._engine.description)

    async def _informed(self) -> int:
        """The number under which we lead, when all that was decided before is known."""
        leadership = self._leadership()
        if self._versions is None:
            try:
                documents = await self._engine.documents()
                self._machine.load(decode(each.content) for each in documents.values())
            except (EngineError, DataError) as error:
                raise SystemFailure(f"the controller cannot read {self._engine.description}: {error}") from error
            if leadership != self._leadership():
                raise NotControllerLeader("The controller is not in leader state")
            self._versions = {name: each.version for name, each in documents.items()}
        return leadership

    def _leadership(self) -> int:
        leadership = self.standing.leadership
        if leadership is None:
            raise NotControllerLeader("The controller is not in leader state")
        return leadership

    async def _write(self, leadership: int, change: Change) -> None:
        assert self._versions is not None
        versions, self._versions = self._versions, None  # whatever happens until it is known to have happened
        content = None if change.after is None else encode(change.after)
        try:
            version = await self._engine.write(
                leadership, change.broker_name, content, versions.get(change.broker_name)
            )
        except EngineError as error:
            self.failed_writes += 1
            raise SystemFailure(
                f"the controller cannot write to {self._engine.description}: {error}. Ask again: a controller that "
                "can will answer"
            ) from error
        self.writes += 1
        self._machine.apply(change)
        if version is None:
            del versions[change.broker_name]
        else:
            versions[change.broker_name] = version
        if self._standing.leadership == leadership:
            self._versions = versions


class _Deadline:
    """No request waits longer; a write that was cut off counts as one that failed."""

    def __init__(self, description: str) -> None:
        self._description = description
        self._timeout = asyncio.timeout(_LONGEST_SECONDS)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(self, *failure: Any) -> None:
        try:
            await self._timeout.__aexit__(*failure)
        except TimeoutError:
            raise SystemFailure(
                f"the controller waited {_LONGEST_SECONDS:g} s for {self._description} in vain. Ask again"
            ) from None
