"""The doctor's checks, made in the background while somebody looks: pages show what the last examination found."""

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from typing import Final

from skyrocket.client.admin.admin import Admin
from skyrocket.client.doctor.examination import CHECKS
from skyrocket.client.doctor.facts import ClusterFacts
from skyrocket.client.doctor.finding import Severity
from skyrocket.client.doctor.gathering import Gatherer, Scope
from skyrocket.clock import Clock
from skyrocket.console.cluster.findings import SEEN_AT_ONCE, Finding, finding
from skyrocket.errors import SkyrocketError

_logger = logging.getLogger(__name__)

_PAUSE_SECONDS: Final = 60.0
_REST: Final = 20  # it asks for everything: brokers shall hardly notice, however many topics they have
_AT_ONCE: Final = 2  # and pages that are asked for meanwhile do not wait for it
_REST_SECONDS: Final = 0.005
_LONGEST_PAUSE_SECONDS: Final = 900.0
_SAMPLE_SECONDS: Final = 5.0  # between two looks at lag: it may grow
_AFTER_CHANGE_SECONDS: Final = 5.0
_SEVERITIES: Final = {Severity.ERROR: "critical", Severity.WARNING: "warning", Severity.NOTE: "note"}


class Checkup:
    """`look` begins an examination when the last one is too old, and never waits for it."""

    def __init__(self, admin: Admin, clock: Clock) -> None:
        self._admin = admin
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self._due = float("-inf")
        self.examined_ms: int | None = None  # None before the first
        self.found: list[Finding] = []

    def look(self) -> list[Finding]:
        """What was found last; nothing before the first examination has ended."""
        if (self._task is None or self._task.done()) and self._clock.monotonic() >= self._due:
            self._task = asyncio.create_task(self.examine(), name="console-checkup")
        return self.found

    async def examine(self) -> None:
        """Ask everybody, and judge."""
        began = self._clock.monotonic()
        try:
            scope = Scope(sample_seconds=_SAMPLE_SECONDS)
            gatherer = Gatherer(self._admin, scope, self._clock, at_once=_AT_ONCE, rest_seconds=_REST_SECONDS)
            facts = await gatherer.gather()
        except SkyrocketError as error:  # the strip names what is wrong from what the view knows
            _logger.info("the cluster was not examined: %s", error)
        else:
            self.found, self.examined_ms = list(_found(facts)), self._clock.now_ms()
        now = self._clock.monotonic()
        rest = _REST * max(now - began - _SAMPLE_SECONDS, 0.0)
        self._due = now + min(max(_PAUSE_SECONDS, rest), _LONGEST_PAUSE_SECONDS)

    def forget(self) -> None:
        """Something was changed: look again soon."""
        self._due = min(self._due, self._clock.monotonic() + _AFTER_CHANGE_SECONDS)

    async def end(self) -> None:
        """Stop looking."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task


def _found(facts: ClusterFacts) -> Iterator[Finding]:
    for subject, checks in CHECKS.items():
        for check in checks:
            for each in check(facts):
                if each.code not in SEEN_AT_ONCE:
                    yield finding(each.code, _SEVERITIES[each.severity], subject, each.where, each.what, each.remedy)
